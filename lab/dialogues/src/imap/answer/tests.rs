//! Responses of IMAP, whole and in pieces.

use proptest::prelude::*;

use super::*;

/// Returns the command's result and the collected data, read in pieces of this many bytes.
fn read(bytes: &[u8], piece: usize) -> Result<Option<(ImapResult, String)>, String> {
    let (mut answer, mut kept) = (ImapAnswer::default(), Vec::new());
    answer.begin(true);
    for piece in bytes.chunks(piece) {
        kept.extend_from_slice(piece);
        let mut heard = &kept[..];
        let told = answer.read(&mut heard)?;
        let taken = kept.len() - heard.len();
        kept.drain(..taken);
        if let Some(told) = told {
            let mut body = Vec::new();
            answer.end(&mut body);
            return Ok(Some((told, String::from_utf8(body).unwrap())));
        }
    }
    Ok(None)
}

#[test]
fn an_answer_is_all_up_to_its_tag() {
    for (bytes, expected) in [
        (
            &b"* 1 FETCH (UID 7 BODY[] {7}\r\na OK\r\nx)\r\n* 2 EXISTS\r\na OK done {3}\r\n"[..],
            Some((
                ImapResult::Ok,
                r#"{"exists":2,"fetch":[{"body[]":"a OK\r\nx","seq":1,"uid":7}],"text":"done {3}"}"#,
            )),
        ),
        (
            b"* OK still here {3}\r\na NO [TRYCREATE] no such mailbox\r\n",
            Some((
                ImapResult::No("NO [TRYCREATE] no such mailbox".to_owned()),
                r#"{"text":"still here {3}"}"#,
            )),
        ),
        (b"+ go on\r\n", Some((ImapResult::Goes, "{}"))),
        (b"* SEARCH 1 2\r\n", None),
    ] {
        let expected = expected.map(|(told, body)| (told, body.to_owned()));
        for piece in [1, 2, 7, 1000] {
            assert_eq!(read(bytes, piece), Ok(expected.clone()), "by {piece}");
        }
    }
    for bad in [
        &b"SSH-2.0\r\n"[..],
        b"b OK another's\r\n",
        b"* 1 EXISTS\n",
        b"* \r\n",
    ] {
        assert!(read(bad, 100).is_err(), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn what_comes_in_pieces_is_the_same(
        bytes in proptest::collection::vec(prop_oneof![
            proptest::sample::select(b"* aOK(){}\"\\[]3 \r\n".to_vec()), any::<u8>(),
        ], 0..80),
        piece in 1usize..9,
    ) {
        let bytes = [b"* ", &bytes[..]].concat();
        prop_assert_eq!(read(&bytes, piece).ok(), read(&bytes, 1000).ok());
    }
}
