//! Loads that replay a recording: each row is sent at its time, whatever the server does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lab_prediction::{predict, predict_mix};
use lab_workload::template::Symbols;
use lab_workload::{
    Control, Data, Each, LoadKind, LoadSpec, Population, Recorded, Spacing, Table, Template,
    TimeUnit, Timeline, Until, Wait, seed_of,
};
use proptest::prelude::*;

use super::drive::workload;
use super::{Answer, drive, ms, simulate, step};
use crate::assignment::Assignment;
use crate::mix::Mix;

/// Returns a load that replays these times, in ms, this many times faster, from this one on.
fn replay(moments: &[u64], scale: f64, from: u64) -> Assignment {
    let rows: String = moments.iter().map(|at| format!("{at},-\n")).collect();
    replay_rows(&rows, scale, from)
}

/// The same for rows of a time and a text, which is the variable `pauses`.
fn replay_rows(rows: &str, scale: f64, from: u64) -> Assignment {
    let bytes = format!("at,pauses\n{rows}").into_bytes();
    let table = Arc::new(Table::scan("t.csv", Arc::new(bytes), b',').unwrap());
    let part = (ms(from), None);
    let recorded = Recorded::scan(&table, (0, TimeUnit::Millis), part);
    let recorded = recorded.unwrap().unwrap();
    let mut drive = drive(vec![step(Wait::None, 1)]);
    workload(&mut drive).variables = Arc::from(["pauses".to_owned()]);
    workload(&mut drive).data = Some(Arc::new(Data {
        delimiter: b',',
        file: "t.csv".to_owned(),
        each: Each::Session,
        shuffled: false,
        unique: false,
        columns: vec![(1, 0)],
        rows: table.rows(),
        length: table.length(),
        sha256: table.sha256().to_owned(),
        table: Some(table),
    }));
    drive.kind = LoadKind::Arrival {
        rate_per_s: 1.0,
        spacing: Spacing::Recorded,
    };
    drive.timeline = Some(Timeline {
        column: 0,
        unit: TimeUnit::Millis,
        first: recorded.first,
        rows: recorded.rows,
        origin_ns: recorded.origin_ns,
        scale,
    });
    drive.users = 50;
    drive
}

#[test]
fn each_row_is_sent_at_its_moment() {
    let mut drive = replay(&[5_000, 5_010, 5_010, 5_300, 5_900, 9_000], 2.0, 10);
    drive.cores = vec![0, 1];
    let observed = simulate(drive, |_| Answer::After(ms(1)));
    let sent: Vec<Duration> = observed.sent.iter().map(|asked| asked.at).collect();
    // Rows beyond the end of the trial are not sent, and the trial continues to its end.
    assert_eq!(sent, [0, 0, 145, 445].map(ms));
    assert_eq!(
        (observed.summary.arrived, observed.summary.elapsed),
        (4, ms(1000))
    );
    assert_eq!(observed.lateness().max(), 1, "nothing is late");
}

#[test]
fn a_slow_server_delays_no_row_and_answers_for_it() {
    let mut drive = replay(&[0, 100, 200, 300], 1.0, 0);
    drive.users = 1;
    // One connection: later rows wait for it, and that is response time.
    let observed = simulate(drive, |_| Answer::After(ms(250)));
    assert_eq!(observed.summary.arrived, 4);
    let times = observed.times(0);
    assert!(times.equivalent(times.max(), 550_000), "{}", times.max());
    assert_eq!(observed.lateness().max(), 1);
}

#[test]
fn a_session_waits_as_long_as_its_row_says() {
    let rows = "0,0 0.05 0.2\n30,0.01\n500,x\n600,0 1000000\n";
    let mut drive = replay_rows(rows, 1.0, 0);
    drive.hold = ms(2000);
    let mut looped = step(Wait::Seconds(0, 1.0), 1);
    looped.control = Some(Box::new(Control {
        when: None,
        until: Some(Until {
            condition: Template::condition("round == 2", Symbols::new(&[])).unwrap(),
            at_most: 3,
        }),
    }));
    workload(&mut drive).session.steps = vec![looped];
    let load = LoadSpec {
        timeline: drive.timeline.clone(),
        kind: drive.kind,
        ..LoadSpec::of_users(50, 2000, 10)
    };
    let played = Arc::clone(&drive.workload);
    let plan = predict(&played, 7, 0, &load, 1_000_000).unwrap();
    let observed = simulate(drive, |_| Answer::After(ms(0)));
    let sent: Vec<Duration> = observed.sent.iter().map(|asked| asked.at).collect();
    // A single number applies to all rounds, and a value that is no number is no wait.
    let expected = [0, 40, 50, 50, 60, 250, 500, 500, 500, 600];
    assert_eq!(sent, expected.map(ms));
    let range = plan.range.unwrap().trial;
    assert_eq!((range.low, range.high), (0.0, 12.0));
    // If a recording has too many waits to read them all, some of its sessions represent all.
    let sampled = predict(&played, 7, 0, &load, 3).unwrap();
    assert_eq!(sampled.range.unwrap().trial.high, 12.0);
    assert_eq!(sampled.arrivals.unwrap().trial, 4.0);
}

#[test]
fn a_population_replays_a_recording_beside_users() {
    let named = |name: &str, first, drive: Assignment| Assignment {
        population: name.to_owned(),
        seed: seed_of(7, name),
        first,
        ..drive
    };
    let people = named("people", 0, drive(vec![step(Wait::Constant(ms(90)), 1)]));
    // The last two lie behind the end of the load.
    let recorded = named(
        "recorded",
        1,
        replay(&[0, 10, 10, 900, 1_100, 5_000], 1.0, 0),
    );
    let of = |drive: &Assignment| Population {
        name: drive.population.clone(),
        workload: String::new(),
        parameters: BTreeMap::new(),
        share: None,
        users: drive.users,
        kind: drive.kind,
        stages: Vec::new(),
        timeline: drive.timeline.clone(),
        after_ms: 0,
    };
    let load = LoadSpec {
        mix: vec![of(&people), of(&recorded)],
        ..LoadSpec::of_users(51, 1000, 10)
    };
    let workloads = [&*people.workload, &*recorded.workload];
    let plan = predict_mix(&workloads, 7, 0, &load, 1_000_000).unwrap();
    let observed = simulate(Mix::from(people).and(recorded), |_| Answer::After(ms(0)));
    let of_recorded = observed.sent.iter().filter(|asked| asked.user > 0);
    let moments: Vec<Duration> = of_recorded.map(|asked| asked.at).collect();
    assert_eq!(moments, [0, 10, 10, 900].map(ms));
    assert_eq!(plan.populations[1].transactions, 4.0);
    assert_eq!(observed.sent.len() as f64, plan.transactions);
    assert!(load.changes(), "nothing is cut off as warm-up");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn the_plan_knows_what_is_sent(
        gaps in proptest::collection::vec(0u64..40, 1..60),
        scale in 0.5..4.0f64,
        workers in 1usize..3,
    ) {
        let moments: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        let mut drive = replay(&moments, scale, 0);
        drive.cores = (0..workers).collect();
        let load = LoadSpec {
            kind: drive.kind,
            timeline: drive.timeline.clone(),
            ..LoadSpec::of_users(drive.users, 1000, 10)
        };
        let plan = predict(&drive.workload, drive.seed, drive.block, &load, 1_000_000).unwrap();
        let observed = simulate(drive, |_| Answer::After(ms(0)));
        prop_assert_eq!(observed.sent.len() as f64, plan.transactions);
        let arrivals = plan.arrivals.unwrap();
        prop_assert_eq!(observed.summary.arrived as f64, arrivals.trial);
        prop_assert_eq!(arrivals.peak_per_s, Some(arrivals.trial));
    }
}
