//! One replay of a load: the users' sessions, and their requests. It knows no budget.

use std::time::Duration;

use lab_workload::LoadSpec;
use lab_workload::Visit;
use lab_workload::timing::{SessionChoice, TimingStream};
use lab_workload::{Round, Step, Workload};

use crate::case::{Case, Counts, StepCount};
use crate::prediction::{Prediction, StagePrediction, StepPrediction, TransactionPrediction};
use crate::transactions::Transactions;

/// Counts of one replay. Times are nanoseconds since the start of the ramp.
pub(crate) struct Tally<'a> {
    workload: &'a Workload,
    pace: Option<u64>,
    ramp: u64,
    end: u64,
    /// The present user sends nothing from then on.
    until: u64,
    hold_s: f64,
    case: Case,
    steps: Vec<Count>,
    /// The requests of a round of each step: the counting step, and how many are certain.
    sends: Vec<Vec<Sent>>,
    transactions: Transactions,
    /// The stages by their ends.
    stages: Vec<(u64, StagePrediction)>,
}

/// Requests of a round that count as one step.
struct Sent {
    step: usize,
    requests: u64,
    surely: u64,
}

#[derive(Clone, Copy, Default)]
struct Count {
    requests: u64,
    hold: u64,
    sure: u64,
    sure_hold: u64,
    waits: u64,
    waited: u128,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(workload: &'a Workload, load: &LoadSpec, case: Case) -> Self {
        let sends = |(at, step): (usize, &Step)| -> Vec<Sent> {
            let sent = step.sends().into_iter().map(|one| Sent {
                step: at + one.counts_as,
                requests: u64::from(case.entries(one.surely, one.at_most)),
                surely: u64::from(one.surely),
            });
            sent.collect()
        };
        let ramp = load.ramp_ms * 1_000_000;
        let end = ramp + load.hold_ms * 1_000_000;
        let stages = load.stages.iter().scan(0, |end, stage| {
            *end += stage.length_ms * 1_000_000;
            Some((*end, StagePrediction::default()))
        });
        Self {
            workload,
            pace: workload.session.pace.map(|p| p.as_nanos() as u64),
            ramp,
            end,
            until: end,
            hold_s: load.hold_ms as f64 / 1e3,
            case,
            steps: vec![Count::default(); workload.session.steps.len()],
            transactions: Transactions::of(&workload.session),
            sends: workload
                .session
                .steps
                .iter()
                .enumerate()
                .map(sends)
                .collect(),
            stages: stages.collect(),
        }
    }

    /// Removes the end of the trial.
    pub(crate) fn never_ends(&mut self) {
        (self.end, self.until) = (u64::MAX, u64::MAX);
    }

    /// One user's visit, as far as it lies within the trial.
    pub(crate) fn visit(&mut self, stream: &mut TimingStream, visit: Visit) {
        self.until = visit.until.min(self.end);
        let mut planned = visit.from;
        let mut now = visit.from;
        while now < self.until {
            match self.session(stream, now) {
                Some(over) => now = over,
                None => return,
            }
            // A cycle that overran is followed at once, and the plan restarts there.
            planned = self
                .pace
                .map_or(now, |pace| planned.saturating_add(pace))
                .max(now);
            now = planned;
        }
    }

    /// Replays one session from `now` on; returns its end, or `None` if the trial ends first.
    pub(crate) fn session(&mut self, stream: &mut TimingStream, mut now: u64) -> Option<u64> {
        let session = &self.workload.session;
        if self.workload.scripted.is_some() {
            // What a script sends is not known beforehand.
            return Some(now);
        }
        let mut choice = SessionChoice::default();
        self.transactions
            .start(Round::Session, 0..session.steps.len());
        for (block, (steps, control)) in session.blocks().enumerate() {
            if control.is_some() && !choice.does(session.steps[steps.start].chance.as_ref(), stream)
            {
                continue;
            }
            let rounds = self.case.rounds_of_block(block, control);
            if rounds == 0 {
                let left_out = session.steps[steps].iter().map(Step::planned_rounds);
                stream.pass_over(left_out.sum());
                continue;
            }
            for round in 0..rounds {
                self.transactions.start(Round::Group, steps.clone());
                for at in steps.clone() {
                    now = self.step((at, round == 0), (&mut choice, stream), now)?;
                }
            }
        }
        Some(now)
    }

    /// Replays one step, in a round that is `planned` or not; returns its end.
    fn step(
        &mut self,
        (at, planned): (usize, bool),
        (choice, stream): (&mut SessionChoice, &mut TimingStream),
        mut now: u64,
    ) -> Option<u64> {
        let workload = self.workload;
        let step = &workload.session.steps[at];
        if step.is_name() {
            return Some(now);
        }
        if !choice.does(step.chance.as_ref(), stream) {
            return Some(now);
        }
        let rounds = self.case.rounds_of_step(at, step);
        if rounds == 0 && planned {
            stream.pass_over(step.planned_rounds());
        }
        for round in 0..rounds {
            if !step.wait.is_known() && self.case.waits_long() {
                return None;
            }
            let known = planned && round < step.planned_rounds();
            // Even in a planned round the queue may be empty.
            let sure = known && step.take().is_none();
            let wait = nanos(match known {
                true => stream.next_wait(&step.wait),
                false => stream.next_unplanned(&step.wait),
            });
            now = now.saturating_add(wait);
            if now >= self.until {
                return None;
            }
            if let (Some(take), Case::Starved) = (step.take(), self.case) {
                now = now.saturating_add(nanos(take.within));
                continue;
            }
            self.transactions.start(Round::Step, at..at + 1);
            self.count(at, sure, wait, now);
        }
        Some(now)
    }

    fn count(&mut self, at: usize, sure: bool, wait: u64, now: u64) {
        let in_hold = u64::from(now >= self.ramp);
        let (mut requests, mut surely) = (0, 0);
        for sent in &self.sends[at] {
            requests += sent.requests;
            surely += sent.surely;
            let count = &mut self.steps[sent.step];
            count.requests += sent.requests;
            count.hold += sent.requests * in_hold;
            if sure {
                count.sure += sent.surely;
                count.sure_hold += sent.surely * in_hold;
            }
        }
        if requests > 0 {
            self.transactions.sent(at, sure && surely > 0);
        }
        if let Some(stage) = self.stage(now) {
            stage.transactions += requests as f64;
        }
        let count = &mut self.steps[at];
        count.waits += 1;
        count.waited += u128::from(wait);
    }

    /// A session that arrives.
    pub(crate) fn arrived(&mut self, now: u64) {
        if let Some(stage) = self.stage(now) {
            stage.arrivals += 1.0;
        }
    }

    fn stage(&mut self, now: u64) -> Option<&mut StagePrediction> {
        let at = self.stages.partition_point(|(end, _)| *end <= now);
        self.stages.get_mut(at).map(|(_, stage)| stage)
    }

    pub(crate) fn finish(self, scale: f64, exact: bool) -> (Prediction, Counts) {
        let scaled = |n: u64| (n as f64 * scale).round() as u64;
        let step = |(step, count): (&Step, &Count)| StepPrediction {
            name: step.name.clone(),
            requests: scaled(count.requests),
            mean_wait_ms: count.waited as f64 / 1e6 / count.waits.max(1) as f64,
            waits: scaled(count.waits),
            range: None,
        };
        let counted = |count: &Count| StepCount {
            trial: count.requests as f64 * scale,
            hold: count.hold as f64 * scale,
            sure_trial: count.sure as f64 * scale,
            sure_hold: count.sure_hold as f64 * scale,
        };
        let stage = |(_, stage): &(u64, StagePrediction)| StagePrediction {
            transactions: stage.transactions * scale,
            arrivals: stage.arrivals * scale,
        };
        let total: u64 = self.steps.iter().map(|c| c.requests).sum();
        let in_hold: u64 = self.steps.iter().map(|c| c.hold).sum();
        let hold_transactions = in_hold as f64 * scale;
        let counts = Counts {
            steps: self.steps.iter().map(counted).collect(),
            transactions: self.transactions.counts(scale),
        };
        let names = self.workload.session.transaction_names();
        let named = names.zip(&counts.transactions);
        let named = named.map(|(name, count)| TransactionPrediction {
            name: name.to_owned(),
            begun: count.high.round() as u64,
            range: None,
        });
        let named_transactions = named.collect();
        let prediction = Prediction {
            transactions: total as f64 * scale,
            hold_transactions,
            offered_per_s: hold_transactions / self.hold_s,
            exact,
            arrivals: None,
            range: None,
            steps: self
                .workload
                .session
                .steps
                .iter()
                .zip(&self.steps)
                .map(step)
                .collect(),
            named_transactions,
            stages: self.stages.iter().map(stage).collect(),
            populations: Vec::new(),
        };
        (prediction, counts)
    }
}

/// Whole nanoseconds.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
