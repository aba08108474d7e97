//! Comparisons of two runs and the order of trials, against known truth: limits are the expected figure and three Monte
//! Carlo standard errors.

use crate::noise::{Noise, within};
use lab_stats::trend::trend;
use lab_stats::unpaired::{Row, interval, max_t};
use lab_stats::verdict::{ALPHA, Better, Compared, Margins, SMALLEST_RELEVANT, Verdict, word};

/// Simulates two runs of `m` and `n` blocks, `measures` of which share half of their noise; the second run's are larger
/// by `effect`.
fn runs(
    noise: &mut Noise,
    (m, n): (usize, usize),
    measures: usize,
    sd: f64,
    effect: f64,
) -> Vec<Row> {
    let mut rows = vec![Row::new(); measures];
    for unit in 0..m + n {
        let shared = noise.normal();
        for row in &mut rows {
            let shift = if unit < m { 0.0 } else { effect };
            let own = (shared + noise.normal()) / std::f64::consts::SQRT_2;
            row.push(Some(shift + sd * own));
        }
    }
    rows
}

fn words(rows: &[Row], m: usize) -> Vec<Verdict> {
    let adjusted = max_t(rows, m, 1);
    let judged = rows.iter().zip(adjusted).map(|(row, p)| {
        let values: Vec<f64> = row.iter().flatten().copied().collect();
        let (a, b) = values.split_at(m);
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let compared = Compared {
            log_ratio: mean(b) - mean(a),
            one_sided: interval(a, b, 2.0 * ALPHA, 1),
            p: p.joint,
            blocks: m,
        };
        word(&compared, Better::Lower, Margins::of(SMALLEST_RELEVANT))
    });
    judged.collect()
}

#[test]
fn two_runs_of_one_build_show_nothing() {
    let mut noise = Noise::new(21);
    for (sizes, measures) in [((4, 4), 12), ((6, 6), 12), ((5, 8), 3)] {
        let wrong = (0..1_000)
            .filter(|_| {
                let rows = runs(&mut noise, sizes, measures, 0.05, 0.0);
                let is_shown = |word: &Verdict| matches!(word, Verdict::Faster | Verdict::Slower);
                words(&rows, sizes.0).iter().any(is_shown)
            })
            .count();
        println!(
            "{sizes:?}, {measures} measures: {wrong} of 1000 A/A comparisons show a difference"
        );
        let (above, error) = within(wrong, 1_000, ALPHA);
        assert!(above <= error, "{sizes:?}: {wrong}");
        assert!(wrong > 0, "a test that never rejects shows nothing either");
    }
}

#[test]
fn a_regression_between_runs_is_found_in_every_measure() {
    let mut noise = Noise::new(22);
    let (mut found, mut asked) = (0, 0);
    for _ in 0..300 {
        // 10 % slower, noise of a trial 2 %: 12 measures, four blocks each.
        let words = words(&runs(&mut noise, (4, 4), 12, 0.02, 0.10), 4);
        found += words
            .iter()
            .filter(|word| **word == Verdict::Slower)
            .count();
        asked += words.len();
    }
    println!("{found} of {asked} regressions found");
    assert!(found as f64 > 0.9 * asked as f64, "{found} of {asked}");
}

#[test]
fn intervals_between_runs_cover_at_their_level() {
    let mut noise = Noise::new(23);
    // The level that these few splits allow: 1 − floor(0.05 · splits) ÷ splits.
    for (m, n, level) in [
        (4, 4, 1.0 - 2.0 / 70.0),
        (6, 6, 1.0 - 46.0 / 924.0),
        (4, 6, 1.0 - 10.0 / 210.0),
    ] {
        let covered = (0..2_000)
            .filter(|_| {
                let (a, b) = (noise.normals(m, 1.0, 0.04), noise.normals(n, 1.03, 0.04));
                let bounds = interval(&a, &b, ALPHA, 1);
                bounds.low <= 0.03 && 0.03 <= bounds.high
            })
            .count();
        let (above, error) = within(covered, 2_000, level);
        println!("{m} beside {n}: {covered} of 2000 cover, {level:.4} expected");
        assert!(above.abs() <= error, "{m} beside {n}: {covered}");
    }
}

#[test]
fn the_interval_between_runs_is_the_inverted_test() {
    let mut noise = Noise::new(24);
    for (m, n) in [(4, 4), (4, 7), (6, 5)] {
        let (a, b) = (noise.normals(m, 0.0, 1.0), noise.normals(n, 0.5, 1.0));
        let p = |centre: f64| {
            let row = a.iter().copied().chain(b.iter().map(|v| v - centre));
            max_t(&[row.map(Some).collect()], m, 9)[0].single
        };
        let end = |mut rejected: f64| {
            let mut kept = b.iter().sum::<f64>() / n as f64 - a.iter().sum::<f64>() / m as f64;
            for _ in 0..40 {
                let middle = f64::midpoint(rejected, kept);
                if p(middle) > ALPHA {
                    kept = middle;
                } else {
                    rejected = middle;
                }
            }
            kept
        };
        let bounds = interval(&a, &b, ALPHA, 9);
        let (low, high) = (end(-50.0), end(50.0));
        assert!(
            (bounds.low - low).abs() < 1e-6,
            "{m} {n}: {bounds:?}, {low} {high}"
        );
        assert!(
            (bounds.high - high).abs() < 1e-6,
            "{m} {n}: {bounds:?}, {low} {high}"
        );
    }
}

#[test]
fn an_order_that_does_not_matter_seldom_looks_as_if_it_did() {
    let mut noise = Noise::new(25);
    for (blocks, cells) in [(6, 4), (10, 2), (1, 8)] {
        let alarms = (0..1_000)
            .filter(|_| {
                // Skewed noise: the test assumes no distribution.
                let block =
                    |noise: &mut Noise| (0..cells).map(|_| noise.exponential(1.0)).collect();
                let groups: Vec<Vec<f64>> = (0..blocks).map(|_| block(&mut noise)).collect();
                trend(&groups, 1).is_some_and(|found| found.p <= ALPHA)
            })
            .count();
        let (above, error) = within(alarms, 1_000, ALPHA);
        println!("{blocks} blocks of {cells}: {alarms} of 1000 false alarms");
        assert!(above <= error, "{blocks} blocks of {cells}: {alarms}");
        assert!(alarms > 0 || blocks * cells < 8);
    }
}

#[test]
fn an_order_that_matters_is_seen() {
    let mut noise = Noise::new(26);
    let seen = (0..200)
        .filter(|_| {
            // Each trial of a block is 3 % slower than the one before it; noise 3 %.
            let block = |noise: &mut Noise| {
                (0..4)
                    .map(|at| 0.03 * f64::from(at) + 0.03 * noise.normal())
                    .collect()
            };
            let groups: Vec<Vec<f64>> = (0..6).map(|_| block(&mut noise)).collect();
            trend(&groups, 1).is_some_and(|found| found.p <= ALPHA && found.per_position > 0.0)
        })
        .count();
    println!("{seen} of 200 orders seen");
    assert!(seen > 180, "{seen}");
}
