//! Parses any bytes as `asked.jsonl`. Parsed counters can be written, read again, and reduced to values per transaction.

use lab_asked::{OfTrial, from_jsonl, to_jsonl};

pub(crate) fn run(data: &[u8]) {
    let all = match from_jsonl(data) {
        Ok(all) => all,
        Err(error) => {
            assert!(error.line > 0 && !error.to_string().is_empty());
            return;
        }
    };
    for one in &all {
        let of = OfTrial::of(one, (0.0, 1e4), |from, to| to - from);
        assert!(of.values.len() <= one.series.len());
    }
    let file = to_jsonl(all);
    let again = from_jsonl(file.as_bytes()).expect("what is written can be read");
    assert_eq!(to_jsonl(again), file);
}
