//! Numbers that answers tell, such as the length of a queue: which of a step they are, and how they are kept.

use serde::{Deserialize, Serialize};

use crate::scope::{Slot, UserScope};

/// Numbers are kept as whole thousandths, as times in ms are kept as µs.
pub const MEASURE_SCALE: f64 = 1000.0;
/// The largest number that can be kept.
pub const MAX_MEASURED: f64 = 1e12;
/// Most measures of a step.
pub const MAX_MEASURES: usize = 20;

/// A number that a request's answer tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// Its name in reports.
    pub name: String,
    /// What it is counted in; empty of a mere number.
    pub unit: String,
    /// The place of the request among those of its step.
    pub request: usize,
    /// The variable that one of the request's captures sets; of a list, each entry is a number.
    pub slot: Slot,
}

impl Measure {
    /// Appends the numbers, in thousandths. A value that isn't there is none.
    ///
    /// # Errors
    /// In words: a value that is no number from 0 on.
    pub fn read(&self, scope: &UserScope, numbers: &mut Vec<u64>) -> Result<(), String> {
        let (found, _) = scope.entries(self.slot).unwrap_or_default();
        for text in &found {
            numbers.push(self.number(text)?);
        }
        Ok(())
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "what is kept lies between 0 and 10^15"
    )]
    fn number(&self, text: &str) -> Result<u64, String> {
        let parsed = text.trim().parse::<f64>().ok();
        match parsed.filter(|value| (0.0..=MAX_MEASURED).contains(value)) {
            Some(value) => Ok((value * MEASURE_SCALE).round() as u64),
            None => {
                let start: String = text.chars().take(40).collect();
                let name = &self.name;
                Err(format!(
                    "measure `{name}`: `{start}` is no number from 0 to 10^12"
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests;
