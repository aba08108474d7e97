//! Loads whose level changes over time: users that start and leave, arrivals at a changing rate.

use std::time::Duration;

use lab_prediction::{Prediction, predict};
use lab_workload::timing::TimingStream;
use lab_workload::{LoadKind, LoadSpec, Retry, Spacing, Stage, Wait};
use proptest::prelude::*;

use super::drive::workload;
use super::{Answer, Observed, drive, ms, simulate, step};
use crate::assignment::Assignment;
use lab_client::ErrorClass;

/// Returns stages by length in ms and the levels at their ends.
fn stages(of: &[(u64, f64, f64)]) -> Vec<Stage> {
    let stage = |(number, &(length_ms, from, to)): (usize, &(u64, f64, f64))| Stage {
        name: number.to_string(),
        length_ms,
        from,
        to,
    };
    of.iter().enumerate().map(stage).collect()
}

/// Returns a load of at most this number of users, and its prediction.
fn staged(mut drive: Assignment, users: u32, stages: Vec<Stage>) -> (Assignment, Prediction) {
    let hold_ms = stages.iter().map(|stage| stage.length_ms).sum();
    (drive.users, drive.hold, drive.stages) = (users, ms(hold_ms), stages.clone());
    let load = LoadSpec {
        kind: drive.kind,
        stages,
        ..LoadSpec::of_users(users, hold_ms, 10)
    };
    let plan = predict(&drive.workload, drive.seed, drive.block, &load, 10_000_000);
    (drive, plan.unwrap())
}

/// Returns the number of requests sent within each stage.
fn sent(observed: &Observed, stages: &[Stage]) -> Vec<f64> {
    let mut begin = ms(0);
    let each = stages.iter().map(|stage| {
        let span = begin..begin + ms(stage.length_ms);
        begin = span.end;
        let within = observed
            .sent
            .iter()
            .filter(|asked| span.contains(&asked.at));
        within.count() as f64
    });
    each.collect()
}

fn predicted(plan: &Prediction) -> Vec<f64> {
    plan.stages.iter().map(|stage| stage.transactions).collect()
}

#[test]
fn users_come_and_go_as_the_stages_say() {
    let of = stages(&[
        (100, 1.0, 1.0),
        (50, 3.0, 3.0),
        (100, 1.0, 1.0),
        (50, 3.0, 3.0),
    ]);
    let (mut drive, plan) = staged(drive(vec![step(Wait::Constant(ms(20)), 1)]), 3, of.clone());
    drive.cores = vec![0, 1];
    let observed = simulate(drive, |_| Answer::After(ms(0)));
    let sends = |times: &[u64]| -> Vec<Duration> { times.iter().copied().map(ms).collect() };
    let whole: Vec<u64> = (20..300).step_by(20).collect();
    assert_eq!(observed.sends_of(0), sends(&whole));
    // A returning user begins a new session.
    assert_eq!(observed.sends_of(2), sends(&[120, 140, 270, 290]));
    assert_eq!(sent(&observed, &of), predicted(&plan));
    let users = |at: usize| observed.windows[at].counts.users;
    assert_eq!([users(5), users(12), users(20), users(27)], [1, 3, 1, 3]);
    // A wait that didn't end isn't counted.
    assert_eq!(
        observed.count(|step| step.counts.waits),
        observed.sent.len() as u64
    );
}

#[test]
fn who_leaves_awaits_an_answer_and_sends_nothing_more() {
    let of = stages(&[(100, 2.0, 2.0), (200, 1.0, 1.0), (100, 2.0, 2.0)]);
    // Two requests a step, each response after 60 ms: the second is in progress when user 1 leaves.
    let (drive, _) = staged(drive(vec![step(Wait::Constant(ms(10)), 2)]), 2, of);
    let observed = simulate(drive, |_| Answer::After(ms(60)));
    assert_eq!(observed.sends_of(1), [10, 70, 310, 370].map(ms));
    assert_eq!(
        (observed.summary.errors, observed.last().unanswered().0),
        (0, 1)
    );
    assert_eq!(observed.lateness().max(), 1, "nothing is late");
}

#[test]
fn who_leaves_does_not_try_again() {
    let of = stages(&[(100, 1.0, 1.0), (200, 0.0, 0.0), (20, 1.0, 1.0)]);
    let mut drive = drive(vec![step(Wait::Constant(ms(80)), 1)]);
    workload(&mut drive).session.steps[0].retry = Some(Retry::new(5, Wait::Constant(ms(30))));
    let (drive, _) = staged(drive, 1, of);
    let observed = simulate(drive, |_| Answer::Fails(ErrorClass::Status, ms(1)));
    assert_eq!(observed.sends_of(0), [ms(80)]);
    assert_eq!(observed.count(|step| step.counts.sent_again()), 0);
    assert_eq!(observed.summary.errors, 1);
}

#[test]
fn arrivals_follow_the_stages() {
    for spacing in [Spacing::Constant, Spacing::Poisson] {
        let of = stages(&[
            (200, 100.0, 100.0),
            (100, 1000.0, 1000.0),
            (200, 100.0, 0.0),
        ]);
        let mut arriving = drive(vec![step(Wait::None, 1)]);
        arriving.kind = LoadKind::Arrival {
            rate_per_s: 1000.0,
            spacing,
        };
        arriving.cores = vec![0, 1];
        let (drive, plan) = staged(arriving, 300, of.clone());
        let observed = simulate(drive, |_| Answer::After(ms(0)));
        assert_eq!(sent(&observed, &of), predicted(&plan));
        let arrived: f64 = plan.stages.iter().map(|stage| stage.arrivals).sum();
        assert_eq!(observed.summary.arrived as f64, arrived);
        assert_eq!(observed.lateness().max(), 1, "nothing is late");
        if spacing == Spacing::Constant {
            assert_eq!(predicted(&plan), [20.0, 100.0, 10.0]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_quick_server_gets_what_the_plan_says_of_each_stage(
        levels in proptest::collection::vec((1u64..150, 0u32..12, any::<bool>()), 1..7),
        pace in proptest::option::of(10u64..40),
        workers in 1usize..3,
        seed in any::<u64>(),
    ) {
        let mut from = 0;
        let of: Vec<(u64, f64, f64)> = levels
            .iter()
            .map(|(length, to, ramps)| {
                let begin = if *ramps { from } else { *to };
                from = *to;
                (*length, f64::from(begin), f64::from(*to))
            })
            .collect();
        let stages = stages(&of);
        let steps = vec![step(Wait::Uniform(ms(1), ms(9)), 1), step(Wait::Exponential(ms(5)), 2)];
        let mut drive = drive(steps);
        workload(&mut drive).session.pace = pace.map(ms);
        (drive.seed, drive.cores) = (seed, (0..workers).collect());
        let (drive, plan) = staged(drive, 12, stages.clone());
        prop_assert!(plan.exact);
        let observed = simulate(drive, |_| Answer::After(ms(0)));
        prop_assert_eq!(sent(&observed, &stages), predicted(&plan));
        prop_assert_eq!(observed.sent.len() as f64, plan.transactions);
    }

    #[test]
    fn a_slow_server_shifts_no_wait_of_a_later_visit(slow_ms in 1u64..60, seed in any::<u64>()) {
        let of = stages(&[(100, 1.0, 1.0), (100, 0.0, 0.0), (100, 1.0, 1.0)]);
        let wait = Wait::Uniform(ms(1), ms(30));
        let mut drive = drive(vec![step(wait, 1)]);
        drive.seed = seed;
        let (drive, _) = staged(drive, 1, of);
        let (seed, block) = (drive.seed, drive.block);
        let observed = simulate(drive, move |_| Answer::After(ms(slow_ms)));
        let first = observed.sends_of(0).into_iter().find(|at| *at >= ms(200));
        let drawn = TimingStream::of_visit(seed, block, 0, 1).next_wait(&wait);
        prop_assert_eq!(first, Some(ms(200) + drawn));
    }
}
