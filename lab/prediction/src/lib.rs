//! Predicts a trial against a server that responds at once: replays every user's waits, or every arrival and the waits
//! of its session, from the same streams as the driver's draws.

mod case;
mod mix;
mod prediction;
mod tally;
mod tokens;
mod transactions;

use std::time::Duration;

use case::{Case, Counts, cases, with_range};
use lab_workload::timing::{ArrivalStream, Profile, TimingStream};
use lab_workload::{LoadKind, LoadSpec, Spacing};
use lab_workload::{Step, Workload};
use lab_workload::{Visit, visits};
pub use mix::predict_mix;
pub use prediction::{
    Arrivals, PopulationPrediction, Prediction, Range, Span, StagePrediction, StepPrediction,
    TransactionPrediction,
};
use tally::{Tally, nanos};
use tokens::with_tokens;

/// Most waits that one trial may replay.
const TRIAL_WAITS: u64 = 40_000_000;

/// The prediction of a trial of `block`; `workload` and `load` are at the plan's speed. It replays at most `budget`
/// waits, and takes at most a few seconds. `None` if the workload neither waits nor paces, so that the server alone
/// decides.
#[must_use]
pub fn predict(
    workload: &Workload,
    seed: u64,
    block: u32,
    load: &LoadSpec,
    budget: u64,
) -> Option<Prediction> {
    let prediction = predict_session(workload, (seed, block), load, budget)?;
    Some(match workload.tokens {
        Some(_) => with_tokens(prediction, &workload.session),
        None => prediction,
    })
}

/// The prediction without token requests.
fn predict_session(
    workload: &Workload,
    (seed, block): (u64, u32),
    load: &LoadSpec,
    budget: u64,
) -> Option<Prediction> {
    if workload.scripted.is_some() && !matches!(load.kind, LoadKind::Arrival { .. }) {
        // A script alone decides when its sessions end.
        return None;
    }
    let budget = budget.min(TRIAL_WAITS);
    let replay = |case, budget| {
        let replay = Replay {
            workload,
            seed,
            budget,
            case,
        };
        replay.replay(block, load)
    };
    let (usual, _) = replay(Case::Usual, budget)?;
    let cases = cases(&workload.session);
    if cases.is_empty() {
        return Some(usual);
    }
    let each = (budget / cases.len() as u64).max(1);
    let counts = cases.into_iter().map(|case| Some(replay(case, each)?.1));
    Some(with_range(usual, &counts.collect::<Option<Vec<_>>>()?))
}

struct Replay<'a> {
    workload: &'a Workload,
    seed: u64,
    budget: u64,
    case: Case,
}

/// A replay's prediction and counts.
type Replayed = (Prediction, Counts);

impl Replay<'_> {
    fn replay(&self, block: u32, load: &LoadSpec) -> Option<Replayed> {
        match load.kind {
            LoadKind::Users => self.replay_users(block, load),
            LoadKind::Arrival {
                rate_per_s,
                spacing,
            } => Some(self.replay_arrivals(block, load, rate_per_s, spacing)),
            LoadKind::Sequence { .. } => Some(self.replay_sequence(block, load)),
        }
    }

    fn replay_arrivals(
        &self,
        block: u32,
        load: &LoadSpec,
        rate_per_s: f64,
        spacing: Spacing,
    ) -> Replayed {
        let ramp = Duration::from_millis(load.ramp_ms);
        let end = ramp + Duration::from_millis(load.hold_ms);
        let profile = match load.stages.is_empty() {
            true => Profile::ramp(rate_per_s, ramp),
            false => Profile::stages(&load.stages),
        };
        let stream = match &load.timeline {
            Some(timeline) => ArrivalStream::recorded(timeline, self.workload.data.as_ref()),
            None => ArrivalStream::new(self.seed, block, spacing, profile.clone()),
        };
        let mut tally = Tally::new(self.workload, load, self.case);
        let mut arrivals = Arrivals {
            trial: 0.0,
            hold: 0.0,
            peak_per_s: None,
        };
        let mut peak = Peak::default();
        let affordable = self.budget as f64 / self.waits_per_session().max(1.0);
        let sampled = self.every_nth(load, affordable);
        let (mut next, mut replayed) = (0.0, 0u64);
        let mut arrive = |number: u64, at: Duration| {
            arrivals.trial += 1.0;
            arrivals.hold += f64::from(u8::from(at >= ramp));
            peak.arrive(at);
            if arrivals.trial <= next {
                return;
            }
            (next, replayed) = (next + sampled, replayed + 1);
            tally.arrived(nanos(at));
            let mut waits = TimingStream::of_session(self.seed, block, number);
            tally.session(&mut waits, nanos(at));
        };
        let expected = match &load.timeline {
            Some(timeline) => timeline.rows as f64,
            None => profile.expected(end),
        };
        // A recording is replayed as a whole: its times follow no distribution.
        let exact = expected <= affordable || load.timeline.is_some();
        if exact {
            let in_trial = stream.take_while(|arrival| arrival.at < end);
            in_trial.for_each(|arrival| arrive(arrival.number, arrival.at));
        } else {
            // Sessions at regular numbers represent those between them.
            let stride = expected / affordable.floor().max(1.0);
            for at in 0..affordable as u64 {
                let place = (at as f64 + 0.5) * stride;
                arrive(place as u64, profile.time_of(place));
            }
        }
        if !exact {
            let scale = expected / arrivals.trial.max(1.0);
            arrivals.trial *= scale;
            arrivals.hold *= scale;
        }
        let scale = arrivals.trial / replayed.max(1) as f64;
        arrivals.peak_per_s = load.timeline.as_ref().map(|_| peak.most);
        let (mut prediction, counts) = tally.finish(scale, exact);
        prediction.arrivals = Some(arrivals);
        (prediction, counts)
    }

    /// Every arrival of a recording counts. If a replay of all waits would cost too much, every nth session represents
    /// the others.
    fn every_nth(&self, load: &LoadSpec, affordable: f64) -> f64 {
        match &load.timeline {
            Some(recording) if self.case != Case::Usual => {
                (recording.rows as f64 / affordable).ceil().max(1.0)
            }
            _ => 1.0,
        }
    }

    /// The number of requests, not their rate.
    fn replay_sequence(&self, block: u32, load: &LoadSpec) -> Replayed {
        let users = u64::from(load.users.max(1));
        let sessions = load.kind.sessions(load.users).unwrap_or_default();
        let affordable = (self.budget as f64 / self.waits_per_session().max(1.0)) as u64;
        let most = sessions.min(affordable.max(1));
        let mut tally = Tally::new(self.workload, load, self.case);
        tally.never_ends();
        let mut replayed = 0;
        for user in 0..users {
            let mut waits = TimingStream::new(self.seed, block, user as u32);
            let (from, until) = (user * sessions / users, (user + 1) * sessions / users);
            let mut now = 0;
            for _ in from..until.min(from + most.div_ceil(users)) {
                now = tally.session(&mut waits, now).unwrap_or(now);
                replayed += 1;
            }
        }
        let scale = sessions as f64 / replayed.max(1) as f64;
        // The system's speed decides which user takes which shared session.
        let is_shared = matches!(load.kind, LoadKind::Sequence { shared: true, .. }) && users > 1;
        let (prediction, counts) = tally.finish(scale, replayed == sessions && !is_shared);
        let prediction = Prediction {
            offered_per_s: 0.0,
            ..prediction
        };
        (prediction, counts)
    }

    /// Mean rounds of each step in a session.
    fn rounds(&self) -> impl Iterator<Item = (&Step, f64)> {
        let session = &self.workload.session;
        let blocks = session.blocks().enumerate();
        let steps = blocks.flat_map(move |(block, (steps, control))| {
            let of_block = self.case.rounds_of_block(block, control);
            steps.map(move |at| (at, f64::from(of_block)))
        });
        let sending = steps.filter(|(at, _)| !session.steps[*at].is_name());
        sending.map(|(at, of_block)| {
            let step = &session.steps[at];
            let of_step = f64::from(self.case.rounds_of_step(at, step));
            (step, part(step) * of_block * of_step)
        })
    }

    fn waits_per_session(&self) -> f64 {
        self.rounds().map(|(_, rounds)| rounds).sum()
    }

    fn replay_users(&self, block: u32, load: &LoadSpec) -> Option<Replayed> {
        let per_user = self.waits_per_user(load)?;
        let users = u64::from(load.users);
        let affordable = ((self.budget as f64 / per_user) as u64).clamp(1, users.max(1));
        if per_user > TRIAL_WAITS as f64 {
            return None;
        }
        let stride = users.div_ceil(affordable).max(1);
        let mut tally = Tally::new(self.workload, load, self.case);
        let mut replayed = 0u64;
        for index in (0..load.users).step_by(stride as usize) {
            for (visit, of) in (0..).zip(visits_of(index, load)) {
                let mut stream = TimingStream::of_visit(self.seed, block, index, visit);
                tally.visit(&mut stream, of);
            }
            replayed += 1;
        }
        Some(tally.finish(users as f64 / replayed.max(1) as f64, stride == 1))
    }

    /// Approximate number of waits of one user in a trial; `None` without any wait or pace.
    fn waits_per_user(&self, load: &LoadSpec) -> Option<f64> {
        let session = &self.workload.session;
        let waits = self.waits_per_session();
        let waited: f64 = self
            .rounds()
            .map(|(step, rounds)| rounds * step.wait.mean().as_secs_f64())
            .sum();
        let cycle = session
            .pace
            .map_or(waited, |pace| waited.max(pace.as_secs_f64()));
        let length = (load.ramp_ms + load.hold_ms) as f64 / 1e3;
        (cycle > 0.0).then(|| waits * (length / cycle + 1.0))
    }
}

/// The most arrivals of a second.
#[derive(Default)]
struct Peak {
    second: u64,
    in_second: f64,
    most: f64,
}

impl Peak {
    fn arrive(&mut self, at: Duration) {
        if self.second != at.as_secs() {
            (self.second, self.in_second) = (at.as_secs(), 0.0);
        }
        self.in_second += 1.0;
        self.most = self.most.max(self.in_second);
    }
}

/// The part of the sessions that runs a step.
fn part(step: &Step) -> f64 {
    step.chance.map_or(1.0, |chance| chance.to - chance.from)
}

/// The times at which a user is active, as in the driver: by the stages, or from ramp × index ÷ users on.
fn visits_of(index: u32, load: &LoadSpec) -> Vec<Visit> {
    if !load.stages.is_empty() {
        return visits(&load.stages, index);
    }
    let ramp = u128::from(load.ramp_ms) * 1_000_000;
    let offset = ramp * u128::from(index) / u128::from(load.users.max(1));
    vec![Visit {
        from: u64::try_from(offset).unwrap_or(u64::MAX),
        until: u64::MAX,
    }]
}
