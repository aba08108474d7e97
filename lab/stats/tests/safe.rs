//! The safe line of simulated searches with known odds: how often it overstates the truth. The limit is the expected
//! figure and three Monte Carlo standard errors.

use crate::noise::{Noise, within};
use lab_stats::isotonic::{CONFIDENCE, Tally, tally};
use lab_stats::safe::{PART, safe_line};
use lab_stats::search::{Judgement, Next, Rules, Tried};

const SEARCHES: usize = 1_000;

fn search(rules: &Rules, noise: &mut Noise, odds: &dyn Fn(f64) -> f64) -> Vec<Tally> {
    let mut so_far = Vec::new();
    while let Next::Try(level) = rules.next(&so_far) {
        let judgement = match noise.unit() < odds(level.into()) {
            true => Judgement::Carried,
            false => Judgement::NotCarried,
        };
        so_far.push(Tried { level, judgement });
    }
    let carried = |tried: &Tried| Some((tried.level, tried.judgement.carried()?));
    tally(so_far.iter().filter_map(carried))
}

/// Returns the searches whose safe line overstates the part of passed trials, and the searches with a safe line.
fn wrong(noise: &mut Noise, repeats: u32, odds: &dyn Fn(f64) -> f64) -> (usize, usize) {
    let (mut wrong, mut any) = (0, 0);
    for run in 0..SEARCHES {
        let rules = Rules {
            min: 10,
            max: 100_000,
            resolution: 0.05,
            repeats,
            again: 3,
            seed: run as u64,
            safe: None,
        };
        if let Some(safe) = safe_line(&search(&rules, noise, odds), PART, CONFIDENCE) {
            any += 1;
            wrong += usize::from(odds(safe.level.into()) < safe.part);
        }
    }
    (wrong, any)
}

/// Half of the trials pass at 612; `width` is the distance, as a power, from there to 73 %.
fn curve(width: f64) -> impl Fn(f64) -> f64 {
    move |level| 1.0 / (1.0 + ((level / 612.3).ln() / width).exp())
}

fn check(noise: &mut Noise, what: &str, odds: &dyn Fn(f64) -> f64) {
    for repeats in [6, 12] {
        let (wrong, any) = wrong(noise, repeats, odds);
        println!(
            "{what}, {repeats} repeats: {wrong} of {SEARCHES} say too much, {any} have a line"
        );
        let (above, error) = within(wrong, SEARCHES, 1.0 - CONFIDENCE);
        assert!(above <= error, "{what}, {repeats} repeats: {wrong}");
    }
}

#[test]
fn searches_say_too_much_in_one_case_of_twenty_at_most() {
    let mut noise = Noise::new(61);
    for width in [0.001, 0.01, 0.03, 0.1, 0.3, 1.0] {
        check(&mut noise, &format!("width {width}"), &curve(width));
    }
    for (below, above) in [(0.8, 0.2), (0.7, 0.3), (1.0, 0.3), (1.0, 0.5), (0.9, 0.6)] {
        let step = move |level: f64| if level <= 612.0 { below } else { above };
        check(&mut noise, &format!("{below} to {above}"), &step);
    }
    // The same odds everywhere: a search finds luck.
    for odds in [0.5, 0.55, 0.6, 0.9] {
        check(&mut noise, &format!("{odds} everywhere"), &move |_| odds);
    }
}

/// For trials at levels chosen beforehand the bound is nearly exact.
#[test]
fn a_level_that_just_is_not_safe_is_seldom_called_so() {
    let mut noise = Noise::new(62);
    let called = (0..SEARCHES)
        .filter(|_| {
            let trials = (0..72).map(|_| (100, noise.unit() < PART - 1e-6));
            safe_line(&tally(trials), PART, CONFIDENCE).is_some_and(|safe| safe.part >= PART)
        })
        .count();
    println!("{called} of {SEARCHES} call it safe");
    let (above, error) = within(called, SEARCHES, 0.025);
    assert!(above.abs() <= error, "{called}");
}

/// A search for a safe line continues until it has one.
#[test]
fn a_search_shows_what_is_safe_and_seldom_what_is_not() {
    let mut noise = Noise::new(63);
    const RUNS: usize = 300;
    for (part, width) in [(0.95, 0.03), (0.8, 0.1)] {
        let odds = curve(width);
        let (mut wrong, mut shown, mut trials, mut level) = (0, 0, 0, 0.0);
        for run in 0..RUNS {
            let rules = Rules {
                min: 10,
                max: 100_000,
                resolution: 0.05,
                repeats: 6,
                again: 3,
                seed: run as u64,
                safe: Some(part),
            };
            let tallies = search(&rules, &mut noise, &odds);
            trials += tallies
                .iter()
                .map(|tally| tally.trials as usize)
                .sum::<usize>();
            let Some(safe) = safe_line(&tallies, part, CONFIDENCE).filter(|s| s.part >= part)
            else {
                continue;
            };
            shown += 1;
            level += f64::from(safe.level);
            wrong += usize::from(odds(safe.level.into()) < part);
        }
        println!(
            "{part} at width {width}: {shown} of {RUNS} have a safe line, at {:.0} on average (true: {:.0}), \
             {wrong} too high; {:.0} trials each",
            level / shown.max(1) as f64,
            612.3 * (1.0 / part - 1.0_f64).powf(width),
            trials as f64 / RUNS as f64
        );
        let (above, error) = within(wrong, RUNS, 1.0 - CONFIDENCE);
        assert!(above <= error, "{part} {width}: {wrong}");
        assert!(shown * 10 > RUNS * 8, "{part} {width}: {shown}");
    }
}
