//! The end of a search: its headline, its badge, and its result, computed from the trials if the archive doesn't record
//! the end.

use crate::support::{Made, STUDY, Shape};
use lab_analysis::model::Outcome;
use lab_archive::{Clocks, OtherProgram, PreparationCause, TrialEnd, TrialEnvironment};
use lab_plan::HowEnded;
use lab_report::write::{json, junit, terminal};

/// A trial at a level.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trial {
    Held,
    Missed,
    /// Other programs used the CPU; whether the limit still held.
    Disturbed(bool),
    /// The users could not be registered.
    Unprepared,
    /// The system died under its load.
    Died,
}
use Trial::{Died, Disturbed, Held, Missed, Unprepared};

fn shape(trial: Trial) -> Shape {
    let response_us = match trial {
        Held | Disturbed(true) => 10_000,
        _ => 60_000,
    };
    let circumstances = match trial {
        Disturbed(_) => TrialEnvironment {
            clocks: Some(Clocks {
                monotonic_ms: 30_000.0,
                wall_start_ms: 0,
                wall_end_ms: 30_000,
            }),
            others_during: vec![OtherProgram {
                name: "rustc".to_owned(),
                cpu_percent: 90.0,
            }],
            ..TrialEnvironment::default()
        },
        _ => TrialEnvironment::default(),
    };
    let end = match trial {
        Unprepared => TrialEnd::PreparationFailed {
            message: "users were not provisioned: POST /users: status 503 (full)".to_owned(),
            cause: PreparationCause::System,
        },
        Died => TrialEnd::SystemFailed {
            message: "the system was ended by signal 9".to_owned(),
        },
        _ => TrialEnd::Complete,
    };
    Shape {
        response_us,
        circumstances,
        empty: trial == Unprepared,
        end,
        ..Shape::default()
    }
}

fn search(tried: &[(u32, Trial)]) -> Made {
    let study = STUDY
        .replace("matrix: { users: [100, 200] }\n", "")
        .replace("users: \"{{ users }}\", ", "")
        .replace("published: [load.csv, steps.csv]\n", "")
        .replace(
            "thresholds:\n  response_time: [\"p(95) < 300ms\"]\n  error_rate: [\"rate < 1%\"]\n",
            "find:\n  users: { min: 50, max: 200 }\n  trials: 2\n  resolution: 20%\n  subject_to:\n    \
             response_time: [\"p(95) < 100ms\"]\n",
        );
    Made {
        study,
        shapes: tried.iter().map(|(_, trial)| shape(*trial)).collect(),
        searched: tried.iter().map(|(users, _)| (0, *users)).collect(),
        ended: None,
        ..Made::default()
    }
}

struct Row {
    what: &'static str,
    tried: Vec<(u32, Trial)>,
    how: HowEnded,
    outcome: Outcome,
    headline: &'static str,
}

fn table() -> Vec<Row> {
    let row = |what, tried: &[(u32, Trial)], how, outcome, headline| Row {
        what,
        tried: tried.to_vec(),
        how,
        outcome,
        headline,
    };
    let lost = Disturbed(false);
    let noisy = Disturbed(true);
    vec![
        row(
            "a line",
            &[
                (50, Held),
                (100, Held),
                (200, Missed),
                (150, Missed),
                (125, Missed),
                (112, Held),
                (112, Held),
                (125, Missed),
            ],
            HowEnded::Finished,
            Outcome::Ok,
            "Half of the trials hold up to the load line, 112 users",
        ),
        row(
            "no level is carried",
            &[(50, Missed), (50, Missed)],
            HowEnded::Finished,
            Outcome::Ok,
            "fewer than 50 users, the fewest tried",
        ),
        row(
            "all levels are carried",
            &[(50, Held), (100, Held), (200, Held), (200, Held)],
            HowEnded::Finished,
            Outcome::Ok,
            "≥ 200 users: the study asks for no more",
        ),
        row(
            "disturbed between two levels",
            &[
                (50, Held),
                (100, Held),
                (200, Missed),
                (150, lost),
                (150, lost),
                (150, lost),
                (150, lost),
            ],
            HowEnded::Disturbed,
            Outcome::SearchNotFinished,
            "The search was not finished: disturbed at 150 users; the line lies between 100 and 200 users \
             so far.",
        ),
        row(
            "disturbed from the first trial on",
            &[(50, lost), (50, lost), (50, lost), (50, lost)],
            HowEnded::Disturbed,
            Outcome::TooFewValidTrials,
            "Not a measurement: other programs (rustc)",
        ),
        row(
            "disturbed, and held all the same",
            &[
                (50, noisy),
                (50, noisy),
                (50, noisy),
                (50, noisy),
                (100, noisy),
                (200, lost),
            ],
            HowEnded::Interrupted,
            Outcome::TooFewValidTrials,
            "The search was not finished: interrupted at 200 users; ≥ 100 users (1 of 1 disturbed trial \
             held, which is no measurement). Not a measurement: other programs (rustc)",
        ),
        row(
            "ended from outside",
            &[(50, Held), (100, Held)],
            HowEnded::Interrupted,
            Outcome::SearchNotFinished,
            "The search was not finished: interrupted at 100 users; the line lies at 100 users or above.",
        ),
        row(
            "a preparation that fails with many users",
            &[(50, Held), (100, Unprepared), (100, Unprepared)],
            HowEnded::PreparationFailed,
            Outcome::PreparationFailed,
            "The preparation failed at 100 users, in 2 of 3 trials: users were not provisioned: POST /users: \
             status 503 (full). The search was not finished: the preparation failed at 100 users; the line \
             lies at 50 users or above.",
        ),
        row(
            "a preparation that always fails",
            &[(50, Unprepared), (50, Unprepared)],
            HowEnded::PreparationFailed,
            Outcome::PreparationFailed,
            "The preparation failed at 50 users, in all 2 trials: users were not provisioned",
        ),
        row(
            "a preparation that failed once",
            &[
                (50, Held),
                (100, Unprepared),
                (100, Held),
                (200, Held),
                (200, Held),
            ],
            HowEnded::Finished,
            Outcome::Ok,
            "≥ 200 users: the study asks for no more",
        ),
        row(
            "a system that always dies",
            &[(50, Died), (50, Died)],
            HowEnded::SystemFailed,
            Outcome::SystemFailed,
            "The system under test failed at 50 users, in all 2 trials: the system was ended by signal 9.",
        ),
    ]
}

/// A run for each way in which a search ends.
pub(crate) fn made() -> Vec<Made> {
    table().iter().map(|row| search(&row.tried)).collect()
}

#[test]
fn every_end_of_a_search_is_in_its_headline_and_its_result() {
    for Row {
        what,
        tried,
        how,
        outcome,
        headline,
    } in table()
    {
        let analysis = search(&tried).analysis();
        let line = analysis.load_line.as_ref().unwrap();
        assert_eq!(line.search.how, how, "{what}");
        assert_eq!(
            line.search.users,
            tried.last().map(|(users, _)| *users),
            "{what}"
        );
        assert_eq!(line.finished, how == HowEnded::Finished, "{what}");
        assert_eq!(analysis.summary.outcome, outcome, "{what}");
        assert!(
            analysis.headline.contains(headline),
            "{what}: {}",
            analysis.headline
        );
        let text = terminal(&analysis, 80);
        let is_valid = text.contains("A valid measurement");
        assert_eq!(is_valid, outcome == Outcome::Ok, "{what}:\n{text}");
        let result: serde_json::Value = serde_json::from_str(&json(&analysis).unwrap()).unwrap();
        let how = serde_json::to_value(how).unwrap();
        assert_eq!(result["load_line"]["search"]["how"], how, "{what}");
        let is_broken = junit(&analysis).contains("not finished: ");
        assert_eq!(is_broken, !line.finished, "{what}");
    }
}

#[test]
fn the_archive_says_how_a_search_ended() {
    let mut made = search(&[(50, Held), (100, Held), (200, Held), (200, Held)]);
    made.ended = Some(HowEnded::Interrupted);
    let analysis = made.analysis();
    assert_eq!(analysis.summary.outcome, Outcome::SearchNotFinished);
    assert!(!analysis.load_line.unwrap().finished);
}

#[test]
fn what_held_in_spite_of_noise_has_response_times_and_no_verdict() {
    let tried = [(50, Disturbed(true)); 4];
    let analysis = search(&tried).analysis();
    let line = analysis.load_line.as_ref().unwrap();
    assert_eq!((line.users, line.low, line.high), (None, None, None));
    let bound = line.lower_bound.unwrap();
    assert_eq!((bound.users, bound.held, bound.trials), (50, 4, 4));
    assert!(!bound.measured);
    let seen = &analysis.seen[0];
    let p95 = seen.p95_response_ms.unwrap();
    assert!(p95.least > 10.0 && p95.most < 100.0, "{p95:?}");
    let text = terminal(&analysis, 80);
    assert!(text.contains("4 of them held all the same"), "{text}");
    assert!(text.contains("p95 ms"), "{text}");
}

#[test]
fn a_failed_preparation_is_no_failure_of_the_system() {
    let mut made = Made::default();
    made.shapes[1] = shape(Unprepared);
    let analysis = made.analysis();
    assert_eq!(analysis.summary.outcome, Outcome::PreparationFailed);
    let summary = &analysis.summary;
    assert_eq!(
        (summary.system_failures, summary.preparation_failures),
        (0, 1)
    );
    assert_eq!(analysis.trials[1].checks[0].id.title(), "preparation");
    assert!(analysis.trials[1].system_failure.is_none());
    // A successful repeat is valid, and only its line remains of the failure.
    made.shapes.push(Shape {
        attempt_of: Some(2),
        ..Shape::default()
    });
    let analysis = made.analysis();
    assert_ne!(analysis.summary.outcome, Outcome::PreparationFailed);
    assert_eq!(analysis.summary.preparation_failures, 0);
}
