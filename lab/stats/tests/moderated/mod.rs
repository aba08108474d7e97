//! Differences of profiles in simulated studies: the rates of false and of true differences.
//! `examples/profile_differences.rs` runs longer simulations.

mod simulated;

use crate::noise::Noise;
use simulated::Truth;

/// Returns five percent, and three standard errors of it.
fn level(studies: usize) -> f64 {
    let n = studies as f64;
    0.05 * n + 3.0 * (0.05 * 0.95 * n).sqrt()
}

#[test]
fn equal_profiles_show_a_difference_in_one_study_of_twenty_at_most() {
    const STUDIES: usize = 200;
    let mut noise = Noise::new(20_261_130);
    for blocks in [6, 8] {
        let mut truth = Truth::usual(blocks, 6_000.0, 0.05);
        truth.by_caller = 20;
        let counts = truth.studies(STUDIES, &mut noise);
        println!("{blocks} blocks: {counts:?} of {STUDIES}");
        assert!((counts.any as f64) <= level(STUDIES), "{counts:?}");
    }
}

#[test]
fn six_blocks_show_a_percent_in_a_function_of_a_percent() {
    const STUDIES: usize = 100;
    let mut noise = Noise::new(20_261_131);
    let mut truth = Truth::usual(6, 2_400.0, 0.01);
    truth.added = 0.01;
    let counts = truth.studies(STUDIES, &mut noise);
    println!("{counts:?} of {STUDIES}");
    assert!(counts.first >= 88, "{counts:?}");
    assert!((counts.another as f64) <= level(STUDIES), "{counts:?}");
}

#[test]
fn trials_that_differ_as_a_whole_hide_no_function() {
    const STUDIES: usize = 100;
    let mut noise = Noise::new(20_261_132);
    let mut truth = Truth::usual(8, 2_400.0, 0.05);
    (truth.shares, truth.trial_sd, truth.added) = (vec![0.05; 20], 0.2, 0.02);
    let counts = truth.studies(STUDIES, &mut noise);
    println!("{counts:?} of {STUDIES}");
    assert!(counts.first >= 90, "{counts:?}");
    assert!((counts.another as f64) <= level(STUDIES), "{counts:?}");
}
