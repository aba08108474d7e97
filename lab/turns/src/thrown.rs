//! An uncaught error of a script, with its place in the files as they were written.

use std::fmt;

/// An uncaught error of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thrown {
    /// The name and message of the error, in one line.
    pub message: String,
    /// The kind.
    pub kind: ThrownKind,
    /// The functions that were running or waiting, innermost first.
    pub stack: Vec<Frame>,
}

/// The kind of an uncaught error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThrownKind {
    /// A value thrown by the script or by a function that it called.
    Error,
    /// The turn took longer than its limit.
    Turn,
    /// The memory of the runtime is used up.
    Memory,
    /// Functions call each other too deeply.
    Stack,
    /// A request or a wait was made where the script can't wait, so it was never sent.
    NotHandedOver,
}

/// One function of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The name of the function; empty if it has none.
    pub function: String,
    /// The file, as in the name of its source.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl Thrown {
    /// The place where it was thrown, as `file:line`, if it is known.
    pub fn place(&self) -> Option<String> {
        let frame = self.stack.first()?;
        Some(format!("{}:{}", frame.file, frame.line))
    }
}

impl fmt::Display for Thrown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place() {
            write!(out, "{place}: ")?;
        }
        out.write_str(&self.message)
    }
}

impl std::error::Error for Thrown {}
