//! The log: lines on standard error, as text or JSON. A separate thread writes them, so that no request waits for their
//! reader. This module doesn't know the messages.

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

/// The maximum number of lines in the queue. Lines beyond it are dropped, so that no request waits.
const WAITING: usize = 4096;
/// The maximum time that a stopping server waits for the last lines.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(2);

/// The number of panics of all threads since the start.
static PANICS: AtomicU64 = AtomicU64::new(0);
/// The number of dropped lines.
static LOST: AtomicU64 = AtomicU64::new(0);

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs: an object per line.
    Json,
}

#[derive(Debug)]
enum Piece {
    Line(Vec<u8>),
    /// A request to write all lines before it.
    Flush(SyncSender<()>),
}

/// The queue of the writing thread.
struct Lines(SyncSender<Piece>);

/// The log; dropping it writes the last lines.
#[derive(Debug)]
pub struct Log(SyncSender<Piece>);

impl Log {
    /// Starts the log: all messages of the server, panics included, are written to standard error from now on.
    ///
    /// # Errors
    /// When the system can't start a thread.
    pub fn start(format: LogFormat) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(WAITING);
        std::thread::Builder::new()
            .name("log".into())
            .spawn(move || write_all(&waiting, BufWriter::new(io::stderr())))?;
        let builder = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::INFO)
            .with_writer(Arc::new(Lines(lines.clone())));
        // A subscriber set earlier, by a program that embeds this server, stays.
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

/// Each line is written in one call.
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

/// Flushes when the queue is empty. If standard error is closed, lines are dropped.
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

/// Counts and logs a panic. Its message may quote input, but only if the program has a fault, and never a password:
/// panic messages contain none.
fn note_panic(panic: &PanicHookInfo<'_>) {
    PANICS.fetch_add(1, Relaxed);
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let at = panic.location().map(tracing::field::display);
    let words = panic.payload_as_str().unwrap_or("no words");
    tracing::error!(thread, at, cause = words, "panic");
}

/// Metrics of the log itself.
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
