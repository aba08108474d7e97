//! The faults and their times, drawn by a seed.

use std::time::Duration;

use plimsoll_tests::relay::{Direction, Way};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The number of agents of a stage.
pub(crate) const AGENTS: usize = 2;

/// A program's link to the hub.
pub(crate) type Link = usize;

/// The link of the conductor.
pub(crate) const CONDUCTOR: Link = AGENTS;

/// A process that is stopped or killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Agent(usize),
    Conductor,
    /// With its NATS server.
    Hub,
}

/// A fault of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// All connections over a link end.
    Cut(Link),
    /// They do, and each new one at once, for this time.
    Close(Link, Duration),
    /// A direction, or both, are bad for this time.
    Bad(Link, Option<Direction>, Way, Duration),
    /// A process is stopped for this time.
    Stop(Who, Duration),
    /// A process is killed, and restarted after this time.
    Kill(Who, Duration),
    /// An agent is stopped for this time. Meanwhile another one is started in its name, on another machine or on the
    /// same one, and the old one continues beside it.
    Twin(usize, OnOtherMachine, Duration),
    /// A client connects with a revoked token.
    Stranger,
    /// A client with access speaks in the name of others.
    Forger,
    /// An agent greets as one of a later version would.
    Version(usize),
}

/// Whether a restarted agent has another machine's state.
pub(crate) type OnOtherMachine = bool;

/// A fault of a run, at a delay after the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planned {
    /// Whether it first waits for a trial's load to begin.
    pub(crate) in_load: bool,
    pub(crate) after: Duration,
    pub(crate) fault: Fault,
}

/// The names in tables.
pub(crate) const NAMES: [&str; 17] = [
    "connections cut",
    "connections refused",
    "way delayed",
    "way narrow, buffers full",
    "way stalled",
    "way stalled in one direction",
    "frame halved, connection cut",
    "agent stopped",
    "agent killed",
    "conductor stopped",
    "conductor killed",
    "hub stopped",
    "hub killed",
    "two agents of one name",
    "token that was taken back",
    "subjects of others",
    "agent of another version",
];

impl Fault {
    /// Its index in [`NAMES`].
    pub(crate) fn kind(&self) -> usize {
        match self {
            Self::Cut(_) => 0,
            Self::Close(..) => 1,
            Self::Bad(_, _, Way::Delayed(_), _) => 2,
            Self::Bad(_, _, Way::Narrow(_), _) => 3,
            Self::Bad(_, None, Way::Stalled | Way::Open, _) => 4,
            Self::Bad(_, Some(_), Way::Stalled | Way::Open, _) => 5,
            Self::Bad(_, _, Way::Halved, _) => 6,
            Self::Stop(Who::Agent(_), _) => 7,
            Self::Kill(Who::Agent(_), _) => 8,
            Self::Stop(Who::Conductor, _) => 9,
            Self::Kill(Who::Conductor, _) => 10,
            Self::Stop(Who::Hub, _) => 11,
            Self::Kill(Who::Hub, _) => 12,
            Self::Twin(..) => 13,
            Self::Stranger => 14,
            Self::Forger => 15,
            Self::Version(_) => 16,
        }
    }
}

/// Draws the faults of a run, some of them after its own end.
pub(crate) fn draw(faults: u64, random: &mut Xoshiro256PlusPlus) -> Vec<Planned> {
    let planned = |_| Planned {
        in_load: false,
        after: between(200, 5_000, random),
        fault: fault(random),
    };
    (0..faults).map(planned).collect()
}

/// A link that is lost for this time in both directions, somewhere in a trial's load.
pub(crate) fn away(long: Duration, random: &mut Xoshiro256PlusPlus) -> Vec<Planned> {
    let place = below(AGENTS + 1, random);
    vec![Planned {
        in_load: true,
        after: between(1, 3_000, random),
        fault: Fault::Bad(place, None, Way::Stalled, long),
    }]
}

fn fault(random: &mut Xoshiro256PlusPlus) -> Fault {
    let place = below(AGENTS + 1, random);
    let agent = below(AGENTS, random);
    let direction = [Direction::There, Direction::Back][below(2, random)];
    let which = [None, Some(direction)][below(2, random)];
    let who = [Who::Agent(agent), Who::Conductor, Who::Hub][below(3, random)];
    let long = length(random);
    match below(12, random) {
        0 => Fault::Cut(place),
        1 => Fault::Close(place, long),
        2 => Fault::Bad(place, which, delay(random), long),
        3 => Fault::Bad(place, which, narrow(random), long),
        4 => Fault::Bad(place, None, Way::Stalled, long),
        5 => Fault::Bad(place, Some(direction), Way::Stalled, long),
        6 => Fault::Bad(place, Some(direction), Way::Halved, between(1, 300, random)),
        7 => Fault::Stop(who, standstill(random)),
        8 | 9 => Fault::Kill(who, between(1, 2_000, random)),
        10 => Fault::Twin(agent, below(2, random) == 0, long),
        _ => [Fault::Stranger, Fault::Forger, Fault::Version(agent)][below(3, random)],
    }
}

/// Most faults are shorter than a lease, and some longer.
fn length(random: &mut Xoshiro256PlusPlus) -> Duration {
    match below(5, random) {
        0 => between(12_200, 16_000, random),
        _ => between(50, 4_000, random),
    }
}

/// The time for which a process is stopped.
fn standstill(random: &mut Xoshiro256PlusPlus) -> Duration {
    match below(5, random) {
        0 => between(12_200, 30_000, random),
        _ => between(500, 4_000, random),
    }
}

fn delay(random: &mut Xoshiro256PlusPlus) -> Way {
    Way::Delayed(between(5, 300, random))
}

fn narrow(random: &mut Xoshiro256PlusPlus) -> Way {
    Way::Narrow([1, 16, 256, 4096][below(4, random)])
}

fn between(least: u32, most: u32, random: &mut Xoshiro256PlusPlus) -> Duration {
    Duration::from_millis(u64::from(least + random.next_u32() % (most - least + 1)))
}

fn below(limit: usize, random: &mut Xoshiro256PlusPlus) -> usize {
    random.next_u32() as usize % limit
}
