//! A mounted disk as a test uses it.

use std::io::{self, BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use tempfile::TempDir;

use crate::message::{Ask, Tell};
use crate::rules::{Fault, Lie};

/// A mounted disk; unmounted on drop. Files on it must be closed by then.
#[derive(Debug)]
pub struct Mounted {
    process: Child,
    talk: Mutex<Session>,
    folder: TempDir,
}

#[derive(Debug)]
struct Session {
    ask: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Session {
    fn say(&mut self, ask: &Ask) -> io::Result<()> {
        let line = serde_json::to_string(ask)?;
        let pipe = self.ask.as_mut().expect("open until the disk is dropped");
        writeln!(pipe, "{line}")?;
        pipe.flush()
    }

    fn hear(&mut self) -> io::Result<Tell> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Mounted {
    /// Starts an empty disk, served by the program at this path. Returns `None`, and prints a line, where nothing may
    /// be mounted: that takes `/dev/fuse`, and root or `fusermount3`.
    ///
    /// # Panics
    /// If the program can't be started.
    pub fn start(program: &str, seed: u64) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a scratch folder can be made");
        let mut process = Command::new(program)
            .arg(folder.path())
            .arg(seed.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let mut talk = Session {
            ask: process.stdin.take(),
            answers: BufReader::new(process.stdout.take().expect("piped")),
        };
        match talk.hear().expect("the disk's process answers") {
            Tell::Mounted => Some(Self {
                process,
                talk: Mutex::new(talk),
                folder,
            }),
            other => {
                println!("SKIPPED: no file system can be mounted here (FUSE): {other:?}");
                let _ = process.wait();
                None
            }
        }
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn order(&self, ask: &Ask) {
        let mut talk = self.talk.lock().expect("nobody panics with it");
        let told = talk.say(ask).and_then(|()| talk.hear());
        match told {
            Ok(Tell::Done) => {}
            other => panic!("{ask:?}: {other:?}"),
        }
    }

    /// Writes the image of a crash at this moment into a folder.
    ///
    /// # Panics
    /// If the image can't be written.
    pub fn crash(&self, into: &Path) {
        self.order(&Ask::Crash(into.to_owned()));
    }

    /// Takes `count` images at seeded moments, at most `most_calls` calls apart, into folders below this one.
    pub fn crashes(&self, count: u64, most_calls: u64, below: &Path) -> Crashes<'_> {
        self.order(&Ask::Crashes {
            count,
            most_calls,
            below: below.to_owned(),
        });
        Crashes {
            disk: self,
            left: count,
        }
    }

    /// Makes calls fail.
    pub fn fail(&self, fault: Fault) {
        self.order(&Ask::Fail(fault));
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.order(&Ask::Heal);
    }

    /// From now on, syncs that match only pretend.
    pub fn lie(&self, lie: Lie) {
        self.order(&Ask::Lie(lie));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Ok(talk) = self.talk.get_mut() {
            drop(talk.ask.take());
        }
        // Its input has ended, so it unmounts and exits.
        let _ = self.process.wait();
    }
}

/// Crashes at seeded moments.
#[derive(Debug)]
pub struct Crashes<'a> {
    disk: &'a Mounted,
    left: u64,
}

/// The image of one crash.
#[derive(Debug)]
pub struct Crash<K> {
    /// The folder of the image; the test removes it.
    pub folder: PathBuf,
    /// The file system call that followed the crash.
    pub call: u64,
    /// What the test knew at that moment.
    pub known: K,
}

impl Crashes<'_> {
    /// Returns the next crash and what is known then. No file system call continues before `known` returns, so all that
    /// the program under test has acknowledged by then was durable at the crash.
    ///
    /// # Panics
    /// If an image can't be written.
    pub fn next<K>(&mut self, known: impl FnOnce() -> K) -> Option<Crash<K>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let mut talk = self.disk.talk.lock().expect("nobody panics with it");
        match talk.hear() {
            Ok(Tell::Image { folder, call }) => {
                // A failing test may wait for the program under test to end, and that program for the disk.
                let known = catch_unwind(AssertUnwindSafe(known));
                talk.say(&Ask::GoOn).expect("the disk's process listens");
                drop(talk);
                let known = known.unwrap_or_else(|panic| resume_unwind(panic));
                Some(Crash {
                    folder,
                    call,
                    known,
                })
            }
            other => panic!("waiting for a crash: {other:?}"),
        }
    }
}
