//! Detectable differences of profiles in simulated studies: `cargo run --release -p lab-stats --example
//! profile_differences`.
//!
//! First the false positive rate, which must be at most 5 % of studies. Then the smallest difference that four studies
//! of five show, by the function's part of the whole, blocks, and samples of a trial, compared with
//! [`lab_stats::moderated::detectable`]. It takes a few minutes.

#[path = "../tests/noise/mod.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod noise;
#[path = "../tests/moderated/simulated.rs"]
mod simulated;

use lab_stats::moderated::detectable;
use noise::{Noise, within};
use simulated::Truth;

const SEED: u64 = 20_261_130;
const STUDIES: usize = 2_000;
/// Studies per step towards a power of 0.8: its standard error is 0.02.
const STEP_STUDIES: usize = 400;

fn main() {
    let mut noise = Noise::new(SEED);
    println!("equal variants, {STUDIES} studies each: any function shown");
    for (blocks, samples) in [(6, 2_400.0), (8, 6_000.0), (12, 12_000.0)] {
        for (name, truth) in equal(blocks, samples) {
            let counts = truth.studies(STUDIES, &mut noise);
            report(
                &format!("K {blocks:>2}, N {samples:>6}, {name}"),
                counts.any,
                STUDIES,
            );
        }
    }
    println!("one function differs: it is shown, and another is");
    for (name, truth) in different() {
        let counts = truth.studies(500, &mut noise);
        report(&format!("{name}: it"), counts.first, 500);
        report(&format!("{name}: another"), counts.another, 500);
    }
    println!("smallest difference shown by 80 % of studies, % of the whole (rule in brackets)");
    println!("functions vary by 1 %, trials by 2 %; functions of 0.1 %, 1 %, 5 %, 20 %");
    let rows = [
        (6, 2_400.0),
        (6, 12_000.0),
        (8, 2_400.0),
        (8, 6_000.0),
        (8, 12_000.0),
        (8, 24_000.0),
        (12, 2_400.0),
        (12, 12_000.0),
    ];
    for (blocks, samples) in rows {
        let cell = |share: f64| {
            let truth = Truth::usual(blocks, samples, share);
            let rule = detectable(share, samples, blocks).unwrap_or(f64::NAN);
            format!("{:.2} ({:.2})", 100.0 * smallest(truth), 100.0 * rule)
        };
        let cells = [0.001, 0.01, 0.05, 0.2].map(cell);
        println!("K {blocks:>2}, N {samples:>6}: {}", cells.join("  "));
    }
}

fn equal(blocks: usize, samples: f64) -> [(&'static str, Truth); 4] {
    let alike = Truth::usual(blocks, samples, 0.05);
    let nested = Truth {
        by_caller: 20,
        ..alike.clone()
    };
    let whole = Truth {
        trial_sd: 0.2,
        shares: vec![0.01; 100],
        ..nested.clone()
    };
    let noisy = Truth {
        function_sd: 0.1,
        shares: falling(400),
        ..nested.clone()
    };
    [
        ("self only", alike),
        ("with callers", nested),
        ("trials differ by 20 %", whole),
        ("uneven functions vary by 10 %", noisy),
    ]
}

fn different() -> [(&'static str, Truth); 4] {
    let small = Truth {
        added: 0.01,
        ..Truth::usual(6, 2_400.0, 0.01)
    };
    let mut shares = falling(200);
    shares.insert(0, 0.05);
    let whole = Truth {
        trial_sd: 0.2,
        added: 0.02,
        shares,
        ..Truth::usual(8, 2_400.0, 0.05)
    };
    let large = Truth {
        added: 0.1,
        shares: [vec![0.4], vec![0.01; 60]].concat(),
        ..whole.clone()
    };
    let forty = Truth {
        added: 0.05,
        shares: vec![0.025; 40],
        by_caller: 10,
        ..Truth::usual(8, 2_500.0, 0.025)
    };
    [
        ("K 6, N 2400, 1 % added to 1 %", small),
        (
            "K 8, N 2400, 2 % added to 5 %, trials differ by 20 %",
            whole,
        ),
        (
            "K 8, N 2400, 10 % added to 40 %, trials differ by 20 %",
            large,
        ),
        (
            "K 8, N 2500, 5 % added to one of forty, with callers",
            forty,
        ),
    ]
}

/// Returns shares that fall as the reciprocal of the rank.
fn falling(functions: usize) -> Vec<f64> {
    let sum: f64 = (1..=functions).map(|n| 1.0 / n as f64).sum();
    (1..=functions).map(|n| 1.0 / n as f64 / sum).collect()
}

/// Returns the effect that four studies of five show, by bisection on the log scale.
fn smallest(truth: Truth) -> f64 {
    let (mut low, mut high) = (0.000_1_f64, 0.2_f64);
    while high / low > 1.06 {
        let middle = (low * high).sqrt();
        let truth = Truth {
            added: middle,
            ..truth.clone()
        };
        let counts = truth.studies(STEP_STUDIES, &mut Noise::quiet(SEED));
        if counts.first * 5 >= STEP_STUDIES * 4 {
            high = middle;
        } else {
            low = middle;
        }
    }
    (low * high).sqrt()
}

fn report(name: &str, hits: usize, studies: usize) {
    let (off, error) = within(hits, studies, 0.05);
    println!(
        "  {name}: {:.1} % (3 standard errors of 5 %: {:.1})",
        100.0 * (off + 0.05),
        100.0 * error
    );
}
