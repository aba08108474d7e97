//! The spread of pairs in a run, from its analysis, as planning of another run uses it.

use crate::support::{Made, Shape};
use lab_analysis::Analysis;
use lab_analysis::model::{Measure, Verdict};
use lab_analysis::power::Spreads;

/// Two cells in four blocks, in the order listed.
fn four_blocks() -> Analysis {
    let made = Made {
        overrides: vec![("trials".to_owned(), "4".to_owned())],
        shapes: vec![Shape::default(); 8],
        ..Made::default()
    };
    made.analysis()
}

/// The analysis with this mean response in each trial, by cell's users and block.
fn with_means(means: impl Fn(bool, u32) -> f64) -> Analysis {
    let mut analysis = four_blocks();
    let first = analysis.trials[0].cell.clone();
    for trial in &mut analysis.trials {
        trial.response_with_failures_ms.mean = Some(means(trial.cell == first, trial.block));
    }
    analysis
}

fn of_mean(analysis: &Analysis) -> f64 {
    let cells: Vec<_> = analysis.trials.iter().map(|trial| &trial.cell).collect();
    let spreads = Spreads::of(analysis, &cells, None);
    assert!(spreads.same_cells);
    let found = spreads.by_measure.iter().find(|(m, _)| *m == Measure::Mean);
    found.and_then(|(_, spread)| *spread).expect("it is told")
}

#[test]
fn what_cells_and_blocks_do_is_no_spread_and_the_rest_is() {
    let steady = with_means(|first, block| {
        let of_cell = if first { 10.0 } else { 30.0 };
        of_cell * 1.5_f64.powf(f64::from(block))
    });
    assert!(of_mean(&steady) < 1e-9, "{}", of_mean(&steady));
    // The log ratio is by turns 0.1 above and below its mean: a deviation of 0.1 × √(4 ÷ 3).
    let by_turns = with_means(|first, block| {
        let off = if block % 2 == 0 { 0.1_f64 } else { -0.1 };
        if first { 10.0 } else { 30.0 * off.exp() }
    });
    let expected = 0.1 * (4.0_f64 / 3.0).sqrt();
    assert!((of_mean(&by_turns) - expected).abs() < 1e-9);
}

#[test]
fn an_invalid_trial_leaves_its_block_out() {
    let mut analysis = with_means(|first, block| match (first, block) {
        (true, _) => 10.0,
        (false, 3) => 500.0,
        (false, _) => 20.0,
    });
    assert!(of_mean(&analysis) > 0.5);
    for trial in analysis.trials.iter_mut().filter(|trial| trial.block == 3) {
        trial.verdict = Verdict::Invalid;
    }
    assert!(of_mean(&analysis) < 1e-9);
}

#[test]
fn other_cells_stand_in_where_fewer_than_two_are_planned() {
    let analysis = four_blocks();
    let one = [&analysis.trials[0].cell];
    let of_one = Spreads::of(&analysis, &one, None);
    assert!(!of_one.same_cells);
    let all: Vec<_> = analysis.trials.iter().map(|trial| &trial.cell).collect();
    assert_eq!(
        of_one.by_measure,
        Spreads::of(&analysis, &all, None).by_measure
    );
}
