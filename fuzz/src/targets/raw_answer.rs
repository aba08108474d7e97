//! Any bytes as answers over plain TCP, whole and split in two: the split does not change the answers.

use lab_dialogues::RawAnswer;
use lab_workload::{AnswerEnd, LengthField};

/// All answers, and the bytes after them.
type Split = (Vec<Vec<u8>>, Vec<u8>);

/// Returns all answers with this end, and the bytes after them.
fn read(end: &AnswerEnd, pieces: &[&[u8]]) -> Result<Split, String> {
    let (mut reader, mut body, mut kept) = (RawAnswer::default(), Vec::new(), Vec::new());
    let mut answers = Vec::new();
    for piece in pieces {
        kept.extend_from_slice(piece);
        let mut heard = &kept[..];
        while !heard.is_empty() && reader.read(end, &mut heard, &mut body)? {
            answers.push(std::mem::take(&mut body));
            reader = RawAnswer::default();
        }
        let taken = kept.len() - heard.len();
        kept.drain(..taken);
    }
    body.extend_from_slice(&kept);
    Ok((answers, body))
}

pub(crate) fn run(data: &[u8]) {
    let [kind, plus, at, bytes @ ..] = data else {
        return;
    };
    let end = match kind % 4 {
        0 => AnswerEnd::Line,
        1 => AnswerEnd::Bytes(u64::from(*plus).max(1)),
        2 => AnswerEnd::Length(LengthField {
            at: u32::from(plus & 3),
            width: 1 << (kind >> 6),
            little: kind & 16 > 0,
            plus: i32::from(*plus) - 128,
        }),
        _ => AnswerEnd::Pattern("a\r\n".to_owned()),
    };
    let cut = bytes.len() * usize::from(*at) / 256;
    let (first, second) = bytes.split_at(cut);
    assert_eq!(read(&end, &[bytes]), read(&end, &[first, second]));
}
