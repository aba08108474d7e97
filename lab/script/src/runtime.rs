//! The runtime of a worker thread: it plays one turn of one user at a time.

use std::time::Duration;

use crate::event::Event;
use crate::program::Program;
use crate::thrown::{Thrown, ThrownKind};
use crate::turn::{Call, Outcome, Turn};

/// The limits of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest time of one turn.
    pub turn: Duration,
    /// The memory of all users together, in bytes.
    pub memory: u64,
    /// The stack of the script's functions, in bytes.
    pub stack: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            turn: Duration::from_millis(50),
            memory: 1 << 30,
            stack: 256 << 10,
        }
    }
}

/// The result of a run of the cycle collector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Bytes that were freed.
    pub bytes: u64,
}

/// The users of one worker thread, in one engine. It stays on its thread.
pub struct Runtime {
    _stays: std::marker::PhantomData<*const ()>,
}

impl Runtime {
    /// Makes a runtime and runs the modules of the program once.
    ///
    /// # Errors
    ///
    /// The error that a module of the script throws.
    pub fn new(program: &Program, limits: Limits, seed: u64) -> Result<Runtime, Thrown> {
        let _ = (program, limits, seed);
        Ok(Runtime {
            _stays: std::marker::PhantomData,
        })
    }

    /// Sets the clock that `Date.now` reads: milliseconds since 1970. Without one, it is the time of the last call.
    pub fn set_clock(&mut self, clock: Box<dyn Fn() -> f64>) {
        let _ = clock;
    }

    /// Calls an exported function for a user, until the first end of a turn.
    pub fn begin(&mut self, user: u32, call: &Call) -> Turn {
        let _ = (user, call);
        Turn::Threw(unfinished())
    }

    /// Continues a user.
    pub fn resume(&mut self, user: u32, outcome: Outcome) -> Turn {
        let _ = (user, outcome);
        Turn::Threw(unfinished())
    }

    /// Ends the call of a user, if there is one, and forgets the user. `finally` blocks don't run.
    pub fn drop_user(&mut self, user: u32) {
        let _ = user;
    }

    /// Ends the call of a user; the user's state stays. `finally` blocks don't run.
    pub fn end_call(&mut self, user: u32) {
        let _ = user;
    }

    /// Moves what happened in the last turn into `into`, in order. Call it after each turn.
    pub fn events(&mut self, into: &mut Vec<Event>) {
        let _ = into;
    }

    /// Runs the cycle collector.
    pub fn collect(&mut self) -> Collected {
        Collected::default()
    }

    /// The bytes that the engine has allocated.
    pub fn memory(&self) -> u64 {
        0
    }
}

fn unfinished() -> Thrown {
    Thrown {
        message: "scripts can't run yet".to_owned(),
        kind: ThrownKind::Error,
        stack: Vec::new(),
    }
}
