//! Any bytes as replies of SMTP, whole and split in two: the split does not change the result.

use lab_dialogues::SmtpReplies;

/// Returns all replies up to the first invalid one: codes and texts.
fn read(pieces: &[&[u8]]) -> Result<Vec<(u16, Vec<u8>)>, String> {
    let (mut replies, mut text, mut told) = (SmtpReplies::default(), Vec::new(), Vec::new());
    for mut heard in pieces.iter().copied() {
        while let Some(code) = replies.read(&mut heard, &mut text)? {
            told.push((code, text.clone()));
        }
    }
    Ok(told)
}

pub(crate) fn run(data: &[u8]) {
    let Some((at, bytes)) = data.split_first() else {
        return;
    };
    let cut = bytes.len() * usize::from(*at) / 256;
    let (first, second) = bytes.split_at(cut);
    let (whole, cut) = (read(&[bytes]), read(&[first, second]));
    assert_eq!(whole.is_ok(), cut.is_ok());
    if let (Ok(whole), Ok(cut)) = (whole, cut) {
        let codes =
            |told: &[(u16, Vec<u8>)]| told.iter().map(|(code, _)| *code).collect::<Vec<_>>();
        assert_eq!(codes(&whole), codes(&cut));
    }
}
