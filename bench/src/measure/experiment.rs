//! One experiment: up to a few attempts, and their verdict. It is independent of the measured thing.

use crate::error::Error;
use crate::quiet::Quiet;

/// The maximum number of attempts per experiment.
const GOES: u32 = 3;

/// An experiment with a known true time.
pub(crate) struct Experiment {
    pub(crate) name: &'static str,
    /// Measures once.
    pub(crate) go: Box<dyn Fn() -> Result<Outcome, Error>>,
}

/// The result of one attempt.
pub(crate) struct Outcome {
    /// Whether the measured times are the true ones.
    pub(crate) right: bool,
    /// The figures.
    pub(crate) found: String,
}

/// The verdict over all attempts.
pub(crate) enum Verdict {
    Right(String),
    Wrong(String),
    /// Each attempt was disturbed, and not right.
    CouldNotMeasure(String),
}

impl Verdict {
    pub(crate) fn line(&self, name: &str) -> String {
        match self {
            Self::Right(found) => format!("right  {name}: {found}"),
            Self::Wrong(found) => format!("WRONG  {name}: {found}"),
            Self::CouldNotMeasure(why) => format!("could not measure here: {name}: {why}"),
        }
    }
}

impl Experiment {
    /// A right attempt counts even if it was disturbed; a wrong one counts only on an idle machine.
    pub(crate) fn run(&self, quiet: &mut Quiet) -> Result<Verdict, Error> {
        let mut why = String::new();
        for _ in 0..GOES {
            quiet.wait();
            let outcome = (self.go)()?;
            let disturbed = quiet.since_last_look();
            if outcome.right {
                return Ok(Verdict::Right(outcome.found));
            }
            match disturbed {
                None => return Ok(Verdict::Wrong(outcome.found)),
                Some(disturbed) => why = format!("{disturbed}; {}", outcome.found),
            }
        }
        Ok(Verdict::CouldNotMeasure(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// Returns the number of attempts and the verdict.
    fn verdict(right_at: u32, disturbances: &[&str]) -> (u32, String) {
        let goes = Rc::new(Cell::new(0));
        let count = Rc::clone(&goes);
        let go = move || {
            count.set(count.get() + 1);
            Ok(Outcome {
                right: count.get() == right_at,
                found: format!("go {}", count.get()),
            })
        };
        let one = Experiment {
            name: "it",
            go: Box::new(go),
        };
        let mut quiet = Quiet::made_up(disturbances);
        let line = one.run(&mut quiet).unwrap().line(one.name);
        (goes.get(), line)
    }

    #[test]
    fn wrong_counts_on_a_quiet_machine_only() {
        assert_eq!(verdict(1, &[]), (1, "right  it: go 1".to_owned()));
        assert_eq!(verdict(9, &[]), (1, "WRONG  it: go 1".to_owned()));
        assert_eq!(verdict(9, &["noise"]), (2, "WRONG  it: go 2".to_owned()));
        assert_eq!(verdict(2, &["noise"]), (2, "right  it: go 2".to_owned()));
        let always = verdict(9, &["noise"; 9]);
        let line = "could not measure here: it: noise; go 3";
        assert_eq!(always, (GOES, line.to_owned()));
    }
}
