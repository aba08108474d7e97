//! Inference against known truth: simulated studies with a known answer. Seeds are printed, so a failure can be
//! repeated; limits are the expected figure and three Monte Carlo standard errors.

use crate::noise::{Noise, within};
use lab_stats::paired::{interval, max_t, mean, sign_flip_p};
use lab_stats::usl::{self, Fitted};
use lab_stats::verdict::{ALPHA, Better, Compared, Margins, SMALLEST_RELEVANT, Verdict, verdict};
use lab_stats::{Steady, mser5};

/// One study: `cells` × 6 metrics over `blocks`; cell c's times are longer by `effect` if c > 0.
/// Blocks differ by 10 %, trials by `sd`, the metrics of a trial share half of their noise. Each row
/// is cell c against the first cell, in one metric.
fn study(noise: &mut Noise, cells: usize, blocks: usize, sd: f64, effect: f64) -> Vec<Vec<f64>> {
    const METRICS: usize = 6;
    let mut rows = vec![Vec::new(); (cells - 1) * METRICS];
    for _ in 0..blocks {
        let block = 0.1 * noise.normal();
        let trial = |noise: &mut Noise, shift: f64| {
            let shared = noise.normal();
            let one = |noise: &mut Noise| {
                block + shift + sd * (shared + noise.normal()) / std::f64::consts::SQRT_2
            };
            (0..METRICS).map(|_| one(noise)).collect::<Vec<f64>>()
        };
        let baseline = trial(noise, 0.0);
        for cell in 1..cells {
            let other = trial(noise, effect);
            for metric in 0..METRICS {
                rows[(cell - 1) * METRICS + metric].push(other[metric] - baseline[metric]);
            }
        }
    }
    rows
}

fn verdicts(rows: &[Vec<f64>]) -> Vec<Verdict> {
    let blocks: Vec<Vec<Option<f64>>> = rows
        .iter()
        .map(|row| row.iter().copied().map(Some).collect())
        .collect();
    let adjusted = max_t(&blocks, 1);
    let judged = rows.iter().zip(adjusted).map(|(row, p)| {
        let compared = Compared {
            log_ratio: mean(row).unwrap(),
            one_sided: interval(row, 2.0 * ALPHA, 1),
            p: p.joint,
            blocks: row.len(),
        };
        verdict(&compared, Better::Lower, Margins::of(SMALLEST_RELEVANT)).unwrap()
    });
    judged.collect()
}

fn is_difference(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Faster | Verdict::Slower)
}

#[test]
fn a_thousand_studies_of_nothing_show_nothing() {
    let mut noise = Noise::new(20_261_121);
    for (cells, blocks) in [(2, 6), (4, 6), (3, 8)] {
        let wrong = (0..1_000)
            .filter(|_| {
                let rows = study(&mut noise, cells, blocks, 0.05, 0.0);
                verdicts(&rows).iter().any(is_difference)
            })
            .count();
        println!("{cells} cells, {blocks} blocks: {wrong} of 1000 A/A studies show a difference");
        let (above, error) = within(wrong, 1_000, ALPHA);
        assert!(above <= error, "{cells} cells, {blocks} blocks: {wrong}");
        assert!(wrong > 0, "a test that never rejects shows nothing either");
    }
}

#[test]
fn a_difference_that_is_there_is_found_in_company() {
    let mut noise = Noise::new(3);
    let (mut found, mut asked) = (0, 0);
    for _ in 0..300 {
        // 10 % slower, noise of a trial 2 %: 18 comparisons, six blocks.
        let verdicts = verdicts(&study(&mut noise, 4, 6, 0.02, 0.10));
        found += verdicts.iter().filter(|v| **v == Verdict::Slower).count();
        asked += verdicts.len();
        assert!(!verdicts.contains(&Verdict::Faster));
    }
    println!("{found} of {asked} comparisons found");
    assert!(found as f64 > 0.8 * asked as f64, "{found} of {asked}");
}

/// Returns how often pairs whose true log ratio is `effect` have the `wanted` verdict, of `studies`.
fn come_out(
    noise: &mut Noise,
    (pairs, effect, sd): (usize, f64, f64),
    studies: usize,
    wanted: impl Fn(Verdict) -> bool,
) -> usize {
    let came = |noise: &mut Noise| verdicts(&[noise.normals(pairs, effect, sd)])[0];
    (0..studies).filter(|_| wanted(came(noise))).count()
}

#[test]
fn what_is_just_relevant_is_seldom_called_equal() {
    let mut noise = Noise::new(9);
    let margin = SMALLEST_RELEVANT.ln_1p();
    for pairs in [6, 8, 12] {
        for sd in [0.002, 0.01, 0.03] {
            let shape = |effect| (pairs, effect, sd);
            let no_worse = |v| matches!(v, Verdict::Equal | Verdict::NoWorse);
            // Worse by exactly the margin: neither equal nor no worse.
            let worse = come_out(&mut noise, shape(margin), 2_000, no_worse);
            // Better by the same: not equal.
            let equal = |v| v == Verdict::Equal;
            let better = come_out(&mut noise, shape(-margin), 2_000, equal);
            println!("{pairs} pairs, SD {sd}: {worse} worse and {better} better of 2000 pass");
            for wrong in [worse, better] {
                let (above, error) = within(wrong, 2_000, ALPHA);
                assert!(above <= error, "{pairs} pairs, SD {sd}: {wrong}");
            }
        }
    }
}

#[test]
fn what_is_equal_is_called_so_where_the_noise_is_small() {
    let mut noise = Noise::new(10);
    let equal = |v| v == Verdict::Equal;
    let quiet = come_out(&mut noise, (6, 0.0, 0.005), 500, equal);
    let noisy = come_out(&mut noise, (6, 0.0, 0.05), 500, equal);
    println!("equal: {quiet} of 500 at 0.5 % noise, {noisy} at 5 %");
    assert!(quiet > 490 && noisy < 60, "{quiet} {noisy}");
}

#[test]
fn power_is_what_the_plan_promises() {
    // Six pairs show a difference if all have its sign: Φ(effect ÷ SD)^6. Ten pairs reach 80 % if the effect is as
    // large as the SD; five can show nothing.
    let mut noise = Noise::new(4);
    for (sd, effect, pairs, expected) in [
        (0.02, 0.02, 10, 0.80),
        (0.05, 0.05, 10, 0.80),
        (0.02, 0.05, 6, 0.963),
        (0.03, 0.05, 6, 0.745),
        (0.02, 0.05, 5, 0.0),
    ] {
        let shown = (0..2_000)
            .filter(|_| sign_flip_p(&noise.normals(pairs, effect, sd), 1) < ALPHA)
            .count();
        println!(
            "SD {sd}, effect {effect}, {pairs} pairs: {shown} of 2000 shown, {expected} expected"
        );
        let (above, error) = within(shown, 2_000, expected);
        assert!(above.abs() <= error, "{shown}");
    }
}

#[test]
fn intervals_cover_at_their_level() {
    let mut noise = Noise::new(5);
    for (blocks, level) in [
        (6, 1.0 - 2.0 / 64.0),
        (8, 1.0 - 12.0 / 256.0),
        (10, 1.0 - 50.0 / 1024.0),
    ] {
        let covered = (0..2_000)
            .filter(|_| {
                let bounds = interval(&noise.normals(blocks, 0.03, 0.04), ALPHA, 1);
                bounds.low <= 0.03 && 0.03 <= bounds.high
            })
            .count();
        let (above, error) = within(covered, 2_000, level);
        println!("{blocks} blocks: {covered} of 2000 cover, {level:.4} expected");
        assert!(above.abs() <= error, "{blocks} blocks: {covered}");
    }
}

#[test]
fn the_interval_is_the_inverted_test() {
    // Bisection on the test itself finds the same ends.
    let mut noise = Noise::new(6);
    for blocks in [6, 7, 9, 21] {
        let values = noise.normals(blocks, 0.02, 0.05);
        let shifted = |centre: f64| {
            let moved: Vec<f64> = values.iter().map(|v| v - centre).collect();
            sign_flip_p(&moved, 9)
        };
        let end = |mut rejected: f64| {
            let mut kept = mean(&values).unwrap();
            for _ in 0..if blocks > 20 { 12 } else { 40 } {
                let middle = f64::midpoint(rejected, kept);
                if shifted(middle) > ALPHA {
                    kept = middle;
                } else {
                    rejected = middle;
                }
            }
            kept
        };
        let bounds = interval(&values, ALPHA, 9);
        let tolerance = if blocks > 20 { 1e-3 } else { 1e-8 };
        assert!((bounds.low - end(-1.0)).abs() < tolerance, "{blocks}");
        assert!((bounds.high - end(1.0)).abs() < tolerance, "{blocks}");
    }
}

#[test]
fn mser_5_finds_a_known_warm_up() {
    let mut noise = Noise::new(7);
    let mut cuts = Vec::new();
    for _ in 0..300 {
        // 250 windows; the first 50 start four times too high and decay exponentially.
        let values: Vec<f64> = (0..250)
            .map(|i| 10.0 + 30.0 * (-f64::from(i) / 12.0).exp() + noise.normal())
            .collect();
        match mser5(&values) {
            Steady::From(cut) => cuts.push(cut),
            other => println!("{other:?}"),
        }
    }
    cuts.sort_unstable();
    let median = cuts[cuts.len() / 2];
    println!("{} of 300 judged steady, median cut {median}", cuts.len());
    // 30 · e^(−i/12) is below half the noise of a batch from i = 58.
    assert!(cuts.len() >= 270 && (25..=75).contains(&median), "{median}");
    let even = (0..300)
        .filter(|_| matches!(mser5(&noise.normals(250, 10.0, 1.0)), Steady::From(_)))
        .count();
    println!("{even} of 300 series without a warm-up judged steady");
    assert!(even >= 270, "{even}");
}

#[test]
fn usl_intervals_cover_at_their_level() {
    let mut noise = Noise::new(8);
    let (alpha, beta): (f64, f64) = (0.03, 0.000_5);
    let peak = ((1.0 - alpha) / beta).sqrt();
    let mut hits = [0; 4];
    for _ in 0..1_000 {
        let points: Vec<(f64, f64)> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 96.0]
            .into_iter()
            .map(|n: f64| {
                let x = 500.0 * n / (1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0));
                (n, x * (0.03 * noise.normal()).exp())
            })
            .collect();
        let fitted = usl::fit(&points).unwrap();
        let covers = |one: &Fitted, truth: f64| usize::from(one.low <= truth && truth <= one.high);
        hits[0] += covers(&fitted.alpha, alpha);
        hits[1] += covers(&fitted.beta, beta);
        let at_48 = 500.0 * 48.0 / (1.0 + alpha * 47.0 + beta * 48.0 * 47.0);
        hits[3] += covers(&fitted.band(48.0), at_48);
        hits[2] += fitted.peak.map_or(0, |one| covers(&one, peak));
    }
    println!("alpha, beta, peak, band covered {hits:?} of 1000");
    for hit in hits {
        // The delta method is an approximation: within one per cent plus the Monte Carlo error.
        let (above, error) = within(hit, 1_000, 0.95);
        assert!(above.abs() <= error + 0.01, "{hits:?}");
    }
}
