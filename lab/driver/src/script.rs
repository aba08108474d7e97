//! A workload as the engine sees it: waits and numbers of requests, no protocol.

use std::ops::Range;
use std::time::Duration;

use lab_workload::{
    Chance, Control, ForEach, MAX_TRANSACTION_LEVELS, Measure, Parallel, Retry, Round, Session,
    Slot, Step, UserScope, Visitor, Wait, Workload,
};

use crate::tokens::ScriptTokens;
use lab_client::RequestId;

/// The steps of a workload.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) setup: Vec<ScriptStep>,
    pub(crate) session: Vec<ScriptStep>,
    /// The session's steps in order: each by itself, or those of a group with its control.
    pub(crate) blocks: Vec<(Range<usize>, Option<Control>)>,
    /// Outer ones first; the whole session, if it is a transaction, is the first.
    pub(crate) transactions: Vec<Bracket>,
    pub(crate) visitor: Visitor,
    pub(crate) pace: Option<Duration>,
    pub(crate) probe: Option<(RequestId, Duration)>,
    pub(crate) tokens: Option<Box<ScriptTokens>>,
    /// Whether a program plays the session: then its transactions nest as they happen.
    pub(crate) is_scripted: bool,
}

/// A transaction by its steps.
#[derive(Debug, Clone)]
pub(crate) struct Bracket {
    /// How many others enclose it.
    pub(crate) level: usize,
    pub(crate) steps: Range<usize>,
    pub(crate) each: Round,
}

/// One step.
#[derive(Debug, Clone)]
pub(crate) struct ScriptStep {
    pub(crate) wait: Wait,
    pub(crate) repeat: u32,
    pub(crate) chance: Option<Chance>,
    /// In a setup: for the first user only.
    pub(crate) once: bool,
    /// By their index in [`Workload::requests`].
    pub(crate) requests: Range<RequestId>,
    /// Its parallel requests.
    pub(crate) parallel: Option<Box<ScriptParallel>>,
    /// Rounds in the plan, if the step runs.
    pub(crate) planned_rounds: u32,
    pub(crate) control: Option<Box<Control>>,
    pub(crate) retry: Option<Retry>,
    /// The session ends after a failed request of the step.
    pub(crate) ends_session: bool,
    /// The certain requests of a round: the step that counts them, relative to this one, and their number.
    pub(crate) surely: Box<[(usize, u32)]>,
    pub(crate) measures: Vec<Measure>,
}

impl ScriptStep {
    /// Returns its control, if a condition ends its loop.
    pub(crate) fn looped(&self) -> Option<&Control> {
        let control = self.control.as_deref();
        control.filter(|control| control.until.is_some())
    }
}

impl Script {
    /// Returns the maximum nesting depth of transactions.
    pub(crate) fn transaction_depth(&self) -> usize {
        if self.is_scripted {
            return 1 + MAX_TRANSACTION_LEVELS;
        }
        let levels = self.transactions.iter().map(|one| one.level + 1);
        levels.max().unwrap_or(0)
    }

    pub(crate) fn new(workload: &Workload) -> Self {
        let mut next = 0;
        let mut steps = |steps: &[Step]| -> Vec<ScriptStep> {
            steps
                .iter()
                .map(|step| script_step(step, &mut next))
                .collect()
        };
        let setup = steps(&workload.setup);
        let session = steps(&workload.session.steps);
        let blocks = workload.session.blocks();
        let blocks = blocks.map(|(steps, control)| (steps, control.cloned()));
        let probe = workload.probe.as_ref().map(|probe| (next, probe.every));
        Self {
            setup,
            session,
            blocks: blocks.collect(),
            transactions: brackets(&workload.session),
            visitor: workload.session.visitor,
            pace: workload.session.pace,
            probe,
            tokens: ScriptTokens::of(workload),
            is_scripted: workload.scripted.is_some(),
        }
    }
}

/// Returns the transactions of a session, in the order of [`Session::transaction_names`].
fn brackets(session: &Session) -> Vec<Bracket> {
    let whole = session.is_transaction().then_some(Bracket {
        level: 0,
        steps: 0..session.steps.len(),
        each: Round::Session,
    });
    let mut brackets: Vec<Bracket> = whole.into_iter().collect();
    for one in &session.transactions {
        let holds = |outer: &&Bracket| {
            outer.steps.start <= one.steps.start && one.steps.end <= outer.steps.end
        };
        brackets.push(Bracket {
            level: brackets.iter().filter(holds).count(),
            steps: one.steps.clone(),
            each: one.each,
        });
    }
    brackets
}

fn script_step(step: &Step, next: &mut RequestId) -> ScriptStep {
    let first = *next;
    let surely = step.sends().into_iter();
    *next += step.requests.len() as RequestId;
    ScriptStep {
        wait: step.wait,
        repeat: step.repeat,
        chance: step.chance,
        once: step.once,
        requests: first..*next,
        parallel: ScriptParallel::of(step, first),
        planned_rounds: step.planned_rounds(),
        control: step.control.clone(),
        retry: step.retry,
        ends_session: step.ends_session,
        surely: surely.map(|one| (one.counts_as, one.surely)).collect(),
        measures: step.measures.clone(),
    }
}

/// The parallel requests of a step.
#[derive(Debug, Clone)]
pub(crate) struct ScriptParallel {
    pub(crate) first: RequestId,
    pub(crate) at_once: Option<usize>,
    pub(crate) stops: bool,
    pub(crate) parts: Vec<Part>,
    pub(crate) each: Option<ForEach>,
}

/// One of the requests.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) request: RequestId,
    /// The distance from its own step to the step that counts it.
    pub(crate) counts_as: usize,
    pub(crate) captures: Vec<Slot>,
    /// Whether it reads variables after it is rendered.
    pub(crate) reads_later: bool,
}

impl ScriptParallel {
    /// Returns the parallel requests of a step whose first request is `first`.
    pub(crate) fn of(step: &Step, first: RequestId) -> Option<Box<Self>> {
        let parallel: &Parallel = step.parallel.as_deref()?;
        let is_measured = |place: usize| {
            let mut measures = step.measures.iter();
            measures.any(|one| one.request == place && one.value.is_some())
        };
        let requests = step.requests.iter().enumerate().skip(parallel.first);
        let parts = requests.map(|(place, request)| Part {
            request: first + place as RequestId,
            counts_as: parallel.counts_as(place),
            captures: request.captures.iter().map(|one| one.slot).collect(),
            reads_later: request.reads_later() || is_measured(place),
        });
        Some(Box::new(Self {
            first: first + parallel.first as RequestId,
            at_once: parallel.at_once.map(|most| most.max(1) as usize),
            stops: parallel.stops,
            parts: parts.collect(),
            each: parallel.each.clone(),
        }))
    }

    /// Returns the requests that are sent once.
    pub(crate) fn once(&self) -> &[Part] {
        &self.parts[..self.parts.len() - usize::from(self.each.is_some())]
    }

    /// Returns the ids of the requests, in the order of the workload.
    pub(crate) fn requests(&self) -> Range<RequestId> {
        self.first..self.first + self.parts.len() as RequestId
    }

    /// Returns the requests in order, each with its entry of the list.
    pub(crate) fn all(&self, scope: &UserScope) -> Vec<(&Part, Option<usize>)> {
        let each = self.each.as_ref();
        let mut all: Vec<_> = self.once().iter().map(|part| (part, None)).collect();
        if let (Some(each), Some(part)) = (each, self.parts.last()) {
            let entries = scope.count(each.list).min(each.at_most as usize);
            all.extend((0..entries).map(|entry| (part, Some(entry))));
        }
        all
    }
}
