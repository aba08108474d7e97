//! The parameters of a workload as a study sets them, and their values in one cell.

use lab_language::{CellError, Setting, TextError};

use crate::model::{Cell, Level};

/// The workload's parameters, some with values of the study, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct ParametersTemplate {
    /// The workload's values.
    pub(crate) defaults: Cell,
    /// Each is a name among the defaults.
    pub(crate) set: Vec<(String, Setting)>,
}

impl ParametersTemplate {
    /// A value for each parameter in `cell`, of the kind that the workload's own has.
    pub(crate) fn parameters(&self, cell: &Cell) -> Result<Cell, CellError> {
        let mut values = self.defaults.clone();
        for (name, setting) in &self.set {
            let own = self.defaults.get(name);
            let value = setting.value(cell, |text| like(own, text))?;
            values.insert(name.clone(), value);
        }
        Ok(values)
    }
}

/// `text` as a value of the same kind as the workload's own.
fn like(own: Option<&Level>, text: &str) -> Result<Level, TextError> {
    let trimmed = text.trim();
    let wrong = |what: &str| {
        let message = format!("the workload has {what} here, and `{trimmed}` is none");
        Err(TextError::new(message, 0..text.len()))
    };
    match own {
        Some(Level::Int(_) | Level::Float(_)) => match (trimmed.parse(), trimmed.parse::<f64>()) {
            (Ok(whole), _) => Ok(Level::Int(whole)),
            (_, Ok(number)) if number.is_finite() => Ok(Level::Float(number)),
            _ => wrong("a number"),
        },
        Some(Level::Bool(_)) => match trimmed.parse() {
            Ok(on) => Ok(Level::Bool(on)),
            Err(_) => wrong("true or false"),
        },
        Some(Level::Text(_)) | None => Ok(Level::Text(text.to_owned())),
    }
}
