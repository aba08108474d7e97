//! A line per request on standard error, written by a thread of its own.

use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use http::{Method, StatusCode};

/// Lines that may wait to be written; beyond that, lines are lost rather than requests held up.
const WAITING: usize = 4096;

/// What a line says.
pub(crate) struct Line {
    pub(crate) unix_s: i64,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) status: StatusCode,
    pub(crate) took: Duration,
}

/// The way to the writing thread, which ends with it.
#[derive(Debug)]
pub struct AccessLog {
    lines: SyncSender<Line>,
}

impl AccessLog {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start() -> io::Result<Self> {
        let (lines, waiting) = sync_channel(WAITING);
        std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write_all(&waiting, BufWriter::new(io::stderr())))?;
        Ok(Self { lines })
    }

    pub(crate) fn note(&self, line: Line) {
        match self.lines.try_send(line) {
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }
}

/// Flushes when nothing waits. Where nobody reads standard error any more, lines are dropped.
fn write_all(lines: &Receiver<Line>, mut out: impl Write) {
    while let Ok(first) = lines.recv() {
        let _ = write_line(&mut out, &first);
        while let Ok(next) = lines.try_recv() {
            let _ = write_line(&mut out, &next);
        }
        let _ = out.flush();
    }
}

/// The path is the client's: whatever could break a line or a terminal is escaped.
fn write_line(out: &mut impl Write, line: &Line) -> io::Result<()> {
    let Line {
        unix_s,
        method,
        path,
        status,
        took,
    } = line;
    let milliseconds = took.as_secs_f64() * 1000.0;
    let (path, status) = (path.escape_debug(), status.as_u16());
    writeln!(out, "{unix_s} {method} {path} {status} {milliseconds:.3}ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_a_line() {
        let line = Line {
            unix_s: 1_700_000_000,
            method: Method::GET,
            path: "/a\n\u{1b}[31m".into(),
            status: StatusCode::OK,
            took: Duration::from_micros(1500),
        };
        let mut out = Vec::new();
        write_line(&mut out, &line).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "1700000000 GET /a\\n\\u{1b}[31m 200 1.500ms\n");
    }
}
