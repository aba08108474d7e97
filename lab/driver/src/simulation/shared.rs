//! State that users share: unique numbers, entries of queues, and rows of pools.

use std::collections::BTreeSet;
use std::time::Duration;

use lab_counts::StepCounts;
use lab_workload::template::{Escape, Symbols};
use lab_workload::{
    Data, Each, Lease, LoadKind, Put, Queued, Request, SharedKind, SharedState, Stage, Step, Table,
    Take, Template, Wait,
};

use super::drive::workload;
use super::{Answer, Observed, drive, histogram, ms, simulate};
use crate::assignment::Assignment;
use crate::mix::Mix;
use lab_workload::part::Part;

const THINKS: Wait = Wait::Constant(Duration::from_millis(10));

/// A step with one request, whose target is this template.
fn step(target: &str, variables: &[String]) -> Step {
    let symbols = Symbols::new(variables);
    let target = Template::parse_with(target, symbols, Escape::None).unwrap();
    Step {
        wait: THINKS,
        ..Step::of("Step", vec![Request::get(target)])
    }
}

/// Returns users that send a number of a counter with each request, on two workers of the generator with this part.
fn counting(part: Part) -> Assignment {
    let mut drive = drive(vec![step("{{ next('order_no') }}", &[])]);
    workload(&mut drive).shared.push(SharedState {
        name: "order_no".to_owned(),
        kind: SharedKind::Counter { from: 100 },
    });
    (drive.users, drive.part, drive.cores) = (12, part, vec![0, 1]);
    drive
}

#[test]
fn numbers_are_unique_over_three_generators_with_two_workers_each() {
    let parts = Part::by_weights(&[1, 1, 1]).unwrap();
    let mut taken = BTreeSet::new();
    for part in parts {
        let observed = simulate(counting(part), |_| Answer::After(ms(1)));
        let numbers: Vec<u64> = observed
            .rendered
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        // Two users of each worker send every 11 ms.
        assert_eq!(numbers.len(), 4 * 90);
        for number in numbers {
            assert!(taken.insert(number), "{number} was given twice");
        }
    }
    // Each of the six workers has every sixth number from its own first one on, without gaps of its own.
    let expected: BTreeSet<u64> = (0..3 * 4 * 90).map(|number| 100 + number).collect();
    assert_eq!(taken, expected);
}

#[test]
fn generators_of_any_weights_give_different_numbers() {
    let mut taken = BTreeSet::new();
    for part in Part::by_weights(&[3, 1]).unwrap() {
        let observed = simulate(counting(part), |_| Answer::After(ms(1)));
        for number in &observed.rendered {
            assert!(taken.insert(number.clone()), "{number} was given twice");
        }
    }
    assert_eq!(taken.len(), 12 * 90);
}

/// Returns users that put numbers of a counter into a queue, one per interval.
fn producer(every: Duration, at_most: u32) -> Assignment {
    let variables = ["no".to_owned()];
    let mut put = step("/put/{{ no }}", &variables);
    put.wait = Wait::Constant(every);
    let sets = vec![(0, template("{{ next('no') }}", &[]))];
    put.requests[0].target = put.requests[0].target.clone().setting(sets);
    put.queued = Some(Box::new(Queued {
        take: None,
        put: Some(Put {
            queue: "orders".to_owned(),
            entry: template("{{ no }}", &variables),
        }),
    }));
    shared(drive(vec![put]), &variables, at_most)
}

/// Returns users that take entries of the queue as they become available.
fn consumer(within: Duration) -> Assignment {
    let variables = ["order".to_owned()];
    let mut take = step("{{ order }}", &variables);
    take.wait = Wait::None;
    take.queued = Some(Box::new(Queued {
        put: None,
        take: Some(Take {
            queue: "orders".to_owned(),
            slot: 0,
            within,
        }),
    }));
    let mut drive = shared(drive(vec![take]), &variables, 10_000);
    drive.population = "consumers".to_owned();
    drive
}

fn template(text: &str, variables: &[String]) -> Template {
    let symbols = Symbols::new(variables);
    Template::parse_with(text, symbols, Escape::None).unwrap()
}

fn shared(mut drive: Assignment, variables: &[String], at_most: u32) -> Assignment {
    let workload = workload(&mut drive);
    workload.variables = variables.to_vec().into();
    for (name, kind) in [
        ("no", SharedKind::Counter { from: 0 }),
        ("orders", SharedKind::Queue { at_most }),
    ] {
        let name = name.to_owned();
        workload.shared.push(SharedState { name, kind });
    }
    drive
}

/// Returns producers and consumers together, this number of each on these workers.
fn both(mut producer: Assignment, mut consumer: Assignment, (users, workers): (u32, usize)) -> Mix {
    (producer.users, consumer.users) = (users, users);
    consumer.first = users;
    producer.cores = (0..workers).collect();
    consumer.cores.clone_from(&producer.cores);
    Mix::from(producer).and(consumer)
}

/// Returns the counts over all windows and steps.
fn counts(observed: &Observed) -> StepCounts {
    let mut sum = StepCounts::default();
    let steps = observed.windows.iter().flat_map(|window| &window.steps);
    steps.for_each(|step| sum += &step.counts);
    sum
}

fn taken(observed: &Observed) -> Vec<u64> {
    let taken = observed
        .rendered
        .iter()
        .filter(|text| !text.starts_with('/'));
    taken.map(|text| text.parse().unwrap()).collect()
}

#[test]
fn a_worker_takes_entries_in_the_order_in_which_they_were_put_in() {
    let mut consumer = consumer(ms(500));
    workload(&mut consumer).session.steps[0].wait = Wait::Constant(ms(30));
    let mix = both(producer(ms(10), 10_000), consumer, (1, 1));
    let observed = simulate(mix, |_| Answer::After(ms(1)));
    let taken = taken(&observed);
    // One is taken every 31 ms, from the first available one on.
    assert_eq!(taken, (0..taken.len() as u64).collect::<Vec<_>>());
    let counts = counts(&observed);
    assert_eq!((counts.puts, counts.takes), (90, 32));
    assert_eq!((counts.put_dropped, counts.take_missed), (0, 0));
    // The entries were already available: no user waited.
    let waits = observed.sum(1, |step| &step.times.queue_wait);
    assert_eq!(waits, histogram([ms(0); 32]));
}

#[test]
fn more_entries_than_a_worker_keeps_come_out_in_order_too() {
    let mut producer = producer(ms(1), 10_000);
    let mut consumer = consumer(ms(500));
    producer.hold = ms(3000);
    (workload(&mut consumer).session.steps[0].wait, consumer.hold) =
        (Wait::Constant(ms(3)), ms(3000));
    let observed = simulate(both(producer, consumer, (1, 1)), |_| Answer::After(ms(0)));
    let taken = taken(&observed);
    assert!(taken.len() > 900, "{}", taken.len());
    assert_eq!(taken, (0..taken.len() as u64).collect::<Vec<_>>());
}

/// Runs a producer on the first worker, and a consumer on the second one; the first worker's consumer is busy with its
/// first entry to the end.
fn apart(think: Wait) -> Observed {
    let (mut producer, mut consumer) = (producer(ms(10), 10_000), consumer(ms(500)));
    workload(&mut consumer).session.steps[0].wait = think;
    (producer.users, consumer.users, consumer.first) = (1, 2, 1);
    (producer.cores, consumer.cores) = (vec![0, 1], vec![0, 1]);
    let observed = simulate(Mix::from(producer).and(consumer), |asked| {
        match asked.user {
            1 => Answer::Never,
            _ => Answer::After(ms(0)),
        }
    });
    assert_eq!(observed.sends_of(1).len(), 1);
    observed
}

#[test]
fn a_user_who_waits_is_woken_by_a_put_of_another_worker() {
    let observed = apart(Wait::None);
    let (counts, sends) = (counts(&observed), observed.sends_of(2));
    assert_eq!((counts.puts, counts.takes, counts.take_missed), (99, 99, 0));
    let expected: Vec<Duration> = (2..100).map(|put| ms(10 * put)).collect();
    assert_eq!(sends, expected, "at the moment of the put");
    let mut taken = taken(&observed);
    taken.sort_unstable();
    // Each of the two workers has every other number of the counter.
    assert_eq!(taken, (0..99).map(|nth| 2 * nth).collect::<Vec<_>>());
}

#[test]
fn entries_that_one_worker_keeps_are_for_users_of_another() {
    // Three to four are put in before one is taken.
    let observed = apart(Wait::Constant(ms(35)));
    let counts = counts(&observed);
    assert_eq!(
        (counts.puts, counts.takes, counts.take_missed),
        (99, 1 + 28, 0)
    );
    let waits = observed.sum(1, |step| &step.times.queue_wait);
    assert_eq!(waits, histogram([ms(0); 29]), "it is passed on at once");
}

#[test]
fn a_wait_is_neither_think_time_nor_response_time() {
    let mix = both(producer(ms(20), 10_000), consumer(ms(500)), (1, 1));
    let observed = simulate(mix, |_| Answer::After(ms(1)));
    let waits = observed.sum(1, |step| &step.times.queue_wait);
    // The first one arrives after 21 ms, each further one 21 ms later, of which the request takes 1 ms.
    assert_eq!((waits.len(), waits.max()), (47, histogram([ms(21)]).max()));
    assert_eq!(observed.times(1), histogram([ms(1); 47]));
    assert_eq!(
        observed
            .windows
            .iter()
            .map(|window| window.steps[1].counts.waits)
            .sum::<u64>(),
        0
    );
    assert_eq!(observed.lateness().max(), 1);
}

#[test]
fn a_step_for_which_nothing_comes_is_skipped() {
    // One is put in every 101 ms. The consumer waits for 30 ms, and the session continues at once.
    let mix = both(producer(ms(100), 10_000), consumer(ms(30)), (1, 1));
    let observed = simulate(mix, |_| Answer::After(ms(1)));
    let counts = counts(&observed);
    assert_eq!((counts.puts, counts.takes), (9, 9));
    assert_eq!(counts.skipped, counts.take_missed);
    assert!((20..=30).contains(&counts.take_missed), "{counts:?}");
    assert!(observed.forgotten.len() as u64 >= counts.take_missed);
}

#[test]
fn a_full_queue_drops_what_comes() {
    let mut consumer = consumer(ms(500));
    workload(&mut consumer).session.steps[0].wait = Wait::Constant(ms(3_600_000));
    for workers in [1, 2] {
        let mix = both(
            producer(ms(10), 7),
            consumer.clone(),
            (workers as u32, workers),
        );
        let observed = simulate(mix, |_| Answer::After(ms(0)));
        let counts = counts(&observed);
        assert_eq!(
            (counts.puts, counts.put_dropped),
            (7, 99 * workers as u64 - 7)
        );
    }
}

#[test]
fn nobody_hangs_where_users_leave() {
    // Consumers leave and return while the queue is empty: each leaves in the middle of a wait. Users that are back
    // take the entries put in later.
    let mut producer = producer(ms(600), 10_000);
    let mut consumer = consumer(ms(3_600_000));
    let stage = |users, length| Stage {
        name: String::new(),
        length_ms: length,
        from: users,
        to: users,
    };
    for drive in [&mut producer, &mut consumer] {
        drive.hold = ms(2000);
    }
    consumer.stages = vec![stage(2.0, 500), stage(0.0, 500), stage(2.0, 1000)];
    producer.stages = vec![stage(1.0, 2000)];
    (producer.users, consumer.users, consumer.first) = (1, 2, 1);
    let observed = simulate(Mix::from(producer).and(consumer), |_| Answer::After(ms(0)));
    let counts = counts(&observed);
    assert_eq!((counts.puts, counts.takes), (3, 3));
    assert_eq!(counts.take_missed, 0, "who leaves skips nothing");
    // The entry put in without consumers is taken when the first one returns.
    assert_eq!(
        observed
            .sent
            .iter()
            .filter(|asked| asked.user > 0 && asked.at == ms(1000))
            .count(),
        1
    );
    assert!(!observed.summary.stopped_early);
}

#[test]
fn a_load_with_fewer_takers_than_workers_is_refused() {
    let mix = both(producer(ms(10), 100), consumer(ms(10)), (1, 2));
    let error = crate::sharing::validate(&mix).unwrap_err().to_string();
    assert!(error.contains("the queue `orders`"), "{error}");
    let mix = both(producer(ms(10), 100), consumer(ms(10)), (2, 2));
    assert!(crate::sharing::validate(&mix).is_ok());
}

/// Returns users whose sessions of one request lease a row of a pool with this number of rows.
fn leasing(rows: u64, lease: Lease) -> Assignment {
    let variables = ["token".to_owned()];
    let mut drive = drive(vec![step("{{ token }}", &variables)]);
    workload(&mut drive).session.steps[0].wait = Wait::None;
    let text: String = (0..rows).map(|row| format!("t{row}\n")).collect();
    let text = format!("token\n{text}");
    let table = Table::scan("tokens.csv", std::sync::Arc::new(text.into_bytes()), b',').unwrap();
    let workload = workload(&mut drive);
    workload.variables = variables.to_vec().into();
    workload.shared.push(SharedState {
        name: "tokens".to_owned(),
        kind: SharedKind::Pool {
            lease,
            rows: std::sync::Arc::new(Data {
                file: "tokens.csv".to_owned(),
                each: Each::Session,
                shuffled: false,
                unique: false,
                columns: vec![(0, 0)],
                delimiter: b',',
                rows,
                length: table.length(),
                sha256: table.sha256().to_owned(),
                table: Some(std::sync::Arc::new(table)),
            }),
        },
    });
    drive
}

#[test]
fn a_row_is_one_sessions_at_a_time_and_others_wait_for_it() {
    let mut drive = leasing(2, Lease::Session);
    drive.users = 3;
    let observed = simulate(drive, |_| Answer::After(ms(10)));
    // Two rows, 10 ms each: three users take turns, two of whom end at the same time.
    assert_eq!(observed.sent.len(), 2 * 100);
    let mut free = [ms(0), ms(0)];
    for (asked, token) in observed.sent.iter().zip(&observed.rendered) {
        let row: usize = token[1..].parse().unwrap();
        assert!(
            asked.at >= free[row],
            "{token} is taken twice at {:?}",
            asked.at
        );
        free[row] = asked.at + ms(10);
    }
    for user in 0..3 {
        assert!(observed.sends_of(user).len() >= 49, "user {user} starves");
    }
    let waits = observed.sum(0, |step| &step.times.lease_wait);
    assert_eq!(waits.max(), histogram([ms(10)]).max());
    assert_eq!(
        observed.times(0).max(),
        histogram([ms(10)]).max(),
        "no part of the response"
    );
}

#[test]
fn workers_have_rows_of_their_own() {
    let mut drive = leasing(5, Lease::Session);
    (drive.users, drive.cores) = (8, vec![0, 1]);
    let observed = simulate(drive, |_| Answer::After(ms(10)));
    for (asked, token) in observed.sent.iter().zip(&observed.rendered) {
        let row: u32 = token[1..].parse().unwrap();
        assert_eq!(asked.user % 2, row % 2, "{token} is the other worker's");
    }
    let rows: BTreeSet<&String> = observed.rendered.iter().collect();
    assert_eq!(rows.len(), 5);
}

#[test]
fn rotating_rows_are_gone_through_in_turn() {
    let mut drive = leasing(3, Lease::Request);
    drive.kind = LoadKind::Sequence {
        sessions: 7,
        shared: false,
    };
    let observed = simulate(drive, |_| Answer::After(ms(1)));
    assert_eq!(
        observed.rendered,
        ["t0", "t1", "t2", "t0", "t1", "t2", "t0"]
    );
}

#[test]
fn a_pool_with_fewer_rows_than_workers_is_refused() {
    let mut drive = leasing(1, Lease::Session);
    (drive.users, drive.cores) = (8, vec![0, 1]);
    let error = crate::sharing::validate(&Mix::from(drive))
        .unwrap_err()
        .to_string();
    assert!(error.contains("the pool `tokens` has 1 rows"), "{error}");
}
