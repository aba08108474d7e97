//! What a trial would come to if the server answered at once: every user's waits, or every
//! arrival and the waits of its session, replayed from the very streams that the driver draws from.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::load::{LoadKind, LoadSpec, Spacing};
use crate::model::{Step, Workload};
use crate::timing::{ArrivalStream, SessionChoice, TimingStream};

/// Waits that one trial may replay.
const TRIAL_WAITS: u64 = 40_000_000;

/// What a trial comes to with a response time of zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// In the whole trial, ramp included.
    pub transactions: f64,
    /// In the hold.
    pub hold_transactions: f64,
    /// `hold_transactions` per second of hold; 0 of a sequence, whose rate the server decides.
    pub offered_per_s: f64,
    /// True when every user, or every arrival, was replayed; false when a sample stands for all.
    pub exact: bool,
    /// Where sessions arrive: how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// In the order of the session.
    pub steps: Vec<StepPrediction>,
}

/// Sessions that arrive in a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Arrivals {
    /// In the whole trial, ramp included.
    pub trial: f64,
    /// In the hold.
    pub hold: f64,
}

/// The part of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepPrediction {
    /// The step's name.
    pub name: String,
    /// Requests in the whole trial.
    pub requests: u64,
    /// Mean of the waits that ended within the trial; 0 when there are none.
    pub mean_wait_ms: f64,
    /// How many those are.
    pub waits: u64,
}

/// What a trial of `block` comes to; `workload` and `load` are at the plan's speed. It replays no
/// more than `budget` waits, and never more than a few seconds' work. `None` where the workload
/// neither waits nor paces, so that the server alone decides.
#[must_use]
pub fn predict(
    workload: &Workload,
    seed: u64,
    block: u32,
    load: &LoadSpec,
    budget: u64,
) -> Option<Prediction> {
    let replay = Replay {
        workload,
        seed,
        budget: budget.min(TRIAL_WAITS),
    };
    replay.replay(block, load)
}

struct Replay<'a> {
    workload: &'a Workload,
    seed: u64,
    budget: u64,
}

impl Replay<'_> {
    fn replay(&self, block: u32, load: &LoadSpec) -> Option<Prediction> {
        match load.kind {
            LoadKind::Users => self.replay_users(block, load),
            LoadKind::Arrival {
                rate_per_s,
                spacing,
            } => Some(self.replay_arrivals(block, load, rate_per_s, spacing)),
            LoadKind::Sequence { sessions } => Some(self.replay_sequence(block, load, sessions)),
        }
    }

    fn replay_arrivals(
        &self,
        block: u32,
        load: &LoadSpec,
        rate_per_s: f64,
        spacing: Spacing,
    ) -> Prediction {
        let ramp = Duration::from_millis(load.ramp_ms);
        let end = ramp + Duration::from_millis(load.hold_ms);
        let stream = ArrivalStream::new(self.seed, block, rate_per_s, spacing, ramp);
        let mut tally = Tally::new(self.workload, load);
        let mut arrivals = Arrivals {
            trial: 0.0,
            hold: 0.0,
        };
        let mut arrive = |number: u64, at: Duration| {
            arrivals.trial += 1.0;
            arrivals.hold += f64::from(u8::from(at >= ramp));
            let mut waits = TimingStream::of_session(self.seed, block, number);
            tally.session(&mut waits, nanos(at));
        };
        let expected = stream.expected(end);
        let affordable = self.budget as f64 / self.waits_per_session().max(1.0);
        let exact = expected <= affordable;
        if exact {
            let in_trial = stream.take_while(|arrival| arrival.at < end);
            in_trial.for_each(|arrival| arrive(arrival.number, arrival.at));
        } else {
            // Sessions evenly apart in number stand for those between them.
            let stride = expected / affordable.floor().max(1.0);
            for at in 0..affordable as u64 {
                let place = (at as f64 + 0.5) * stride;
                arrive(place as u64, stream.time_of(place));
            }
        }
        let scale = if exact {
            1.0
        } else {
            expected / arrivals.trial.max(1.0)
        };
        arrivals.trial *= scale;
        arrivals.hold *= scale;
        Prediction {
            arrivals: Some(arrivals),
            ..tally.finish(scale, exact)
        }
    }

    /// How many requests, not how fast.
    fn replay_sequence(&self, block: u32, load: &LoadSpec, sessions: u32) -> Prediction {
        let affordable = (self.budget as f64 / self.waits_per_session().max(1.0)).max(1.0);
        let replayed = sessions.min(affordable as u32);
        let mut tally = Tally::new(self.workload, load);
        tally.end = u64::MAX;
        let mut waits = TimingStream::new(self.seed, block, 0);
        let mut now = 0;
        for _ in 0..replayed {
            now = tally.session(&mut waits, now).unwrap_or(now);
        }
        let scale = f64::from(sessions) / f64::from(replayed.max(1));
        Prediction {
            offered_per_s: 0.0,
            ..tally.finish(scale, replayed == sessions)
        }
    }

    fn waits_per_session(&self) -> f64 {
        let steps = &self.workload.session.steps;
        steps
            .iter()
            .map(|step| part(step) * f64::from(step.repeat))
            .sum()
    }

    fn replay_users(&self, block: u32, load: &LoadSpec) -> Option<Prediction> {
        let per_user = self.waits_per_user(load)?;
        let users = u64::from(load.users);
        let affordable = ((self.budget as f64 / per_user) as u64).clamp(1, users);
        if per_user > TRIAL_WAITS as f64 {
            return None;
        }
        let stride = users.div_ceil(affordable);
        let mut tally = Tally::new(self.workload, load);
        let mut replayed = 0u64;
        for index in (0..load.users).step_by(stride as usize) {
            let mut stream = TimingStream::new(self.seed, block, index);
            tally.user(&mut stream, offset(index, load));
            replayed += 1;
        }
        Some(tally.finish(users as f64 / replayed as f64, stride == 1))
    }

    /// Waits of one user in a trial, roughly; `None` without any wait or pace.
    fn waits_per_user(&self, load: &LoadSpec) -> Option<f64> {
        let session = &self.workload.session;
        let waits = self.waits_per_session();
        let waited: f64 = session
            .steps
            .iter()
            .map(|s| part(s) * f64::from(s.repeat) * s.wait.mean().as_secs_f64())
            .sum();
        let cycle = session
            .pace
            .map_or(waited, |pace| waited.max(pace.as_secs_f64()));
        let length = (load.ramp_ms + load.hold_ms) as f64 / 1e3;
        (cycle > 0.0).then(|| waits * (length / cycle + 1.0))
    }
}

/// The part of the sessions that does a step.
fn part(step: &Step) -> f64 {
    step.chance.map_or(1.0, |chance| chance.to - chance.from)
}

/// When a user starts, as the driver has it: ramp × index ÷ users.
fn offset(index: u32, load: &LoadSpec) -> u64 {
    let ramp = u128::from(load.ramp_ms) * 1_000_000;
    let offset = ramp * u128::from(index) / u128::from(load.users.max(1));
    u64::try_from(offset).unwrap_or(u64::MAX)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Counts of one replay. Times are nanoseconds since the start of the ramp.
struct Tally<'a> {
    workload: &'a Workload,
    pace: Option<u64>,
    ramp: u64,
    end: u64,
    hold_s: f64,
    hold_requests: u64,
    steps: Vec<Count>,
}

#[derive(Clone, Copy, Default)]
struct Count {
    requests: u64,
    waits: u64,
    waited: u128,
}

impl<'a> Tally<'a> {
    fn new(workload: &'a Workload, load: &LoadSpec) -> Self {
        let ramp = load.ramp_ms * 1_000_000;
        Self {
            workload,
            pace: workload.session.pace.map(|p| p.as_nanos() as u64),
            ramp,
            end: ramp + load.hold_ms * 1_000_000,
            hold_s: load.hold_ms as f64 / 1e3,
            hold_requests: 0,
            steps: vec![Count::default(); workload.session.steps.len()],
        }
    }

    /// One user from its start to the end of the hold.
    fn user(&mut self, stream: &mut TimingStream, start: u64) {
        let mut planned = start;
        let mut now = start;
        while now < self.end {
            match self.session(stream, now) {
                Some(over) => now = over,
                None => return,
            }
            // A cycle that overran is followed at once, and planning goes on from there.
            planned = self
                .pace
                .map_or(now, |pace| planned.saturating_add(pace))
                .max(now);
            now = planned;
        }
    }

    /// One session from `now` on; when it is over, or `None` when the trial is over first.
    fn session(&mut self, stream: &mut TimingStream, mut now: u64) -> Option<u64> {
        let workload = self.workload;
        let mut choice = SessionChoice::default();
        for (at, step) in workload.session.steps.iter().enumerate() {
            if !choice.does(step.chance.as_ref(), stream) {
                continue;
            }
            for _ in 0..step.repeat {
                let wait = nanos(stream.next_wait(&step.wait));
                now = now.saturating_add(wait);
                if now >= self.end {
                    return None;
                }
                self.count(at, step, wait, now);
            }
        }
        Some(now)
    }

    fn count(&mut self, at: usize, step: &Step, wait: u64, now: u64) {
        let requests = step.requests.len() as u64;
        let count = &mut self.steps[at];
        count.requests += requests;
        count.waits += 1;
        count.waited += u128::from(wait);
        if now >= self.ramp {
            self.hold_requests += requests;
        }
    }

    fn finish(self, scale: f64, exact: bool) -> Prediction {
        let scaled = |n: u64| (n as f64 * scale).round() as u64;
        let step = |(step, count): (&Step, &Count)| StepPrediction {
            name: step.name.clone(),
            requests: scaled(count.requests),
            mean_wait_ms: count.waited as f64 / 1e6 / count.waits.max(1) as f64,
            waits: scaled(count.waits),
        };
        let total: u64 = self.steps.iter().map(|c| c.requests).sum();
        let hold_transactions = self.hold_requests as f64 * scale;
        Prediction {
            transactions: total as f64 * scale,
            hold_transactions,
            offered_per_s: hold_transactions / self.hold_s,
            exact,
            arrivals: None,
            steps: self
                .workload
                .session
                .steps
                .iter()
                .zip(&self.steps)
                .map(step)
                .collect(),
        }
    }
}
