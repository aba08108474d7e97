//! "Not worse" beside interference, against known truth: two servers side by side, request by request, whose
//! requests wait for programs that come and go. Seeds are printed, so that a failure can be repeated; limits
//! are the expected figure and three Monte Carlo standard errors.

use hdrhistogram::Histogram;
use lab_stats::duet::{Block, effects, interval, max_t, windows};
use lab_stats::interference::{own_time, stretch};
use lab_stats::unpaired::Row;
use lab_stats::verdict::ALPHA;

use crate::noise::{Noise, within};

const STUDIES: usize = 500;
const WINDOWS: usize = 12;
/// Requests of one variant in a window.
const REQUESTS: usize = 30;
/// A request's own time, µs.
const OWN_US: f64 = 5_000.0;
/// What the study says matters.
const MARGIN: f64 = 0.05;

/// How the wait of a request depends on its work: not at all (0), in proportion (1), or between.
type Exponent = f64;

/// What a block's trials have: windows of both variants, and requests by variant.
struct Measured {
    swapped: bool,
    difference: f64,
    means: [f64; 2],
    own: [f64; 2],
}

/// A block of a duet: *b* needs `effect` more work. In each window a part of the requests of both finds its core
/// taken.
fn block(noise: &mut Noise, swapped: bool, (exponent, effect): (Exponent, f64)) -> Measured {
    let starts = [0.0, effect.ln_1p()].map(|shift| shift + 0.005 * noise.normal());
    let mut all = [(); 2].map(|()| Histogram::<u64>::new(3).unwrap());
    let mut logs = [Vec::new(), Vec::new()];
    for _ in 0..WINDOWS {
        let taken = 0.2 + 0.6 * noise.unit();
        for variant in 0..2 {
            // The left place is slower by 2 %.
            let is_left = (variant == 1) == swapped;
            let place = if is_left { 0.02 } else { 0.0 };
            let mut sum = 0.0;
            for _ in 0..REQUESTS {
                let work = (starts[variant] + place + 0.05 * noise.normal()).exp();
                let waits = noise.unit() < taken;
                let wait = match waits {
                    true => noise.exponential(1.6) * work.powf(exponent),
                    false => 0.0,
                };
                let us = OWN_US * (work + wait);
                all[variant].record(us as u64).unwrap();
                sum += us;
            }
            logs[variant].push(Some((sum / REQUESTS as f64).ln()));
        }
    }
    Measured {
        swapped,
        difference: windows(&logs[0], &logs[1]).unwrap().difference,
        means: all.each_ref().map(Histogram::mean),
        own: all
            .each_ref()
            .map(|all| own_time(std::iter::once(all)).unwrap()),
    }
}

fn study(noise: &mut Noise, blocks: usize, of: (Exponent, f64)) -> Vec<Measured> {
    let mut sides: Vec<bool> = (0..blocks).map(|block| block % 2 == 1).collect();
    for last in (1..blocks).rev() {
        sides.swap(last, (noise.unit() * (last + 1) as f64) as usize);
    }
    sides
        .into_iter()
        .map(|side| block(noise, side, of))
        .collect()
}

/// What is judged: log ratios as measured, or stretched by what interference may hide.
fn judged(study: &[Measured], stretched: bool) -> Vec<Block> {
    let own = study
        .iter()
        .flat_map(|one| one.own)
        .fold(f64::MAX, f64::min);
    let of_block = |one: &Measured| {
        let measured = one.means[0].max(one.means[1]);
        let factor = match stretched {
            true => stretch(measured, own, 0.0).unwrap(),
            false => 1.0,
        };
        Block {
            difference: one.difference * factor,
            swapped: one.swapped,
        }
    };
    study.iter().map(of_block).collect()
}

fn is_not_worse(blocks: &[Block]) -> bool {
    interval(blocks, 2.0 * ALPHA, 1).high < MARGIN.ln_1p()
}

/// As a gate calls it: beyond noise, and by more than matters.
fn is_worse(blocks: &[Block]) -> bool {
    let row: Row = blocks.iter().map(|block| Some(block.difference)).collect();
    let swapped: Vec<bool> = blocks.iter().map(|block| block.swapped).collect();
    let p = max_t(&[row], &swapped, 1)[0].joint;
    p <= ALPHA && effects(blocks).unwrap().variants > 0.0
}

/// A regression of just the margin, whichever way waits depend on the work.
#[test]
fn a_regression_of_the_margin_is_called_not_worse_in_one_study_of_twenty_at_most() {
    let mut noise = Noise::new(81);
    for exponent in [0.0, 0.5, 1.0] {
        for blocks in [8, 12] {
            let of = |noise: &mut Noise| {
                is_not_worse(&judged(&study(noise, blocks, (exponent, MARGIN)), true))
            };
            let wrong = (0..STUDIES).filter(|_| of(&mut noise)).count();
            println!("waits ~ work^{exponent}, {blocks} blocks: {wrong} of {STUDIES} not worse");
            let (above, error) = within(wrong, STUDIES, ALPHA);
            assert!(above <= error, "{exponent} {blocks}: {wrong}");
        }
    }
}

/// Why the stretch: without it waits that don't depend on the work hide the regression.
#[test]
fn log_ratios_as_measured_hide_it() {
    let mut noise = Noise::new(82);
    let of = |noise: &mut Noise| is_not_worse(&judged(&study(noise, 12, (0.0, MARGIN)), false));
    let wrong = (0..STUDIES).filter(|_| of(&mut noise)).count();
    println!("as measured, 12 blocks: {wrong} of {STUDIES} not worse");
    assert!(wrong as f64 > 3.0 * ALPHA * STUDIES as f64, "{wrong}");
}

/// An unchanged build: never worse in more than one study of twenty, and not worse in most of enough blocks.
#[test]
fn an_unchanged_build_is_shown_not_to_be_worse() {
    let mut noise = Noise::new(83);
    for (exponent, blocks, at_least) in [(0.0, 12, 0.3), (0.0, 20, 0.5), (1.0, 12, 0.3)] {
        let (mut worse, mut shown) = (0, 0);
        for _ in 0..STUDIES {
            let study = study(&mut noise, blocks, (exponent, 0.0));
            worse += usize::from(is_worse(&judged(&study, false)));
            shown += usize::from(is_not_worse(&judged(&study, true)));
        }
        println!(
            "unchanged, waits ~ work^{exponent}, {blocks} blocks: {worse} of {STUDIES} worse, {shown} not worse"
        );
        let (above, error) = within(worse, STUDIES, ALPHA / 2.0);
        assert!(above <= error, "{exponent} {blocks}: {worse}");
        assert!(
            shown as f64 >= at_least * STUDIES as f64,
            "{exponent} {blocks}: {shown}"
        );
    }
}
