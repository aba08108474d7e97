//! Texts for people, word for word; and checks that no input can act on a page or a terminal.

use std::sync::LazyLock;

use crate::support::{Made, Shape};
use lab_report::write::{gitlab, html, json, markdown, steps_csv, terminal};
use proptest::prelude::*;

/// One healthy trial, and an invalid one.
fn mixed() -> Made {
    let mut made = Made::default();
    made.shapes[1] = Shape {
        delivered: 0.8,
        fails_every: 40,
        ..Shape::default()
    };
    made
}

#[test]
fn terminal_of_a_run_with_an_invalid_trial() {
    let analysis = Made {
        speed: 2.0,
        ..mixed()
    }
    .analysis();
    insta::assert_snapshot!(terminal(&analysis, 80));
}

#[test]
fn what_is_wrong_for_gitlab() {
    let slow = Shape {
        response_us: 400_000,
        ..Shape::default()
    };
    let mut made = mixed();
    made.shapes[0] = slow;
    let text = gitlab(&made.analysis(), "studies/load.study.yaml").unwrap();
    insta::assert_snapshot!(text);
    let fine = gitlab(&Made::default().analysis(), "x").unwrap();
    assert!(!fine.contains("critical"), "{fine}");
    // GitLab recognises new findings by the fingerprints: each is there once, and has no figure.
    let findings: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let of = |one: &serde_json::Value| one["fingerprint"].as_str().unwrap().to_owned();
    let prints: std::collections::BTreeSet<String> = findings.iter().map(of).collect();
    assert_eq!(prints.len(), findings.len());
    assert!(findings.iter().all(|one| !of(one).contains(" ms")));
}

#[test]
fn terminal_keeps_its_width() {
    for width in [60, 80, 120] {
        let text = terminal(&mixed().analysis(), width);
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= width, "{widest} of {width}:\n{text}");
    }
}

#[test]
fn an_invalid_trial_is_invalid_everywhere() {
    let analysis = mixed().analysis();
    assert!(terminal(&analysis, 80).contains("INVALID"));
    assert!(markdown(&analysis).contains("INVALID"));
    assert!(steps_csv(&analysis).contains(",invalid,"));
    assert!(
        json(&analysis)
            .unwrap()
            .contains("\"verdict\": \"invalid\"")
    );
    let page = html(&analysis);
    assert!(page.contains("<tr class=\"invalid\">") && page.contains("✕ 1 trial invalid"));
}

#[test]
fn the_page_is_one_small_file_that_loads_nothing() {
    let page = html(&Made::default().analysis());
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    for outside in ["http://", "https://", "src=", "url(", "@import", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.contains("prefers-color-scheme:dark"));
    assert!(page.matches("<svg class=\"chart\"").count() >= 10);
    assert!(!page.contains("#0102"), "a marker colour is left");
}

#[test]
fn the_page_of_many_trials_stays_small() {
    let mut analysis = mixed().analysis();
    let trials = analysis.trials.clone();
    analysis.trials = trials.into_iter().cycle().take(400).collect();
    let page = html(&analysis);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    assert!(page.contains("This page shows 300 of 400 trials"));
}

const SCRIPT: &str = "<script>alert(1)</script>\"'><img onerror=x>`|\u{1b}[2J";

/// An analysis with `text` in every field from a run or a file.
fn hostile(text: &str) -> lab_analysis::Analysis {
    static PLAIN: LazyLock<lab_analysis::Analysis> = LazyLock::new(|| {
        let shape = Shape {
            fails_every: 9,
            ..Shape::default()
        };
        let shapes = vec![shape.clone(), shape];
        Made {
            shapes,
            ..Made::default()
        }
        .analysis()
    });
    let mut analysis = PLAIN.clone();
    for trial in &mut analysis.trials {
        trial.notes = vec![text.to_owned()];
        trial.error_examples[0].detail = text.to_owned();
        trial.error_examples[0].step = text.to_owned();
        trial.started = text.to_owned();
        trial.system_failure = Some(text.to_owned());
    }
    analysis.environment.cpu = text.to_owned();
    analysis.environment.os = text.to_owned();
    analysis.study.started = text.to_owned();
    analysis.study.title = text.to_owned();
    analysis.study.name = text.to_owned();
    analysis.study.about = text.to_owned();
    analysis.study.steps[0] = text.to_owned();
    analysis.headline = text.to_owned();
    analysis.findings = vec![text.to_owned()];
    analysis.cells[0].label = text.to_owned();
    analysis.cells[0].steps[0].name = text.to_owned();
    analysis.trials[0].label = text.to_owned();
    analysis.trials[0].checks[0].evidence = text.to_owned();
    analysis.trials[0].thresholds[0].text = text.to_owned();
    analysis.comparisons[0].a = text.to_owned();
    analysis.comparisons[0].b = text.to_owned();
    analysis.comparisons[0].reason = Some(text.to_owned());
    analysis.published[0].file = text.to_owned();
    analysis.published[0].source = vec![text.to_owned()];
    analysis.published[0].entries[0].published_text = text.to_owned();
    analysis.published[0].entries[0].published = None;
    analysis.published[0].entries[1].note = Some(text.to_owned());
    analysis
}

fn tags(page: &str) -> usize {
    page.matches('<').count()
}

#[test]
fn a_script_in_the_input_stays_text() {
    let analysis = hostile(SCRIPT);
    let page = html(&analysis);
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
    assert!(!page.contains("<img"));
    assert!(page.contains("&lt;script&gt;alert(1)"));
    let text = terminal(&analysis, 80);
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(!markdown(&analysis).contains("<script"));
    assert!(!markdown(&analysis).contains('\u{1b}'));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_input_adds_a_tag_or_steers_a_terminal(text in "[ -~\\t\u{1b}\u{202e}äß…]{1,60}") {
        let harmless: String = text.chars().map(|_| 'x').collect();
        let page = html(&hostile(&text));
        prop_assert_eq!(tags(&page), tags(&html(&hostile(&harmless))));
        let printed = terminal(&hostile(&text), 80);
        prop_assert!(!printed.chars().any(|c| c.is_control() && c != '\n'));
        let turned = printed.contains('\u{202e}');
        prop_assert!(!turned);
    }
}

#[test]
fn the_list_of_checks_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/checks.md");
    let text = lab_report::write::checks_markdown();
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let on_disk = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        on_disk == text,
        "docs/checks.md is out of date: run the tests with UPDATE_SCHEMAS=1"
    );
}
