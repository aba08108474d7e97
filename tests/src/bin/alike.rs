//! Runs a study of two systems many times, each with its own seed, and counts how often it finds a difference: `alike
//! [--times N] [--seed N] [--least N] [--most N] STUDY [FLAGS OF plimsoll run…]`.
//!
//! For two equal systems, a working study shows a difference in one case of twenty. For two that differ (as two `known`
//! servers do), it shows one in `--least` of them. It runs real servers, and takes as long as that many studies do; an
//! inconclusive answer is no difference.

use std::ops::RangeInclusive;
use std::process::ExitCode;

use plimsoll_tests::program;
use plimsoll_tests::studies::{answer, run};

const USAGE: &str =
    "usage: alike [--times N] [--seed N] [--least N] [--most N] STUDY [FLAGS OF plimsoll run…]";

struct Options {
    times: u64,
    /// The seed of the first study; the next ones count up from it.
    seed: u64,
    /// Studies that must show a difference.
    least: u64,
    /// Studies that may show a difference; unlimited if `least` is given.
    most: Option<u64>,
    /// The study, and flags.
    run: Vec<String>,
}

impl Options {
    /// The number of studies that may show a difference.
    fn wanted(&self) -> RangeInclusive<u64> {
        let usual = if self.least == 0 { 1 } else { self.times };
        self.least..=self.most.unwrap_or(usual)
    }
}

fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options {
        times: 20,
        seed: 1,
        least: 0,
        most: None,
        run: Vec::new(),
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--times" => options.times = args.next()?.parse().ok()?,
            "--seed" => options.seed = args.next()?.parse().ok()?,
            "--least" => options.least = args.next()?.parse().ok()?,
            "--most" => options.most = Some(args.next()?.parse().ok()?),
            _ => options.run = std::iter::once(arg).chain(args.by_ref()).collect(),
        }
    }
    (!options.run.is_empty() && options.times > 0).then_some(options)
}

fn main() -> ExitCode {
    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let program = program();
    let mut counts = Counts::default();
    for seed in (options.seed..).take(usize::try_from(options.times).unwrap_or(usize::MAX)) {
        let result = run(program, &options.run, seed);
        match result.as_ref().map(answer) {
            Some(Ok((decision, sentence))) => {
                counts.add(&decision);
                println!("seed {seed}: {sentence}");
            }
            Some(Err(why)) => {
                counts.add("nothing");
                println!("seed {seed}: {why}");
            }
            None => {
                eprintln!("alike: the study with seed {seed} has no result");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("{}", counts.sentence(options.times));
    match options.wanted().contains(&counts.different) && counts.answered() > 0 {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The counted results of studies.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    different: u64,
    alike: u64,
    open: u64,
    unanswered: u64,
}

impl Counts {
    fn add(&mut self, decision: &str) {
        let count = match decision {
            "better" | "worse" => &mut self.different,
            "equal" | "not_worse" => &mut self.alike,
            "could_not_tell" => &mut self.open,
            _ => &mut self.unanswered,
        };
        *count += 1;
    }

    /// The studies that could have shown a difference.
    fn answered(&self) -> u64 {
        self.different + self.alike + self.open
    }

    fn sentence(&self, times: u64) -> String {
        format!(
            "alike: {} of {times} studies show a difference; {} are equal, {} could not tell, {} have too few \
             measurements",
            self.different, self.alike, self.open, self.unanswered
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_options_is_the_run() {
        let parsed = |text: &str| {
            let found = options(text.split_whitespace().map(str::to_owned));
            found.map(|one| (one.times, one.seed, one.wanted(), one.run.len()))
        };
        assert_eq!(parsed("self.study.yaml"), Some((20, 1, 0..=1, 1)));
        assert_eq!(parsed("--least 16 known.yaml"), Some((20, 1, 16..=20, 1)));
        let all = "--times 3 --most 0 --seed 9 s.yaml --speed 60 --seed 4";
        assert_eq!(parsed(all), Some((3, 9, 0..=0, 5)));
        for wrong in ["", "--times 3", "--times 0 x", "--seed x y"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_open_is_no_difference_and_what_is_missing_no_answer() {
        let mut counts = Counts::default();
        let decisions = [
            "better",
            "worse",
            "equal",
            "not_worse",
            "could_not_tell",
            "not_answered",
        ];
        for decision in decisions {
            counts.add(decision);
        }
        let expected = Counts {
            different: 2,
            alike: 2,
            open: 1,
            unanswered: 1,
        };
        assert_eq!(counts, expected);
        assert_eq!(counts.answered(), 5);
    }
}
