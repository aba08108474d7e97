//! A workload as the engine sees it: waits and numbers of requests, no protocol.

use std::ops::Range;
use std::time::Duration;

use lab_workload::{Chance, Control, Measure, Retry, Step, Visitor, Wait, Workload};

use lab_client::RequestId;

/// The steps of a workload.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) setup: Vec<ScriptStep>,
    pub(crate) session: Vec<ScriptStep>,
    /// The session's steps in order: each by itself, or those of a group with what controls them.
    pub(crate) blocks: Vec<(Range<usize>, Option<Control>)>,
    pub(crate) visitor: Visitor,
    pub(crate) pace: Option<Duration>,
    pub(crate) probe: Option<(RequestId, Duration)>,
}

/// One step.
#[derive(Debug, Clone)]
pub(crate) struct ScriptStep {
    pub(crate) wait: Wait,
    pub(crate) repeat: u32,
    pub(crate) chance: Option<Chance>,
    /// Of a setup: for the first user only.
    pub(crate) once: bool,
    /// By their places in [`Workload::requests`].
    pub(crate) requests: Range<RequestId>,
    /// Rounds that the plan knows of, where it is done.
    pub(crate) planned_rounds: u32,
    pub(crate) control: Option<Box<Control>>,
    pub(crate) retry: Option<Retry>,
    pub(crate) measures: Vec<Measure>,
}

impl ScriptStep {
    /// What controls it, where a condition ends its loop.
    pub(crate) fn looped(&self) -> Option<&Control> {
        let control = self.control.as_deref();
        control.filter(|control| control.until.is_some())
    }
}

impl Script {
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
            visitor: workload.session.visitor,
            pace: workload.session.pace,
            probe,
        }
    }
}

fn script_step(step: &Step, next: &mut RequestId) -> ScriptStep {
    let first = *next;
    *next += step.requests.len() as RequestId;
    ScriptStep {
        wait: step.wait,
        repeat: step.repeat,
        chance: step.chance,
        once: step.once,
        requests: first..*next,
        planned_rounds: step.planned_rounds(),
        control: step.control.clone(),
        retry: step.retry,
        measures: step.measures.clone(),
    }
}
