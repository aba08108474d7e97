//! Each check, made to pass, warn, and invalidate.

use crate::support::{Made, Shape, check, trial};
use lab_trial::model::{CheckOutcome, Verdict};

use CheckOutcome::{Invalid, NotJudged, Pass, Warn};

#[test]
fn a_healthy_trial_passes_every_check() {
    let trial = trial(Shape::default());
    assert!(
        trial.checks.iter().all(|check| check.outcome <= NotJudged),
        "{:#?}",
        trial.checks
    );
    assert_eq!(trial.verdict, Verdict::Valid);
}

#[test]
fn delivered_load() {
    check(
        Shape {
            delivered: 0.985,
            ..Shape::default()
        },
        "delivered load",
        Pass,
    );
    let lost = Shape {
        delivered: 0.9,
        ..Shape::default()
    };
    check(lost, "delivered load", Invalid);
    let sent_twice = Shape {
        delivered: 1.1,
        ..Shape::default()
    };
    check(sent_twice, "delivered load", Invalid);
}

#[test]
fn requests_against_the_prediction() {
    check(
        Shape {
            delivered: 0.992,
            ..Shape::default()
        },
        "requests",
        Pass,
    );
    check(
        Shape {
            delivered: 0.97,
            ..Shape::default()
        },
        "requests",
        Invalid,
    );
    check(
        Shape {
            delivered: 1.03,
            ..Shape::default()
        },
        "requests",
        Invalid,
    );
}

#[test]
fn a_slow_server_with_a_healthy_generator_stays_valid() {
    // A cycle of 6 s takes 10 s: 2.3 s of waits, and 1 + 2 × 2 + 3 times 960 ms.
    let slow = Shape {
        delivered: 0.6,
        response_us: 960_000,
        overruns: 5,
        ..Shape::default()
    };
    let trial = check(slow.clone(), "delivered load", Warn);
    assert_eq!(trial.verdict, Verdict::Valid);
    assert!(
        trial
            .checks
            .iter()
            .any(|c| c.id.title() == "requests" && c.outcome == Warn)
    );
    // One late send loses no load.
    let one_late = Shape {
        late_few: (1, 900_000),
        ..slow.clone()
    };
    let trial = check(one_late.clone(), "delivered load", Warn);
    assert_eq!(trial.verdict, Verdict::Valid);
    check(one_late, "lateness of sends", Warn);
    // Sends that are all late by 20 ms took 0.8 % of the users' time; 40 % is missing.
    let hardly_late = Shape {
        late_us: 20_000,
        ..slow.clone()
    };
    check(hardly_late.clone(), "lateness of sends", Warn);
    let trial = check(hardly_late, "delivered load", Warn);
    assert_eq!(trial.verdict, Verdict::Valid);
    // The same with a late generator can't be attributed to the server.
    let late = Shape {
        late_us: 60_000,
        ..slow
    };
    let trial = check(late, "delivered load", Invalid);
    assert_eq!(trial.verdict, Verdict::Invalid);
}

#[test]
fn waits_against_the_plan() {
    check(
        Shape {
            wait: 1.04,
            ..Shape::default()
        },
        "waits",
        Pass,
    );
    check(
        Shape {
            wait: 1.08,
            ..Shape::default()
        },
        "waits",
        Invalid,
    );
    check(
        Shape {
            wait: 0.9,
            ..Shape::default()
        },
        "waits",
        Invalid,
    );
}

#[test]
fn lateness_of_sends() {
    check(
        Shape {
            late_us: 9_000,
            ..Shape::default()
        },
        "lateness of sends",
        Pass,
    );
    check(
        Shape {
            late_us: 30_000,
            ..Shape::default()
        },
        "lateness of sends",
        Warn,
    );
    check(
        Shape {
            late_us: 130_000,
            ..Shape::default()
        },
        "lateness of sends",
        Invalid,
    );
}

#[test]
fn a_few_very_late_sends_do_not_hide_behind_p99() {
    // Some 16,000 sends in the hold: a thousandth is 16.
    let made = |few, late_us| Made {
        overrides: vec![("matrix.users".to_owned(), "[1000]".to_owned())],
        shapes: vec![Shape {
            late_few: (few, late_us),
            ..Shape::default()
        }],
        ..Made::default()
    };
    for (few, late_us, outcome) in [
        (1, 90_000, Pass),
        (1, 900_000, Warn),
        (60, 90_000, Pass),
        (60, 900_000, Invalid),
    ] {
        let trial = made(few, late_us).trials().remove(0);
        let found = trial
            .checks
            .iter()
            .find(|c| c.id.title() == "lateness of sends");
        assert_eq!(found.unwrap().outcome, outcome, "{few}: {found:?}");
    }
}

#[test]
fn run_queue_delay() {
    check(
        Shape {
            run_queue: 0.04,
            ..Shape::default()
        },
        "run-queue delay",
        Pass,
    );
    check(
        Shape {
            run_queue: 0.1,
            ..Shape::default()
        },
        "run-queue delay",
        Warn,
    );
    check(
        Shape {
            run_queue: 0.3,
            ..Shape::default()
        },
        "run-queue delay",
        Invalid,
    );
}

#[test]
fn generator_cpu_only_warns() {
    check(
        Shape {
            cpu_max: 0.7,
            ..Shape::default()
        },
        "generator CPU",
        Pass,
    );
    let trial = check(
        Shape {
            cpu_max: 0.95,
            ..Shape::default()
        },
        "generator CPU",
        Warn,
    );
    assert_eq!(trial.verdict, Verdict::Valid);
}

#[test]
fn mix_of_steps() {
    check(Shape::default(), "mix of steps", Pass);
    check(
        Shape {
            first_step: 0.7,
            ..Shape::default()
        },
        "mix of steps",
        Invalid,
    );
    let slow = Shape {
        first_step: 1.3,
        delivered: 0.7,
        response_us: 500_000,
        ..Shape::default()
    };
    check(slow, "mix of steps", Warn);
}

#[test]
fn gaps_and_lengths() {
    check(Shape::default(), "clock and windows", Pass);
    check(
        Shape {
            gap: true,
            ..Shape::default()
        },
        "clock and windows",
        Invalid,
    );
    check(
        Shape {
            elapsed: 1.01,
            ..Shape::default()
        },
        "clock and windows",
        Pass,
    );
    check(
        Shape {
            elapsed: 1.05,
            ..Shape::default()
        },
        "clock and windows",
        Invalid,
    );
}

#[test]
fn counts_and_histograms_must_agree() {
    check(Shape::default(), "records agree", Pass);
    check(
        Shape {
            loses_histograms: true,
            ..Shape::default()
        },
        "records agree",
        Invalid,
    );
}

#[test]
fn missing_counters_only_warn() {
    check(Shape::default(), "counters", Pass);
    let trial = check(
        Shape {
            monitored: false,
            ..Shape::default()
        },
        "counters",
        Warn,
    );
    assert_eq!(trial.verdict, Verdict::Valid);
    assert_eq!(trial.host["cpu_percent"], None);
}

#[test]
fn without_a_steady_state_nothing_is_cut() {
    let climbing = check(
        Shape {
            climbs: true,
            ..Shape::default()
        },
        "steady state",
        Warn,
    );
    assert!(climbing.warmup_cut_ms.abs() < f64::EPSILON);
    assert_eq!(climbing.verdict, Verdict::Valid);
}

#[test]
fn a_short_hold_has_no_steady_state_to_judge() {
    let made = Made {
        overrides: vec![("load.hold".to_owned(), "100ms".to_owned())],
        shapes: vec![Shape::default()],
        ..Made::default()
    };
    let trial = made.trials().remove(0);
    let steady = trial.checks.iter().find(|c| c.id.title() == "steady state");
    let steady = steady.unwrap();
    assert_eq!(steady.outcome, NotJudged, "{steady:?}");
    let tail = trial
        .checks
        .iter()
        .find(|c| c.id.title() == "tail sample")
        .unwrap();
    assert_eq!(tail.outcome, Warn, "{tail:?}");
}

#[test]
fn errors_are_data() {
    check(Shape::default(), "errors", Pass);
    let trial = check(
        Shape {
            fails_every: 2,
            ..Shape::default()
        },
        "errors",
        Warn,
    );
    assert_eq!(trial.verdict, Verdict::Valid);
    assert!(trial.errors > 0 && trial.errors.abs_diff(trial.transactions) < 10);
    assert!(trial.thresholds.iter().any(|threshold| !threshold.holds));
    check(
        Shape {
            setup_errors: 1,
            ..Shape::default()
        },
        "setup",
        Warn,
    );
}

#[test]
fn skipped_steps_are_missing_load() {
    let skips = |skips_every| Shape {
        skips_every,
        ..Shape::default()
    };
    check(skips(1000), "skipped steps", Pass);
    let trial = check(skips(150), "skipped steps", Warn);
    assert_eq!(trial.verdict, Verdict::Valid, "{:#?}", trial.checks);
    // Every fifth step sends nothing, and a slow server is no excuse.
    for response_us in [4_000, 500_000] {
        let shape = Shape {
            response_us,
            ..skips(5)
        };
        let trial = check(shape, "delivered load", Invalid);
        for name in ["delivered load", "requests"] {
            let found = trial.checks.iter().find(|c| c.id.title() == name).unwrap();
            assert_eq!(found.outcome, Invalid, "{found:?}");
            let advice = found.advice.as_ref().unwrap();
            assert!(advice.contains("Captures found nothing"), "{found:?}");
        }
    }
}

#[test]
fn requests_that_failures_cost_are_no_missing_load() {
    let shape = Shape {
        skips_every: 5,
        skips_after_failures: true,
        ..Shape::default()
    };
    let trial = check(shape.clone(), "delivered load", Pass);
    assert_eq!(trial.verdict, Verdict::Valid, "{:#?}", trial.checks);
    for name in ["delivered load", "requests"] {
        let found = trial.checks.iter().find(|c| c.id.title() == name).unwrap();
        assert_eq!(found.outcome, Pass, "{found:?}");
        let told = "requests were not reached, after failures";
        assert!(found.evidence.contains(told), "{found:?}");
    }
    // Any other missing load counts.
    let short = Shape {
        delivered: 0.8,
        ..shape
    };
    check(short, "delivered load", Invalid);
}

#[test]
fn load_delayed_out_of_the_ramp_is_no_fault_of_the_generator() {
    let delayed = Shape {
        delayed: 0.4,
        ..Shape::default()
    };
    let trial = check(delayed.clone(), "delivered load", Warn);
    assert_eq!(trial.verdict, Verdict::Valid);
    assert!(trial.delivered_per_s > trial.offered_per_s);
    // An excess in the whole trial counts.
    let more = Shape {
        delivered: 1.03,
        ..delayed
    };
    check(more, "delivered load", Invalid);
}

#[test]
fn requests_that_the_ramp_lacks_are_judged_by_the_ramps_answers() {
    // Half of the ramp's requests are missing, because they took some seconds; the hold is quick.
    let slow_ramp = Shape {
        ramp: (0.5, 1_200_000),
        ..Shape::default()
    };
    let trial = check(slow_ramp, "requests", Warn);
    assert_eq!(trial.verdict, Verdict::Valid, "{:#?}", trial.checks);
    let lost = Shape {
        ramp: (0.5, 0),
        ..Shape::default()
    };
    check(lost, "requests", Invalid);
}

#[test]
fn stale_connections_are_told_of() {
    let stale = |stale_retries| Shape {
        stale_retries,
        ..Shape::default()
    };
    let trial = check(stale(1), "errors", Pass);
    assert_eq!(trial.stale_retries, 1);
    let errors = trial
        .checks
        .iter()
        .find(|c| c.id.title() == "errors")
        .unwrap();
    assert!(errors.evidence.ends_with("; 1 sent again"));
    check(stale(50), "errors", Warn);
}

#[test]
fn a_trial_without_a_transaction_is_no_measurement() {
    let trial = check(
        Shape {
            empty: true,
            ..Shape::default()
        },
        "delivered load",
        Invalid,
    );
    assert_eq!((trial.transactions, trial.throughput_per_s), (0, None));
    assert_eq!(trial.response_ms.mean, None);
    assert!(
        trial.thresholds.iter().all(|threshold| !threshold.holds),
        "an empty metric fails"
    );
    // Windows, but nothing in them.
    let silent = check(
        Shape {
            delivered: 0.0,
            ..Shape::default()
        },
        "delivered load",
        Invalid,
    );
    assert_eq!(silent.throughput_per_s, Some(0.0));
}
