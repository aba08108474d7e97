//! The load line of a search, controls, and variants, from archives made up in every number.

use crate::support::{Made, STUDY, Shape};
use lab_analysis::Analysis;
use lab_analysis::model::{Difference, Measure, Outcome};
use lab_comparison::{RunOutcome, compare_runs};
use lab_report::write::{html, json, junit_of_runs, markdown, terminal};
use lab_stats::search::Judgement;
use lab_trial::judge_trial;

/// Up to 130 users the made-up server responds within 100 ms, beyond it does not.
fn shape(users: u32) -> Shape {
    Shape {
        response_us: if users <= 130 { 10_000 } else { 60_000 },
        ..Shape::default()
    }
}

fn search(systems: &str, tried: &[(usize, u32)]) -> Made {
    let study = STUDY
        .replace("matrix: { users: [100, 200] }\n", "")
        .replace("system: { groupware: { http_threads: 2 } }", systems)
        .replace("users: \"{{ users }}\", ", "")
        .replace("published: [load.csv, steps.csv]\n", "")
        .replace(
            "thresholds:\n  response_time: [\"p(95) < 300ms\"]\n  error_rate: [\"rate < 1%\"]\n",
            "find:\n  users: { min: 50, max: 400 }\n  subject_to:\n    response_time: [\"p(95) < 100ms\"]\n",
        );
    Made {
        study,
        shapes: tried.iter().map(|(_, users)| shape(*users)).collect(),
        searched: tried.to_vec(),
        ..Made::default()
    }
}

const ONE: &str = "system: { groupware: { http_threads: 2 } }";
pub(crate) const TRIED: [u32; 16] = [
    50, 100, 200, 150, 125, 137, 131, 128, 131, 128, 131, 128, 131, 128, 131, 128,
];

pub(crate) fn one(tried: &[u32]) -> Made {
    let tried: Vec<(usize, u32)> = tried.iter().map(|users| (0, *users)).collect();
    search(ONE, &tried)
}

#[test]
fn a_line_with_its_interval() {
    let analysis = one(&TRIED).analysis();
    let line = analysis.load_line.as_ref().unwrap();
    assert_eq!(line.users, Some(128), "{line:?}");
    // Five trials at a level can't bound the line by themselves; those further out help.
    assert_eq!((line.low, line.high), (Some(125), Some(136)));
    assert_eq!(
        line.thresholds,
        ["response time p(95) < 100ms", "error rate < 0.1%"]
    );
    assert_eq!(line.ceiling, None);
    assert_eq!(line.levels.len(), 8);
    assert_eq!(analysis.summary.outcome, Outcome::Ok);
    assert_eq!(
        analysis.headline,
        "Within response time p(95) < 100ms and error rate < 0.1%, no number of users is shown to be \
         safe. Half of the trials hold up to the load line, 128 users (95 % sure: 125 to 136)."
    );
    let text = terminal(&analysis, 80);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let from = text.find("Load line").unwrap();
    let to = text[from..].find("Per level").unwrap();
    insta::assert_snapshot!(&text[from..from + to]);
    assert!(markdown(&analysis).contains("## Load line"));
    let page = html(&analysis);
    assert!(page.contains("aria-label=\"Load line: 128 users"));
    assert!(page.contains("<circle cx=\"54\""));
    assert!(json(&analysis).unwrap().contains("\"load_line\""));
    keep("line.html", &page);
}

/// Beyond the line the server handles a part of the load: the search looks for this point.
#[test]
fn the_key_figures_are_those_of_the_line() {
    let mut made = one(&TRIED);
    made.shapes[2] = Shape {
        delivered: 0.6,
        response_us: 960_000,
        overruns: 5,
        ..Shape::default()
    };
    let analysis = made.analysis();
    let beyond = &analysis.trials[2];
    assert!(beyond.part_of_load().is_some(), "{:#?}", beyond.checks);
    assert_eq!(analysis.summary.least_part_of_load, None);
    let text = terminal(&analysis, 80);
    assert!(
        text.contains("A valid measurement. 16 of 16 trials valid"),
        "{text}"
    );
    let page = html(&analysis);
    assert!(page.contains(">At 128 users<"));
}

/// The made-up server answers in time up to 60 users only.
fn lower() -> Made {
    let tried = [
        50, 100, 75, 62, 56, 59, 61, 60, 61, 60, 61, 60, 61, 60, 61, 60,
    ];
    let mut made = one(&tried);
    made.shapes = tried
        .iter()
        .map(|users| shape(if *users <= 60 { 1 } else { 1000 }))
        .collect();
    made
}

#[test]
fn a_lower_line_is_a_regression() {
    let (a, b) = (one(&TRIED).analysis(), lower().analysis());
    assert_eq!(b.load_line.as_ref().unwrap().users, Some(60));
    let worse = compare_runs(&a, &b).unwrap();
    assert_eq!(worse.outcome, RunOutcome::Regression, "{worse:#?}");
    assert!(worse.headline.contains("fewer users"), "{}", worse.headline);
    assert_eq!(compare_runs(&b, &a).unwrap().outcome, RunOutcome::Ok);
    // Intervals that overlap show nothing: 11 users fewer than 128 are more than 5 %.
    let same = compare_runs(&a, &a).unwrap();
    assert_eq!(same.outcome, RunOutcome::CouldNotTell);
    assert_eq!(
        same.headline,
        "Could not tell: run b carries at most 11.0 users fewer than run a; from 6.40 on it matters."
    );
    // If the search was interrupted, the line has open ends: there is no verdict.
    let short = one(&TRIED[..4]).analysis();
    let open = compare_runs(&a, &short).unwrap();
    assert_eq!(open.outcome, RunOutcome::TooFewValidTrials);
    assert!(open.headline.contains("open"), "{}", open.headline);
}

#[test]
fn a_line_below_all_that_was_tried_is_a_regression() {
    let mut made = one(&[50; 8]);
    made.shapes = vec![shape(1000); 8];
    let b = made.analysis();
    assert_eq!(b.load_line.as_ref().unwrap().users, None);
    let a = one(&TRIED).analysis();
    let worse = compare_runs(&a, &b).unwrap();
    assert_eq!(worse.outcome, RunOutcome::Regression, "{worse:#?}");
    assert_eq!(worse.load_lines[0].difference, None);
    let cases = junit_of_runs(&worse);
    assert!(cases.contains("failures=\"1\""), "{cases}");
}

#[test]
fn two_runs_that_carry_all_they_are_asked_for_show_no_regression() {
    let mut made = one(&[50, 100, 200, 200, 200, 200, 200, 200]);
    made.study = made.study.replace("max: 400", "max: 200");
    made.shapes = vec![shape(1); 8];
    let a = made.analysis();
    let line = a.load_line.as_ref().unwrap();
    assert!(line.ceiling.is_some() && line.high.is_none(), "{line:?}");
    let same = compare_runs(&a, &a).unwrap();
    assert_eq!(same.outcome, RunOutcome::Ok, "{}", same.headline);
    assert_eq!(same.load_lines[0].is_regression, Some(false));
    // A search with smaller loads has an open end where it counts.
    let less = compare_runs(&a, &one(&TRIED[..4]).analysis()).unwrap();
    assert_ne!(less.outcome, RunOutcome::Ok);
}

#[test]
fn lines_of_different_limits_differ_in_what_matters() {
    let mut stricter = one(&TRIED);
    stricter.study = stricter.study.replace("p(95) < 100ms", "p(95) < 50ms");
    let runs = compare_runs(&one(&TRIED).analysis(), &stricter.analysis()).unwrap();
    let differs: Vec<&str> = runs.that_matter().map(|one| one.what).collect();
    assert_eq!(differs, ["what a load line is"]);
}

#[test]
fn a_ceiling_is_said_as_such() {
    // The generator breaks down at 200, twice.
    let mut made = one(&[
        50, 100, 200, 200, 150, 175, 187, 193, 196, 198, 198, 198, 198, 198, 198, 198,
    ]);
    for (at, (_, users)) in made.searched.clone().iter().enumerate() {
        made.shapes[at] = Shape {
            run_queue: if *users >= 200 { 0.5 } else { 0.004 },
            ..shape(1)
        };
    }
    let analysis = made.analysis();
    let line = analysis.load_line.as_ref().unwrap();
    let said = line.ceiling.as_deref().unwrap_or_default();
    assert!(
        said.starts_with("the generator is the limit (at 200 users"),
        "{line:?}"
    );
    assert!(
        analysis
            .headline
            .contains("the load line, ≥ 198 users: the generator is the limit (at")
    );
    keep("ceiling.html", &html(&analysis));
}

/// Trials of one level begin differently. Each is judged by itself, in the report as at its end: a warm-up common to
/// the level would be another one for those without a slow beginning.
#[test]
fn a_trial_of_a_search_has_its_own_warmup() {
    let mut made = one(&TRIED);
    for at in [8, 9, 12] {
        made.shapes[at].slow_start_ms = 4_000;
    }
    let run = made.run();
    let analysis = lab_analysis::analyse(&run).unwrap();
    for trial in &analysis.trials {
        let then = judge_trial(&run, trial.id).unwrap();
        assert_eq!(then.judgement, trial.judgement(), "trial {}", trial.id);
        assert_eq!(
            then.failed.is_empty(),
            trial.verdict == lab_analysis::model::Verdict::Valid
        );
    }
    let at_line = |slow: bool| {
        let of_level = analysis.trials.iter().filter(|trial| trial.users == 128);
        let slow_ones = of_level.filter(move |trial| (trial.id == 10) == slow);
        slow_ones
            .map(|trial| trial.warmup_cut_ms)
            .fold(0.0, f64::max)
    };
    // 4 s of the hold were slow; noise alone cuts less.
    let (slow, others) = (at_line(true), at_line(false));
    assert!(slow >= 4_000.0 && others < 4_000.0, "{slow} {others}");
}

#[test]
fn a_system_that_fails_under_load_did_not_carry_it() {
    let mut made = one(&[50, 100, 200]);
    made.shapes[2].end = lab_archive::TrialEnd::SystemFailed {
        message: "killed by signal 9".to_owned(),
    };
    let run = made.run();
    let carried = judge_trial(&run, 1).unwrap();
    assert_eq!(
        (carried.judgement, carried.system_failed),
        (Judgement::Carried, false)
    );
    assert!(carried.failed.is_empty());
    let failed = judge_trial(&run, 3).unwrap();
    assert_eq!(
        (failed.judgement, failed.system_failed),
        (Judgement::SystemFailed, true)
    );
    assert_eq!(failed.failed[0].id.title(), "system under test");
    assert!(judge_trial(&run, 9).is_err());
    let analysis = lab_analysis::analyse(&run).unwrap();
    assert_eq!(analysis.summary.outcome, Outcome::Ok);
    assert_eq!(analysis.load_line.unwrap().users, Some(100));
}

/// Two variants in six blocks with a control; responses of b take `times` as long.
pub(crate) fn variants(times: f64) -> Analysis {
    let study = STUDY
        .replace("matrix: { users: [100, 200] }\n", "")
        .replace(
            "system: { groupware: { http_threads: 2 } }",
            "variants: { a: { groupware: {} }, b: { groupware: {} } }\ncontrol: true\ntrials: 6",
        )
        .replace("\"{{ users }}\"", "20")
        .replace("published: [load.csv, steps.csv]\n", "")
        .replace("order: listed\n", "");
    let mut made = Made {
        study,
        ..Made::default()
    };
    // The order is the plan's: shapes follow its trials.
    let of_b: Vec<bool> = made.planned().trials.iter().map(|trial| {
        matches!(trial.cell.get("variant"), Some(lab_study::model::Level::Text(name)) if name == "b")
    }).collect();
    let shape = |(at, b): (usize, &bool)| {
        let noise = 1.0 + (at * 7919 % 13) as f64 / 1000.0;
        let times = if *b { times } else { 1.0 };
        Shape {
            response_us: (20_000.0 * noise * times) as u64,
            ..Shape::default()
        }
    };
    made.shapes = of_b.iter().enumerate().map(shape).collect();
    made.analysis()
}

#[test]
fn the_same_build_twice_shows_no_difference() {
    let analysis = variants(1.0);
    assert_eq!(analysis.cells.len(), 2, "the control is no cell of its own");
    assert_eq!(analysis.control.len(), 7);
    assert_eq!(analysis.inference.claims.len(), 7);
    let claim = analysis
        .inference
        .claims
        .iter()
        .find(|claim| claim.metric == Measure::Mean);
    assert!(claim.unwrap().smallest_difference >= 0.02);
    let shown = |one: &lab_analysis::model::Comparison| one.is_shown();
    assert!(
        !analysis.comparisons.iter().any(shown),
        "{:#?}",
        analysis.comparisons
    );
    let said = analysis.findings.join("\n");
    assert!(
        said.contains("variant a → variant b: mean response equal within 2 %, at most"),
        "{said}"
    );
    assert!(
        said.contains("The smallest difference that this study can claim"),
        "{said}"
    );
    let text = terminal(&analysis, 80);
    assert!(text.contains("\nControl\n"), "{text}");
    keep("self.html", &html(&analysis));
}

#[test]
fn a_slower_variant_is_shown_beside_a_control() {
    let analysis = variants(1.2);
    let mean = analysis
        .comparisons
        .iter()
        .find(|one| one.metric == Measure::Mean);
    assert_eq!(mean.unwrap().verdict, Some(Difference::Slower), "{mean:?}");
    let memory = analysis
        .comparisons
        .iter()
        .find(|one| one.metric == Measure::Memory);
    assert_eq!(memory.unwrap().verdict, Some(Difference::Equal));
}

/// Writes a report for visual checks.
fn keep(name: &str, text: &str) {
    if let Ok(folder) = std::env::var("KEEP_REPORTS") {
        std::fs::write(std::path::Path::new(&folder).join(name), text).unwrap();
    }
}
