//! Which faults strike: drawn by a seed.

use std::time::Duration;

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::relay::Cut;

/// Servers over one database.
pub(crate) const FRONTS: usize = 3;

/// What strikes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// A server is killed, and another one started.
    KillFront(usize),
    /// A server stands still for so long.
    StopFront(usize, Duration),
    /// Most sessions are ended by the database.
    Terminate,
    /// The way of one commit is cut.
    CutCommit(Cut),
    /// All connections end.
    CutAll,
    /// What is said passes in neither direction for so long.
    Stall(Duration),
    /// The database that writes stands still for so long.
    StopPrimary(Duration),
    /// The one that follows it does.
    StopStandby(Duration),
    /// Commits that wait for the one that follows are told not to.
    CancelWait(Duration),
    /// The disk of both is full for so long.
    FullDisk(Duration),
    /// The database that writes is killed, and started again after so long.
    KillPrimary(Duration),
    /// It is ended in order, and started again.
    Restart,
    /// The one that follows it is killed, and started again after so long.
    KillStandby(Duration),
    /// The one that writes is killed, and the other takes its place. Before that, the other may have heard nothing
    /// more for a while.
    Promote { is_held_up: bool },
}

/// The names that the table has for them, and how many of a hundred faults are of that kind.
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

/// The kind of each of [`KINDS`] that others are drawn instead of where no disk can be filled up.
pub(crate) const FULL_DISK: usize = 10;

impl Fault {
    /// Its place among [`KINDS`].
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

    /// One of a kind.
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

/// Some servers sleep for longer than the database has their transactions wait.
fn asleep(long: Duration, random: &mut Xoshiro256PlusPlus) -> Duration {
    match below(20, random) {
        0 => Duration::from_secs(11),
        _ => long,
    }
}

fn below(limit: u32, random: &mut Xoshiro256PlusPlus) -> u32 {
    random.next_u32() % limit
}
