//! Differences between cells: paired by block over valid trials, judged together, put into sentences.

use std::sync::LazyLock;

use crate::support::{Made, Shape};
use lab_analysis::Analysis;
use lab_analysis::model::{Comparison, Difference, Measure};
use lab_report::write::{html, json, markdown, terminal};

const STUDY: &str = "\
study: tiny
title: Threads and users
workload: tiny
matrix: { http_threads: [2, 8], users: [20, 40] }
system: { groupware: { http_threads: \"{{ http_threads }}\" } }
load: { users: \"{{ users }}\", ramp: 6s, hold: 4 cycles }
order: listed
trials: BLOCKS
";

/// Four cells per block. Trials of a block share a factor, and each has one of its own: both within
/// a few per cent. Eight threads take `threads` times as long; 40 users 3.6 times.
fn made(blocks: usize, threads: f64, own: f64) -> Made {
    let shapes = (0..blocks * 4)
        .map(|at| {
            let (block, cell) = (at / 4, at % 4);
            let shared = 1.0 + 0.05 * (block % 3) as f64;
            let single = 1.0 + own * ((at * 7919 % 13) as f64 / 6.0 - 1.0);
            let effect =
                if cell >= 2 { threads } else { 1.0 } * if cell % 2 == 1 { 3.6 } else { 1.0 };
            Shape {
                response_us: (20_000.0 * shared * single * effect) as u64,
                ..Shape::default()
            }
        })
        .collect();
    Made {
        study: STUDY.replace("BLOCKS", &blocks.to_string()),
        shapes,
        ..Made::default()
    }
}

fn of<'a>(all: &'a [Comparison], a: &str, b: &str, metric: Measure) -> &'a Comparison {
    all.iter()
        .find(|one| one.a == a && one.b == b && one.metric == metric)
        .unwrap_or_else(|| panic!("no {metric:?} of {a} and {b}: {all:#?}"))
}

const FEW: &str = "http_threads 2 · users 20";
const MANY: &str = "http_threads 8 · users 20";
const LOADED: &str = "http_threads 2 · users 40";

#[test]
fn a_real_difference_is_called_one() {
    let analysis = matrix();
    let mean = of(&analysis.comparisons, FEW, MANY, Measure::Mean);
    assert_eq!(mean.verdict, Some(Difference::Slower));
    assert!((mean.ratio - 1.2).abs() < 0.05, "{mean:?}");
    let (low, high) = mean.interval.unwrap();
    assert!(low < mean.ratio && mean.ratio < high && low > 1.1);
    assert!((mean.p.unwrap() - 2.0 / 64.0).abs() < 0.07, "{mean:?}");
    assert!((mean.p_single.unwrap() - 2.0 / 64.0).abs() < 1e-12);
    assert!((mean.difference - (mean.mean_b - mean.mean_a)).abs() < 1e-9);
    // A made-up server sends the planned responses, however long they take.
    let throughput = of(&analysis.comparisons, FEW, MANY, Measure::Throughput);
    assert_eq!(throughput.verdict, Some(Difference::Equal));
    // Throughput follows the users; it is only compared between equal numbers of them.
    let follows = |one: &&Comparison| one.b == LOADED && one.metric == Measure::Throughput;
    assert!(analysis.comparisons.iter().find(follows).is_none());
    let said = analysis.findings.join("\n");
    assert!(
        said.contains("http_threads 2 → http_threads 8: slower: mean response +"),
        "{said}"
    );
    assert!(
        said.contains("users 20 → users 40: slower: mean response ×3."),
        "{said}"
    );
    // The sentence on growth compares cells that differ in their users alone.
    assert!(said.contains("2 times the users cost 3.49 times"), "{said}");
}

#[test]
fn small_differences_and_noise_are_not() {
    let same = made(6, 1.0, 0.005).analysis();
    let mean = of(&same.comparisons, FEW, MANY, Measure::Mean);
    assert_eq!(mean.verdict, Some(Difference::Equal), "{mean:?}");
    assert!(
        same.findings
            .iter()
            .any(|s| s.contains("mean response equal within 2 %"))
    );
    let noisy = made(6, 1.0, 0.2).analysis();
    let mean = of(&noisy.comparisons, FEW, MANY, Measure::Mean);
    assert_eq!(mean.verdict, Some(Difference::CouldNotTell), "{mean:?}");
}

#[test]
fn five_blocks_show_ratios_and_no_verdict() {
    let analysis = made(5, 1.2, 0.01).analysis();
    for one in &analysis.comparisons {
        assert_eq!((one.verdict, one.p, one.interval), (None, None, None));
        assert!(
            one.reason
                .as_ref()
                .unwrap()
                .contains("6 blocks are the fewest")
        );
    }
    let mean = of(&analysis.comparisons, FEW, MANY, Measure::Mean);
    assert!((mean.ratio - 1.2).abs() < 0.05);
    assert_eq!(analysis.inference.judged, 0);
    let said = analysis.findings.join("\n");
    assert!(
        said.contains("No difference between cells can be judged: with 5 paired blocks"),
        "{said}"
    );
    assert!(said.contains("p ≥ 0.0625"), "{said}");
}

#[test]
fn an_invalid_trial_takes_its_block_out_of_the_pair() {
    let mut made = made(7, 1.2, 0.01);
    // Block 3, second cell: its load was not delivered.
    made.shapes[3 * 4 + 1].delivered = 0.8;
    let analysis = made.analysis();
    assert_eq!(analysis.summary.invalid, 1);
    let blocks = |a: &str, b: &str| of(&analysis.comparisons, a, b, Measure::Mean).blocks;
    assert_eq!(blocks(FEW, LOADED), 6);
    assert_eq!(blocks(FEW, MANY), 7);
    // A main effect counts whole blocks only.
    let main = of(
        &analysis.main_effects,
        "users 20",
        "users 40",
        Measure::Mean,
    );
    assert_eq!(main.blocks, 6);
}

#[test]
fn result_json_has_the_keys_that_programs_rely_on() {
    let text = json(matrix()).unwrap();
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mean = result["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["metric"] == "response_mean_ms" && one["b"] == MANY)
        .unwrap();
    assert_eq!(mean["a"], FEW);
    assert_eq!(mean["verdict"], "slower");
    assert_eq!(mean["interval"].as_array().unwrap().len(), 2);
    assert!(mean["ratio"].is_number() && mean["p"].is_number());
    let verdicts: std::collections::BTreeSet<&str> = result["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["verdict"].as_str())
        .collect();
    assert!(verdicts.contains("equal"), "{verdicts:?}");
}

/// The part of a page on differences.
fn part(text: &str, from: &str, to: &str) -> String {
    let start = text.find(from).unwrap();
    let end = text[start..].find(to).unwrap();
    text[start..start + end].to_owned()
}

fn matrix() -> &'static Analysis {
    static MATRIX: LazyLock<Analysis> = LazyLock::new(|| made(6, 1.2, 0.01).analysis());
    &MATRIX
}

#[test]
fn terminal_of_two_factors() {
    let text = terminal(matrix(), 80);
    insta::assert_snapshot!(part(&text, "By http_threads", "Per level"));
}

#[test]
fn terminal_of_comparisons() {
    let text = terminal(matrix(), 80);
    insta::assert_snapshot!(part(&text, "Comparisons", "Per step"));
}

#[test]
fn markdown_of_differences() {
    let text = markdown(matrix());
    let tables = part(&text, "## By", "## Per level");
    let comparisons = part(&text, "## Comparisons", "## Per step");
    insta::assert_snapshot!(format!("{tables}{comparisons}"));
}

#[test]
fn the_page_plots_intervals_and_stays_small() {
    let page = html(matrix());
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    assert_eq!(
        page.matches("aria-label=\"Ratios with intervals").count(),
        6,
        "four pairs and two main effects"
    );
    assert!(page.contains("var(--band)") && !page.contains("#0102"));
    assert!(page.contains("<h2>By http_threads and users</h2>"));
    if let Ok(path) = std::env::var("KEEP_PAGE") {
        std::fs::write(path, page).unwrap();
    }
}

#[test]
fn the_width_is_kept() {
    for width in [60, 80, 120] {
        let text = terminal(matrix(), width);
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= width, "{widest} of {width}");
    }
}

#[test]
fn what_a_page_has_no_room_for_is_missing_in_no_figure() {
    let mut many = matrix().clone();
    let trials = many.trials.iter();
    many.trials = trials
        .flat_map(|trial| std::iter::repeat_n(trial, 20))
        .cloned()
        .collect();
    let text = terminal(&many, 80);
    let tables = part(&text, "By http_threads", "Per level");
    let intervals = tables.split_whitespace().filter(|word| word.contains('…'));
    let page = html(&many);
    assert!(page.contains("This page shows 300 of 480 trials"), "{page}");
    let mut seen = 0;
    for interval in intervals {
        assert!(
            page.contains(&format!("<small>{interval}</small>")),
            "{interval}"
        );
        seen += 1;
    }
    assert!(seen >= 32, "{seen} intervals in {tables}");
}
