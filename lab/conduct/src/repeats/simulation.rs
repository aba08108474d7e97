//! Simulated studies on a shared machine: repeats bias neither means nor verdicts, also if the noise depends on the
//! load. Seeds are printed.

use lab_stats::paired::{mean, sign_flip_p};
use lab_stats::verdict::ALPHA;

use super::{Next, Repeats};
use crate::judged::Judged;

const STUDIES: u64 = 1500;
const BLOCKS: u32 = 6;
/// A trial is invalid if other programs use more than this part of the CPU.
const LIMIT: f64 = 0.20;
/// Standard deviation of a trial's log time.
const SPREAD: f64 = 0.02;
/// The default smallest relevant difference of a study.
const SMALLEST: f64 = 0.02;

/// SplitMix64 (Steele, Lea & Flood 2014).
struct Noise(u64);

impl Noise {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// A machine whose other programs run in stretches of several trials.
struct Machine {
    noise: Noise,
    loud: bool,
    /// Additional CPU of other programs where the second cell runs, at most: a hypervisor that gives less CPU to a
    /// heavier load.
    by_load: f64,
}

impl Machine {
    /// Log time of a trial, and the CPU of other programs meanwhile.
    fn run(&mut self, heavy: bool, block: f64) -> (f64, f64) {
        if self.noise.unit() < 0.2 {
            self.loud = self.noise.unit() < 0.4;
        }
        let mut others = match self.loud {
            true => 0.10 + 0.5 * self.noise.unit(),
            false => 0.08 * self.noise.unit(),
        };
        if heavy {
            others += self.by_load * self.noise.unit();
        }
        // A tenth less CPU makes a trial three hundredths slower.
        let time = block + SPREAD * self.noise.normal() + 0.3 * others;
        (time, others)
    }
}

/// The trials that a rule repeats, by log time and the CPU of other programs.
type Rule = fn(f64, f64) -> bool;

/// Results of many studies of two equal cells.
#[derive(Debug, Default)]
struct Outcome {
    /// Mean log ratio of complete blocks.
    bias: f64,
    /// The same for the blocks whose first attempts are both valid.
    without_repeats: f64,
    /// Part of the studies with all blocks that found a difference.
    false_alarms: f64,
    complete: f64,
}

fn simulate(seed: u64, by_load: f64, rule: Rule) -> Outcome {
    println!("seed {seed}");
    let mut machine = Machine {
        noise: Noise(seed),
        loud: false,
        by_load,
    };
    let (mut all, mut first) = (Vec::new(), Vec::new());
    let (mut alarms, mut complete) = (0.0, 0.0);
    for study in 0..STUDIES {
        let (blocks, firsts) = one(&mut machine, rule);
        if blocks.len() == BLOCKS as usize {
            complete += 1.0;
            alarms += f64::from(u8::from(sign_flip_p(&blocks, study) <= ALPHA));
        }
        all.extend(blocks);
        first.extend(firsts);
    }
    Outcome {
        bias: mean(&all).unwrap_or_default(),
        without_repeats: mean(&first).unwrap_or_default(),
        false_alarms: alarms / complete,
        complete: complete / STUDIES as f64,
    }
}

/// The log ratios of a study's blocks, with repeats and without.
fn one(machine: &mut Machine, rule: Rule) -> (Vec<f64>, Vec<f64>) {
    let trials = (0..2 * BLOCKS).map(|n| (n + 1, n / 2));
    let mut repeats = Repeats::new(trials, 3);
    // In random order within a block.
    let swapped: Vec<bool> = (0..BLOCKS).map(|_| machine.noise.unit() < 0.5).collect();
    let effects: Vec<f64> = (0..BLOCKS).map(|_| 0.1 * machine.noise.normal()).collect();
    let mut times = vec![[None; 2]; BLOCKS as usize];
    let mut firsts = times.clone();
    while let Some(Next { at, attempt }) = repeats.next() {
        let block = at / 2;
        let heavy = (at % 2 == 1) != swapped[block];
        let (time, others) = machine.run(heavy, effects[block]);
        let again = rule(time - effects[block], others);
        let judged = if again {
            Judged::made_up("other programs", true)
        } else {
            Judged::default()
        };
        // While the disturbance lasts, a wait is in vain.
        repeats.learn(Next { at, attempt }, &judged, machine.loud);
        if !again {
            times[block][usize::from(heavy)] = Some(time);
        }
        if !again && attempt.is_none() {
            firsts[block][usize::from(heavy)] = Some(time);
        }
    }
    let ratios = |of: &[[Option<f64>; 2]]| {
        let pairs = of
            .iter()
            .filter_map(|[light, heavy]| Some((*heavy)? - (*light)?));
        pairs.collect::<Vec<f64>>()
    };
    (ratios(&times), ratios(&firsts))
}

fn outside(_: f64, others: f64) -> bool {
    others > LIMIT
}

/// Three standard errors of a share of 5 %.
fn three_errors(studies: f64) -> f64 {
    3.0 * (ALPHA * (1.0 - ALPHA) / studies).sqrt()
}

#[test]
fn repeats_bias_neither_means_nor_verdicts() {
    let found = simulate(11, 0.0, outside);
    let studies = found.complete * STUDIES as f64;
    assert!(found.complete > 0.2, "{found:?}");
    assert!(found.bias.abs() < SMALLEST / 10.0, "{found:?}");
    assert!(
        found.false_alarms <= ALPHA + three_errors(studies),
        "{found:?}"
    );
}

#[test]
fn noise_that_grows_with_the_load_biases_a_study_no_more_with_repeats_than_without() {
    let found = simulate(12, 0.15, outside);
    let more = (found.bias - found.without_repeats).abs();
    assert!(more < SMALLEST / 5.0, "{found:?}");
}

#[test]
fn a_rule_that_looks_at_the_result_would_show() {
    // The heavy cell is slower by the disturbance of its load; repeats of slow trials hide that.
    let by_result = simulate(13, 0.15, |time, others| others > LIMIT || time > 0.03);
    let honest = simulate(13, 0.15, outside);
    assert!(
        honest.bias - by_result.bias > SMALLEST / 5.0,
        "{honest:?} {by_result:?}"
    );
}
