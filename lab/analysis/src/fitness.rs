//! Judges whether a generator is fit on its current host: from the trial against a no-op server, and the load that the
//! generator can produce. This module doesn't know how the trial ran.

use crate::model::{Analysis, CheckOutcome, Verdict};
use crate::unmeasured::cause;

/// The generator's cores should be no busier than this: the limit of the check on its CPU.
const BUSY_PART: f64 = 0.80;
/// The reason if the load is as fast as the responses.
const UNSEEN: &str = "how much the generator drives could not be seen: the load that goes as fast as answers come did \
                      not run to its end";
/// The remedy for this.
const AGAIN: &str =
    "Calibrate again when nothing else uses this machine, or for longer (--seconds).";

/// Whether a generator is fit to measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitness {
    /// Whether a trial would be valid as far as generator and machine go.
    pub fit: bool,
    /// Reasons and doubts, a sentence each.
    pub why: Vec<String>,
    /// Remedies, in the same order.
    pub advice: Vec<String>,
    /// Requests per second that the generator's cores have room for; `None` if their maximum is unknown.
    pub requests_per_s: Option<f64>,
}

/// Judges by the trial in which users mostly wait. `reached_per_s` is the generator's rate at full speed, if it is
/// known, and `busy_part` the load of its cores at that rate.
#[must_use]
pub fn fitness(waiting: &Analysis, reached_per_s: Option<f64>, busy_part: Option<f64>) -> Fitness {
    let mut trials = waiting.trials.iter();
    let is_valid =
        trials.all(|trial| trial.verdict == Verdict::Valid) && !waiting.trials.is_empty();
    let fit = is_valid && reached_per_s.is_some();
    let least = match is_valid {
        true => CheckOutcome::Warn,
        false => CheckOutcome::Invalid,
    };
    let told = || waiting.reasons.iter().filter(|one| one.outcome >= least);
    // Nothing is known beyond the reached rate; within it, some of the cores' time stays free.
    let part = busy_part.filter(|part| *part > 0.0).unwrap_or(1.0);
    let requests_per_s = reached_per_s.map(|reached| reached * (BUSY_PART / part).min(1.0));
    let mut why: Vec<String> = told()
        .map(|one| format!("{} ({})", cause(one), one.evidence))
        .collect();
    let mut advice: Vec<String> = told().map(|one| one.advice.clone()).collect();
    if reached_per_s.is_none() {
        why.push(UNSEEN.to_owned());
        advice.push(AGAIN.to_owned());
    }
    Fitness {
        fit,
        why,
        advice,
        requests_per_s,
    }
}
