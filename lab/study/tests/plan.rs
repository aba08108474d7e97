//! Laws of plans: the same seed gives the same plan; blocks draw independently, cells of a block alike.

use std::collections::BTreeSet;

use lab_study::model::{Level, VARIANT};
use lab_study::plan::{LoadKind, Plan, PlanError, PlanOptions, Spacing, Trial, plan};
use lab_study::{Files, Study, SystemSpec, load_study};
use proptest::prelude::*;

struct Folder(String, String);

impl Files for Folder {
    fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error> {
        match path.ends_with(".study.yaml") {
            true => Ok(self.0.clone().into_bytes()),
            false => Ok(self.1.clone().into_bytes()),
        }
    }
}

fn study(extra: &str, load: &str, session: &str) -> Study {
    let study = format!(
        "study: s\ntitle: S\nworkload: w\nsystem: {{ groupware: {{}} }}\nload: {{ {load} }}\n{extra}"
    );
    let workload = format!("workload: w\nsession:\n{session}");
    load_study("s.study.yaml", &Folder(study, workload), &[])
        .unwrap_or_else(|e| panic!("{:?}", e.problems()))
        .study
}

const SESSION: &str = "  pace: 20s\n  steps:\n    - { step: a, wait: 1s..5s, request: GET /a }\n    \
                       - { step: b, wait: exponential(2s), repeat: 2, requests: [GET /b, GET /c] }\n";

fn planned(study: &Study, seed: u64) -> Plan {
    plan(
        study,
        &PlanOptions {
            speed: 1.0,
            seed: Some(seed),
        },
    )
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn same_seed_same_plan(
        seed in any::<u64>(),
        users in 1u32..40,
        trials in 1u32..6,
        speed in 0.5..100.0f64,
    ) {
        let extra = format!("trials: {trials}\nmatrix: {{ n: [1, 2, 3], m: [a, b] }}\n");
        let timeout = "timeout: \"{{ n }}{{ 's' if m == 'a' else 'm' }}\"";
        let load = format!("users: {users}, ramp: 30s, hold: 3 cycles, {timeout}");
        let study = study(&extra, &load, SESSION);
        let options = PlanOptions { speed, seed: Some(seed) };
        let bytes = |p: &Plan| serde_json::to_string(p).unwrap();
        let first = plan(&study, &options).unwrap();
        prop_assert_eq!(bytes(&first), bytes(&plan(&study, &options).unwrap()));
        // The written plan reads as the same.
        let read: Plan = serde_json::from_str(&bytes(&first)).unwrap();
        prop_assert_eq!(bytes(&read), bytes(&first));

        for (block, trials) in first.trials.chunks(6).enumerate() {
            let cells: BTreeSet<String> = trials.iter().map(|t| format!("{:?}", t.cell)).collect();
            prop_assert_eq!(cells.len(), 6, "every cell once in a block");
            prop_assert!(trials.iter().all(|t| t.block == block as u32));
            // All cells of a block see the same draws.
            prop_assert!(trials.iter().all(|t| t.prediction == trials[0].prediction));
        }
        let ids: Vec<u32> = first.trials.iter().map(|t| t.id).collect();
        prop_assert_eq!(ids, (1..=trials * 6).collect::<Vec<_>>());
    }

    #[test]
    fn a_prediction_counts_what_its_steps_count(users in 1u32..60, ramp in 0u32..60, hold in 1u32..200) {
        let study = study("", &format!("users: {users}, ramp: {ramp}s, hold: {hold}s"), SESSION);
        let plan = planned(&study, 9);
        let trial = &plan.trials[0];
        let p = trial.prediction.as_ref().unwrap();
        prop_assert!(p.exact);
        let requests: u64 = p.steps.iter().map(|s| s.requests).sum();
        prop_assert_eq!(requests as f64, p.transactions);
        prop_assert_eq!(p.steps[0].requests, p.steps[0].waits);
        prop_assert_eq!(p.steps[1].requests, p.steps[1].waits * 2);
        prop_assert!(p.hold_transactions <= p.transactions);
        if ramp == 0 {
            prop_assert_eq!(p.hold_transactions, p.transactions);
        }
        // No cycle is shorter than its pace: one per user and pace begun, at most.
        let cycles = (ramp + hold).div_ceil(20).max(1);
        prop_assert!(p.steps[0].requests <= u64::from(users * cycles));
    }
}

#[test]
fn seeds_and_blocks_draw_anew() {
    let study = study("trials: 2\n", "users: 50, hold: 10 cycles", SESSION);
    let one = planned(&study, 1);
    assert_ne!(
        one.trials[0].prediction,
        planned(&study, 2).trials[0].prediction
    );
    assert_ne!(one.trials[0].prediction, one.trials[1].prediction);
}

#[test]
fn cells_are_shuffled_unless_listed() {
    let matrix = "matrix: { n: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] }\ntrials: 2\n";
    let order = |study: &Study, block: usize| -> Vec<String> {
        let trials = planned(study, 3).trials;
        trials[block * 12..][..12]
            .iter()
            .map(|t| format!("{:?}", t.cell))
            .collect()
    };
    let listed = study(
        &format!("{matrix}order: listed\n"),
        "users: \"{{ n }}\", hold: 1s",
        SESSION,
    );
    let shuffled = study(matrix, "users: \"{{ n }}\", hold: 1s", SESSION);
    assert_eq!(order(&listed, 0), order(&listed, 1));
    assert_ne!(order(&shuffled, 0), order(&listed, 0));
    assert_ne!(order(&shuffled, 0), order(&shuffled, 1));
}

/// By hand: two users, constant waits, no pace: requests at 1, 3, 4, 6, 7, 9 s after the start.
#[test]
fn a_prediction_is_the_sum_done_by_hand() {
    let session = "  steps:\n    - { step: a, wait: 1s, request: GET /a }\n    \
                   - { step: b, wait: 2s, request: GET /b }\n";
    let study = study("", "users: 2, ramp: 4s, hold: 5s", session);
    let plan = planned(&study, 1);
    let p = plan.trials[0].prediction.as_ref().unwrap();
    // The first starts at 0: 1 3 4 6 7, and 9 is the end. The second starts at 2: 3 5 6 8.
    assert_eq!(p.transactions, 9.0);
    assert_eq!(p.hold_transactions, 6.0, "{p:?}");
    assert_eq!(p.offered_per_s, 1.2);
    assert_eq!((p.steps[0].requests, p.steps[1].requests), (5, 4));
    assert_eq!(
        (p.steps[0].mean_wait_ms, p.steps[1].mean_wait_ms),
        (1000.0, 2000.0)
    );
}

/// A pace of 4 s that a cycle of 3 + 3 s overruns: the next follows at once.
#[test]
fn an_overrun_cycle_is_followed_at_once() {
    let session = "  pace: 4s\n  steps:\n    - { step: a, wait: 3s, request: GET /a }\n    \
                   - { step: b, wait: 3s, request: GET /b }\n";
    let study = study("", "users: 1, hold: 13s", session);
    let p = planned(&study, 1).trials[0].prediction.clone().unwrap();
    assert_eq!(p.transactions, 4.0, "at 3, 6, 9, 12 s");
}

#[test]
fn a_workload_without_waits_has_no_prediction() {
    let session = "  steps:\n    - { step: a, request: GET /a }\n";
    let plan = planned(&study("", "users: 5, hold: 10s", session), 1);
    assert_eq!(plan.trials[0].prediction, None);
}

#[test]
fn a_huge_load_is_predicted_from_a_sample() {
    let study = study("", "users: 1000000, ramp: 1h, hold: 24h", SESSION);
    let plan = planned(&study, 1);
    let p = plan.trials[0].prediction.as_ref().unwrap();
    assert!(!p.exact);
    // Five requests per 20 s cycle and user, from its start on: 24.5 h on average.
    let expected = 5.0 * 1e6 * 24.5 * 3600.0 / 20.0;
    assert!(
        (p.transactions / expected - 1.0).abs() < 0.01,
        "{}",
        p.transactions
    );
}

#[test]
fn speeds_are_bounded() {
    let study = study("", "users: 1, hold: 10s", SESSION);
    for speed in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        let result = plan(&study, &PlanOptions { speed, seed: None });
        assert!(matches!(result, Err(PlanError::Speed(_))), "{speed}");
    }
}

#[test]
fn cells_are_linked_left_out_and_added() {
    let cells = |matrix: &str| -> Vec<String> {
        let extra = format!("matrix:\n{matrix}order: listed\n");
        let study = study(&extra, "users: \"{{ a }}\", hold: \"{{ b }}s\"", SESSION);
        let plan = planned(&study, 1);
        let words = |(name, level): (&String, &Level)| match level {
            Level::Int(n) => format!("{name}{n}"),
            other => panic!("{other:?}"),
        };
        let cell = |trial: &Trial| trial.cell.iter().map(words).collect::<String>();
        plan.trials.iter().map(cell).collect()
    };
    let factors = "  a: [1, 2]\n  b: [3, 4]\n";
    assert_eq!(cells(factors), ["a1b3", "a1b4", "a2b3", "a2b4"]);
    assert_eq!(
        cells(&format!("{factors}  zip: [[a, b]]\n")),
        ["a1b3", "a2b4"]
    );
    let exclude = format!("{factors}  exclude: [{{ a: 1, b: 4 }}, {{ a: 2, b: 3 }}]\n");
    assert_eq!(cells(&exclude), ["a1b3", "a2b4"]);
    assert_eq!(
        cells(&format!("{factors}  exclude: [{{ b: 3 }}]\n")),
        ["a1b4", "a2b4"]
    );
    let include = format!("{factors}  zip: [[a, b]]\n  include: [{{ a: 5, b: 3 }}]\n");
    assert_eq!(cells(&include), ["a1b3", "a2b4", "a5b3"]);
}

/// Three sessions of 1 s + 2 s arrive at 0, 1, and 2 s; the trial is over at 3 s.
#[test]
fn arrivals_and_what_their_sessions_send_are_counted() {
    let session = "  steps:\n    - { step: a, wait: 1s, request: GET /a }\n    \
                   - { step: b, wait: 1500ms, request: GET /b }\n";
    let load = "arrival: { rate: 1/s, spacing: constant }, hold: 3s";
    let plan = planned(&study("", load, session), 1);
    let trial = &plan.trials[0];
    assert_eq!(trial.load.users, 1000);
    let p = trial.prediction.as_ref().unwrap();
    assert!(p.exact);
    let arrivals = p.arrivals.unwrap();
    assert_eq!((arrivals.trial, arrivals.hold), (3.0, 3.0));
    // a at 1 and 2 s (the third would be at the end), b at 2.5 s.
    assert_eq!((p.steps[0].requests, p.steps[1].requests), (2, 1));
    assert_eq!(p.transactions, 3.0);
}

#[test]
fn speed_multiplies_the_rate_and_leaves_the_timeout() {
    let load = "arrival: { rate: 60/min, connections: 7 }, ramp: 60s, hold: 10m, timeout: 30s, \
                generators: 5";
    let study = study("", load, SESSION);
    let options = PlanOptions {
        speed: 60.0,
        seed: None,
    };
    let trial = plan(&study, &options).unwrap().trials.remove(0);
    let spacing = Spacing::Poisson;
    let kind = LoadKind::Arrival {
        rate_per_s: 60.0,
        spacing,
    };
    assert_eq!(trial.load.kind, kind);
    assert_eq!((trial.load.users, trial.load.generators), (7, 5));
    assert_eq!((trial.load.ramp_ms, trial.load.hold_ms), (1_000, 10_000));
    assert_eq!(trial.load.timeout_ms, Some(30_000));
    assert_eq!(trial.load.time_limit_ms, None);
    let limited = load.replace("timeout", "time_limit");
    let limited = plan(&self::study("", &limited, SESSION), &options).unwrap();
    let limited = &limited.trials[0].load;
    assert_eq!(
        (limited.timeout_ms, limited.time_limit_ms),
        (None, Some(30_000))
    );
    // 30 in the ramp and 600 in the hold, by this seed's draws.
    let p = trial.prediction.unwrap();
    let arrivals = p.arrivals.unwrap();
    assert!(p.exact);
    assert!(
        (arrivals.hold - 600.0).abs() < 5.0 * 600f64.sqrt(),
        "{arrivals:?}"
    );
    assert!(arrivals.trial > arrivals.hold);
}

#[test]
fn stages_are_planned_at_any_speed() {
    let planned = |load: &str, speed: f64| {
        let options = PlanOptions { speed, seed: None };
        let study = study("", load, SESSION);
        plan(&study, &options).unwrap().trials.remove(0)
    };
    let of = |trial: &lab_study::plan::Trial| -> Vec<(String, u64, f64, f64)> {
        let stages = trial.load.stages.iter();
        let parts = stages.map(|one| (one.name.clone(), one.length_ms, one.from, one.to));
        parts.collect()
    };
    let users = "stages: [{ users: 60, over: 1m }, { stage: high, users: 60, for: 2m }, { users: 0, over: 1m }]";
    let fast = planned(users, 60.0);
    let expected = [
        ("1", 1000, 0.0, 60.0),
        ("high", 2000, 60.0, 60.0),
        ("3", 1000, 60.0, 0.0),
    ];
    assert_eq!(
        of(&fast),
        expected.map(|(name, ms, a, b)| (name.to_owned(), ms, a, b))
    );
    assert_eq!(
        (fast.load.users, fast.load.ramp_ms, fast.load.hold_ms),
        (60, 0, 4000)
    );
    let from = planned("stages: [{ users: 9, from: 60, over: 1m }]", 60.0);
    assert_eq!(of(&from), [("1".to_owned(), 1000, 60.0, 9.0)]);
    assert_eq!(from.load.users, 60);
    // The ramps are half of the full load, and a speed changes no draw.
    let (fast, slow) = (
        fast.prediction.unwrap(),
        planned(users, 1.0).prediction.unwrap(),
    );
    assert_eq!(fast.transactions.to_bits(), slow.transactions.to_bits());
    assert_eq!(fast.stages, slow.stages);
    let [up, high, down] = [0, 1, 2].map(|at| fast.stages[at].transactions);
    assert!((high / (up + down) - 2.0).abs() < 0.3, "{up} {high} {down}");
    assert!((up + high + down - fast.transactions).abs() < 1e-9);

    let rates = "stages: [{ rate: 1/s, for: 10m }, { rate: 0/s, for: 1m }, { rate: 3/s, over: 10m }], \
                 arrival: { connections: 9, spacing: constant }";
    let fast = planned(rates, 60.0);
    let expected = [
        ("1", 10_000, 60.0, 60.0),
        ("2", 1000, 0.0, 0.0),
        ("3", 10_000, 0.0, 180.0),
    ];
    assert_eq!(
        of(&fast),
        expected.map(|(name, ms, a, b)| (name.to_owned(), ms, a, b))
    );
    let kind = LoadKind::Arrival {
        rate_per_s: 180.0,
        spacing: Spacing::Constant,
    };
    assert_eq!((fast.load.kind, fast.load.users), (kind, 9));
    let arrivals = fast.prediction.unwrap().stages;
    assert_eq!(
        [0, 1, 2].map(|at| arrivals[at].arrivals),
        [600.0, 0.0, 900.0]
    );
}

#[test]
fn a_flood_of_arrivals_is_predicted_from_a_sample() {
    let load = "arrival: { rate: 1000000/s }, ramp: 1h, hold: 24h";
    let p = planned(&study("", load, SESSION), 1).trials[0]
        .prediction
        .clone()
        .unwrap();
    assert!(!p.exact);
    let expected = 1e6 * 24.5 * 3600.0;
    let arrivals = p.arrivals.unwrap();
    assert!(
        (arrivals.trial / expected - 1.0).abs() < 1e-6,
        "{arrivals:?}"
    );
    assert!(
        (p.transactions / (expected * 5.0) - 1.0).abs() < 0.01,
        "{}",
        p.transactions
    );
}

#[test]
fn a_sequence_has_so_many_requests_and_no_rate() {
    let session = "  steps:\n    - { step: a, wait: 1s, request: GET /a }\n    \
                   - { step: b, repeat: 3, requests: [GET /b, GET /c] }\n";
    let study = study("", "sequence: { sessions: 10 }", session);
    let options = PlanOptions {
        speed: 60.0,
        seed: None,
    };
    let trial = plan(&study, &options).unwrap().trials.remove(0);
    assert_eq!(
        trial.load.kind,
        LoadKind::Sequence {
            sessions: 10,
            shared: false
        }
    );
    assert_eq!((trial.load.users, trial.load.ramp_ms), (1, 0));
    // No speed divides the time that it may take.
    assert_eq!(trial.load.hold_ms, 600_000);
    let p = trial.prediction.unwrap();
    assert_eq!((p.steps[0].requests, p.steps[1].requests), (10, 60));
    assert_eq!((p.transactions, p.offered_per_s), (70.0, 0.0));
}

#[test]
fn a_control_runs_the_first_cell_once_more_in_each_block() {
    let extra = "matrix: { n: [1, 2, 3] }\ntrials: 8\ncontrol: true\n";
    let plan = planned(&study(extra, "users: \"{{ n }}\", hold: 20s", SESSION), 1);
    assert_eq!(plan.trials.len(), 32);
    let mut places = BTreeSet::new();
    for block in plan.trials.chunks(4) {
        let place = block.iter().position(|trial| trial.control).unwrap();
        places.insert(place);
        let control = &block[place];
        assert_eq!(control.cell["n"], Level::Int(1));
        let twin = block
            .iter()
            .find(|t| !t.control && t.cell == control.cell)
            .unwrap();
        assert_eq!(twin.prediction, control.prediction);
        assert_eq!(block.iter().filter(|trial| trial.control).count(), 1);
    }
    assert!(
        places.len() > 1,
        "it is shuffled with the others: {places:?}"
    );
}

/// A study with these systems instead of the default one.
fn study_of(systems: &str, extra: &str, load: &str) -> Study {
    let study = format!("study: s\ntitle: S\nworkload: w\n{systems}\nload: {{ {load} }}\n{extra}");
    let workload = format!("workload: w\nsession:\n{SESSION}");
    load_study("s.study.yaml", &Folder(study, workload), &[])
        .unwrap_or_else(|e| panic!("{:?}", e.problems()))
        .study
}

#[test]
fn variants_are_the_levels_of_a_factor() {
    let systems = "variants:\n  slow: { groupware: { http_threads: \"{{ threads }}\" } }\n  \
                   2: { attach: { url: \"http://localhost:8{{ threads }}/\" } }";
    let extra =
        "matrix: { threads: [1, 2], exclude: [{ variant: 2, threads: 1 }] }\norder: listed\n";
    let plan = planned(&study_of(systems, extra, "users: 1, hold: 20s"), 1);
    let seen: Vec<String> = plan
        .trials
        .iter()
        .map(|trial| match (&trial.cell[VARIANT], &trial.system) {
            (Level::Text(name), SystemSpec::Command(spec)) => {
                let preset = spec.preset.as_ref().unwrap();
                format!("{name} {}", preset.settings["http_threads"])
            }
            (Level::Text(name), SystemSpec::Attach(spec)) => format!("{name} {}", spec.url),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(seen, ["slow 1", "slow 2", "2 http://localhost:82"]);
}

#[test]
fn a_search_begins_with_a_trial_of_each_cell() {
    let find = "find:\n  users: { min: 10, max: 900 }\n  resolution: 10%\n  \
                subject_to: { response_time: [\"p(95) < 100ms\"], error_rate: [\"rate < 1%\"] }\n";
    let systems = "variants:\n  a: { groupware: {} }\n  b: { groupware: { http_threads: 1 } }";
    let study = study_of(systems, find, "ramp: 10s, hold: 3 cycles");
    let plan = planned(&study, 1);
    assert!(plan.trials.is_empty());
    let search = plan.search.as_ref().unwrap();
    assert_eq!(search.cells.len(), 2);
    let find = &search.find;
    assert_eq!((find.min_users, find.max_users, find.repeats), (10, 900, 6));
    assert_eq!((find.resolution, find.subject_to.len()), (0.1, 2));
    let workloads = [study.workload.at_speed(plan.speed)];
    let trial = plan.search_trial(&workloads, 1, 40, (7, 3)).unwrap();
    assert_eq!((trial.id, trial.block, trial.load.users), (7, 3, 40));
    assert_eq!(trial.cell, search.cells[1].cell);
    // The trial that a study with this number of users would have planned.
    let users = "trials: 4\nmatrix: { n: [1] }\n";
    let given = planned(
        &study_of(
            "system: { groupware: {} }",
            users,
            "users: 40, ramp: 10s, hold: 3 cycles, generators: \"{{ n }}\"",
        ),
        1,
    );
    assert_eq!(trial.prediction, given.trials[3].prediction);
    assert_eq!(plan.search_trial(&workloads, 2, 40, (7, 3)), None);
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

/// The load of a study's only trial.
fn load_of(load: &str) -> lab_study::plan::LoadSpec {
    let plan = planned(&study("", load, SESSION), 1);
    plan.trials.first().unwrap().load.clone()
}

#[test]
fn populations_have_their_shares() {
    let mix = "mix: [{ population: a, share: 3 }, { population: b, share: 1 }]";
    let users = |load: &lab_study::plan::LoadSpec| -> Vec<u32> {
        load.mix.iter().map(|one| one.users).collect()
    };
    let closed = load_of(&format!("users: 10, hold: 10s, {mix}"));
    assert_eq!((closed.users, users(&closed)), (10, vec![8, 2]));
    let more = closed.with_users(21);
    assert_eq!((more.users, users(&more)), (21, vec![16, 5]));

    let open = load_of(&format!(
        "arrival: {{ rate: 100/s, connections: 9 }}, hold: 10s, {mix}"
    ));
    let rates = open.mix.iter().map(|one| match one.kind {
        LoadKind::Arrival { rate_per_s, .. } => rate_per_s,
        _ => 0.0,
    });
    assert_eq!(rates.collect::<Vec<_>>(), [75.0, 25.0]);
    assert_eq!((open.users, users(&open)), (9, vec![7, 2]));
    assert!(matches!(open.kind, LoadKind::Arrival { rate_per_s, .. } if rate_per_s == 100.0));

    let stages = format!("stages: [{{ users: 8, for: 5s }}, {{ users: 2, over: 5s }}], {mix}");
    let staged = load_of(&stages);
    let levels = |at: usize| -> Vec<(f64, f64)> {
        let stages = staged.mix[at].stages.iter();
        stages.map(|stage| (stage.from, stage.to)).collect()
    };
    assert_eq!(levels(0), [(6.0, 6.0), (6.0, 2.0)]);
    assert_eq!(levels(1), [(2.0, 2.0), (2.0, 0.0)]);

    let own = load_of(
        "hold: 10s, mix: [{ population: a, users: 5 }, { population: b, arrival: { rate: 2/s } }]",
    );
    assert_eq!(users(&own), [5, 1000]);
    let later = load_of(
        "ramp: 2s, hold: 10s, mix: [{ population: a, users: 5 }, { population: b, users: 4, after: 3s }]",
    );
    let stages = later.of(&later.mix[1]).stages;
    let parts: Vec<_> = stages
        .iter()
        .map(|stage| (stage.length_ms, stage.from, stage.to))
        .collect();
    assert_eq!(
        parts,
        [(3000, 0.0, 0.0), (2000, 0.0, 4.0), (9_000, 4.0, 4.0)]
    );
    assert!(later.of(&later.mix[0]).stages.is_empty() && later.changes());
    assert!(matches!(own.kind, LoadKind::Arrival { rate_per_s, .. } if rate_per_s == 2.0));
}

#[test]
fn who_else_is_there_changes_no_prediction() {
    let predicted = |mix: &str| {
        let plan = planned(&study("", &format!("hold: 300s, mix: [{mix}]"), SESSION), 1);
        plan.trials[0].prediction.clone().unwrap()
    };
    let alone = predicted("{ population: b, users: 7 }");
    let both = predicted("{ population: a, users: 9 }, { population: b, users: 7 }");
    assert_eq!(both.populations[1], alone.populations[0]);
    assert_eq!(both.steps[2..], alone.steps[..]);
    let names: Vec<&str> = both.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["a/a", "a/b", "b/a", "b/b"]);
    let sum: f64 = both.populations.iter().map(|one| one.transactions).sum();
    assert!((sum - both.transactions).abs() < 1e-9);
    assert_eq!(both.exact, alone.exact);
}
