//! Classes of waits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The class of a wait, by what the thread waits for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A core: the thread is ready to run, and every core that it may use is busy.
    NoCore,
    /// A lock of the program that another thread holds.
    Lock,
    /// A lock, or a condition such as new work; the functions on the stack don't show which.
    LockOrCondition,
    /// A lock of the kernel, or a lock on a file.
    KernelLock,
    /// A disk.
    Disk,
    /// One socket: data, room to send, or a connection.
    Network,
    /// Any of several sockets or files, as in an event loop.
    Poll,
    /// A pipe.
    Pipe,
    /// The end of a child process.
    Child,
    /// The end of a fixed time.
    Sleep,
    /// Work from another thread, or a condition.
    Idle,
    /// Anything else.
    Other,
}

impl Class {
    /// All classes, in the order in which they are shown: waits for work last.
    pub const ALL: [Self; 12] = [
        Self::NoCore,
        Self::Lock,
        Self::LockOrCondition,
        Self::KernelLock,
        Self::Disk,
        Self::Pipe,
        Self::Child,
        Self::Other,
        Self::Network,
        Self::Poll,
        Self::Sleep,
        Self::Idle,
    ];

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoCore => "no_core",
            Self::Lock => "lock",
            Self::LockOrCondition => "lock_or_condition",
            Self::KernelLock => "kernel_lock",
            Self::Disk => "disk",
            Self::Network => "network",
            Self::Poll => "poll",
            Self::Pipe => "pipe",
            Self::Child => "child",
            Self::Sleep => "sleep",
            Self::Idle => "idle",
            Self::Other => "other",
        }
    }

    /// The class with a name; `None` for a name that isn't one of a class.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// The name for people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::NoCore => "no core",
            Self::Lock => "lock",
            Self::LockOrCondition => "lock or condition",
            Self::KernelLock => "kernel lock",
            Self::Disk => "disk",
            Self::Network => "network",
            Self::Poll => "poll",
            Self::Pipe => "pipe",
            Self::Child => "child process",
            Self::Sleep => "sleep",
            Self::Idle => "idle",
            Self::Other => "other",
        }
    }

    /// Returns the description of a thread in this wait: `waiting for a lock`.
    pub const fn doing(self) -> &'static str {
        match self {
            Self::NoCore => "ready, but without a core",
            Self::Lock => "waiting for a lock",
            Self::LockOrCondition => "waiting for a lock or a condition",
            Self::KernelLock => "waiting for a lock of the kernel",
            Self::Disk => "waiting for a disk",
            Self::Network => "waiting for a socket",
            Self::Poll => "polling",
            Self::Pipe => "waiting for a pipe",
            Self::Child => "waiting for a child process",
            Self::Sleep => "sleeping",
            Self::Idle => "idle",
            Self::Other => "waiting for something else",
        }
    }

    /// Returns true if a thread in this wait is usually idle.
    pub const fn is_waiting_for_work(self) -> bool {
        match self {
            Self::Network | Self::Poll | Self::Sleep | Self::Idle => true,
            Self::NoCore
            | Self::Lock
            | Self::LockOrCondition
            | Self::KernelLock
            | Self::Disk
            | Self::Pipe
            | Self::Child
            | Self::Other => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Class;

    #[test]
    fn names_of_classes_are_those_that_files_have() {
        for class in Class::ALL {
            let written = serde_json::to_value(class).unwrap();
            assert_eq!(written, class.name());
            assert_eq!(Class::named(class.name()), Some(class));
        }
        assert_eq!(Class::named("locks"), None);
    }
}
