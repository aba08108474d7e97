//! The shipped calendar study: it loads, and its plan matches the published report.

use std::path::{Path, PathBuf};

use lab_study::plan::{PlanOptions, plan};
use lab_study::{Files, Loaded, load_study};
use lab_workload::Wait;
use lab_workload::{User, UserScope};

struct Repository(PathBuf);

impl Files for Repository {
    fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error> {
        std::fs::read(self.0.join(path))
    }
}

fn calendar(overrides: &[(&str, &str)]) -> Loaded {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let overrides: Vec<(String, String)> = overrides
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    load_study("studies/calendar.study.yaml", &Repository(root), &overrides)
        .unwrap_or_else(|error| panic!("{error}: {:?}", error.problems()))
}

#[test]
fn the_files_it_was_made_of_come_along() {
    let names: Vec<String> = calendar(&[])
        .files
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let expected = [
        "study.yaml",
        "workload.yaml",
        "domino-calendar-load.csv",
        "domino-calendar-steps.csv",
    ];
    assert_eq!(names, expected);
}

#[test]
fn a_cycle_is_the_published_one() {
    let loaded = calendar(&[]);
    let steps = &loaded.study.workload.session.steps;
    let requests: usize = steps.iter().map(|s| s.requests.len()).sum();
    assert_eq!((steps.len(), requests), (20, 21));
    // The means of the report's wait ranges sum to 590 s.
    let waits: f64 = steps.iter().map(|s| s.wait.mean().as_secs_f64()).sum();
    assert_eq!(waits, 590.0);
    assert!(steps.iter().all(|s| matches!(s.wait, Wait::Uniform(..))));
    // Each published step is found by its name.
    let published = &loaded.study.published[1];
    let rows = published
        .text
        .lines()
        .filter(|l| !l.starts_with('#'))
        .skip(1);
    for name in rows.filter_map(|line| line.split(',').next()) {
        assert!(steps.iter().any(|s| s.name == name), "{name}");
    }
}

#[test]
fn the_plan_comes_to_the_published_transactions() {
    let study = calendar(&[]).study;
    let plan = plan(&study, &PlanOptions::default()).unwrap();
    let summary: Vec<String> = plan
        .trials
        .iter()
        .map(|t| {
            let p = t.prediction.as_ref().unwrap();
            assert!(p.exact);
            // 21 requests × 4.5 cycles per user, within the 3 % that a study may differ.
            let published = f64::from(t.load.users) * 94.5;
            assert!((p.transactions / published - 1.0).abs() < 0.03, "{p:?}");
            format!(
                "{} {} users: {:.0} transactions, {:.0} in the hold, {:.1}/s",
                t.id, t.load.users, p.transactions, p.hold_transactions, p.offered_per_s
            )
        })
        .collect();
    insta::assert_snapshot!(summary.join("\n"), @r"
    1 1000 users: 95636 transactions, 84004 in the hold, 29.2/s
    2 2000 users: 191342 transactions, 168053 in the hold, 58.4/s
    3 3000 users: 287032 transactions, 252153 in the hold, 87.6/s
    ");
}

#[test]
fn speed_keeps_the_transactions_and_divides_the_times() {
    let study = calendar(&[]).study;
    let slow = plan(&study, &PlanOptions::default()).unwrap();
    let fast = plan(
        &study,
        &PlanOptions {
            speed: 60.0,
            seed: None,
        },
    )
    .unwrap();
    let (slow, fast) = (&slow.trials[0], &fast.trials[0]);
    assert_eq!(
        (fast.load.ramp_ms, fast.load.hold_ms, fast.load.window_ms),
        (12_000, 48_000, 192)
    );
    let (a, b) = (
        slow.prediction.as_ref().unwrap(),
        fast.prediction.as_ref().unwrap(),
    );
    assert!(
        (a.transactions / b.transactions - 1.0).abs() < 1e-3,
        "{a:?} {b:?}"
    );
    let (wait_a, wait_b) = (a.steps[2].mean_wait_ms, b.steps[2].mean_wait_ms);
    assert!(
        (wait_a / wait_b / 60.0 - 1.0).abs() < 1e-3,
        "{wait_a} {wait_b}"
    );
}

#[test]
fn overrides_change_the_study_and_nothing_else() {
    let loaded = calendar(&[
        ("matrix.users", "[10, 20]"),
        ("load.ramp", "1s"),
        ("trials", "2"),
    ]);
    let plan = plan(&loaded.study, &PlanOptions::default()).unwrap();
    let users: Vec<u32> = plan.trials.iter().map(|t| t.load.users).collect();
    assert_eq!(users, [10, 20, 10, 20]);
    assert_eq!(plan.trials[0].load.ramp_ms, 1000);
    assert_eq!(loaded.files[0].1, calendar(&[]).files[0].1);
}

#[test]
fn requests_render_as_the_service_wants_them() {
    let study = calendar(&[]).study;
    let workload = &study.workload;
    let user = User {
        index: 7,
        users: 1000,
        first: 0,
        seed: 1,
        block: 0,
        base_date: study.dates_from,
    };
    let extra = [("password".to_owned(), "a b&c".to_owned())];
    let mut scope = workload.scope(user, &extra).unwrap();
    for name in ["invitations", "events"] {
        let list: Vec<String> = (0..8)
            .map(|i| format!("/mail/user00007/api/calendar/{name}/{i}"))
            .collect();
        scope.set_list(workload.slot(name).unwrap(), &list);
    }
    for name in ["invitation", "event"] {
        scope.set_text(
            workload.slot(name).unwrap(),
            &format!("/mail/user00007/{name}"),
        );
    }
    let mut out = String::new();
    for step in &workload.session.steps {
        for request in &step.requests {
            out.push_str(&format!("{}: {} ", step.name, request.method));
            render(request, &mut scope, &mut out);
            for name in ["invitation", "event"] {
                scope.set_text(
                    workload.slot(name).unwrap(),
                    &format!("/mail/user00007/{name}"),
                );
            }
        }
    }
    insta::assert_snapshot!(out);
}

fn render(request: &lab_workload::Request, scope: &mut UserScope, out: &mut String) {
    use lab_workload::{Body, CaptureSource};
    request.target.render(scope, out).unwrap();
    out.push('\n');
    match &request.body {
        Body::Empty => {}
        Body::Json(template) => {
            let mut json = String::new();
            template.render(scope, &mut json).unwrap();
            let json: serde_json::Value = serde_json::from_str(&json).expect(&json);
            out.push_str(&format!("  {json}\n"));
        }
        Body::Form(fields) => {
            for (name, value) in fields {
                out.push_str(&format!("  {name}="));
                value.render(scope, out).unwrap();
                out.push('\n');
            }
        }
        Body::Text(template) => template.render(scope, out).unwrap(),
        Body::Pieces(_) => panic!("no file is uploaded"),
    }
    for capture in &request.captures {
        if let CaptureSource::JsonPathTemplate(template) = &capture.source {
            out.push_str("  capture ");
            template.render(scope, out).unwrap();
            out.push('\n');
        }
    }
}

#[test]
fn a_user_stays_small() {
    let study = calendar(&[]).study;
    let workload = &study.workload;
    let user = User {
        index: 0,
        users: 15_000,
        first: 0,
        seed: 1,
        block: 0,
        base_date: study.dates_from,
    };
    let mut scope = workload
        .scope(user, &[("password".to_owned(), "p".repeat(22))])
        .unwrap();
    let href = |what: &str, i: u32| {
        format!("/mail/user00000/api/calendar/{what}/5f2c9a1e-7b7d-4c55-9a55-{i:012}")
    };
    let invitations: Vec<String> = (0..8).map(|i| href("notices", i)).collect();
    let events: Vec<String> = (0..25).map(|i| href("events", i)).collect();
    scope.set_list(workload.slot("invitations").unwrap(), &invitations);
    scope.set_list(workload.slot("events").unwrap(), &events);
    scope.set_text(workload.slot("invitation").unwrap(), &invitations[0]);
    scope.set_text(workload.slot("event").unwrap(), &events[0]);
    assert!(scope.size_bytes() <= 2048, "{} bytes", scope.size_bytes());
}
