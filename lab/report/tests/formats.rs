//! Five made-up archives in the formats for people: the smallest word for word, the others by the sentences that each
//! format must contain. `result.json` is checked in `result`.
//!
//! Nothing in these texts depends on the machine: the archives are made up in every number.

use crate::line;
use crate::support::{Made, STUDY, Shape, WORKLOAD};
use lab_report::bench;
use lab_report::write::{comparisons_csv, html, junit, markdown, steps_csv, terminal};

/// One healthy level, and one with failed requests, skipped steps, and delays.
pub(crate) fn calendar() -> Made {
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
pub(crate) fn factors() -> Made {
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

pub(crate) fn sequence() -> Made {
    without_users(
        "load: { sequence: { sessions: 40 }, hold: 24s }",
        Shape::default(),
    )
}

pub(crate) fn arrivals() -> Made {
    without_users(
        "load: { arrival: { rate: 40/s, connections: 300 }, ramp: 6s, hold: 24s }",
        Shape {
            service: Some(0.25),
            turned_away: 7,
            ..Shape::default()
        },
    )
}

/// The text of a page, without tags and entities.
fn text_of_page(page: &str) -> String {
    let pieces = page
        .split('<')
        .map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text));
    let text = pieces.collect::<Vec<_>>().join(" ");
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// A text with single spaces between its words.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Asserts that terminal, Markdown, and page have all sentences.
fn check_sentences(made: &Made, sentences: &[&str]) {
    let analysis = made.analysis();
    let wide = terminal(&analysis, 80);
    let widest = wide.lines().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|width| width <= 80), "{wide}");
    for (format, text) in [
        ("terminal", wide),
        ("markdown", markdown(&analysis).replace('\\', "")),
        ("html", text_of_page(&html(&analysis))),
    ] {
        let text = words(&text);
        for sentence in sentences {
            assert!(
                text.contains(sentence),
                "{format} lacks “{sentence}”: {text}"
            );
        }
    }
}

#[test]
fn every_format_of_a_small_run() {
    let analysis = sequence().analysis();
    insta::assert_snapshot!("terminal", terminal(&analysis, 80));
    insta::assert_snapshot!("markdown", markdown(&analysis));
    insta::assert_snapshot!("steps_csv", steps_csv(&analysis));
    insta::assert_snapshot!("junit", junit(&analysis));
    let page = html(&analysis);
    let (_, body) = page.split_once("</style>").expect("a page has styles");
    let (body, _) = body.split_once("<script").expect("a page has a script");
    insta::assert_snapshot!("html", body);
    let comparisons = comparisons_csv(&factors().analysis());
    insta::assert_snapshot!("comparisons_csv", comparisons);
}

#[test]
fn two_levels_of_users() {
    check_sentences(
        &calendar(),
        &[
            "1 of 2 trials is invalid, because the check “delivered load” failed \
             (load delivered in the hold, off the load offered: 13.6 %).",
            "delivered load: 115 of 134 requests per s offered (−13.6 %)",
            "“Read” at 100 users (9.97 here, 30.5 published, ×0.33)",
            "Windows counts split transfers",
            "69 of 3,312 requests failed (2.08 %)",
            "“Read” failed: 503 Service Unavailable: busy",
        ],
    );
}

#[test]
fn two_factors_with_verdicts() {
    check_sentences(
        &factors(),
        &[
            "http_threads 2 → http_threads 8: slower: mean response +19.8 %",
            "Relative response is the mean response ÷ that of http_threads 2 · users 20.",
            "A difference is called one only if it is beyond noise",
            "equal within 2 %",
        ],
    );
}

#[test]
fn a_search_for_the_load_line() {
    check_sentences(
        &line::one(&line::TRIED),
        &[
            "no number of users is shown to be safe",
            "the load line, 128 users (95 % sure: 125 to 136)",
            "no steady state in response",
        ],
    );
}

#[test]
fn sessions_that_arrive() {
    check_sentences(
        &arrivals(),
        &[
            "Response time counts from the moment at which the request was due",
            "962 sessions arrived of 962 planned (±0.0 %); 7 turned away",
            "the bottleneck is the system's CPU, 5.62 ms per transaction",
        ],
    );
}

/// For one request under load that accepts any certificate, the note is before the figures.
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
