//! Five made-up archives in every format that people and programs read, word for word: users at two
//! levels, two factors with verdicts, a search, a sequence, and arrivals.
//!
//! Nothing in these texts depends on the machine: the archives are made up in every number. Numbers of
//! `result.json` and of drawings are rounded to what survives another libm.

use crate::support::{Made, STUDY, Shape, WORKLOAD};
use lab_analysis::Analysis;
use lab_report::bench;
use lab_report::write::{comparisons_csv, html, json, junit, markdown, steps_csv, terminal};

/// One healthy level, and one that failed requests, skipped steps, and came late.
fn calendar() -> Made {
    let mut made = Made::default();
    made.shapes[1] = Shape {
        delivered: 0.9,
        fails_every: 40,
        skips_every: 25,
        late_few: (12, 30_000),
        overruns: 1,
        response_us: 60_000,
        ..Shape::default()
    };
    made
}

/// Two factors in six blocks: eight threads are a fifth slower, twice the users 3.6 times.
fn factors() -> Made {
    let study = "\
study: tiny
title: Threads and users
workload: tiny
matrix: { http_threads: [2, 8], users: [20, 40] }
system: { groupware: { http_threads: \"{{ http_threads }}\" } }
load: { users: \"{{ users }}\", ramp: 6s, hold: 4 cycles }
order: listed
trials: 6
";
    let shapes = (0..24_usize).map(|at| {
        let shared = 1.0 + 0.05 * ((at / 4) % 3) as f64;
        let single = 1.0 + 0.01 * ((at * 7919 % 13) as f64 / 6.0 - 1.0);
        let threads = if at % 4 >= 2 { 1.2 } else { 1.0 };
        let users = if at % 2 == 1 { 3.6 } else { 1.0 };
        Shape {
            response_us: (20_000.0 * shared * single * threads * users) as u64,
            ..Shape::default()
        }
    });
    Made {
        study: study.to_owned(),
        shapes: shapes.collect(),
        ..Made::default()
    }
}

/// A search that closes in on 128 users; beyond 130 the server is too slow.
fn search() -> Made {
    let tried = [
        50, 100, 200, 150, 125, 137, 131, 128, 131, 128, 131, 128, 131, 128, 131, 128,
    ];
    let shape = |users: u32| Shape {
        response_us: if users <= 130 { 10_000 } else { 60_000 },
        ..Shape::default()
    };
    let study = STUDY
        .replace("matrix: { users: [100, 200] }\n", "")
        .replace("users: \"{{ users }}\", ", "")
        .replace("published: [load.csv, steps.csv]\n", "")
        .replace(
            "thresholds:\n  response_time: [\"p(95) < 300ms\"]\n  error_rate: [\"rate < 1%\"]\n",
            "find:\n  users: { min: 50, max: 400 }\n  subject_to:\n    response_time: [\"p(95) < 100ms\"]\n",
        );
    Made {
        study,
        shapes: tried.iter().map(|users| shape(*users)).collect(),
        searched: tried.iter().map(|users| (0, *users)).collect(),
        ..Made::default()
    }
}

/// The study without its levels, under another load and without a cycle.
fn without_users(load: &str, shape: Shape) -> Made {
    let users = STUDY.lines().find(|line| line.starts_with("load:"));
    Made {
        study: STUDY
            .replace("matrix: { users: [100, 200] }\n", "")
            .replace("published: [load.csv, steps.csv]\n", "")
            .replace(users.expect("the study has a load"), load),
        workload: WORKLOAD.replace("  pace: 6s\n", ""),
        shapes: vec![shape],
        ..Made::default()
    }
}

fn sequence() -> Made {
    without_users(
        "load: { sequence: { sessions: 40 }, hold: 24s }",
        Shape::default(),
    )
}

fn arrivals() -> Made {
    without_users(
        "load: { arrival: { rate: 40/s, connections: 300 }, ramp: 6s, hold: 24s }",
        Shape {
            service: Some(0.25),
            turned_away: 7,
            ..Shape::default()
        },
    )
}

/// Each number with more than ten significant digits, rounded to ten.
fn rounded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, number) = rest.split_at(at);
        let end = number.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, after) = number.split_at(end.unwrap_or(number.len()));
        out.push_str(before);
        let digits = number.trim_start_matches(['0', '.']).len();
        match number.parse::<f64>() {
            Ok(value) if number.contains('.') && digits > 10 => {
                let scaled = format!("{value:.9e}").parse::<f64>();
                out.push_str(&scaled.expect("a number").to_string());
            }
            _ => out.push_str(number),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// One snapshot per format. What has a part per trial shows the first two of many: the others look
/// alike, and a snapshot is to be read.
fn formats(name: &str, analysis: &Analysis) {
    let wide = terminal(analysis, 80);
    let widest = wide.lines().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|width| width <= 80), "{wide}");
    let mut short = analysis.clone();
    short.trials.truncate(2);
    let snapshot = |format: &str, text: String| {
        assert!(text.len() < 150_000, "{name} {format}: {}", text.len());
        insta::assert_snapshot!(format!("{name}_{format}"), text);
    };
    snapshot("terminal", wide);
    snapshot("markdown", markdown(analysis));
    snapshot("steps_csv", steps_csv(&short));
    snapshot("comparisons_csv", comparisons_csv(analysis));
    snapshot("junit", junit(&short));
    snapshot("json", rounded(&json(&short).expect("JSON")));
    snapshot("html", rounded(&html(&short)));
}

#[test]
fn two_levels_of_users() {
    formats("calendar", &calendar().analysis());
}

#[test]
fn two_factors_with_verdicts() {
    formats("factors", &factors().analysis());
}

#[test]
fn a_search_for_the_load_line() {
    formats("search", &search().analysis());
}

#[test]
fn sessions_one_after_the_other() {
    formats("sequence", &sequence().analysis());
}

#[test]
fn sessions_that_arrive() {
    formats("arrivals", &arrivals().analysis());
}

#[test]
fn rounding_touches_long_fractions_alone() {
    assert_eq!(
        rounded("v1.2 0.123456789012345 12345678901 3.00"),
        "v1.2 0.123456789 12345678901 3.00"
    );
}

/// Whoever puts one request under load, and takes any certificate, reads so before the figures.
#[test]
fn the_page_of_one_request_says_that_no_certificate_was_checked() {
    let cure = |said: &str| said.replace("`insecure: true`", "`--insecure`");
    let mut analysis = Made::default().analysis();
    let checked = bench::page(&analysis, "report.html", &cure);
    assert!(!checked.contains("Certificates"), "{checked}");
    for trial in &mut analysis.trials {
        let said = lab_archive::UNCHECKED.to_owned();
        trial
            .system_settings
            .insert(lab_archive::CERTIFICATES.to_owned(), said);
    }
    let page = bench::page(&analysis, "report.html", &cure);
    let (before, _) = page.split_once("response time in ms").expect("figures");
    assert!(
        before.contains("\n\nCertificates were not checked (`--insecure`): "),
        "{page}"
    );
}
