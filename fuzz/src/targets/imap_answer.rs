//! Any bytes as answers of IMAP, whole and cut in two: the cut changes nothing of what is read.

use lab_dialogues::{ImapAnswer, ImapTold};
use serde_json::value::RawValue;

/// All answers: what each command comes to, and what was told.
fn read(pieces: &[&[u8]], greets: bool) -> Result<Vec<(ImapTold, Vec<u8>)>, String> {
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
