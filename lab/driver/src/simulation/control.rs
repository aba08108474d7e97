//! Conditions, loops, and retries: their send times, compared with the plan.

use std::cell::Cell;
use std::ops::Range;

use lab_client::ErrorClass;
use lab_prediction::predict;
use lab_workload::template::Symbols;
use lab_workload::timing::TimingStream;
use lab_workload::{Control, Group, LoadSpec, Retry, Template, Until, Wait};

use super::drive::workload;
use super::{Answer, Observed, drive, histogram, ms, simulate, step};
use crate::assignment::Assignment;

fn condition(text: &str) -> Template {
    let symbols = Symbols::new(&[]);
    Template::condition(text, symbols).unwrap()
}

fn when(text: &str) -> Control {
    Control {
        when: Some(condition(text)),
        until: None,
    }
}

fn until(text: &str, at_most: u32) -> Control {
    let condition = condition(text);
    Control {
        when: None,
        until: Some(Until { condition, at_most }),
    }
}

fn group(drive: &mut Assignment, steps: Range<usize>, control: Control) {
    workload(drive).session.groups = vec![Group { steps, control }];
}

fn answers(drive: Assignment) -> Observed {
    simulate(drive, |_| Answer::After(ms(1)))
}

/// Returns the numbers of the sent requests, in order.
fn sent(observed: &Observed) -> Vec<u32> {
    observed.sent.iter().map(|asked| asked.request).collect()
}

#[test]
fn a_step_is_done_where_its_condition_holds_and_shifts_no_later_wait() {
    let wait = Wait::Uniform(ms(5), ms(15));
    let mut first = step(wait, 1);
    first.control = Some(Box::new(when("cycle % 2 == 0")));
    let mut drive = drive(vec![first, step(wait, 1)]);
    drive.hold = ms(300);
    let mut stream = TimingStream::new(drive.seed, drive.block, 0);
    let observed = simulate(drive, |_| Answer::After(ms(0)));
    let (mut at, mut expected) = (ms(0), Vec::new());
    for cycle in 0.. {
        let waits = [stream.next_wait(&wait), stream.next_wait(&wait)];
        if cycle % 2 == 0 {
            at += waits[0];
            expected.push((0, at));
        }
        at += waits[1];
        expected.push((1, at));
        if at > ms(300) {
            break;
        }
    }
    expected.retain(|(_, at)| *at < ms(300));
    let sent: Vec<_> = observed
        .sent
        .iter()
        .map(|asked| (asked.request, asked.at))
        .collect();
    assert_eq!(sent, expected);
}

#[test]
fn a_loop_ends_by_its_condition_or_by_its_bound() {
    for (text, rounds, cut_off) in [("round >= 2", 3, 0), ("false", 5, 1)] {
        let mut once = step(Wait::Constant(ms(10)), 1);
        once.control = Some(Box::new(until(text, 5)));
        let mut drive = drive(vec![once, step(Wait::Constant(ms(1000)), 1)]);
        drive.hold = ms(500);
        let observed = answers(drive);
        assert_eq!(observed.sent.len(), rounds, "{text}");
        assert_eq!(
            observed.count(|step| step.counts.cut_off),
            cut_off,
            "{text}"
        );
        assert_eq!(
            observed.count(|step| step.counts.waits),
            rounds as u64,
            "{text}"
        );
    }
}

#[test]
fn a_group_is_done_as_a_whole() {
    let steps = || {
        let wait = Wait::Constant(ms(10));
        vec![
            step(wait, 1),
            step(wait, 1),
            step(Wait::Constant(ms(1000)), 1),
        ]
    };
    let mut looped = drive(steps());
    group(&mut looped, 0..2, until("round == 1", 9));
    assert_eq!(sent(&answers(looped)), [0, 1, 0, 1]);
    let mut left_out = drive(steps());
    group(&mut left_out, 0..2, when("index == 1"));
    (left_out.users, left_out.hold) = (2, ms(500));
    let observed = answers(left_out);
    assert_eq!(sent(&observed), [0, 1]);
    assert!(observed.sent.iter().all(|asked| asked.user == 1));
}

#[test]
fn a_loop_that_can_send_nothing_ends() {
    let mut once = step(Wait::None, 1);
    once.control = Some(Box::new(until("false", 1000)));
    let mut drive = drive(vec![once, step(Wait::Constant(ms(200)), 1)]);
    drive.hold = ms(500);
    let observed = simulate(drive, |asked| match asked.request {
        0 => Answer::Skipped,
        _ => Answer::After(ms(0)),
    });
    assert_eq!(observed.count(|step| step.counts.skipped), 3);
    assert_eq!(observed.count(|step| step.counts.cut_off), 0);
}

#[test]
fn a_condition_that_fails_is_an_error_and_no_endless_loop() {
    let mut once = step(Wait::Constant(ms(10)), 1);
    once.control = Some(Box::new(until("1 / 0 > index", 1000)));
    let mut drive = drive(vec![once, step(Wait::Constant(ms(1000)), 1)]);
    drive.hold = ms(100);
    let observed = answers(drive);
    assert_eq!(
        (observed.summary.transactions, observed.summary.errors),
        (1, 1)
    );
}

#[test]
fn a_retried_request_takes_from_its_first_send_to_its_last_response() {
    let mut once = step(Wait::Constant(ms(100)), 2);
    let wait = Wait::Constant(ms(30));
    once.retry = Some(Retry::new(2, wait));
    let mut drive = drive(vec![once]);
    drive.hold = ms(420);
    let asked = Cell::new(0);
    // Two failures, then success; all later ones succeed at once.
    let observed = simulate(drive, move |_| {
        asked.set(asked.get() + 1);
        match asked.get() {
            1 | 2 => Answer::Fails(ErrorClass::Status, ms(5)),
            _ => Answer::After(ms(5)),
        }
    });
    let sends: Vec<_> = observed
        .sent
        .iter()
        .map(|asked| (asked.request, asked.at))
        .collect();
    let expected = [
        (0, 100),
        (0, 135),
        (0, 170),
        (1, 175),
        (0, 280),
        (1, 285),
        (0, 390),
        (1, 395),
    ];
    assert_eq!(sends, expected.map(|(request, at)| (request, ms(at))));
    assert_eq!(
        (observed.summary.transactions, observed.summary.errors),
        (6, 0)
    );
    assert_eq!(observed.count(|step| step.counts.sent_again()), 2);
    assert_eq!(observed.count(|step| step.counts.retry_wait_us), 60_000);
    // The user waits for three attempts and two waits.
    let times = [75, 5, 5, 5, 5, 5].map(ms);
    assert_eq!(observed.times(0), histogram(times));
    assert_eq!(observed.lateness(), histogram([ms(0); 8]));
}

#[test]
fn what_never_goes_well_is_given_up() {
    let mut once = step(Wait::Constant(ms(50)), 2);
    once.retry = Some(Retry::new(3, Wait::None));
    let mut drive = drive(vec![once]);
    drive.hold = ms(90);
    let observed = simulate(drive, |_| Answer::Fails(ErrorClass::Status, ms(0)));
    // The second request of the step is skipped, as without retries.
    assert_eq!(sent(&observed), [0; 4]);
    assert_eq!(
        (
            observed.summary.errors,
            observed.count(|step| step.counts.sent_again())
        ),
        (1, 3)
    );
    assert_eq!(observed.forgotten, [0, 1]);
}

#[test]
fn waits_before_retries_grow_up_to_a_bound() {
    let mut once = step(Wait::Constant(ms(100)), 1);
    once.retry = Some(Retry {
        multiplier: 2.0,
        max_wait: Some(ms(35)),
        ..Retry::new(4, Wait::Constant(ms(10)))
    });
    let mut drive = drive(vec![once]);
    drive.hold = ms(280);
    let observed = simulate(drive, |_| Answer::Fails(ErrorClass::Status, ms(0)));
    let sends: Vec<_> = observed.sent.iter().map(|asked| asked.at).collect();
    // 10, 20, 35 in place of 40, and 35 in place of 80.
    assert_eq!(sends, [100, 110, 130, 165, 200].map(ms));
    assert_eq!(observed.count(|step| step.counts.retry_wait_us), 100_000);
}

#[test]
fn a_session_that_ends_at_a_failure_leaves_its_other_steps_out() {
    let wait = Wait::Uniform(ms(5), ms(15));
    let mut first = step(wait, 2);
    first.ends_session = true;
    let mut drive = drive(vec![first, step(wait, 3), step(wait, 1)]);
    workload(&mut drive).session.pace = Some(ms(100));
    drive.hold = ms(300);
    let load = LoadSpec::of_users(1, 300, 10);
    let plan = predict(&drive.workload, drive.seed, drive.block, &load, 1_000_000).unwrap();
    let mut stream = TimingStream::new(drive.seed, drive.block, 0);
    let asked = Cell::new(0);
    // The second session fails at its first request.
    let observed = simulate(drive, move |_| {
        asked.set(asked.get() + 1);
        match asked.get() {
            7 => Answer::Fails(ErrorClass::Status, ms(0)),
            _ => Answer::After(ms(0)),
        }
    });
    assert_eq!(sent(&observed), [0, 1, 2, 3, 4, 5, 0, 0, 1, 2, 3, 4, 5]);
    // One of its own step, three, and one.
    assert_eq!(observed.count(|step| step.counts.not_reached), 5);
    let accounted_for = observed.sent.len() as f64 + 5.0;
    assert_eq!((plan.transactions, plan.range), (accounted_for, None));
    // The third session's waits are those of the plan.
    let mut waits = [0; 9].map(|_| stream.next_wait(&wait));
    waits.rotate_left(6);
    assert_eq!(observed.sent[7].at, ms(200) + waits[0]);
}

#[test]
fn what_is_sent_lies_within_what_the_plan_says() {
    let texts = ["true", "false", "cycle % 3 == 1", "index == 0 or round > 3"];
    for first in texts {
        for second in texts {
            let mut steps = vec![
                step(Wait::Uniform(ms(5), ms(15)), 1),
                step(Wait::Exponential(ms(10)), 2),
                step(Wait::Constant(ms(3)), 1),
            ];
            steps[0].name = "A".to_owned();
            steps[0].control = Some(Box::new(when(first)));
            steps[1].control = Some(Box::new(until(second, 6)));
            let mut drive = drive(steps);
            (drive.users, drive.ramp, drive.hold) = (5, ms(50), ms(2000));
            let load = LoadSpec {
                ramp_ms: 50,
                ..LoadSpec::of_users(5, 2000, 10)
            };
            let plan = predict(&drive.workload, drive.seed, drive.block, &load, 1_000_000);
            let plan = plan.unwrap();
            let observed = simulate(drive, |_| Answer::After(ms(0)));
            let range = plan.range.unwrap().trial;
            let sent = observed.sent.len() as f64;
            assert!(range.low <= sent && sent <= range.high, "{sent} {range:?}");
            for (number, step) in plan.steps.iter().enumerate() {
                let range = step.range.unwrap();
                let windows = observed.windows.iter();
                let done = windows.map(|window| window.steps[number].transactions());
                let done = done.sum::<u64>() as f64;
                // Requests in progress at the end of the hold.
                let (low, high) = (range.low - 10.0, range.high + 10.0);
                assert!(
                    low <= done && done <= high,
                    "{first}, {second}: {done} {step:?}"
                );
            }
        }
    }
}
