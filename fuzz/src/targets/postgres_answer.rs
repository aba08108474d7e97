//! Any bytes as answers of PostgreSQL, whole and split in two: the split does not change the result, and rows are JSON.

use lab_dialogues::{PostgresAnswer, PostgresResult};
use serde_json::value::RawValue;

/// Returns all answers, and the number of other messages.
fn read(pieces: &[&[u8]], is_read: bool) -> Result<(Vec<Vec<u8>>, usize), String> {
    let (mut answer, mut body, mut kept) = (PostgresAnswer::default(), Vec::new(), Vec::new());
    let (mut answers, mut others) = (Vec::new(), 0);
    answer.begin(is_read);
    for piece in pieces {
        kept.extend_from_slice(piece);
        let mut heard = &kept[..];
        while let Some(told) = answer.read(&mut heard, &mut body)? {
            if !matches!(told, PostgresResult::End(_)) {
                others += 1;
                continue;
            }
            if is_read {
                serde_json::from_slice::<&RawValue>(&body).expect("it is JSON");
            }
            answers.push(std::mem::take(&mut body));
            answer.begin(is_read);
        }
        let taken = kept.len() - heard.len();
        kept.drain(..taken);
    }
    Ok((answers, others))
}

pub(crate) fn run(data: &[u8]) {
    let Some((at, bytes)) = data.split_first() else {
        return;
    };
    let cut = bytes.len() * usize::from(*at) / 256;
    let (first, second) = bytes.split_at(cut);
    let is_read = at % 2 == 0;
    assert_eq!(read(&[bytes], is_read), read(&[first, second], is_read));
}
