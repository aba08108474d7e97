//! Parses any bytes as an answer with counters; the first byte selects the format. Parsed counters can be written and
//! read again.

use std::time::Duration;

use lab_asked::{How, Read, Recorder, from_jsonl, to_jsonl};

pub(crate) fn run(data: &[u8]) {
    let (form, answer) = data
        .split_first()
        .map_or((0, data), |(form, rest)| (*form, rest));
    let (_, read) = Read::NAMED[usize::from(form & 3)];
    let mut how = How::of(read);
    how.text = form & 4 == 0;
    how.rows_ms = (form & 8 != 0).then_some(500);
    if form & 16 != 0 {
        how.keep = vec!["*a*".to_owned(), "c?lls".to_owned()];
    }
    let text = String::from_utf8_lossy(answer);
    let mut recorder = Recorder::new("it", how, Duration::from_secs(20));
    recorder.take(Duration::from_secs(1), Ok(&text), false);
    recorder.take(Duration::from_secs(11), Err("late".to_owned()), false);
    recorder.take(Duration::from_secs(21), Ok(&text), true);
    let recorded = recorder.finish();
    assert_eq!(recorded.answers.len(), 3);
    let file = to_jsonl(vec![recorded]);
    let again = from_jsonl(file.as_bytes()).expect("what is written can be read");
    assert_eq!(to_jsonl(again), file);
}
