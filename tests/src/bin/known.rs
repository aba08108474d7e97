//! A server with a known cost per request, for validating studies: `known --port N --rounds N [--slow N] [--lock TIME]
//! [--sync FOLDER] [--host ADDRESS]`. Each request is answered after that many rounds of a computation that a compiler can't shorten and that
//! touches no memory; two of them differ in CPU time by as much as in rounds.
//!
//! With `--slow N`, forty functions share the rounds equally, and function N takes three shares (5 % more work in all);
//! with `--slow none`, they are equal. With `--lock MICROSECONDS`, each request sleeps for that time under a lock that
//! all share, as a server does that waits for a device under its lock. With `--sync FOLDER`, each request writes 4 KiB
//! to a file there, and waits until the disk has them.
//!
//! One thread for each connection; bodies are not read: it serves the lab only.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const USAGE: &str = "usage: known --port N --rounds N [--slow 0…39|none] [--lock MICROSECONDS] [--sync FOLDER] [--host ADDRESS]";
/// The maximum bytes of a head; a longer one ends the connection.
const LONGEST_HEAD: usize = 16 * 1024;
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 6\r\n\r\nknown\n";

#[derive(Debug, PartialEq)]
struct Options {
    host: String,
    port: u16,
    work: Work,
    lock: Option<Duration>,
    sync: Option<PathBuf>,
}

/// What is computed for each request.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Work {
    /// Rounds in one function.
    Whole(u64),
    /// Rounds of each of [`FUNCTIONS`], and the function that has two more shares.
    Shared { each: u64, slow: Option<usize> },
}

fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let (mut host, mut port, mut rounds) = ("127.0.0.1".to_owned(), None, None);
    let mut slow: Option<Option<usize>> = None;
    let (mut lock, mut sync) = (None, None);
    while let Some(name) = args.next() {
        let value = args.next()?;
        match name.as_str() {
            "--host" => host = value,
            "--port" => port = Some(value.parse().ok()?),
            "--rounds" => rounds = Some(value.parse().ok()?),
            "--slow" if value == "none" => slow = Some(None),
            "--slow" => slow = Some(Some(value.parse().ok().filter(|&at| at < FUNCTIONS.len())?)),
            "--lock" => lock = Some(Duration::from_micros(value.parse().ok()?)),
            "--sync" => sync = Some(PathBuf::from(value)),
            _ => return None,
        }
    }
    let rounds = rounds?;
    Some(Options {
        host,
        port: port?,
        work: slow.map_or(Work::Whole(rounds), |slow| Work::Shared {
            each: rounds / FUNCTIONS.len() as u64,
            slow,
        }),
        lock,
        sync,
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
    let file = match options.sync.as_deref().map(log_in).transpose() {
        Ok(file) => file.map(Arc::new),
        Err(error) => {
            eprintln!("known: can't write to the folder of --sync: {error}");
            return ExitCode::FAILURE;
        }
    };
    for stream in listener.incoming().flatten() {
        let (work, lock) = (options.work, options.lock);
        let file = file.clone();
        thread::spawn(move || serve(stream, work, lock, file.as_deref()));
    }
    ExitCode::SUCCESS
}

/// Answers until the client closes the connection or sends something else.
fn serve(
    stream: TcpStream,
    work: Work,
    lock: Option<Duration>,
    file: Option<&File>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    while read_head(&mut reader)? {
        work.run();
        if let Some(time) = lock {
            under_the_lock(time);
        }
        if let Some(file) = file {
            write_and_sync(file)?;
        }
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

/// A new file in a folder, for [`write_and_sync`].
fn log_in(folder: &Path) -> io::Result<File> {
    File::create(folder.join("known.log"))
}

/// Sleeps while it holds the lock of all threads.
#[inline(never)]
#[expect(
    clippy::disallowed_methods,
    reason = "this sleep is what a study must find"
)]
fn under_the_lock(time: Duration) {
    static LOCK: Mutex<()> = Mutex::new(());
    let held = LOCK.lock();
    thread::sleep(time);
    drop(held);
}

/// Overwrites the first 4 KiB, so that the file stays small.
#[inline(never)]
fn write_and_sync(file: &File) -> io::Result<()> {
    file.write_all_at(&[b'k'; 4096], 0)?;
    file.sync_data()
}

impl Work {
    fn run(self) {
        match self {
            Self::Whole(rounds) => {
                black_box(compute(rounds));
            }
            Self::Shared { each, slow } => {
                for (at, function) in FUNCTIONS.iter().enumerate() {
                    let shares = if slow == Some(at) { 3 } else { 1 };
                    black_box(function(shares * each));
                }
            }
        }
    }
}

/// A chain of multiplications, each of which needs the one before.
#[inline(always)]
fn compute(rounds: u64) -> u64 {
    (0..rounds).fold(0x9E37_79B9_7F4A_7C15, |state: u64, round| {
        black_box(state.wrapping_mul(0xD134_2543_DE82_EF95) ^ round)
    })
}

/// Makes functions of these names, which no compiler makes one: each mixes its name in.
macro_rules! functions {
    ($($name:ident)*) => {
        $(#[inline(never)]
        fn $name(rounds: u64) -> u64 {
            compute(rounds) ^ stringify!($name).bytes().fold(0, |sum, byte| sum * 31 + u64::from(byte))
        })*
        static FUNCTIONS: [fn(u64) -> u64; 40] = [$($name),*];
    };
}

functions! {
    work_00 work_01 work_02 work_03 work_04 work_05 work_06 work_07
    work_08 work_09 work_10 work_11 work_12 work_13 work_14 work_15
    work_16 work_17 work_18 work_19 work_20 work_21 work_22 work_23
    work_24 work_25 work_26 work_27 work_28 work_29 work_30 work_31
    work_32 work_33 work_34 work_35 work_36 work_37 work_38 work_39
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_and_port_must_be_said() {
        let parsed = |text: &str| options(text.split_whitespace().map(str::to_owned));
        let found = parsed("--port 80 --rounds 7").expect("both are there");
        assert_eq!(
            (found.host.as_str(), found.port, found.work),
            ("127.0.0.1", 80, Work::Whole(7))
        );
        let shared = |slow| Some(Work::Shared { each: 10, slow });
        let work = |text: &str| parsed(text).map(|found| found.work);
        assert_eq!(work("--port 80 --rounds 400 --slow none"), shared(None));
        assert_eq!(work("--port 80 --rounds 400 --slow 17"), shared(Some(17)));
        for wrong in [
            "",
            "--port 80",
            "--port 80 --rounds",
            "--port x --rounds 1",
            "--x 1",
            "--port 80 --rounds 400 --slow 40",
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
