//! Simulates the answer to a duet of a build beside itself, by the tests as they are. Seeds are printed, so that a
//! failure can be repeated; the limit is the level and three Monte Carlo standard errors.

use lab_stats::exchange::Exchange;
use lab_stats::verdict::{ALPHA, Margins};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Draft, Names, judge};
use crate::answer::decision;
use crate::model::{Comparison, Decision, Measure};

const STUDIES: u32 = 400;
/// How much slower the left place is, as a log ratio.
const PLACE: f64 = 0.1;

struct Noise(Xoshiro256PlusPlus);

impl Noise {
    fn unit(&mut self) -> f64 {
        f64::from(self.0.next_u32()).mul_add(1.0 / 4_294_967_296.0, 1.0e-10)
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// The decision on a duet of equal builds: mean, p95, and throughput, which share most of their noise.
fn decided(noise: &mut Noise, blocks: usize, matters: f64) -> Decision {
    let mut swapped: Vec<bool> = (0..blocks).map(|block| block % 2 == 1).collect();
    for last in (1..blocks).rev() {
        let other = usize::try_from(noise.0.next_u32()).unwrap_or_default() % (last + 1);
        swapped.swap(last, other);
    }
    let mut rows = [(); 3].map(|()| Vec::new());
    for swapped in &swapped {
        let place = if *swapped { PLACE } else { -PLACE };
        let common = 0.03 * noise.normal();
        rows[0].push(Some(place + common + 0.01 * noise.normal()));
        rows[1].push(Some(place + common + 0.03 * noise.normal()));
        rows[2].push(Some(-place - common + 0.01 * noise.normal()));
    }
    let measures = [Measure::Mean, Measure::P95, Measure::Throughput];
    let draft = |(measure, by_block)| Draft {
        names: Names {
            factor: "variant".to_owned(),
            a: "a".to_owned(),
            b: "b".to_owned(),
        },
        measure,
        by_block,
        sums: (1.0, 1.0),
        missing: None,
    };
    let drafts = measures.into_iter().zip(rows).map(draft).collect();
    let test = Exchange {
        seed: 1,
        swapped: Some(&swapped),
    };
    let judged = judge(drafts, &|_| Margins::of(matters), &|_| true, test);
    decision(&judged.iter().collect::<Vec<&Comparison>>(), true)
}

#[test]
fn unchanged_build_in_a_duet_is_called_different_in_one_study_of_twenty_at_most() {
    let seed = 4;
    let mut noise = Noise(Xoshiro256PlusPlus::seed_from_u64(seed));
    for blocks in [8, 12] {
        // Differences of any size, and relevant ones.
        for matters in [1.0e-6, 0.02] {
            let different = |decision| matches!(decision, Decision::Worse | Decision::Better);
            let wrong = (0..STUDIES).filter(|_| different(decided(&mut noise, blocks, matters)));
            let part =
                f64::from(u32::try_from(wrong.count()).unwrap_or(u32::MAX)) / f64::from(STUDIES);
            println!("seed {seed}, {blocks} blocks, from {matters} on: {part:.3} better or worse");
            let error = 3.0 * (ALPHA * (1.0 - ALPHA) / f64::from(STUDIES)).sqrt();
            assert!(part <= ALPHA + error, "{blocks} {matters}: {part}");
        }
    }
}
