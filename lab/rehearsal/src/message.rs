//! Parses messages from their bytes on the wire.

use lab_client::http::{ResponseReader, StoredBody, Terms};

use crate::model::{Request, Response, codings};

/// Longest head of a response that is parsed; the client has its own bound.
const MAX_HEAD: usize = 1 << 20;
/// Most bytes of a decoded body; a larger one stays encoded.
const MAX_DECODED: u64 = 16 << 20;

/// Parses a request as sent.
pub(crate) fn request(bytes: &[u8]) -> Request {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = match end {
        Some(end) => (&bytes[..end], &bytes[end + 4..]),
        None => (bytes, &[][..]),
    };
    let head = String::from_utf8_lossy(head);
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().splitn(3, ' ');
    Request {
        method: first.next().unwrap_or_default().to_owned(),
        target: first.next().unwrap_or_default().to_owned(),
        headers: lines.filter_map(field).collect(),
        body: body.to_vec(),
    }
}

fn field(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_owned(), value.trim().to_owned()))
}

/// Parses a response as received, or the stored part of it; `whole` is its full length. `None` if it can't be parsed.
pub(crate) fn response(bytes: &[u8], whole: u64, to_head: bool) -> Option<Response> {
    let terms = Terms {
        head_request: to_head,
        max_header_bytes: MAX_HEAD,
        max_body_bytes: u64::MAX,
    };
    let mut reader = ResponseReader::new(terms);
    let mut response = Response::default();
    let mut headers = Vec::new();
    let fed = reader.feed(bytes, |_| usize::MAX, &mut |name, value| {
        let value = String::from_utf8_lossy(value).trim().to_owned();
        headers.push((name.to_owned(), value));
    });
    let complete = match fed {
        Ok(Some(complete)) => Some(complete),
        Ok(None) => reader.end(),
        Err(_) => None,
    };
    let (status, reason) = status_line(bytes)?;
    (response.status, response.reason, response.headers) = (status, reason, headers);
    response.body = match complete.as_ref().map(|complete| &complete.body) {
        Some(StoredBody::Input(range)) => bytes.get(range.clone())?.to_vec(),
        _ => reader.kept().to_vec(),
    };
    response.left_out_bytes = whole.saturating_sub(bytes.len() as u64);
    response.body_bytes = response.body.len() as u64 + response.left_out_bytes;
    if response.left_out_bytes == 0 {
        decode(&mut response);
    }
    Some(response)
}

/// Decodes the content coding, so that the body can be read, and masked.
fn decode(response: &mut Response) {
    let codings = codings(&response.headers);
    if !codings.decodes() {
        return;
    }
    let mut decoded = Vec::new();
    let done = codings.decode(&response.body, MAX_DECODED, &mut decoded);
    if done.is_ok() {
        (response.body, response.is_decoded) = (decoded, true);
    }
}

/// The status line of the last head: a 1xx head is followed by another.
fn status_line(bytes: &[u8]) -> Option<(u16, String)> {
    let mut rest = bytes;
    loop {
        // A line may end with a line feed alone (RFC 9112, section 2.2).
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let line = String::from_utf8_lossy(rest[..end].trim_ascii_end()).into_owned();
        let mut parts = line.splitn(3, ' ');
        let status: u16 = parts.nth(1)?.parse().ok()?;
        if !(100..200).contains(&status) {
            return Some((status, parts.next().unwrap_or_default().to_owned()));
        }
        let mut lines = rest.split_inclusive(|byte| *byte == b'\n');
        let head = lines
            .by_ref()
            .take_while(|line| !line.trim_ascii().is_empty());
        head.for_each(drop);
        let left: usize = lines.map(<[u8]>::len).sum();
        rest = &rest[rest.len() - left..];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answers_are_taken_apart() {
        let chunked = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nX: a\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let read = response(chunked, chunked.len() as u64, false).unwrap();
        assert_eq!((read.status, read.reason.as_str()), (201, "Created"));
        assert_eq!((read.body.as_slice(), read.body_bytes), (&b"abc"[..], 3));
        let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";
        let read = response(cut, cut.len() as u64 + 7, false).unwrap();
        assert_eq!((read.body.as_slice(), read.body_bytes), (&b"abc"[..], 10));
        let until_close = b"HTTP/1.0 200 OK\r\n\r\nabc";
        assert_eq!(response(until_close, 22, false).unwrap().body, b"abc");
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
        assert_eq!(response(head, 39, true).unwrap().body, b"");
        assert_eq!(response(b"SSH-2.0\r\n", 9, false), None);
        let bare = b"HTTP/1.1 103 Early\nA: b\n\nHTTP/1.1 200 OK\nContent-Length: 3\n\nabc";
        let read = response(bare, bare.len() as u64, false).unwrap();
        assert_eq!((read.status, read.reason.as_str()), (200, "OK"));
        assert_eq!(read.body, b"abc");
    }

    #[test]
    fn compressed_bodies_are_decoded_where_they_are_whole() {
        // `hello` by gzip, without a name and a time.
        let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9\x07\0\x86\xa6\x106\x05\0\0\0";
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
            gzip.len()
        );
        let mut answer = head.into_bytes();
        answer.extend(gzip);
        let read = response(&answer, answer.len() as u64, false).unwrap();
        assert_eq!((read.body.as_slice(), read.body_bytes), (&b"hello"[..], 25));
        assert_eq!(read.coding(), None);
        let cut = &answer[..answer.len() - 3];
        let read = response(cut, answer.len() as u64, false).unwrap();
        assert_eq!(
            (read.is_decoded, read.coding()),
            (false, Some("gzip".to_owned()))
        );
    }

    #[test]
    fn requests_are_taken_apart() {
        let read = request(b"POST /x?y HTTP/1.1\r\nHost: h\r\nA:  b \r\n\r\nbo\r\n\r\ndy");
        assert_eq!(
            (read.method.as_str(), read.target.as_str()),
            ("POST", "/x?y")
        );
        assert_eq!(read.headers[1], ("A".to_owned(), "b".to_owned()));
        assert_eq!(read.body, b"bo\r\n\r\ndy");
    }

    proptest! {
        #[test]
        fn whatever_comes_is_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), head: bool) {
            let _ = request(&bytes);
            let mut answer = b"HTTP/1.1 200 OK\r\n".to_vec();
            answer.extend(&bytes);
            let _ = response(&answer, answer.len() as u64, head);
            let _ = response(&bytes, 1 << 40, head);
        }
    }
}
