//! Disturbed runs: their reports state the reason first, and keep the remaining results apart.

use crate::support::{Made, Shape};
use lab_analysis::Analysis;
use lab_analysis::model::{Difference, Outcome};
use lab_archive::{Clocks, OtherProgram, TrialEnd, TrialEnvironment};
use lab_report::write::{html, json, junit, markdown, terminal};

const STUDY: &str = "\
study: tiny
title: Does the index help?
workload: tiny
variants:
  before: { groupware: { http_threads: 2 } }
  after: { groupware: { http_threads: 2 } }
load: { users: 100, ramp: 6s, hold: 4 cycles }
order: listed
trials: BLOCKS
";

/// Other programs beside a trial, in per cent of one of its two cores each.
fn disturbed(rustc: f64, cc1: f64) -> TrialEnvironment {
    let program = |(name, cpu_percent): (&str, f64)| OtherProgram {
        name: name.to_owned(),
        cpu_percent,
    };
    TrialEnvironment {
        clocks: Some(Clocks {
            monotonic_ms: 30_000.0,
            wall_start_ms: 0,
            wall_end_ms: 30_000,
        }),
        others_during: [("rustc", rustc), ("cc1", cc1)].map(program).to_vec(),
        ..TrialEnvironment::default()
    }
}

/// Blocks of both variants, all disturbed: `after` takes half the time, in every block but `odd`, and
/// `cpu` times the CPU.
pub(crate) fn spoiled(blocks: usize, odd: usize, cpu: f64) -> Made {
    let shapes = (0..blocks * 2).map(|at| {
        let (block, is_after) = (at / 2, at % 2 == 1);
        let faster = is_after && block != odd;
        let noise = 1.0 + 0.004 * ((at * 7919 % 13) as f64 / 6.0 - 1.0);
        Shape {
            response_us: match (faster, is_after) {
                (true, _) => 4_000,
                (false, true) => 9_000,
                (false, false) => 8_000,
            },
            system_cpu: Some(40.0 * noise * if is_after { cpu } else { 1.0 }),
            circumstances: disturbed(60.0 + 5.0 * block as f64, 20.0),
            ..Shape::default()
        }
    });
    Made {
        study: STUDY.replace("BLOCKS", &blocks.to_string()),
        shapes: shapes.collect(),
        ..Made::default()
    }
}

fn lines(text: &str) -> usize {
    text.lines().count()
}

#[test]
fn an_unlucky_run_fits_on_a_screen_and_says_why_first() {
    let analysis = spoiled(6, 2, 0.8).analysis();
    assert_eq!(analysis.summary.outcome, Outcome::TooFewValidTrials);
    let why = "other programs (rustc and cc1)";
    assert!(analysis.headline.contains(why), "{}", analysis.headline);
    assert!(analysis.headline.contains("all 12 trials"));
    let text = terminal(&analysis, 80);
    assert!(lines(&text) <= 60, "{} lines:\n{text}", lines(&text));
    assert!(!text.contains(" –"), "a row of dashes:\n{text}");
    assert_eq!(text.matches("12 × other programs").count(), 1, "{text}");
    insta::assert_snapshot!(text);
    let page = html(&analysis);
    let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("no {words}"));
    assert!(at("Not a measurement") < at("<main>") && at("12 × other") < at("<main>"));
}

#[test]
fn many_trials_and_cells_still_fit() {
    let cells: Vec<String> = (1..=12).map(|n| (n * 10).to_string()).collect();
    let mut made = spoiled(12, 99, 1.0);
    made.study = crate::support::STUDY
        .replace("[100, 200]", &format!("[{}]", cells.join(", ")))
        .replace("order: listed", "order: listed\ntrials: 2");
    let text = terminal(&made.analysis(), 80);
    assert!(lines(&text) <= 60, "{} lines:\n{text}", lines(&text));
}

#[test]
fn the_exploratory_table_counts_blocks_and_is_no_result() {
    let analysis = spoiled(6, 2, 0.8).analysis();
    assert!(
        analysis.comparisons.is_empty(),
        "{:?}",
        analysis.comparisons
    );
    let first = &analysis.exploratory[0];
    assert_eq!((first.blocks, first.lower, first.higher), (6, 5, 1));
    assert!(first.ratio.least < 0.6 && first.ratio.most > 1.0);
    assert!((first.sign_p - 14.0 / 64.0).abs() < 1e-12);
    let step = analysis.exploratory.iter().find(|row| row.step.is_some());
    assert_eq!(step.unwrap().step.as_deref(), Some("Log in"));
    let text = terminal(&analysis, 80);
    let row = "┆ - mean response: lower in 5 of 6 blocks";
    assert!(text.contains(row), "{text}");
    let md = markdown(&analysis);
    let heading = "> ## Exploratory, not a result";
    assert!(md.contains(heading), "{md}");
    assert!(html(&analysis).contains("class=\"apart\" data-mark=\"exploratory\""));
    let value: serde_json::Value = serde_json::from_str(&json(&analysis).unwrap()).unwrap();
    assert_eq!(value["exploratory"][0]["measured"], false);
    assert_eq!(value["seen"][0]["measured"], false);
    // No gate reads it.
    assert!(!junit(&analysis).contains("xploratory"));
}

fn of_demand(analysis: &Analysis) -> Option<Difference> {
    analysis.demand.as_ref()?.comparisons.first()?.verdict
}

#[test]
fn cpu_demand_has_a_verdict_of_its_own() {
    let less = spoiled(6, 2, 0.8).analysis();
    assert_eq!(of_demand(&less), Some(Difference::UsesLess));
    let text = terminal(&less, 80);
    assert!(text.contains("CPU demand alone"), "{text}");
    assert!(text.contains("uses less"), "{text}");
    let same = spoiled(6, 2, 1.0).analysis();
    let said = of_demand(&same).unwrap();
    assert!(!said.is_shown(), "{said:?}");
}

#[test]
fn cpu_demand_is_not_compared_where_more_than_times_is_spoiled() {
    let mut made = spoiled(6, 2, 0.8);
    for shape in &mut made.shapes {
        shape.delivered = 0.7;
    }
    let analysis = made.analysis();
    assert_eq!(analysis.summary.valid, 0);
    assert!(analysis.demand.is_none(), "{:?}", analysis.demand);
    // If it isn't steady, the report states this and compares nothing.
    let mut made = spoiled(6, 2, 0.8);
    for (at, shape) in made.shapes.iter_mut().enumerate() {
        shape.system_cpu = Some(if at % 3 == 0 { 80.0 } else { 40.0 });
    }
    let demand = made.analysis().demand.unwrap();
    assert!(demand.comparisons.is_empty());
    assert!(demand.not_compared[0].contains("not steady"), "{demand:?}");
}

#[test]
fn a_quiet_run_has_none_of_it() {
    let analysis = Made::default().analysis();
    assert!(analysis.reasons.is_empty() && analysis.seen.is_empty());
    assert!(analysis.demand.is_none() && analysis.exploratory.is_empty());
    let text = terminal(&analysis, 80);
    assert!(!text.contains('┆'), "{text}");
}

#[test]
fn what_was_seen_is_counted_and_in_no_average() {
    let mut made = spoiled(6, 99, 1.0);
    for shape in made
        .shapes
        .iter_mut()
        .filter(|shape| shape.response_us < 5_000)
    {
        shape.circumstances = disturbed(0.0, 0.0);
    }
    let analysis = made.analysis();
    let [before] = analysis.seen.as_slice() else {
        panic!("one cell: {:?}", analysis.seen);
    };
    assert!(before.is_all && before.trials == 6);
    let trial = &analysis.trials[0];
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    let transactions = trial.transactions as f64;
    assert!(before.transactions.least <= transactions);
    assert_eq!(analysis.cells[0].transactions, None);
    let text = terminal(&analysis, 80);
    let left_out = "Without a column, since no trial of theirs is a measurement: variant before.";
    assert!(text.replace('\n', " ").contains(left_out), "{text}");
}

#[test]
fn a_server_that_does_not_start_says_so_in_its_own_lines() {
    let mut made = spoiled(6, 99, 1.0);
    for shape in &mut made.shapes {
        *shape = Shape {
            empty: true,
            end: TrialEnd::SystemFailed {
                message: "the system ended with exit status: 1 before it was ready; its last \
                          lines:\nTraceback:\n\tno module named “flask”\n\u{1b}[2J"
                    .to_owned(),
            },
            ..Shape::default()
        };
    }
    let analysis = made.analysis();
    assert_eq!(analysis.summary.outcome, Outcome::SystemFailed);
    let text = terminal(&analysis, 80);
    assert!(lines(&text) <= 40, "{} lines:\n{text}", lines(&text));
    assert!(
        text.contains("\n  | Traceback:\n  |     no module named “flask”\n"),
        "{text}"
    );
    insta::assert_snapshot!(text);
    let page = html(&analysis);
    assert!(page.contains("Traceback:\n    no module named"));
    assert!(!page.contains('\u{1b}') && !markdown(&analysis).contains('\u{1b}'));
}

#[test]
fn of_several_attempts_the_last_stands_in_its_block_and_a_trial_counts_once() {
    let mut made = spoiled(4, 99, 1.0);
    // The last attempt is faster than its peers in the block; the first was not.
    let again = |response_us, started| Shape {
        response_us,
        attempt_of: Some(1),
        started: Some(started),
        circumstances: disturbed(60.0, 20.0),
        ..Shape::default()
    };
    made.shapes.push(again(8_000, "2026-01-05T10:09:10Z"));
    made.shapes.push(again(2_000, "2026-01-05T10:09:40Z"));
    let analysis = made.analysis();
    let sums = &analysis.summary;
    assert_eq!((sums.complete, sums.invalid, sums.repeats), (8, 8, 2));
    assert!(
        analysis.headline.contains("all 8 trials"),
        "{}",
        analysis.headline
    );
    let mean = &analysis.exploratory[0];
    assert_eq!((mean.blocks, mean.lower, mean.higher), (4, 3, 1));

    // If the last attempt is valid, the disturbed ones are not used.
    let last = made.shapes.last_mut().unwrap();
    last.circumstances = disturbed(0.1, 0.1);
    let analysis = made.analysis();
    assert_eq!(analysis.summary.valid, 1);
    let mean = &analysis.exploratory[0];
    assert_eq!((mean.blocks, mean.lower, mean.higher), (4, 3, 1));
}
