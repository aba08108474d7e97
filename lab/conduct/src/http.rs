//! One blocking HTTP exchange, for the few requests that a trial makes beside its load. It knows
//! no schedule and keeps nothing.
//!
//! It speaks HTTP/1.0, whose answers end with the connection: no chunks, no keep-alive.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::Stopwatch;

/// Longest wait for a whole answer of one who is at work.
pub(crate) const ANSWER: Duration = Duration::from_secs(60);
/// Between two looks at the interrupt.
const LOOK: Duration = Duration::from_millis(100);
/// Largest answer; a thousand users take some 100 KB.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// A request with a body, or none.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// Sent as `Authorization: Bearer`.
    pub(crate) token: Option<&'a str>,
    /// JSON.
    pub(crate) body: &'a [u8],
    /// Longest wait for a connection, and for a whole answer.
    pub(crate) within: Duration,
}

/// Sends and awaits the whole answer; gives up when `interrupt` becomes true.
pub(crate) fn exchange(
    server: SocketAddr,
    ask: &Ask<'_>,
    interrupt: &AtomicBool,
) -> io::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&server, ask.within)?;
    stream.set_read_timeout(Some(LOOK))?;
    stream.set_write_timeout(Some(ask.within))?;
    stream.write_all(&message(server, ask))?;
    let answer = read_all(&mut stream, ask.within, interrupt)?;
    parse(&answer).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the answer is cut off or not HTTP",
        )
    })
}

fn message(server: SocketAddr, ask: &Ask<'_>) -> Vec<u8> {
    let mut head = format!("{} {} HTTP/1.0\r\nHost: {server}\r\n", ask.method, ask.path);
    if let Some(token) = ask.token {
        head.push_str(&format!("Authorization: Bearer {token}\r\n"));
    }
    if !ask.body.is_empty() {
        head.push_str("Content-Type: application/json\r\n");
        head.push_str(&format!("Content-Length: {}\r\n", ask.body.len()));
    }
    head.push_str("\r\n");
    [head.as_bytes(), ask.body].concat()
}

/// Reads to the end of the connection.
fn read_all(
    stream: &mut TcpStream,
    within: Duration,
    interrupt: &AtomicBool,
) -> io::Result<Vec<u8>> {
    let began = Stopwatch::start();
    let mut answer = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return Ok(answer),
            Ok(length) => answer.extend_from_slice(&piece[..length]),
            Err(e) if is_timeout(&e) => {}
            Err(e) => return Err(e),
        }
        if answer.len() > MAX_ANSWER_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the answer exceeds 64 MiB",
            ));
        }
        if interrupt.load(Ordering::Relaxed) || began.elapsed() > within {
            let message = format!("no whole answer within {within:?}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
    }
}

/// A read that found nothing yet; which of the two depends on the system.
fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn parse(answer: &[u8]) -> Option<Answer> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    if !first.next()?.starts_with("HTTP/1.") {
        return None;
    }
    let status = first.next()?.parse().ok()?;
    let body = answer[end + 4..].to_vec();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") && value.trim() != body.len().to_string() {
            return None;
        }
    }
    Some(Answer { status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_parse_and_cut_off_ones_do_not() {
        let whole = b"HTTP/1.0 201 Created\r\nContent-Length: 4\r\nX: y\r\n\r\nbody";
        let answer = parse(whole).unwrap();
        assert_eq!((answer.status, &answer.body[..]), (201, &b"body"[..]));
        for cut in 0..whole.len() {
            assert!(parse(&whole[..cut]).is_none(), "{cut}");
        }
        assert!(parse(b"SSH-2.0-x\r\n\r\n").is_none());
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n\r\nrest").unwrap().body, b"rest");
    }
}
