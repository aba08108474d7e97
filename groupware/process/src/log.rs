//! The log: lines on standard error, as text or JSON, written by a thread of its own so that no request
//! waits for whoever reads them. It does not know what is said.

use std::io::{self, BufWriter, Write};
use std::panic::PanicHookInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use tracing::level_filters::LevelFilter;

/// Lines that may wait to be written; beyond that, lines are lost rather than requests held up.
const WAITING: usize = 4096;
/// Longest time that the end of the server waits for the last lines to be written.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(2);

/// Panics of all threads since the start.
static PANICS: AtomicU64 = AtomicU64::new(0);
/// Lines that nobody has read.
static LOST: AtomicU64 = AtomicU64::new(0);

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// An object a line, for programs.
    Json,
}

#[derive(Debug)]
enum Piece {
    Line(Vec<u8>),
    /// All lines before it are to be out.
    Flush(SyncSender<()>),
}

/// The way to the writing thread.
struct Lines(SyncSender<Piece>);

/// Has the last lines written when it goes.
#[derive(Debug)]
pub struct Log(SyncSender<Piece>);

impl Log {
    /// Has everything that the server says of itself written to standard error from now on, panics
    /// included.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(format: LogFormat) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(WAITING);
        std::thread::Builder::new()
            .name("log".into())
            .spawn(move || write_all(&waiting, BufWriter::new(io::stderr())))?;
        let builder = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::INFO)
            .with_writer(Arc::new(Lines(lines.clone())));
        // One that is set already, by a program that has this server within it, stays.
        let _ = match format {
            LogFormat::Text => tracing::subscriber::set_global_default(builder.finish()),
            LogFormat::Json => {
                let builder = builder.json().flatten_event(true);
                tracing::subscriber::set_global_default(builder.finish())
            }
        };
        std::panic::set_hook(Box::new(note_panic));
        Ok(Self(lines))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let (written, all_written) = sync_channel(1);
        if self.0.try_send(Piece::Flush(written)).is_ok() {
            let _ = all_written.recv_timeout(LAST_LINES_WITHIN);
        }
    }
}

/// A line comes in one piece.
impl Write for &Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.0.try_send(Piece::Line(line.to_vec())) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                LOST.fetch_add(1, Relaxed);
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Flushes when nothing waits. Where nobody reads standard error any more, lines are dropped.
fn write_all(pieces: &Receiver<Piece>, mut out: impl Write) {
    while let Ok(first) = pieces.recv() {
        let mut next = Some(first);
        while let Some(piece) = next {
            match piece {
                Piece::Line(line) => {
                    let _ = out.write_all(&line);
                }
                Piece::Flush(written) => {
                    let _ = out.flush();
                    let _ = written.send(());
                }
            }
            next = pieces.try_recv().ok();
        }
        let _ = out.flush();
    }
}

/// Counts a panic and has it written. What panicked may have quoted what it was given, but only where
/// the program has a fault, and never a password: those are not in messages of panics.
fn note_panic(panic: &PanicHookInfo<'_>) {
    PANICS.fetch_add(1, Relaxed);
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let at = panic.location().map(tracing::field::display);
    let words = panic.payload_as_str().unwrap_or("no words");
    tracing::error!(thread, at, cause = words, "panic");
}

/// What is counted of the log itself, for the metrics.
#[derive(Debug)]
pub struct LogMetrics;

impl Collector for LogMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (name, help, counter) in [
            ("panics", "Panics of all threads, each one a fault", &PANICS),
            (
                "log_lines_lost",
                "Lines of the log that were lost, since nobody read them",
                &LOST,
            ),
        ] {
            let counter = ConstCounter::new(counter.load(Relaxed));
            let metric = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(metric)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_read_loses_lines_and_holds_up_nobody() {
        let (lines, waiting) = sync_channel(2);
        let lost = LOST.load(Relaxed);
        let mut log = &Lines(lines);
        for _ in 0..5 {
            log.write_all(b"a line\n").unwrap();
        }
        drop(waiting);
        assert_eq!(LOST.load(Relaxed) - lost, 3);
    }

    #[test]
    fn what_is_said_last_is_written() {
        let (lines, waiting) = sync_channel(10);
        let (written, read) = sync_channel(10);
        struct Out(SyncSender<Vec<u8>>);
        impl Write for Out {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.send(bytes.to_vec()).unwrap();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let writer = std::thread::spawn(move || write_all(&waiting, Out(written)));
        let log = Log(lines.clone());
        writeln!(&Lines(lines), "bye").unwrap();
        drop(log);
        writer.join().unwrap();
        assert_eq!(read.iter().collect::<Vec<_>>().concat(), b"bye\n");
    }
}
