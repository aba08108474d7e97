//! A server with a known cost per request, for validating studies: `known --port N --rounds N [--host ADDRESS]`. Each
//! request is answered after that many rounds of a computation that a compiler can't shorten and that touches no
//! memory; two of them differ in CPU time by as much as in rounds.
//!
//! One thread for each connection; bodies are not read: it serves the lab only.

use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;

const USAGE: &str = "usage: known --port N --rounds N [--host ADDRESS]";
/// The maximum bytes of a head; a longer one ends the connection.
const LONGEST_HEAD: usize = 16 * 1024;
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 6\r\n\r\nknown\n";

#[derive(Debug, PartialEq)]
struct Options {
    host: String,
    port: u16,
    rounds: u64,
}

fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let (mut host, mut port, mut rounds) = ("127.0.0.1".to_owned(), None, None);
    while let Some(name) = args.next() {
        let value = args.next()?;
        match name.as_str() {
            "--host" => host = value,
            "--port" => port = Some(value.parse().ok()?),
            "--rounds" => rounds = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    Some(Options {
        host,
        port: port?,
        rounds: rounds?,
    })
}

fn main() -> ExitCode {
    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let listener = match TcpListener::bind((options.host.as_str(), options.port)) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("known: can't listen on port {}: {error}", options.port);
            return ExitCode::FAILURE;
        }
    };
    for stream in listener.incoming().flatten() {
        let rounds = options.rounds;
        thread::spawn(move || serve(stream, rounds));
    }
    ExitCode::SUCCESS
}

/// Answers until the client closes the connection or sends something else.
fn serve(stream: TcpStream, rounds: u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    while read_head(&mut reader)? {
        black_box(compute(rounds));
        writer.write_all(ANSWER)?;
    }
    Ok(())
}

/// Returns true if a whole head was read.
fn read_head(reader: &mut impl BufRead) -> io::Result<bool> {
    let mut line = String::new();
    let mut length = 0;
    loop {
        line.clear();
        length += reader.read_line(&mut line)?;
        match line.as_str() {
            "\r\n" => return Ok(true),
            "" => return Ok(false),
            _ if length > LONGEST_HEAD => return Ok(false),
            _ => {}
        }
    }
}

/// A chain of multiplications, each of which needs the one before.
fn compute(rounds: u64) -> u64 {
    (0..rounds).fold(0x9E37_79B9_7F4A_7C15, |state: u64, round| {
        black_box(state.wrapping_mul(0xD134_2543_DE82_EF95) ^ round)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_and_port_must_be_said() {
        let parsed = |text: &str| options(text.split_whitespace().map(str::to_owned));
        let found = parsed("--port 80 --rounds 7").expect("both are there");
        assert_eq!(
            (found.host.as_str(), found.port, found.rounds),
            ("127.0.0.1", 80, 7)
        );
        for wrong in [
            "",
            "--port 80",
            "--port 80 --rounds",
            "--port x --rounds 1",
            "--x 1",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_head_ends_with_an_empty_line_and_has_a_bound() {
        let whole = |text: &str| read_head(&mut text.as_bytes()).expect("readable");
        assert!(whole("GET / HTTP/1.1\r\nhost: a\r\n\r\n"));
        assert!(!whole("GET / HTTP/1.1\r\nhost: a\r\n"));
        assert!(!whole(&format!(
            "GET / HTTP/1.1\r\n{}\r\n",
            "a: b\r\n".repeat(9_000)
        )));
    }

    #[test]
    fn each_round_counts() {
        assert_ne!(compute(1_000), compute(1_001));
    }
}
