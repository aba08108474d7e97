//! The cases of a session between which a trial lies, depending on the server's responses.
//!
//! A step's requests are most if every session runs it as often as possible and skips all other optional steps, since
//! most sessions then fit into the trial; they are fewest if all others run as often as possible and it runs as rarely
//! as possible. So one replay for each condition or loop, and two for all of them together, bound every step.

use lab_workload::Control;
use lab_workload::{Session, Step};

use crate::prediction::{Prediction, Range, Span};

/// Requests of a step, over all users.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepCount {
    /// In the whole trial.
    pub(crate) trial: f64,
    /// In the hold.
    pub(crate) hold: f64,
    /// Requests of planned rounds among them: in the whole trial,
    pub(crate) sure_trial: f64,
    /// and in the hold.
    pub(crate) sure_hold: f64,
}

/// The counts of a replay.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    /// By step.
    pub(crate) steps: Vec<StepCount>,
    /// The transactions by name: those started whatever the responses, and all.
    pub(crate) transactions: Vec<Span>,
}

/// The outcomes of conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// Every condition holds, and no loop has a second round.
    Usual,
    /// Every optional step is skipped, and no loop has a second round.
    Least,
    /// Every condition holds, and every loop has all its rounds.
    Most,
    /// The same, and steps that take from queues get no entry.
    Starved,
    /// As the minimum, except for one of a session's blocks,
    Block(usize),
    /// or for one of its steps, and the block with this number that it is in.
    Step(usize, usize),
}

/// The cases of a session; empty if nothing depends on responses.
pub(crate) fn cases(session: &Session) -> Vec<Case> {
    let mut cases = Vec::new();
    for (block, (steps, control)) in session.blocks().enumerate() {
        cases.extend(control.map(|_| Case::Block(block)));
        let controlled = steps.filter(|at| session.steps[*at].control.is_some());
        cases.extend(controlled.map(|at| Case::Step(at, block)));
    }
    let takes = session.steps.iter().any(|step| step.take().is_some());
    cases.extend(takes.then_some(Case::Starved));
    let mut sends = session.steps.iter().flat_map(Step::sends);
    let mut waits = session.steps.iter().map(|step| step.wait);
    if !cases.is_empty()
        || waits.any(|wait| !wait.is_known())
        || sends.any(|one| one.surely < one.at_most)
    {
        cases.extend([Case::Least, Case::Most]);
    }
    cases
}

impl Case {
    /// Rounds of a block in a session.
    pub(crate) fn rounds_of_block<T>(self, block: usize, control: Option<&Control<T>>) -> u32 {
        let most = match self {
            Self::Block(of) | Self::Step(_, of) => of == block,
            Self::Usual | Self::Least | Self::Most | Self::Starved => false,
        };
        control.map_or(1, |control| self.rounds(control, 1, most))
    }

    /// Rounds of a step within a round of its block.
    pub(crate) fn rounds_of_step<T>(self, at: usize, step: &Step<T>) -> u32 {
        let most = matches!(self, Self::Step(of, _) if of == at);
        let control = step.control.as_ref();
        control.map_or(step.repeat, |control| {
            self.rounds(control, step.repeat, most)
        })
    }

    /// Returns true if an unplanned wait outlasts the trial; in the other cases it is zero.
    pub(crate) fn waits_long(self) -> bool {
        self == Self::Least
    }

    /// The number of requests sent for the entries of a list.
    pub(crate) fn entries(self, surely: u32, at_most: u32) -> u32 {
        match self {
            Self::Least | Self::Block(_) | Self::Step(..) => surely,
            Self::Usual | Self::Most | Self::Starved => at_most,
        }
    }

    fn rounds<T>(self, control: &Control<T>, repeat: u32, most: bool) -> u32 {
        let once = if control.until.is_some() { 1 } else { repeat };
        match self {
            Self::Usual => once,
            Self::Most | Self::Starved => control.most_rounds(repeat),
            _ if most => control.most_rounds(repeat),
            _ if control.when.is_some() => 0,
            _ => once,
        }
    }
}

/// The prediction with the range of the cases.
pub(crate) fn with_range(mut usual: Prediction, cases: &[Counts]) -> Prediction {
    let none = Span {
        low: 0.0,
        high: 0.0,
    };
    let mut range = Range {
        trial: none,
        hold: none,
    };
    for (at, step) in usual.steps.iter_mut().enumerate() {
        let counts = || cases.iter().filter_map(|counts| counts.steps.get(at));
        let trial = span(counts().map(|count| (count.sure_trial, count.trial)));
        range
            .hold
            .add(span(counts().map(|count| (count.sure_hold, count.hold))));
        range.trial.add(trial);
        step.range = Some(trial);
    }
    for (at, named) in usual.named_transactions.iter_mut().enumerate() {
        let counts = cases
            .iter()
            .filter_map(|counts| counts.transactions.get(at));
        named.range = Some(span(counts.map(|count| (count.low, count.high))));
    }
    usual.range = Some(range);
    usual
}

fn span(cases: impl Iterator<Item = (f64, f64)>) -> Span {
    let widest = cases.reduce(|(low, high), (sure, most)| (low.min(sure), high.max(most)));
    let (low, high) = widest.unwrap_or_default();
    Span { low, high }
}
