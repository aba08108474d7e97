//! Any bytes as answers of IMAP, whole and split in two: the split does not change the result.

use lab_dialogues::{ImapAnswer, ImapResult};
use serde_json::value::RawValue;

/// Returns all answers: each command's result, and its events.
fn read(pieces: &[&[u8]], greets: bool) -> Result<Vec<(ImapResult, Vec<u8>)>, String> {
    let (mut answer, mut kept, mut answers) = (ImapAnswer::default(), Vec::new(), Vec::new());
    answer.begin(true);
    if greets {
        answer.greeting();
    }
    for piece in pieces {
        kept.extend_from_slice(piece);
        let mut heard = &kept[..];
        while let Some(told) = answer.read(&mut heard)? {
            let mut body = Vec::new();
            answer.end(&mut body);
            serde_json::from_slice::<&RawValue>(&body).expect("it is JSON");
            answers.push((told, body));
            answer.begin(true);
        }
        let taken = kept.len() - heard.len();
        kept.drain(..taken);
    }
    Ok(answers)
}

pub(crate) fn run(data: &[u8]) {
    let Some((at, bytes)) = data.split_first() else {
        return;
    };
    let cut = bytes.len() * usize::from(*at) / 256;
    let (first, second) = bytes.split_at(cut);
    let greets = at % 2 == 0;
    assert_eq!(read(&[bytes], greets), read(&[first, second], greets));
}
