//! Two runs beside each other: verdicts, refusals, every format.

use crate::support::{Made, Shape};
use lab_analysis::Analysis;
use lab_analysis::model::{Difference, Measure, SpreadBasis};
use lab_analysis::power::Design;
use lab_comparison::{CannotCompare, RunComparison, RunOutcome, Runs, TwoRuns, compare_runs};
use lab_plan::Decides;
use lab_report::write::{
    junit, junit_of_runs, runs_csv, runs_html, runs_json, runs_markdown, runs_terminal,
};

/// One cell, this many blocks; responses take `times` as long, with noise of a per cent.
fn run(blocks: u32, times: f64, noise: u64) -> Made {
    let shape = |at: u64| Shape {
        response_us: (20_000.0 * times * (1.0 + ((at + noise) * 7919 % 13) as f64 / 1300.0)) as u64,
        ..Shape::default()
    };
    Made {
        overrides: vec![
            ("matrix.users".to_owned(), "[20]".to_owned()),
            ("trials".to_owned(), blocks.to_string()),
        ],
        shapes: (0..u64::from(blocks)).map(shape).collect(),
        ..Made::default()
    }
}

fn analysis(blocks: u32, times: f64, noise: u64) -> Analysis {
    run(blocks, times, noise).analysis()
}

#[test]
fn a_regression_is_shown_and_the_same_is_not() {
    let (a, same, slower) = (
        analysis(4, 1.0, 0),
        analysis(4, 1.0, 5),
        analysis(4, 1.2, 5),
    );
    let again = compare_runs(&a, &same).unwrap();
    assert_eq!(again.outcome, RunOutcome::Ok, "{}", again.headline);
    // Throughput differs by a per cent from block to block, and runs may as well: no equality within 2 %. The pace
    // fixes it, so that it decides only where no run has one.
    let free = |run: &Analysis| {
        let mut run = run.clone();
        run.study.fixed_rate = false;
        run
    };
    let again = compare_runs(&free(&a), &free(&same)).unwrap();
    assert_eq!(
        again.outcome,
        RunOutcome::CouldNotTell,
        "{}",
        again.headline
    );
    let by_p95 = compared(std::slice::from_ref(&a), &[same], &[]);
    assert_eq!(by_p95.outcome, RunOutcome::Ok, "{}", by_p95.headline);
    let worse = compare_runs(&a, &slower).unwrap();
    assert_eq!(worse.outcome, RunOutcome::Regression);
    let mean = worse
        .comparisons
        .iter()
        .find(|one| one.metric == Measure::Mean);
    let mean = mean.unwrap();
    assert_eq!(mean.verdict, Some(Difference::Slower));
    assert!(
        (mean.ratio - 1.2).abs() < 0.02 && mean.blocks == 4,
        "{mean:?}"
    );
    // Four beside four: 2 of 70 splits are as extreme.
    assert!((mean.p_single.unwrap() - 2.0 / 70.0).abs() < 1e-12);
    assert!(
        worse
            .headline
            .starts_with("A regression: run b at 20 users is worse than run a: p95 response +")
    );
    // The other way round it is better.
    let better = compared(&[slower], &[a], &[]);
    assert_eq!(better.outcome, RunOutcome::Ok);
    assert!(better.headline.contains("better"), "{}", better.headline);
}

#[test]
fn what_two_runs_can_show_is_told_before_they_run() {
    let design = |blocks| Design {
        blocks,
        relevant: 0.02,
        seed: 1,
        family: Vec::new(),
        decides: Some(Decides::ResponseP95),
        duet: false,
    };
    assert_eq!(TwoRuns::of(&design(3), 1, &[]), Err(4), "the fewest blocks");
    let guessed = TwoRuns::of(&design(6), 1, &[]).unwrap();
    assert!(guessed.told.is_none() && guessed.spread.of_runs.is_none());
    // Runs of one build that spread by some 6 % can't show 10 %; blocks that spread by less could.
    let earlier = RUNS_OF_A.map(|times| analysis(6, times, 0));
    let told = TwoRuns::of(&design(6), 1, &earlier).unwrap();
    let of_runs = told.spread.of_runs.unwrap();
    assert!((0.04..0.09).contains(&of_runs), "{told:?}");
    assert_eq!((told.runs, told.told.unwrap().0), (4, Measure::P95));
    assert!(told.parts[2] < 0.3, "{:?}", told.parts);
    let few = TwoRuns::of(&design(6), 1, &earlier[..3]).unwrap();
    assert!(few.spread.of_runs.is_none() && few.runs == 3);
}

/// The gate's own flag overrides the later study, and the later study overrides the earlier one.
#[test]
fn a_named_measure_decides_between_runs() {
    let named = |times: f64, measure: &str| {
        let mut made = run(4, times, 0);
        let decides = ("decides".to_owned(), measure.to_owned());
        made.overrides.push(decides);
        made.analysis()
    };
    let (a, b) = (analysis(4, 1.0, 0), named(1.2, "peak_memory"));
    let by_study = compare_runs(&a, &b).unwrap();
    assert_eq!(by_study.outcome, RunOutcome::Ok, "{}", by_study.headline);
    assert_eq!(by_study.comparisons[0].metric, Measure::Memory);
    assert!(
        by_study
            .headline
            .contains("Exploratory, and deciding nothing: ")
    );
    let other = by_study.differences.iter();
    let told: Vec<&str> = other.map(|one| one.what).collect();
    assert!(told.contains(&"measure that decides"), "{told:?}");
    let by_flag = Runs {
        a: std::slice::from_ref(&a),
        b: std::slice::from_ref(&b),
        earlier: &[],
        decides: Some(Decides::ResponseP95),
    };
    let by_flag = by_flag.compare().unwrap();
    assert_eq!(by_flag.outcome, RunOutcome::Regression);
    let earlier = compare_runs(&named(1.0, "throughput"), &analysis(4, 1.2, 0)).unwrap();
    assert_eq!(earlier.answer.unwrap().decided_by, [Measure::Throughput]);
    let xml = junit_of_runs(&by_study);
    assert!(!xml.contains("<failure") && xml.contains("exploratory, decides nothing: slower"));
}

/// Runs of one build that spread by a tenth: one of each shows a difference by its blocks alone.
const RUNS_OF_A: [f64; 4] = [1.0, 1.08, 0.93, 1.04];

fn compared(a: &[Analysis], b: &[Analysis], earlier: &[Analysis]) -> RunComparison {
    let decides = Some(Decides::ResponseP95);
    let runs = Runs {
        a,
        b,
        earlier,
        decides,
    };
    runs.compare().unwrap()
}

fn p95(runs: &RunComparison) -> &lab_analysis::model::Comparison {
    let mut all = runs.comparisons.iter();
    all.find(|one| one.metric == Measure::P95).unwrap()
}

fn says(of: &RunComparison, words: &str) {
    let terminal = runs_terminal(of, 80);
    let flat: Vec<&str> = terminal.split_whitespace().collect();
    assert!(flat.join(" ").contains(words), "{terminal}");
}

/// The blocks of both runs spread alike by a per cent, as those do that draw the same.
#[test]
fn blocks_of_one_seed_are_pairs() {
    let (a, mut b) = (analysis(6, 1.0, 0), analysis(6, 1.04, 0));
    let itself = compared(std::slice::from_ref(&a), std::slice::from_ref(&a), &[]);
    assert!(!itself.paired);
    says(&itself, "a run beside itself tells nothing");
    b.study.started = "2026-01-06T10:00:00Z".to_owned();
    let width = |of: &RunComparison| {
        let (low, high) = p95(of).interval.unwrap();
        high - low
    };
    let paired = compared(std::slice::from_ref(&a), std::slice::from_ref(&b), &[]);
    assert!(paired.paired);
    says(&paired, "Paired by block: all runs have seed 1");
    // Of six signs the observed pattern and its mirror image are two in 64.
    assert!((p95(&paired).p_single.unwrap() - 2.0 / 64.0).abs() < 1e-12);
    let mut other = b.clone();
    other.study.seed = 2;
    let unpaired = compared(std::slice::from_ref(&a), &[other], &[]);
    assert!(!unpaired.paired);
    says(&unpaired, "Not paired: the runs have different seeds");
    assert!(
        width(&paired) < 0.3 * width(&unpaired),
        "{} {}",
        width(&paired),
        width(&unpaired)
    );
    // If a block is missing in one run five are left, too few for signs: nothing is lost by that.
    let mut short = b;
    short.trials[2].verdict = lab_analysis::model::Verdict::Invalid;
    let fewer = compared(&[a], &[short], &[]);
    assert!(!fewer.paired && p95(&fewer).verdict.is_some());
    says(&fewer, "a pair needs 6 blocks");
}

/// An effect of one run is not one of the build: several runs show it, or the report states that none does.
#[test]
fn runs_of_one_build_tell_how_far_runs_spread() {
    let a = RUNS_OF_A.map(|times| analysis(6, times, 0));
    let b = [analysis(6, 1.06, 5)];
    // By its blocks alone run b is 6 % slower beyond all doubt, and nothing shows the spread of runs.
    let alone = compared(&a[..1], &b, &[]);
    assert_eq!(alone.outcome, RunOutcome::Regression);
    assert_eq!(
        p95(&alone).run_spread.unwrap().told_by,
        SpreadBasis::Assumed
    );
    let said = alone.between_runs.as_deref().unwrap();
    assert!(
        said.contains("is not known: no run has another of its build"),
        "{said}"
    );
    says(&alone, "may be the run's and not the build's");
    // Four runs of the baseline show that it is within their spread.
    let beside = compared(&a, &b, &[]);
    assert_eq!(
        beside.outcome,
        RunOutcome::CouldNotTell,
        "{}",
        beside.headline
    );
    let spread = p95(&beside).run_spread.unwrap();
    assert_eq!((spread.told_by, spread.runs), (SpreadBasis::Runs, 4));
    assert!((0.04..0.09).contains(&spread.deviation), "{spread:?}");
    assert_eq!(beside.further_a.len(), 3);
    // Earlier runs of the study show the spread as well, and no others do.
    let earlier = compared(&a[..1], &b, &a[1..]);
    assert_eq!(
        p95(&earlier).run_spread.unwrap().told_by,
        SpreadBasis::Assumed,
        "three are few"
    );
    let widened = p95(&earlier).run_spread.unwrap().deviation;
    assert!(
        widened > 5.0 * p95(&alone).run_spread.unwrap().deviation,
        "{widened}"
    );
    assert_eq!(
        earlier.outcome,
        RunOutcome::CouldNotTell,
        "{}",
        earlier.headline
    );
    let mut elsewhere = a.clone();
    for run in &mut elsewhere {
        run.environment.cpu = "Another CPU".to_owned();
    }
    let others = compared(&a[..1], &b, &elsewhere);
    assert!(others.earlier.is_empty(), "{:?}", others.earlier);
    assert_eq!(others.outcome, RunOutcome::Regression);
    // A build that is slower by more than runs spread is detected.
    let slower = compared(&a, &[1.5, 1.6].map(|times| analysis(6, times, 5)), &[]);
    assert_eq!(
        slower.outcome,
        RunOutcome::Regression,
        "{}",
        slower.headline
    );
    assert_eq!(slower.further_b.len(), 1);
    let (low, high) = p95(&slower).interval.unwrap();
    assert!(low < 1.5 && high > 1.6, "{low} {high}");
}

#[test]
fn several_runs_are_of_one_workload_and_search_for_no_line() {
    let a = [analysis(4, 1.0, 0), analysis(4, 1.0, 3)];
    let mut made = run(4, 1.0, 0);
    made.workload = made.workload.replace("PUT /c", "PUT /d");
    let other = [made.analysis()];
    let runs = |a, b| Runs {
        a,
        b,
        earlier: &[],
        decides: None,
    };
    let refused = runs(&a, &other).compare();
    assert!(
        matches!(refused, Err(CannotCompare::Workload { .. })),
        "{refused:?}"
    );
    let refused = runs(&a, &[]).compare();
    assert!(matches!(refused, Err(CannotCompare::NoRun)), "{refused:?}");
}

#[test]
fn three_trials_are_too_few_and_say_how_many_are_needed() {
    let runs = compare_runs(&analysis(3, 1.0, 0), &analysis(3, 2.0, 0)).unwrap();
    assert_eq!(runs.outcome, RunOutcome::TooFewValidTrials);
    let reason = runs.comparisons[0].reason.as_deref().unwrap();
    assert!(reason.contains("with 3 valid trials beside 3"), "{reason}");
    assert!(reason.contains("4 in each run are the fewest"), "{reason}");
    assert!(runs.comparisons.iter().all(|one| one.verdict.is_none()));
}

#[test]
fn other_work_is_refused_and_other_machines_are_told() {
    let a = analysis(4, 1.0, 0);
    let mut made = run(4, 1.0, 0);
    made.workload = made.workload.replace("PUT /c", "PUT /d");
    let refused = compare_runs(&a, &made.analysis());
    assert!(
        matches!(refused, Err(CannotCompare::Workload { .. })),
        "{refused:?}"
    );
    // A comment and prose don't change the users' actions.
    let mut made = run(4, 1.0, 0);
    made.workload = format!("# a comment\nabout: Prose.\n{}", made.workload);
    assert!(compare_runs(&a, &made.analysis()).is_ok());
    let mut other = analysis(4, 1.0, 0);
    other.environment.cpu = "Another CPU".to_owned();
    other.environment.plimsoll_version = "0.2.0".to_owned();
    let runs = compare_runs(&a, &other).unwrap();
    let matter: Vec<&str> = runs.that_matter().map(|one| one.what).collect();
    assert_eq!(matter, ["processor"]);
    assert_eq!(runs.differences.len(), 2);
    let elsewhere = Made {
        overrides: vec![("matrix.users".to_owned(), "[30]".to_owned())],
        shapes: vec![Shape::default()],
        ..Made::default()
    };
    let none = compare_runs(&a, &elsewhere.analysis());
    assert!(
        matches!(none, Err(CannotCompare::NoCell { .. })),
        "{none:?}"
    );
}

#[test]
fn every_format_has_the_verdict() {
    let runs = compare_runs(&analysis(4, 1.0, 0), &analysis(4, 1.2, 5)).unwrap();
    let text = runs_terminal(&runs, 80);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!(text);
    assert!(runs_markdown(&runs).contains("**A regression is shown.**"));
    let page = runs_html(&runs);
    assert!(page.contains("class=\"pill bad\">A regression is shown<"));
    assert!(!page.contains("#0102"));
    let json: serde_json::Value = serde_json::from_str(&runs_json(&runs).unwrap()).unwrap();
    assert_eq!(json["schema"], "plimsoll.comparison/1");
    assert_eq!(json["outcome"], "regression");
    assert!(runs_csv(&runs).lines().count() == 8);
    let xml = junit_of_runs(&runs);
    assert!(
        xml.contains("<failure message=\"slower") && xml.contains("\" type=\"threshold\"/>"),
        "{xml}"
    );
    keep("runs.xml", &xml);
    keep("runs.html", &page);
}

#[test]
fn junit_of_a_run() {
    let mut made = Made::default();
    made.study = made.study.replace("p(95) < 300ms", "p(95) < 10ms");
    made.shapes[1].delivered = 0.8;
    let xml = junit(&made.analysis());
    // A few cases a trial and a comparison, whatever number of checks a trial has.
    let cases = xml.matches("<testcase").count();
    assert!((4..=24).contains(&cases), "{cases}: {xml}");
    insta::assert_snapshot!(xml);
    let hostile = "a<b>&\"c\"'\u{1b}\u{0}\u{ffff}";
    let mut analysis = made.analysis();
    analysis.study.name = hostile.to_owned();
    analysis.trials[0].label = hostile.to_owned();
    analysis.trials[0].thresholds[0].reason = Some(hostile.to_owned());
    let xml = junit(&analysis);
    assert!(!xml.contains("a<b>") && xml.contains("a&lt;b&gt;&amp;&quot;c&quot;&apos;"));
    let allowed = |c: char| !c.is_control() || c == '\n';
    assert!(xml.chars().all(|c| allowed(c) && c != '\u{ffff}'));
    keep("junit.xml", &xml);
}

#[test]
fn what_runs_call_themselves_stays_text() {
    let hostile = "<script>alert(1)</script>|`*\u{1b}[2J\u{202e}";
    let mut runs = compare_runs(&analysis(4, 1.0, 0), &analysis(4, 1.2, 5)).unwrap();
    runs.headline = hostile.to_owned();
    runs.b.title = hostile.to_owned();
    runs.b.study = hostile.to_owned();
    runs.unmatched = vec![hostile.to_owned()];
    for one in &mut runs.comparisons {
        one.factor = hostile.to_owned();
    }
    let page = runs_html(&runs);
    assert_eq!(page.matches("<script").count(), 1, "the page's own");
    assert!(
        page.matches("&lt;script&gt;alert(1)").count() >= 5,
        "{page}"
    );
    let markdown = runs_markdown(&runs);
    assert!(markdown.contains("&lt;script&gt;alert(1)&lt;/script&gt;\\|\\`\\*"));
    for text in [page, markdown, runs_terminal(&runs, 80)] {
        let steers = |c: char| c == '\u{1b}' || c == '\u{202e}';
        assert!(!text.contains(steers), "{text}");
    }
}

/// Writes files for visual checks, and for checks against a schema.
fn keep(name: &str, text: &str) {
    if let Ok(folder) = std::env::var("KEEP_REPORTS") {
        std::fs::write(std::path::Path::new(&folder).join(name), text).unwrap();
    }
}
