//! The gate's verdict if trials, cells, or figures are missing on one side.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::support::{Made, STUDY, Shape};
use lab_analysis::Analysis;
use lab_analysis::model::{Decision, Measure, TrialAnalysis};
use lab_analysis::sample::Fate;
use lab_archive::{Clocks, OtherProgram, TrialEnd, TrialEnvironment};
use lab_comparison::{RunComparison, RunOutcome, Runs};
use lab_plan::Decides;

const BLOCKS: usize = 8;

/// How trials of a side end, and their number.
type Lost = Option<(Loss, u32)>;

/// Two levels in eight blocks: trials alternate between 100 and 200 users.
fn run(response_us: u64, change: &dyn Fn(usize, bool, &mut Shape)) -> Made {
    let study = STUDY.replace(
        "published: [load.csv, steps.csv]\n",
        "trials: 8\nrepeats: 0\n",
    );
    let shape = |at: usize| {
        let (block, is_high) = (at / 2, at % 2 == 1);
        // Blocks differ by a per cent.
        let noise = 1000 + (block * 7 % 13) as u64;
        let mut shape = Shape {
            response_us: response_us * noise / 1000,
            ..Shape::default()
        };
        change(block, is_high, &mut shape);
        shape
    };
    Made {
        study,
        shapes: (0..2 * BLOCKS).map(shape).collect(),
        ..Made::default()
    }
}

/// A baseline, and a candidate that is faster by a fifth.
static A: LazyLock<Analysis> = LazyLock::new(|| run(20_000, &|_, _, _| {}).analysis());
static B: LazyLock<Analysis> = LazyLock::new(|| run(16_000, &|_, _, _| {}).analysis());

fn compared(a: &Analysis, b: &Analysis, decides: Decides) -> RunComparison {
    let runs = Runs {
        a: std::slice::from_ref(a),
        b: std::slice::from_ref(b),
        earlier: &[],
        decides: Some(decides),
    };
    runs.compare().unwrap()
}

fn by_p95(a: &Analysis, b: &Analysis) -> RunComparison {
    compared(a, b, Decides::ResponseP95)
}

fn died() -> TrialEnd {
    TrialEnd::SystemFailed {
        message: "it ended during the trial: signal 11".to_owned(),
    }
}

/// The loss of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Loss {
    Died,
    NotStarted,
    Aborted,
    GeneratorFailed,
    Disturbed,
}

impl Loss {
    fn of(self, shape: &mut Shape) {
        match self {
            Self::Died => shape.end = died(),
            Self::NotStarted => {
                shape.end = died();
                shape.elapsed = 0.0;
                shape.empty = true;
            }
            Self::Aborted => {
                shape.end = TrialEnd::Aborted {
                    message: "error rate 60 % over 5 s (limit 50 %)".to_owned(),
                }
            }
            Self::GeneratorFailed => {
                shape.end = TrialEnd::GeneratorFailed {
                    message: "worker 2 ended: signal 9".to_owned(),
                }
            }
            Self::Disturbed => {
                shape.circumstances = TrialEnvironment {
                    clocks: Some(Clocks {
                        wall_start_ms: 0,
                        wall_end_ms: 30_000,
                        monotonic_ms: 30_000.0,
                    }),
                    others_during: vec![OtherProgram {
                        name: "rustc".to_owned(),
                        cpu_percent: 150.0,
                    }],
                    ..TrialEnvironment::default()
                }
            }
        }
    }
}

/// Runs in which every trial at 200 users is lost, by the kind of loss.
static LOST: LazyLock<BTreeMap<Loss, Analysis>> = LazyLock::new(|| {
    let all = [
        Loss::Died,
        Loss::NotStarted,
        Loss::Aborted,
        Loss::GeneratorFailed,
        Loss::Disturbed,
    ];
    let lost = |loss: Loss| {
        let made = run(20_000, &|_, is_high, shape| {
            if is_high {
                loss.of(shape);
            }
        });
        (loss, made.analysis())
    };
    all.into_iter().map(lost).collect()
});

/// The run, with so many blocks at 200 users lost.
fn losing(whole: &Analysis, loss: Option<(Loss, u32)>) -> Analysis {
    let mut run = whole.clone();
    let Some((loss, blocks)) = loss else {
        return run;
    };
    let is_lost = |trial: &&TrialAnalysis| trial.users == 200 && trial.block < blocks;
    for lost in LOST[&loss].trials.iter().filter(is_lost) {
        let mut trials = run.trials.iter_mut();
        let trial = trials.find(|trial| trial.id == lost.id).unwrap();
        *trial = lost.clone();
    }
    let sample = run.samples.iter_mut().find(|one| one.users == 200).unwrap();
    sample.fates.clear();
    for trial in run.trials.iter().filter(|trial| trial.users == 200) {
        *sample.fates.entry(Fate::of(trial)).or_default() += 1;
    }
    run
}

#[test]
fn an_analysis_counts_what_became_of_its_planned_trials() {
    for (loss, fate) in [
        (Loss::Died, Fate::Died),
        (Loss::NotStarted, Fate::NotStarted),
        (Loss::Aborted, Fate::Aborted),
        (Loss::GeneratorFailed, Fate::Invalid),
        (Loss::Disturbed, Fate::Disturbed),
    ] {
        let samples = &LOST[&loss].samples;
        let fates: Vec<_> = samples.iter().map(|one| one.fates.clone()).collect();
        let expected = [(Fate::Valid, 8), (fate, 8)].map(|one| BTreeMap::from([one]));
        assert_eq!(fates, expected, "{loss:?}");
    }
    assert!(A.samples.iter().all(|one| one.count(Fate::Valid) == 8));
}

#[test]
fn trials_that_are_missing_never_end_well() {
    use Loss::{Aborted, Died, Disturbed, GeneratorFailed, NotStarted};
    use RunOutcome::{Ok, Regression, TooFewValidTrials};
    let table: [(Lost, Lost, RunOutcome); 23] = [
        (None, None, Ok),
        // Only the candidate's system failed.
        (None, Some((Died, 8)), Regression),
        (None, Some((Died, 2)), Regression),
        (None, Some((Died, 1)), Regression),
        (None, Some((NotStarted, 8)), Regression),
        (None, Some((NotStarted, 1)), Regression),
        (None, Some((Aborted, 8)), Regression),
        (None, Some((Aborted, 1)), Regression),
        // The baseline's failed, too, or it alone.
        (Some((Died, 8)), None, TooFewValidTrials),
        (Some((Died, 1)), None, TooFewValidTrials),
        (Some((NotStarted, 1)), None, TooFewValidTrials),
        (Some((Aborted, 1)), None, TooFewValidTrials),
        (Some((Died, 1)), Some((Died, 1)), TooFewValidTrials),
        (Some((Aborted, 1)), Some((Died, 3)), TooFewValidTrials),
        // Neither the system nor the environment.
        (None, Some((GeneratorFailed, 1)), TooFewValidTrials),
        (None, Some((GeneratorFailed, 8)), TooFewValidTrials),
        (Some((GeneratorFailed, 1)), None, TooFewValidTrials),
        (Some((GeneratorFailed, 1)), Some((Died, 1)), Regression),
        // The environment.
        (None, Some((Disturbed, 1)), Ok),
        (Some((Disturbed, 1)), None, Ok),
        (None, Some((Disturbed, 8)), TooFewValidTrials),
        (Some((Disturbed, 8)), None, TooFewValidTrials),
        (Some((Disturbed, 1)), Some((Died, 1)), Regression),
    ];
    for (of_a, of_b, expected) in table {
        // The remaining trials of b are faster by a fifth.
        let found = by_p95(&losing(&A, of_a), &losing(&B, of_b));
        assert_eq!(
            found.outcome, expected,
            "{of_a:?} {of_b:?}: {}",
            found.headline
        );
        let shown_good = found
            .comparisons
            .iter()
            .any(|one| one.factor.contains("200") && one.verdict.is_some_and(|v| v.is_good()));
        assert_eq!(shown_good, expected == Ok, "{of_a:?} {of_b:?}");
        assert_eq!(
            found.missing.is_empty(),
            expected == Ok,
            "{:?}",
            found.missing
        );
    }
}

#[test]
fn the_sentence_names_what_is_missing() {
    let worse = by_p95(&A, &losing(&B, Some((Loss::Died, 2))));
    assert_eq!(
        worse.headline,
        "A regression: the system failed in 2 of 8 trials of run b at 200 users, and in none of run a."
    );
    let open = by_p95(&losing(&A, Some((Loss::Aborted, 1))), &B);
    assert_eq!(
        open.headline,
        "Not answered: 1 of 8 trials of run a were aborted."
    );
}

/// A run that ended early provides no evidence about missing trials, whichever side it is on.
#[test]
fn a_run_that_is_not_complete_has_no_answer() {
    for left in [1, 6] {
        let mut made = run(20_000, &|_, _, _| {});
        made.shapes.truncate(2 * BLOCKS - left);
        let short = made.analysis();
        for found in [by_p95(&A, &short), by_p95(&short, &A)] {
            assert_eq!(
                found.outcome,
                RunOutcome::TooFewValidTrials,
                "{}",
                found.headline
            );
            assert!(found.headline.contains("not run"), "{}", found.headline);
        }
    }
}

#[test]
fn a_cell_that_only_the_baseline_has_is_no_answer() {
    let mut made = run(20_000, &|_, _, _| {});
    made.overrides
        .push(("matrix.users".to_owned(), "[100]".to_owned()));
    made.shapes.truncate(BLOCKS);
    let one = made.analysis();
    let found = by_p95(&A, &one);
    assert_eq!(
        found.outcome,
        RunOutcome::TooFewValidTrials,
        "{}",
        found.headline
    );
    assert!(found.headline.contains("200 users"), "{}", found.headline);
    // Cells of the candidate alone are not compared.
    assert_eq!(by_p95(&one, &A).outcome, RunOutcome::Ok);
}

/// Valid trials without the deciding figure: of one side, of some of its blocks, of both.
#[test]
fn a_figure_that_is_missing_is_no_answer() {
    let silent = |blocks: u32| {
        let mut run = B.clone();
        let is_silent = |trial: &&mut TrialAnalysis| trial.users == 200 && trial.block < blocks;
        for trial in run.trials.iter_mut().filter(is_silent) {
            trial.system.clear();
        }
        run
    };
    let memory = |a: &Analysis, b: &Analysis| compared(a, b, Decides::PeakMemory);
    assert_eq!(memory(&A, &silent(0)).outcome, RunOutcome::Ok);
    for blocks in [1, 3] {
        for found in [memory(&A, &silent(blocks)), memory(&silent(blocks), &A)] {
            assert_ne!(found.outcome, RunOutcome::Ok, "{}", found.headline);
            assert!(
                found.headline.contains("have no peak memory"),
                "{}",
                found.headline
            );
        }
    }
    for found in [
        memory(&A, &silent(8)),
        memory(&silent(8), &A),
        memory(&silent(8), &silent(8)),
    ] {
        assert_eq!(
            found.outcome,
            RunOutcome::TooFewValidTrials,
            "{}",
            found.headline
        );
    }
}

/// Response times exclude failed requests: a named measure keeps the error rate as a guard.
#[test]
fn a_named_measure_keeps_the_error_rate_as_a_guard() {
    let sheds = run(16_000, &|_, _, shape| shape.fails_every = 120).analysis();
    let found = by_p95(&A, &sheds);
    assert_eq!(found.outcome, RunOutcome::Regression, "{}", found.headline);
    let answer = found.answer.unwrap();
    assert_eq!(answer.decided_by, [Measure::P95, Measure::ErrorRate]);
    assert_eq!(answer.decision, Decision::Worse);
    // Without failures, only the measure decides.
    let well = by_p95(&A, &B);
    assert_eq!(well.outcome, RunOutcome::Ok, "{}", well.headline);
    assert_eq!(well.answer.unwrap().decided_by, [Measure::P95]);
}

/// A build that responds faster, and fails one request in twenty.
#[test]
fn a_quantile_beyond_any_limit_is_no_good_answer() {
    let refuses = run(16_000, &|_, _, shape| shape.fails_every = 15).analysis();
    let found = by_p95(&A, &refuses);
    assert_eq!(found.outcome, RunOutcome::Regression, "{}", found.headline);
    assert!(
        found
            .comparisons
            .iter()
            .all(|one| one.metric != Measure::P95),
        "{found:?}"
    );
    // Failures of the baseline are no reason to call a candidate better.
    let found = by_p95(&refuses, &A);
    assert_ne!(found.outcome, RunOutcome::Ok, "{}", found.headline);
    // Some trials of a side: the others are no complete sample.
    let some = run(16_000, &|block, _, shape| {
        if block < 2 {
            shape.fails_every = 15;
        }
    });
    let some = some.analysis();
    for found in [by_p95(&A, &some), by_p95(&some, &A)] {
        assert_ne!(found.outcome, RunOutcome::Ok, "{}", found.headline);
    }
    // A mean counts a failed request as the longest that it could have taken.
    let mean = compared(&A, &refuses, Decides::ResponseMean);
    let of_mean = mean
        .comparisons
        .iter()
        .find(|one| one.metric == Measure::Mean);
    assert!(of_mean.is_some_and(|one| one.ratio > 10.0), "{of_mean:?}");
}

/// The workload has a pace: the plan fixes throughput, unless a server doesn't sustain it.
#[test]
fn a_fixed_rate_leaves_throughput_out_of_what_decides() {
    let usual = |a: &Analysis, b: &Analysis| lab_comparison::compare_runs(a, b).unwrap();
    let decided_by = |found: RunComparison| found.answer.unwrap().decided_by;
    let plain = |us| run(us, &|_, _, _| {}).analysis();
    let (a, b) = (plain(20_000), plain(16_000));
    assert!(a.study.fixed_rate);
    assert_eq!(decided_by(usual(&a, &b)), [Measure::P95]);
    let slow = run(960_000, &|_, _, shape| {
        shape.delivered = 0.6;
        shape.overruns = 5;
    });
    let slow = slow.analysis();
    assert!(
        slow.trials
            .iter()
            .any(|trial| trial.part_of_load().is_some())
    );
    assert_eq!(
        decided_by(usual(&a, &slow)),
        [Measure::P95, Measure::Throughput]
    );
    let mut made = run(20_000, &|_, _, _| {});
    made.workload = made.workload.replace("  pace: 6s\n", "");
    made.study = made.study.replace("hold: 4 cycles", "hold: 24s");
    let free = made.analysis();
    assert_eq!(
        decided_by(usual(&free, &free)),
        [Measure::P95, Measure::Throughput]
    );
}
