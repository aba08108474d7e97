//! The system under test: answers everything, and prints each request with its time. The lab keeps that beside the
//! trial, as a second witness of the agents' actions.

use std::io::{BufRead, BufReader, Write, stdout};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;
use std::time::SystemTime;

/// The prefix of a line about a request.
pub(crate) const ASKED: &str = "asked ";

/// Serves until it is ended.
pub(crate) fn serve(port: &str) -> ExitCode {
    let port = port.parse().expect("a port");
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    for stream in listener.incoming().map_while(Result::ok) {
        thread::spawn(move || answer(stream));
    }
    ExitCode::FAILURE
}

fn answer(stream: TcpStream) {
    let Ok(mut to) = stream.try_clone() else {
        return;
    };
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while let Some(request) = lines.next() {
        lines.by_ref().find(String::is_empty);
        let path = request.split(' ').nth(1).unwrap_or_default();
        // Before the answer: each answered request is recorded.
        let line = format!("{ASKED}{} {path}\n", wall_ms());
        let told = stdout().lock().write_all(line.as_bytes());
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
        if told.and_then(|()| to.write_all(answer)).is_err() {
            return;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a trial's record says by the calendar when it began"
)]
fn wall_ms() -> u128 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis())
}
