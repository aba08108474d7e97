//! Generators that are processes of this machine: started by the conductor, which uses their standard input and output.

use std::io::{BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::channel::Piped;
use super::peer::{End, Peer, Place};
use crate::assignment::Assignment;
use crate::crew::spawn;
use crate::error::DriverError;

/// The maximum time between the end of a generator's reports and its exit.
const END_WITHIN: Duration = Duration::from_secs(5);
/// How many bytes of the end of a generator's stderr are kept.
const LAST_WORDS: usize = 2000;
/// How long before the trial's 0 the generator receives it, so that the message's delay doesn't make the first users
/// late.
const NOTICE: Duration = Duration::from_millis(50);

/// The generator program, and the number of processes.
#[derive(Debug, Clone)]
pub struct Generators {
    /// A program that calls [`crate::remote::generate`] with its standard input and output.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The number of processes, with equal parts of the load.
    pub count: u32,
}

impl Generators {
    /// Starts all processes. Each has an equal part of the load spec's cores; they share cores if there are fewer.
    pub(crate) fn start(&self, drive: &Assignment) -> Result<Vec<Peer>, DriverError> {
        let each = (drive.cores.len() / self.count.max(1) as usize).max(1);
        let mut peers = Vec::new();
        for index in 0..self.count {
            let first = index as usize * each;
            let core = |at| drive.cores[(first + at) % drive.cores.len()];
            let cores = if drive.cores.is_empty() { 0 } else { each };
            peers.push(Peer {
                cores: (0..cores).map(core).collect(),
                own_cores: drive.own_cores,
                ..self.start_one(index)?
            });
        }
        Ok(peers)
    }

    fn start_one(&self, index: u32) -> Result<Peer, DriverError> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C must reach only the conductor, which then ends the generators in order.
            .process_group(0);
        let mut child = command.spawn().map_err(|source| DriverError::Spawn {
            program: self.program.clone(),
            source,
        })?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(DriverError::Panicked);
        };
        let (last, words) = sync_channel(1);
        let process = Process {
            index,
            child: Mutex::new(child),
            words: Mutex::new(words),
        };
        spawn(format!("words-{index}"), move || keep_words(stderr, &last))?;
        Ok(Peer {
            orders: Box::new(Piped(stdin)),
            reports: Box::new(Piped(BufReader::new(stdout))),
            place: Box::new(process),
            cores: Vec::new(),
            own_cores: false,
            weight: 1,
        })
    }
}

#[derive(Debug)]
struct Process {
    index: u32,
    child: Mutex<Child>,
    words: Mutex<Receiver<String>>,
}

impl Process {
    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place for Process {
    fn name(&self) -> String {
        format!("generator {}", self.index)
    }

    fn process(&self) -> Option<u32> {
        Some(self.child().id())
    }

    /// All processes of a machine share its clock.
    fn moment(&self, here: u64) -> u64 {
        here
    }

    fn notice(&self) -> Duration {
        NOTICE
    }

    fn must_arm(&self) -> bool {
        false
    }

    fn end(&self, at_once: bool) -> End {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = if at_once { Duration::ZERO } else { END_WITHIN };
        // The end of its stderr shows its exit.
        let early = words.recv_timeout(patience);
        let mut child = self.child();
        if early.is_err() {
            let _gone = child.kill();
        }
        let status = child.wait().ok();
        drop(child);
        let words = match early {
            Ok(words) => words,
            Err(RecvTimeoutError::Timeout) => words.recv_timeout(END_WITHIN).unwrap_or_default(),
            Err(RecvTimeoutError::Disconnected) => String::new(),
        };
        End {
            wrong: wrong(status),
            words,
            lost: false,
        }
    }

    fn kill(&self) {
        // An exited and reaped child is not killed.
        let _gone = self.child().kill();
    }
}

/// Returns the failure in an exit status.
fn wrong(status: Option<ExitStatus>) -> Option<String> {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(0), _)) => None,
        Some((Some(code), _)) => Some(format!("ended early with exit code {code}")),
        Some((_, Some(signal))) => Some(format!("was ended by signal {signal}")),
        _ => Some("ended early".to_owned()),
    }
}

/// Reads a generator's stderr, and keeps the end of it.
fn keep_words(mut stderr: ChildStderr, last: &SyncSender<String>) {
    let mut kept = Vec::new();
    let mut bytes = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut bytes) {
        kept.extend_from_slice(&bytes[..count]);
        let over = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..over);
    }
    let _nobody = last.try_send(String::from_utf8_lossy(&kept).into_owned());
}
