//! The answer to a study's question: green means shown.

use crate::support::{Made, Shape};
use lab_analysis::Analysis;
use lab_analysis::model::{Decision, Measure, Outcome};
use lab_report::write::{junit, terminal};

pub(crate) const VARIANTS: &str = "\
study: ab
title: Before and after
workload: tiny
variants:
  before: { groupware: { http_threads: 2 } }
  after: { groupware: { http_threads: 2 } }
load: { users: 20, ramp: 6s, hold: 4 cycles }
order: listed
trials: BLOCKS
";

/// Two trials per block: the ratio of the second to the first, and the deviation of each block from it.
pub(crate) fn made(study: &str, blocks: usize, times: f64, noise: f64) -> Made {
    let shape = |at: usize| {
        let off = 1.0 + noise * ((at * 7919 % 13) as f64 / 6.0 - 1.0);
        let times = if at % 2 == 1 { times } else { 1.0 };
        Shape {
            response_us: (20_000.0 * times * off) as u64,
            ..Shape::default()
        }
    };
    Made {
        study: study.replace("BLOCKS", &blocks.to_string()),
        shapes: (0..2 * blocks).map(shape).collect(),
        ..Made::default()
    }
}

fn decision(of: &Analysis) -> Option<Decision> {
    of.answer.as_ref().map(|answer| answer.decision)
}

/// Two variants that are compared by `measure`; in the second one, each nth request fails after the first block.
pub(crate) fn decided_by(measure: &str, fails_every: u64) -> Made {
    let study = format!("{VARIANTS}decides: {measure}\n");
    let mut made = made(&study, 6, 1.2, 0.01);
    for shape in made.shapes.iter_mut().skip(3).step_by(2) {
        shape.fails_every = fails_every;
    }
    made
}

#[test]
fn a_step_decides_by_a_quantile_of_its_own() {
    let named = "response_time{step:Write}.p90";
    let analysis = decided_by(named, 0).analysis();
    assert_eq!(decision(&analysis), Some(Decision::Worse));
    let answer = analysis.answer.as_ref().unwrap();
    assert_eq!(answer.decided_by[0].name(), "p90 response in “Write”");
    let text = serde_json::to_value(answer).unwrap();
    assert_eq!(text["decided_by"], serde_json::json!([named]));
    // The figure is the step's own, beside the trial's.
    let own = |trial: &lab_analysis::model::TrialAnalysis| {
        let mut steps = trial.steps.iter();
        steps
            .find(|step| step.name == "Write")
            .unwrap()
            .response_ms
            .p90
    };
    for trial in &analysis.trials {
        assert_eq!(trial.deciding.as_ref().unwrap().value, own(trial));
    }
    // If every eighth request fails, p90 is a failure, and half of all requests still succeed.
    let failing = |measure| {
        decided_by(measure, 8).analysis().trials[3]
            .deciding
            .clone()
            .unwrap()
    };
    let beyond = failing(named);
    assert!(beyond.beyond && beyond.value.is_none(), "{beyond:?}");
    assert!(failing("response_time{step:Write}.p50").value.is_some());
    let rate = failing("error_rate{step:Write}").value.unwrap();
    assert!((rate - 0.125).abs() < 0.05, "{rate}");
}

#[test]
fn a_variant_that_is_worse_is_a_regression() {
    let analysis = made(VARIANTS, 6, 1.2, 0.01).analysis();
    assert_eq!(decision(&analysis), Some(Decision::Worse));
    assert_eq!(analysis.summary.outcome, Outcome::Regression);
    let answer = analysis.answer.as_ref().unwrap();
    // The pace fixes the rate: throughput is the plan's.
    assert_eq!(answer.decided_by, [Measure::P95]);
    let begins = "A regression: variant after is worse than variant before: p95 response +";
    assert!(
        analysis.headline.starts_with(begins),
        "{}",
        analysis.headline
    );
    let xml = junit(&analysis);
    assert!(
        xml.contains("<failure message=\"A regression: variant after"),
        "{xml}"
    );
    let better = made(VARIANTS, 6, 0.8, 0.01).analysis();
    assert_eq!(decision(&better), Some(Decision::Better));
    assert_eq!(better.summary.outcome, Outcome::Ok);
}

#[test]
fn equal_is_shown_by_a_test_and_noise_shows_nothing() {
    let same = made(VARIANTS, 6, 1.0, 0.003).analysis();
    assert_eq!(decision(&same), Some(Decision::Equal), "{}", same.headline);
    assert_eq!(same.summary.outcome, Outcome::Ok);
    assert!(
        same.headline.contains("equal within 2 %"),
        "{}",
        same.headline
    );
    let noisy = made(VARIANTS, 6, 1.0, 0.2).analysis();
    assert_eq!(decision(&noisy), Some(Decision::CouldNotTell));
    assert_eq!(noisy.summary.outcome, Outcome::CouldNotTell);
    assert!(
        noisy.headline.starts_with("Could not tell: "),
        "{}",
        noisy.headline
    );
    let xml = junit(&noisy);
    let broken = "<error message=\"Could not tell: variant after beside variant before";
    assert!(xml.contains(broken) && !xml.contains("<failure"), "{xml}");
}

/// Ten of twelve trials invalid, the two valid ones in different blocks: not one pair.
#[test]
fn a_question_without_a_pair_is_not_answered() {
    let mut made = made(VARIANTS, 6, 1.0, 0.003);
    for (at, shape) in made.shapes.iter_mut().enumerate() {
        if at != 0 && at != 3 {
            shape.delivered = 0.8;
        }
    }
    let analysis = made.analysis();
    assert_eq!(analysis.summary.valid, 2);
    assert_eq!(decision(&analysis), Some(Decision::NotAnswered));
    assert_eq!(analysis.summary.outcome, Outcome::CouldNotTell);
    let said = "Not answered: 0 of 6 blocks have a valid trial of both variant before and variant \
                after; 6 are needed.";
    assert!(analysis.headline.starts_with(said), "{}", analysis.headline);
    assert!(junit(&analysis).contains(&format!("<error message=\"{said}")));
    let text = terminal(&analysis, 80);
    assert!(!text.contains("A valid measurement"), "{text}");
}

/// Described levels need no verdict, whatever disturbs them; they only need pairs.
#[test]
fn a_factor_is_described_and_needs_no_verdict() {
    let factor = "\
study: tiny
title: Threads
workload: tiny
matrix: { http_threads: [2, 8] }
system: { groupware: { http_threads: \"{{ http_threads }}\" } }
load: { users: 20, ramp: 6s, hold: 4 cycles }
order: listed
trials: BLOCKS
";
    for (blocks, noise) in [(6, 0.2), (1, 0.0), (3, 0.1)] {
        let analysis = made(factor, blocks, 1.0, noise).analysis();
        assert_eq!(decision(&analysis), None, "{blocks} blocks");
        assert_eq!(analysis.summary.outcome, Outcome::Ok, "{blocks} blocks");
    }
    let mut without = made(factor, 6, 1.0, 0.0);
    for (at, shape) in without.shapes.iter_mut().enumerate() {
        if at != 0 && at != 3 {
            shape.delivered = 0.8;
        }
    }
    let analysis = without.analysis();
    assert_eq!(decision(&analysis), Some(Decision::NotAnswered));
    assert_eq!(analysis.summary.outcome, Outcome::CouldNotTell);
    // One block of variants is a first look, and its report states that it can judge nothing.
    let look = made(VARIANTS, 1, 1.0, 0.0).analysis();
    assert_eq!((decision(&look), look.summary.outcome), (None, Outcome::Ok));
}

/// The measure that a study names decides alone; other worse measures are reported, and change no result.
#[test]
fn a_named_measure_decides_alone() {
    let named = |measure: &str| format!("{VARIANTS}decides: {measure}\n");
    let slower = made(&named("cpu_per_transaction"), 6, 1.2, 0.01).analysis();
    let answer = slower.answer.as_ref().unwrap();
    assert_eq!(
        (answer.decided_by.as_slice(), answer.named),
        (&[Measure::Cpu][..], true)
    );
    assert_eq!(slower.summary.outcome, Outcome::Ok, "{}", slower.headline);
    let besides =
        "Exploratory, and deciding nothing: variant after is worse than variant before in ";
    assert!(slower.headline.contains(besides), "{}", slower.headline);
    // It is first, and its rows and cases are marked as deciding.
    assert_eq!(slower.comparisons[0].metric, Measure::Cpu);
    let deciding = slower.comparisons.iter().filter(|one| one.decides);
    assert_eq!(deciding.count(), 1);
    let text = terminal(&slower, 80);
    assert!(
        text.contains("CPU per transaction, ms (decides):"),
        "{text}"
    );
    assert!(
        text.contains("decided by its CPU per transaction"),
        "{text}"
    );
    let xml = junit(&slower);
    assert!(!xml.contains("<failure"), "{xml}");
    assert!(
        xml.contains("exploratory, decides nothing: slower"),
        "{xml}"
    );
    // Its own verdict changes the answer, and a noisy other measure doesn't.
    let worse = made(&named("response_time.p95"), 6, 1.2, 0.01).analysis();
    assert_eq!(decision(&worse), Some(Decision::Worse));
    assert_eq!(worse.summary.outcome, Outcome::Regression);
    let noisy = made(&named("response_time.p95"), 6, 1.0, 0.2).analysis();
    assert_eq!(decision(&noisy), Some(Decision::CouldNotTell));
}

/// Without failures an error rate has no comparison, but is equal with enough blocks.
#[test]
fn a_rate_that_decides_is_equal_where_nothing_fails() {
    let study = format!("{VARIANTS}decides: error_rate\n");
    let none = made(&study, 6, 1.2, 0.01).analysis();
    assert_eq!(decision(&none), Some(Decision::Equal), "{}", none.headline);
    assert!(
        none.headline.starts_with("Equal: no trial has a failure"),
        "{}",
        none.headline
    );
    let few = made(&study, 3, 1.2, 0.01).analysis();
    assert_eq!(
        decision(&few),
        Some(Decision::NotAnswered),
        "{}",
        few.headline
    );
    assert_eq!(few.summary.outcome, Outcome::CouldNotTell);
}
