//! Loads without users: sessions that arrive, and sessions one after the other.

use crate::support::{Made, STUDY, Shape, WORKLOAD};
use lab_analysis::model::{CheckOutcome, TrialAnalysis};
use lab_report::write::{html, terminal};

use CheckOutcome::{Invalid, Pass, Warn};

fn made(load: &str, shape: Shape) -> Made {
    let load_line = STUDY
        .lines()
        .find(|line| line.starts_with("load:"))
        .unwrap();
    Made {
        study: STUDY
            .replace("matrix: { users: [100, 200] }\n", "")
            .replace("published: [load.csv, steps.csv]\n", "")
            .replace(load_line, load),
        workload: WORKLOAD.replace("  pace: 6s\n", ""),
        shapes: vec![shape],
        ..Made::default()
    }
}

const POISSON: &str = "load: { arrival: { rate: 40/s, connections: 300 }, ramp: 6s, hold: 24s }";
const EVEN: &str =
    "load: { arrival: { rate: 40/s, spacing: constant, connections: 300 }, ramp: 6s, hold: 24s }";
const SEQUENCE: &str = "load: { sequence: { sessions: 40 }, hold: 24s }";

fn check(load: &str, shape: Shape, name: &str, outcome: CheckOutcome) -> TrialAnalysis {
    let trial = made(load, shape).analysis().trials.remove(0);
    let found = trial.checks.iter().find(|check| check.id.title() == name);
    let found = found.unwrap_or_else(|| panic!("no check {name}: {:#?}", trial.checks));
    assert_eq!(found.outcome, outcome, "{found:#?}");
    trial
}

fn began(part: f64) -> Shape {
    Shape {
        began: part,
        ..Shape::default()
    }
}

#[test]
fn arrivals_against_the_plan() {
    for load in [POISSON, EVEN] {
        check(load, began(1.0), "arrivals", Pass);
        // The plan draws the same arrivals, so a few missing ones are significant.
        check(load, began(0.97), "arrivals", Invalid);
        check(load, began(1.03), "arrivals", Invalid);
    }
}

#[test]
fn sessions_turned_away_warn_and_say_so() {
    let shape = Shape {
        turned_away: 7,
        ..Shape::default()
    };
    let trial = check(POISSON, shape, "arrivals", Warn);
    let found = trial
        .checks
        .iter()
        .find(|check| check.id.title() == "arrivals");
    let found = found.unwrap();
    assert!(found.evidence.contains("7 turned away"), "{found:?}");
    assert!(found.advice.as_ref().unwrap().contains("`connections`"));
}

#[test]
fn service_stands_beside_response() {
    let shape = Shape {
        service: Some(0.25),
        ..Shape::default()
    };
    let analysis = made(POISSON, shape).analysis();
    let text = terminal(&analysis, 80);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let row = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no {name}: {text}"));
        line.split_whitespace().last().unwrap().parse().unwrap()
    };
    let (response, service) = (row("mean response, ms"), row("service mean, ms"));
    assert!(
        (service / response - 0.25).abs() < 0.02,
        "{response} {service}"
    );
    let page = html(&analysis);
    assert!(page.contains("service mean"));
    // Users who wait for their responses have one time only.
    let users = terminal(&Made::default().analysis(), 80);
    assert!(!users.contains("service mean"), "{users}");
}

#[test]
fn a_sequence_comes_to_its_end() {
    check(SEQUENCE, began(1.0), "sequence", Pass);
    let trial = check(SEQUENCE, began(0.9), "sequence", Invalid);
    let found = trial
        .checks
        .iter()
        .find(|check| check.id.title() == "sequence");
    assert!(found.unwrap().evidence.contains("36 of 40 sessions begun"));
    let unanswered = Shape {
        unanswered: Some((1, 30.0)),
        ..Shape::default()
    };
    check(SEQUENCE, unanswered, "sequence", Invalid);
}
