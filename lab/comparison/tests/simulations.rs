//! The error rate of the gate, over many runs by a seed. Seeds are printed with a failure.

use crate::support::{Made, STUDY, Shape};
use lab_analysis::Analysis;
use lab_analysis::model::{Attempt, Verdict};
use lab_analysis::sample::Fate;
use lab_comparison::{RunOutcome, Runs};
use lab_plan::Decides;

const BLOCKS: usize = 8;

/// A run of one cell, whose only figure is the p95 that `fill` gives each block.
fn template() -> Analysis {
    let study = STUDY
        .replace("[100, 200]", "[100]")
        .replace("published: [load.csv, steps.csv]\n", "trials: 8\n");
    let made = Made {
        study,
        shapes: vec![Shape::default(); BLOCKS],
        ..Made::default()
    };
    let mut run = made.analysis();
    for trial in &mut run.trials {
        trial.response_with_failures_ms = Default::default();
        trial.throughput_per_s = None;
        trial.system.clear();
    }
    run
}

/// Normal noise by a seed (SplitMix64, Box and Muller).
struct Noise(u64);

impl Noise {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.unit(), self.unit());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

/// Fills in a run: blocks spread by 3 %, and so do runs.
fn fill(template: &Analysis, at: u64, effect: f64, noise: &mut Noise) -> Analysis {
    let mut run = template.clone();
    run.study.seed = at;
    run.study.started = format!("2026-01-05T10:00:00.{at:06}Z");
    let of_run = 0.03 * noise.normal();
    for trial in &mut run.trials {
        let log = effect.ln() + of_run + 0.03 * noise.normal();
        trial.response_with_failures_ms.p95 = Attempt::Ms(100.0 * log.exp());
    }
    run
}

fn outcome(a: &Analysis, b: &Analysis) -> RunOutcome {
    let runs = Runs {
        a: std::slice::from_ref(a),
        b: std::slice::from_ref(b),
        earlier: &[],
        decides: Some(Decides::ResponseP95),
    };
    runs.compare().unwrap().outcome
}

#[test]
fn a_build_beside_itself_is_called_worse_in_one_of_twenty_at_most() {
    const COMPARISONS: u64 = 300;
    let template = template();
    let mut worse = 0;
    for seed in 0..COMPARISONS {
        let mut noise = Noise(seed);
        let a = fill(&template, 2 * seed + 1, 1.0, &mut noise);
        let b = fill(&template, 2 * seed + 2, 1.0, &mut noise);
        worse += u64::from(outcome(&a, &b) == RunOutcome::Regression);
    }
    println!("seeds 0..{COMPARISONS}: {worse} regressions of a build beside itself");
    // Three standard deviations above 5 %.
    assert!(worse <= 26, "{worse} of {COMPARISONS}");
    // One that is slower by half is found.
    let mut noise = Noise(1);
    let a = fill(&template, 1, 1.0, &mut noise);
    let b = fill(&template, 2, 1.5, &mut noise);
    assert_eq!(outcome(&a, &b), RunOutcome::Regression);
}

/// However much faster it is in the remaining blocks.
#[test]
fn a_candidate_that_fails_in_some_blocks_is_never_good() {
    let template = template();
    for fate in Fate::ALL.into_iter().filter(|fate| fate.is_failure()) {
        for (failed, seed) in (1..=BLOCKS).flat_map(|failed| (0..5).map(move |seed| (failed, seed)))
        {
            let mut noise = Noise(seed);
            let a = fill(&template, 1, 1.0, &mut noise);
            let mut b = fill(&template, 2, 0.5, &mut noise);
            for trial in &mut b.trials[..failed] {
                trial.verdict = Verdict::Invalid;
            }
            let fates = [
                (fate, failed as u32),
                (Fate::Valid, (BLOCKS - failed) as u32),
            ];
            b.samples[0].fates = fates.into_iter().collect();
            let found = outcome(&a, &b);
            assert_eq!(
                found,
                RunOutcome::Regression,
                "{fate:?} in {failed} blocks, seed {seed}"
            );
            // As the baseline it bars a good verdict: a candidate slower than its other blocks stays slower.
            let turned = outcome(&b, &a);
            let bad = [RunOutcome::TooFewValidTrials, RunOutcome::Regression];
            assert!(
                bad.contains(&turned),
                "{turned:?}: {fate:?} in {failed}, seed {seed}"
            );
        }
    }
}
