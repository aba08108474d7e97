//! Numbers in responses, such as the length of a queue: the measures of a step, and their storage.

use serde::{Deserialize, Serialize};

use crate::render_error::RenderError;
use crate::scope::{Slot, UserScope};
use crate::template::Template;

/// Numbers are stored as whole thousandths, as times in ms are stored as µs.
pub const MEASURE_SCALE: f64 = 1000.0;
/// The largest number that can be stored.
pub const MAX_MEASURED: f64 = 1e12;
/// Most measures of a step.
pub const MAX_MEASURES: usize = 20;

/// A number in a request's response.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measure<T = Template> {
    /// Its name in reports.
    pub name: String,
    /// Its unit; empty for a plain number.
    pub unit: String,
    /// The index of the request in its step.
    pub request: usize,
    /// The variable that one of the request's captures sets; each entry of a list is a number.
    pub slot: Slot,
    /// The expression for the number instead of a capture, evaluated after the response: it sees the captures, and the
    /// time of day then.
    #[serde(default = "nothing", skip_serializing_if = "Option::is_none")]
    pub value: Option<T>,
}

fn nothing<T>() -> Option<T> {
    None
}

impl<T> Measure<T> {
    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<Measure<U>, E> {
        Ok(Measure {
            name: self.name.clone(),
            unit: self.unit.clone(),
            request: self.request,
            slot: self.slot,
            value: self.value.as_ref().map(map).transpose()?,
        })
    }
}

impl Measure {
    /// Appends the numbers, in thousandths. A missing value adds none.
    ///
    /// # Errors
    /// In words, when a value is no number of at least 0.
    pub fn read(&self, scope: &mut UserScope, numbers: &mut Vec<u64>) -> Result<(), String> {
        if let Some(value) = &self.value {
            let mut text = String::new();
            scope.begin_request();
            match value.render(scope, &mut text) {
                Ok(()) => numbers.push(self.number(&text)?),
                Err(RenderError::EmptyList { .. }) => {}
                Err(error) => return Err(format!("measure `{}`: {error}", self.name)),
            }
            return Ok(());
        }
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
