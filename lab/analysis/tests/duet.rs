//! Duets: two variants at the same time, window by window, with differences between the sides and disturbances of both.

use crate::support::{Made, Shape};
use lab_analysis::Analysis;
use lab_analysis::model::{Comparison, Decision, Difference, Measure, Outcome, Verdict};
use lab_analysis::sample::Fate;
use lab_archive::{Clocks, OtherProgram, TrialEnd, TrialEnvironment};
use lab_plan::Side;

const STUDY: &str = "\
study: tiny
title: Two variants at once
workload: tiny
variants: { a: { groupware: { http_threads: 2 } }, b: { groupware: { http_threads: 3 } } }
load: { users: 100, ramp: 6s, hold: 4 cycles }
trials: 8
duet: true
";

/// The response time of a trial, by block, whether it is of the second variant, and its side.
type Takes<'a> = &'a dyn Fn(u32, bool, Side) -> Shape;

fn run(takes: Takes<'_>) -> Analysis {
    run_of(STUDY, takes)
}

fn run_of(study: &str, takes: Takes<'_>) -> Analysis {
    let mut made = Made {
        study: study.to_owned(),
        ..Made::default()
    };
    let shape = |trial: &lab_study::plan::Trial| {
        let is_b = format!("{:?}", trial.cell["variant"]).contains("\"b\"");
        takes(trial.block, is_b, trial.duet.expect("a duet").side)
    };
    made.shapes = made.planned().trials.iter().map(shape).collect();
    made.analysis()
}

/// The left side is slower by a tenth, *b* by `effect`, and blocks differ by much more than either.
fn us(block: u32, is_b: bool, side: Side, effect: f64) -> u64 {
    let of_side = if side == Side::Left { 1.1 } else { 1.0 };
    let of_b = if is_b { 1.0 + effect } else { 1.0 };
    (4_000.0 * of_side * of_b * (1.0 + 0.3 * f64::from(block % 5))).round() as u64
}

fn plain(effect: f64) -> impl Fn(u32, bool, Side) -> Shape {
    move |block, is_b, side| Shape {
        response_us: us(block, is_b, side, effect),
        ..Shape::default()
    }
}

/// The same beside programs that take half of the machine.
fn disturbed(effect: f64) -> impl Fn(u32, bool, Side) -> Shape {
    move |block, is_b, side| Shape {
        response_us: us(block, is_b, side, effect),
        circumstances: TrialEnvironment {
            clocks: Some(Clocks {
                wall_start_ms: 0,
                wall_end_ms: 30_000,
                monotonic_ms: 30_000.0,
            }),
            others_during: vec![OtherProgram {
                name: "rustc".to_owned(),
                cpu_percent: 100.0,
            }],
            ..TrialEnvironment::default()
        },
        ..Shape::default()
    }
}

fn of(analysis: &Analysis, measure: Measure) -> &Comparison {
    let mut all = analysis.comparisons.iter();
    all.find(|one| one.metric == measure).expect("compared")
}

#[test]
fn what_the_sides_differ_in_is_no_difference_of_the_variants() {
    let alike = run(&plain(0.0));
    let mean = of(&alike, Measure::Mean);
    assert_eq!(mean.verdict, Some(Difference::Equal), "{mean:?}");
    assert!((mean.ratio - 1.0).abs() < 0.002, "{mean:?}");
    assert_eq!(alike.summary.outcome, Outcome::Ok, "{}", alike.headline);
    let duet = alike.duet.expect("told");
    let side = duet.sides.iter().find(|one| one.metric == Measure::P95);
    let side = side.expect("it decides").ratio;
    // Made-up times have a part that is the same on both.
    assert!(side > 1.05 && side < 1.11, "{side}");
    assert_eq!((duet.blocks.len(), duet.disturbed), (8, 0));
    let on_left = duet.blocks.iter().filter(|block| block.a_is_left).count();
    assert_eq!(on_left, 4);
    for block in &duet.blocks {
        assert!(block.windows > 1 && block.unpaired == 0, "{block:?}");
        assert_eq!(block.b_later_ms.map(f64::abs), Some(0.25));
    }
}

#[test]
fn a_slower_variant_is_found_beside_noise_that_both_share() {
    let analysis = run(&plain(0.05));
    for measure in [Measure::Mean, Measure::P50, Measure::P95] {
        let found = of(&analysis, measure);
        assert_eq!(found.verdict, Some(Difference::Slower), "{found:?}");
        let (low, high) = found.interval.expect("bounded");
        assert!(
            low < 1.055 && high > 1.045 && high - low < 0.02,
            "{found:?}"
        );
        assert_eq!(found.blocks, 8);
    }
    assert_eq!(analysis.summary.outcome, Outcome::Regression);
    assert_eq!(analysis.inference.least_blocks, 8);
}

/// A disturbance hides a part of a difference: a shown difference stands, equality is never shown, and the mean has a
/// bound.
#[test]
fn beside_others_a_difference_and_a_bound_are_shown_and_equality_is_not() {
    let slower = run(&disturbed(0.05));
    assert!(
        slower
            .trials
            .iter()
            .all(|t| t.verdict == Verdict::Valid && t.disturbed)
    );
    let p95 = of(&slower, Measure::P95);
    assert_eq!(p95.verdict, Some(Difference::Slower));
    let alike = run(&disturbed(0.0));
    let p95 = of(&alike, Measure::P95);
    assert_eq!(
        (p95.verdict, p95.decides),
        (Some(Difference::CouldNotTell), false)
    );
    let mean = of(&alike, Measure::Mean);
    assert_eq!(
        (mean.verdict, mean.decides),
        (Some(Difference::NotWorse), true),
        "{mean:?}"
    );
    let bound = mean.worse_at_most.expect("shown");
    assert!(bound.part < 0.02 && bound.stretch > 1.0, "{bound:?}");
    assert_eq!(alike.summary.outcome, Outcome::Ok, "{}", alike.headline);
    let answer = alike.answer.expect("asked for");
    assert!(answer.sentence.contains("at most"), "{}", answer.sentence);
    assert!(!answer.decided_by.contains(&Measure::P95));
    let open = "Other programs leave p95 response open";
    assert!(answer.sentence.contains(open), "{}", answer.sentence);
    assert_eq!(alike.duet.map(|duet| duet.disturbed), Some(8));
}

/// A quantile that the study names stays open: nothing bounds what interference hides of it.
#[test]
fn beside_others_a_named_quantile_could_not_be_told() {
    let study = format!("{STUDY}decides: response_time.p95\n");
    let alike = run_of(&study, &disturbed(0.0));
    let p95 = of(&alike, Measure::P95);
    assert_eq!(
        (p95.verdict, p95.decides),
        (Some(Difference::CouldNotTell), true)
    );
    assert_eq!(alike.summary.outcome, Outcome::CouldNotTell);
}

/// A named figure of one step is compared window by window as well, and stays open beside other programs.
#[test]
fn figure_of_one_step_is_compared_window_by_window() {
    let study = format!("{STUDY}decides: response_time{{step:Read}}.mean\n");
    let slower = run_of(&study, &plain(0.05));
    let mut all = slower.comparisons.iter();
    let found = all.find(|one| matches!(one.metric, Measure::Named(_)));
    let found = found.expect("compared");
    let measure = found.metric;
    assert_eq!(found.verdict, Some(Difference::Slower), "{found:?}");
    let duet = slower.duet.as_ref().expect("told");
    assert_eq!(duet.metric, measure);
    assert!(
        duet.blocks.iter().all(|block| block.windows > 1),
        "{duet:?}"
    );
    let alike = run_of(&study, &disturbed(0.0));
    let found = of(&alike, measure);
    assert_eq!(found.verdict, Some(Difference::CouldNotTell), "{found:?}");
}

/// Both together use so much of their shared cores that they wait for each other; on halves, the same CPU is each one's
/// own.
#[test]
fn where_both_get_in_each_others_way_equality_is_not_shown() {
    let busy = |system_cpu: f64, together: bool| {
        run(&move |block, is_b, side| Shape {
            response_us: us(block, is_b, side, 0.0),
            system_cpu: Some(system_cpu),
            together,
            ..Shape::default()
        })
    };
    for (system_cpu, together, crowded) in [(80.0, true, 8), (5.0, true, 0), (80.0, false, 0)] {
        let analysis = busy(system_cpu, together);
        let p95 = of(&analysis, Measure::P95).verdict;
        let duet = analysis.duet.expect("told");
        // Nothing moved the generators of these archives.
        let stayed = if together { 8 } else { 0 };
        assert_eq!(
            (duet.together, duet.crowded, duet.stayed),
            (together, crowded, stayed),
            "{system_cpu}"
        );
        let expected = match crowded {
            0 => Difference::Equal,
            _ => Difference::CouldNotTell,
        };
        assert_eq!(p95, Some(expected), "{system_cpu} {together}");
    }
}

/// Every way in which one side of a block can be missing: a failure of the system counts for or against it, a
/// disturbance excludes the block on both sides, and all else prevents an answer. Each is counted and shown.
#[test]
fn missing_side_of_a_block_counts_by_its_reason() {
    let message = || "gone".to_owned();
    let died = || TrialEnd::SystemFailed { message: message() };
    let aborted = || TrialEnd::Aborted { message: message() };
    let lost = || TrialEnd::AgentLost { message: message() };
    let generator = || TrialEnd::GeneratorFailed { message: message() };
    let table = [
        (true, died(), Decision::Worse, Fate::Died),
        (false, died(), Decision::NotAnswered, Fate::Died),
        (true, aborted(), Decision::Worse, Fate::Aborted),
        (false, aborted(), Decision::NotAnswered, Fate::Aborted),
        (true, lost(), Decision::Equal, Fate::Disturbed),
        (false, lost(), Decision::Equal, Fate::Disturbed),
        (true, generator(), Decision::NotAnswered, Fate::Invalid),
        (false, generator(), Decision::NotAnswered, Fate::Invalid),
    ];
    let study = STUDY.replace("trials: 8", "trials: 9");
    for (of_candidate, end, decision, fate) in table {
        let analysis = run_of(&study, &|block, is_b, side| Shape {
            response_us: us(block, is_b, side, 0.0),
            end: match block == 2 && is_b == of_candidate {
                true => end.clone(),
                false => TrialEnd::Complete,
            },
            ..Shape::default()
        });
        let case = format!("candidate {of_candidate}: {end:?}");
        let answer = analysis.answer.as_ref().expect("asked for");
        assert_eq!(answer.decision, decision, "{case}: {}", answer.sentence);
        assert_eq!(of(&analysis, Measure::Mean).blocks, 8, "{case}");
        let said = format!("1 of 9 pairs count on neither side: 1 {}", fate.name());
        assert!(answer.sentence.contains(&said), "{}", answer.sentence);
        let duet = analysis.duet.as_ref().expect("a duet");
        let [left_out] = &duet.left_out[..] else {
            panic!("{case}: {:?}", duet.left_out);
        };
        assert_eq!((left_out.block, left_out.fate), (2, fate), "{case}");
        assert!(left_out.why.contains("gone"), "{case}: {}", left_out.why);
    }
}

#[test]
fn two_count_together_or_not_at_all() {
    let analysis = run(&|block, is_b, side| Shape {
        response_us: us(block, is_b, side, 0.0),
        end: match (block, is_b) {
            (2, true) => TrialEnd::SystemFailed {
                message: "gone".to_owned(),
            },
            _ => TrialEnd::Complete,
        },
        ..Shape::default()
    });
    let of_block = analysis.trials.iter().filter(|trial| trial.block == 2);
    let of_block: Vec<_> = of_block.collect();
    assert!(
        of_block
            .iter()
            .all(|trial| trial.verdict == Verdict::Invalid)
    );
    let partner = of_block.iter().find(|trial| trial.system_failure.is_none());
    let check = &partner.expect("the other one").checks[0];
    assert_eq!(check.id.title(), "partner");
    assert_eq!(of(&analysis, Measure::Mean).blocks, 7);
    let verdict = of(&analysis, Measure::Mean).verdict;
    assert_eq!(verdict, None, "seven blocks are too few");
}
