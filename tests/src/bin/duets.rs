//! Compares duets with sequences on real servers: `duets [--times N] [--seed N] [FLAGS OF plimsoll run…]`. It
//! alternates between three studies: two servers in duets, of which one works 5 % more; two equal ones in duets; and
//! the first pair in sequence. At the end it prints how many show a difference, and how wide their intervals are. If
//! interrupted, it has reported as much of each.
//!
//! With `disturbed --drift` before it, it runs as on a machine that others use.

use std::process::ExitCode;

use plimsoll_tests::studies::{Repeats, answer, decided, run};
use plimsoll_tests::{program, repository};

const USAGE: &str = "usage: duets [--times N] [--seed N] [FLAGS OF plimsoll run…]";
/// The normal quantile of an interval of 95 %.
const Z: f64 = 1.96;

/// A kind of study that is repeated many times.
struct Arm {
    name: &'static str,
    study: &'static str,
    flags: &'static [&'static str],
    found: u64,
    studies: u64,
    /// Widths of the intervals of ratios, on the log scale; infinite without a bound.
    widths: Vec<f64>,
}

impl Arm {
    fn new(name: &'static str, study: &'static str, flags: &'static [&'static str]) -> Self {
        Self {
            name,
            study,
            flags,
            found: 0,
            studies: 0,
            widths: Vec::new(),
        }
    }

    fn all() -> [Self; 3] {
        [
            Self::new("duets, 5 % more", "known", &[]),
            Self::new("duets, alike", "same", &[]),
            Self::new("in sequence, 5 % more", "known", &["--set", "duet=false"]),
        ]
    }

    /// Runs one study; returns false if it has no result.
    fn study(&mut self, flags: &[String], seed: u64) -> bool {
        let study = repository().join(format!("tests/studies/{}.study.yaml", self.study));
        let own = self.flags.iter().map(|flag| (*flag).to_owned());
        let arguments: Vec<String> = [study.display().to_string()]
            .into_iter()
            .chain(own)
            .collect();
        let Some(result) = run(program(), &[&arguments[..], flags].concat(), seed) else {
            return false;
        };
        self.studies += 1;
        let told = match answer(&result) {
            Ok((decision, sentence)) => {
                self.found += u64::from(["better", "worse"].contains(&&*decision));
                sentence
            }
            Err(why) => why,
        };
        let interval = decided(&result).map(|(_, interval)| interval);
        self.widths
            .push(interval.map_or(f64::INFINITY, |[low, high]| high.ln() - low.ln()));
        println!("seed {seed}, {}: {told}", self.name);
        true
    }

    fn line(&self) -> String {
        let [low, high] = wilson(self.found, self.studies).map(|part| 100.0 * part);
        let width = 100.0 * median(&self.widths).unwrap_or(f64::NAN);
        format!(
            "| {} | {} of {} | {low:.0}…{high:.0} % | {width:.1} % |",
            self.name, self.found, self.studies
        )
    }
}

fn main() -> ExitCode {
    let Some(options) = Repeats::read(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let mut arms = Arm::all();
    for seed in options.seeds() {
        for arm in &mut arms {
            if !arm.study(&options.run, seed) {
                eprintln!(
                    "duets: the study with seed {seed}, {}, has no result",
                    arm.name
                );
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{}", table(&arms));
    ExitCode::from(u8::from(!holds(&arms)))
}

fn table(arms: &[Arm; 3]) -> String {
    let lines: Vec<String> = arms.iter().map(Arm::line).collect();
    format!(
        "\n| studies | show a difference | with 95 % confidence | median width of the interval |\n\
         |---|---|---|---|\n{}\n\nIntervals of duets are {:.1} times narrower than those in sequence.",
        lines.join("\n"),
        narrower(arms)
    )
}

/// Compares the widths of the two arms that differ in nothing else.
fn narrower([duets, _, sequence]: &[Arm; 3]) -> f64 {
    let width = |arm: &Arm| median(&arm.widths).unwrap_or(f64::NAN);
    width(sequence) / width(duets)
}

/// The goal of duets: they find four of five differences, where at most three of ten sequences do. They report at most
/// one of twenty equal pairs as different, or one if there are fewer. They are three times narrower.
fn holds(arms: &[Arm; 3]) -> bool {
    let [duets, alike, sequence] = arms;
    let within = |arm: &Arm, tenths: u64| 10 * arm.found <= tenths * arm.studies;
    10 * duets.found >= 8 * duets.studies
        && within(sequence, 3)
        && 20 * alike.found <= alike.studies.max(20)
        && narrower(arms) >= 3.0
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (last, half) = (sorted.len().checked_sub(1)?, sorted.len() / 2);
    Some(f64::midpoint(sorted[last - half], sorted[half]))
}

/// The interval of a proportion (E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical
/// Inference", JASA 22, 1927).
fn wilson(found: u64, of: u64) -> [f64; 2] {
    let n = of.max(1) as f64;
    let (part, square) = (found as f64 / n, Z * Z);
    let middle = (part + square / (2.0 * n)) / (1.0 + square / n);
    let half = Z / (1.0 + square / n) * (part * (1.0 - part) / n + square / (4.0 * n * n)).sqrt();
    [(middle - half).max(0.0), (middle + half).min(1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arms(found: [u64; 3], widths: [f64; 3]) -> [Arm; 3] {
        let mut arms = Arm::all();
        for ((arm, found), width) in arms.iter_mut().zip(found).zip(widths) {
            (arm.found, arm.studies, arm.widths) = (found, 20, vec![width; 20]);
        }
        arms
    }

    #[test]
    fn all_of_it_must_hold() {
        assert!(holds(&arms([16, 1, 6], [0.05, 0.05, 0.16])));
        for (found, widths) in [
            ([15, 1, 6], [0.05, 0.05, 0.16]),
            ([16, 2, 6], [0.05, 0.05, 0.16]),
            ([16, 1, 7], [0.05, 0.05, 0.16]),
            ([16, 1, 6], [0.05, 0.05, 0.14]),
        ] {
            assert!(!holds(&arms(found, widths)), "{found:?} {widths:?}");
        }
        // Unbounded intervals are not narrow.
        assert!(!holds(&arms([16, 1, 6], [f64::INFINITY, 0.05, 0.15])));
    }

    #[test]
    fn a_table_has_a_line_for_each() {
        let text = table(&arms([19, 1, 2], [0.05, 0.05, 0.2]));
        let line = "| duets, 5 % more | 19 of 20 | 76…99 % | 5.0 % |";
        assert!(
            text.contains(line) && text.contains("4.0 times narrower"),
            "{text}"
        );
    }

    /// Figures of the worked example in Wilson's tables, by R's `prop.test(correct = FALSE)`.
    #[test]
    fn a_proportion_has_its_interval() {
        let close = |[low, high]: [f64; 2], expected: [f64; 2]| {
            (low - expected[0]).abs() < 1e-3 && (high - expected[1]).abs() < 1e-3
        };
        assert!(close(wilson(0, 10), [0.0, 0.2775]), "{:?}", wilson(0, 10));
        assert!(
            close(wilson(5, 10), [0.2366, 0.7634]),
            "{:?}",
            wilson(5, 10)
        );
        assert!(close(wilson(10, 10), [0.7225, 1.0]));
        assert!(wilson(0, 0)[1] <= 1.0);
        assert_eq!(median(&[3.0, 1.0, 2.0, 10.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
