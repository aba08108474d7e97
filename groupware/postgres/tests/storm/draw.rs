//! The faults to inject, drawn from a seed.

use std::time::Duration;

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::relay::Cut;

/// The number of servers over one database.
pub(crate) const FRONTS: usize = 3;

/// A fault to inject.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// A server is killed, and another one started.
    KillFront(usize),
    /// A server is halted for this time.
    StopFront(usize, Duration),
    /// The database ends most sessions.
    Terminate,
    /// The connection of one commit is cut.
    CutCommit(Cut),
    /// All connections are cut.
    CutAll,
    /// Connections pass nothing in either direction for this time.
    Stall(Duration),
    /// The primary is halted for this time.
    StopPrimary(Duration),
    /// The standby is halted for this time.
    StopStandby(Duration),
    /// Commits that wait for the standby are cancelled.
    CancelWait(Duration),
    /// The disk of both databases is full for this time.
    FullDisk(Duration),
    /// The primary is killed, and restarted after this time.
    KillPrimary(Duration),
    /// The primary is shut down cleanly and restarted.
    Restart,
    /// The standby is killed, and restarted after this time.
    KillStandby(Duration),
    /// The primary is killed, and the standby is promoted. Before that, the standby may have
    /// received nothing for a while.
    Promote { is_held_up: bool },
}

/// The names of the kinds in reports, and their weights in percent.
pub(crate) const KINDS: [(&str, u32); 15] = [
    ("server killed", 14),
    ("server stopped", 10),
    ("sessions terminated", 14),
    ("cut before COMMIT", 10),
    ("cut between COMMIT and its answer", 13),
    ("all connections cut", 8),
    ("way stalled", 8),
    ("primary stopped", 6),
    ("standby stopped", 5),
    ("wait for the standby cancelled", 3),
    ("disk full", 3),
    ("primary killed, started again", 2),
    ("primary restarted", 1),
    ("standby killed, started again", 1),
    ("primary killed, standby promoted", 2),
];

/// The kind of [`KINDS`] that is drawn again where no disk can be filled.
pub(crate) const FULL_DISK: usize = 10;

impl Fault {
    /// The index in [`KINDS`].
    pub(crate) fn kind(self) -> usize {
        match self {
            Self::KillFront(_) => 0,
            Self::StopFront(..) => 1,
            Self::Terminate => 2,
            Self::CutCommit(Cut::Before) => 3,
            Self::CutCommit(Cut::After) => 4,
            Self::CutAll => 5,
            Self::Stall(_) => 6,
            Self::StopPrimary(_) => 7,
            Self::StopStandby(_) => 8,
            Self::CancelWait(_) => 9,
            Self::FullDisk(_) => FULL_DISK,
            Self::KillPrimary(_) => 11,
            Self::Restart => 12,
            Self::KillStandby(_) => 13,
            Self::Promote { .. } => 14,
        }
    }

    /// A fault of a kind.
    pub(crate) fn of(kind: usize, random: &mut Xoshiro256PlusPlus) -> Self {
        let front = below(FRONTS as u32, random) as usize;
        let long = Duration::from_millis(u64::from(20 + below(600, random)));
        match kind {
            0 => Self::KillFront(front),
            1 => Self::StopFront(front, asleep(long, random)),
            2 => Self::Terminate,
            3 => Self::CutCommit(Cut::Before),
            4 => Self::CutCommit(Cut::After),
            5 => Self::CutAll,
            6 => Self::Stall(long),
            7 => Self::StopPrimary(long),
            8 => Self::StopStandby(long),
            9 => Self::CancelWait(long),
            FULL_DISK => Self::FullDisk(long),
            11 => Self::KillPrimary(long),
            12 => Self::Restart,
            13 => Self::KillStandby(long),
            _ => Self::Promote {
                is_held_up: below(2, random) == 0,
            },
        }
    }

    pub(crate) fn draw(random: &mut Xoshiro256PlusPlus) -> Self {
        let all = KINDS.iter().map(|(_, weight)| weight).sum();
        let mut at = below(all, random);
        let kind = KINDS.iter().position(|(_, weight)| {
            let is_it = at < *weight;
            at = at.saturating_sub(*weight);
            is_it
        });
        Self::of(kind.expect("it is below the sum"), random)
    }
}

/// Some halts exceed the database's limit for idle transactions.
fn asleep(long: Duration, random: &mut Xoshiro256PlusPlus) -> Duration {
    match below(20, random) {
        0 => Duration::from_secs(11),
        _ => long,
    }
}

fn below(limit: u32, random: &mut Xoshiro256PlusPlus) -> u32 {
    random.next_u32() % limit
}
