//! Several populations at once: each behaves as if it were alone.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_prediction::predict_mix;
use lab_workload::{LoadKind, LoadSpec, Population, Spacing, Wait, Workload, seed_of};
use proptest::prelude::*;

use super::drive::{probe, workload};
use super::{Answer, Observed, drive, ms, simulate, step};
use crate::assignment::Assignment;
use crate::crew::validate;
use crate::mix::Mix;

const SEED: u64 = 7;

/// Returns a population whose session is one request after this wait.
fn population(name: &str, (first, users): (u32, u32), wait: Wait, kind: LoadKind) -> Assignment {
    Assignment {
        population: name.to_owned(),
        seed: seed_of(SEED, name),
        first,
        users,
        kind,
        ..drive(vec![step(wait, 1)])
    }
}

fn readers(first: u32) -> Assignment {
    population(
        "readers",
        (first, 3),
        Wait::Uniform(ms(5), ms(60)),
        LoadKind::Users,
    )
}

fn writers(first: u32) -> Assignment {
    let arrivals = LoadKind::Arrival {
        rate_per_s: 40.0,
        spacing: Spacing::Poisson,
    };
    population("writers", (first, 20), Wait::None, arrivals)
}

/// Returns the send times of this number of users from `first` on.
fn sends(observed: &Observed, first: u32, users: u32) -> Vec<(u32, Duration)> {
    let of = |user: u32| (first..first + users).contains(&user);
    let sent = observed.sent.iter().filter(|asked| of(asked.user));
    sent.map(|asked| (asked.user - first, asked.at)).collect()
}

fn quick(mix: impl Into<Mix>) -> Observed {
    simulate(mix, |_| Answer::After(ms(1)))
}

/// Returns the number of requests of this step that met their `expect`.
fn answered(observed: &Observed, step: usize) -> u64 {
    observed.times(step).len()
}

#[test]
fn who_else_is_there_changes_no_draw() {
    let alone = quick(readers(0));
    let beside = quick(Mix::from(writers(0)).and(readers(20)));
    assert_eq!(sends(&beside, 20, 3), sends(&alone, 0, 3));
    assert_eq!(answered(&beside, 1), answered(&alone, 0));
    let times = |observed: &Observed, (first, users)| -> Vec<Duration> {
        sends(observed, first, users)
            .into_iter()
            .map(|(_, at)| at)
            .collect()
    };
    let (arriving, with) = (
        quick(writers(0)),
        quick(Mix::from(readers(0)).and(writers(3))),
    );
    assert_eq!(times(&with, (3, 20)), times(&arriving, (0, 20)));
    assert_eq!(with.summary.arrived, arriving.summary.arrived);
    assert_eq!(
        beside.summary.transactions,
        answered(&beside, 0) + answered(&beside, 1)
    );
}

#[test]
fn setups_are_one_after_the_other() {
    let with_setup = |mut drive: Assignment, steps: usize| {
        workload(&mut drive).setup = (0..steps).map(|_| step(Wait::None, 1)).collect();
        drive
    };
    let mix = Mix::from(with_setup(readers(0), 2)).and(with_setup(writers(3), 1));
    let observed = quick(mix);
    assert_eq!(observed.setup, Some((2 * 3 + 20, 0, 0)));
    let first_of = |user| observed.sent.iter().position(|asked| asked.user == user);
    assert!((0..3).all(|user| first_of(user) < first_of(3)));
}

#[test]
fn the_probe_is_the_last_of_all_steps() {
    let mut first = readers(0);
    workload(&mut first).probe = probe(ms(100));
    let observed = quick(Mix::from(first).and(writers(3)));
    assert_eq!(answered(&observed, 2), observed.summary.probe_transactions);
    assert_eq!(observed.summary.probe_transactions, 9);
    assert_eq!(observed.windows[0].steps.len(), 3);
}

#[test]
fn sessions_that_wait_are_those_of_all_populations() {
    let crowded = |name: &str, first| Assignment {
        users: 1,
        ..population(
            name,
            (first, 1),
            Wait::None,
            LoadKind::Arrival {
                rate_per_s: 100.0,
                spacing: Spacing::Constant,
            },
        )
    };
    let mix = Mix::from(crowded("a", 0)).and(crowded("b", 1));
    let observed = simulate(mix, |_| Answer::Never);
    // One of a hundred each has the connection; the others wait.
    assert_eq!(
        (observed.summary.arrived, observed.last().counts.waiting),
        (200, 198)
    );
    assert_eq!(observed.last().unanswered().0, 200);
}

#[test]
fn what_contradicts_itself_is_refused() {
    let sequence = |drive: Assignment| Assignment {
        users: 1,
        kind: LoadKind::Sequence {
            sessions: 1,
            shared: false,
        },
        ..drive
    };
    let says = |mix: Mix| validate(&mix).unwrap_err().to_string();
    assert_eq!(
        says(Mix::from(readers(0)).and(sequence(writers(3)))),
        "this load can't be driven: a sequence has no populations beside it"
    );
    let with_probe = |mut drive: Assignment| {
        workload(&mut drive).probe = probe(ms(100));
        drive
    };
    assert_eq!(
        says(Mix::from(with_probe(readers(0))).and(with_probe(writers(3)))),
        "this load can't be driven: two of its populations send a probe"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn a_quick_server_gets_what_the_plan_says_of_each_population(
        users in proptest::collection::vec(1u32..8, 1..4),
        rate_per_s in proptest::option::of(5.0..200.0f64),
        workers in 1usize..3,
        after_ms in 0u64..900,
        seed in any::<u64>(),
    ) {
        let mut drives: Vec<Assignment> = Vec::new();
        let mut first = 0;
        let kinds = users.iter().map(|users| (LoadKind::Users, *users));
        let spacing = Spacing::Poisson;
        let open = rate_per_s.map(|rate_per_s| (LoadKind::Arrival { rate_per_s, spacing }, 500));
        for (number, (kind, users)) in kinds.chain(open).enumerate() {
            let name = format!("p{number}");
            let wait = Wait::Uniform(ms(2), ms(30));
            drives.push(Assignment {
                seed: seed_of(seed, &name),
                cores: (0..workers).collect(),
                ..population(&name, (first, users), wait, kind)
            });
            first += users;
        }
        let last = format!("p{}", drives.len() - 1);
        let of = |drive: &Assignment| Population {
            name: drive.population.clone(),
            workload: String::new(),
            parameters: BTreeMap::new(),
            share: None,
            users: drive.users,
            kind: drive.kind,
            stages: Vec::new(),
            timeline: drive.timeline.clone(),
            // The last population starts later than the others.
            after_ms: if drive.population == last { after_ms } else { 0 },
        };
        let load = LoadSpec {
            mix: drives.iter().map(of).collect(),
            ..LoadSpec::of_users(first, 1000, 10)
        };
        for (drive, population) in drives.iter_mut().zip(&load.mix) {
            drive.stages = load.of(population).stages;
        }
        let workloads: Vec<&Workload> = drives.iter().map(|drive| &*drive.workload).collect();
        let plan = predict_mix(&workloads, seed, 0, &load, 10_000_000).unwrap();
        let mut all = drives.into_iter();
        let head = Mix::from(all.next().unwrap());
        let observed = simulate(all.fold(head, Mix::and), |_| Answer::After(ms(0)));
        for (number, of) in plan.populations.iter().enumerate() {
            prop_assert_eq!(answered(&observed, number) as f64, of.transactions, "{}", of.name);
            prop_assert_eq!(&plan.steps[number].name, &format!("p{number}/Step"));
        }
        prop_assert_eq!(observed.sent.len() as f64, plan.transactions);
        let arrived = plan.arrivals.map_or(0.0, |arrivals| arrivals.trial);
        prop_assert_eq!(observed.summary.arrived as f64, arrived);
    }
}
