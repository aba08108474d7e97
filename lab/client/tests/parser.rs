//! Properties of the response parser: it never panics, and the split of its input doesn't change the result.

use lab_client::http::{Complete, Fault, ResponseReader, StoredBody, Terms};
use proptest::prelude::*;

const TERMS: Terms = Terms {
    head_request: false,
    max_header_bytes: 512,
    max_body_bytes: 2000,
};

/// The result of a reader, whatever the split of the input: status, body, body size, and reusability.
type Read = Result<Option<(u16, Vec<u8>, u64, bool)>, Fault>;

fn read(pieces: &[&[u8]]) -> Read {
    let mut reader = ResponseReader::new(TERMS);
    let whole = |complete: &Complete, body: &[u8], last: bool| {
        (
            complete.status,
            body.to_vec(),
            complete.body_bytes,
            complete.reusable && last,
        )
    };
    for (at, piece) in pieces.iter().enumerate() {
        let found = reader.feed(piece, |_| usize::MAX, &mut |_, _| {})?;
        if let Some(complete) = found {
            let body = match complete.body.clone() {
                StoredBody::Input(range) => &piece[range],
                StoredBody::Kept => reader.kept(),
            };
            let last = pieces[at + 1..].iter().all(|rest| rest.is_empty());
            return Ok(Some(whole(&complete, body, last)));
        }
    }
    let ended = reader.end();
    Ok(ended.map(|complete| whole(&complete, reader.kept(), true)))
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|pair| &bytes[pair[0]..pair[1]])
        .filter(|p| !p.is_empty())
        .collect()
}

/// Generates texts that look like responses more often than random bytes do.
fn nearly_http() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just("HTTP/1.1 200 OK\r\n".to_owned()),
        Just("HTTP/1.0 200 OK\r\n".to_owned()),
        Just("HTTP/1.1 100 Continue\r\n".to_owned()),
        Just("HTTP/1.1 204 No Content\r\n".to_owned()),
        Just("Content-Length: 5\r\n".to_owned()),
        Just("Transfer-Encoding: chunked\r\n".to_owned()),
        Just("Connection: close\r\n".to_owned()),
        Just("Set-Cookie: a=b\r\n".to_owned()),
        Just("X-Odd : a\r\n".to_owned()),
        Just("X(Odd): a\r\n".to_owned()),
        Just(" folded\r\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("5\r\nhello\r\n".to_owned()),
        Just("0\r\n\r\n".to_owned()),
        Just("hello".to_owned()),
        "[0-9a-f]{1,17}\r\n",
        "[ -~]{0,20}\r\n",
        "\\PC{0,5}",
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_split_changes_what_is_read(
        bytes in nearly_http(),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        prop_assume!(!bytes.is_empty());
        let at_once = read(&[&bytes]);
        let in_pieces = read(&pieces(&bytes, &cuts));
        prop_assert_eq!(at_once, in_pieces, "{:?}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn what_is_written_is_read(
        status in 200u16..600,
        body in prop::collection::vec(any::<u8>(), 0..1500),
        chunk in prop::option::of(1usize..700),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
    ) {
        prop_assume!(status != 204 && status != 304);
        let mut bytes = format!("HTTP/1.1 {status} X\r\n").into_bytes();
        match chunk {
            None => bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes()),
            Some(_) => bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n"),
        }
        match chunk {
            None => bytes.extend(&body),
            Some(size) => {
                for part in body.chunks(size) {
                    bytes.extend(format!("{:x}\r\n", part.len()).bytes());
                    bytes.extend(part);
                    bytes.extend(b"\r\n");
                }
                bytes.extend(b"0\r\n\r\n");
            }
        }
        let length = body.len() as u64;
        prop_assert_eq!(read(&pieces(&bytes, &cuts)), Ok(Some((status, body, length, true))));
    }
}

#[test]
fn each_split_in_two_and_each_byte_alone() {
    let text: &[u8] =
        b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\
        \r\n\r\n5\r\nhello\r\n0\r\nTrailer: x\r\n\r\n";
    let expected = Ok(Some((200, b"hello".to_vec(), 5, true)));
    for cut in 1..text.len() {
        let (first, second) = text.split_at(cut);
        assert_eq!(read(&[first, second]), expected, "{cut}");
    }
    let bytes: Vec<&[u8]> = text.chunks(1).collect();
    assert_eq!(read(&bytes), expected);
}

#[test]
fn interim_headers_are_not_the_answers_own() {
    let text =
        b"HTTP/1.1 103 Early\r\nSet-Cookie: a=1\r\n\r\nHTTP/1.1 200 OK\r\nSet-Cookie: b=2\r\n\r\n";
    let mut seen = Vec::new();
    let mut reader = ResponseReader::new(TERMS);
    let fed = reader.feed(text, |_| 0, &mut |name, value| {
        seen.push((name.to_owned(), value.to_vec()))
    });
    assert_eq!(fed, Ok(None));
    assert_eq!(seen, [("Set-Cookie".to_owned(), b"b=2".to_vec())]);
}
