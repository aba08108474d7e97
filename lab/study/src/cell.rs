//! All settings of a study as written, and the cells that they are worked out in.
//!
//! Settings may name factors (`users: "{{ users }}"`), so their values are known only per cell;
//! loading a study works out every cell once, so that a plan finds no new errors.

use lab_language::{CellError, Setting, TextError};

use crate::demand::LoadTemplate;
use crate::model::{Cell, Level, VARIANT};
use crate::system::SystemsTemplate;

/// The settings of a study, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct CellTemplate {
    pub(crate) system: SystemsTemplate,
    pub(crate) load: LoadTemplate,
    pub(crate) parameters: ParametersTemplate,
}

/// The workload's parameters, some with values of the study, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct ParametersTemplate {
    /// As the workload has them.
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

/// Whether they differ in the variant, and in that alone.
pub(crate) fn are_partners(one: &Cell, other: &Cell) -> bool {
    let rest = |cell: &Cell| {
        let mut rest = cell.clone();
        rest.remove(VARIANT);
        rest
    };
    one != other && rest(one) == rest(other)
}

/// Every combination of levels, in file order: the last factor changes fastest.
pub(crate) fn cells(matrix: &[crate::model::Factor]) -> Vec<Cell> {
    let mut cells = vec![Cell::new()];
    for factor in matrix {
        cells = cells
            .iter()
            .flat_map(|cell| {
                factor.levels.iter().map(move |level| {
                    let mut cell = cell.clone();
                    cell.insert(factor.name.clone(), level.clone());
                    cell
                })
            })
            .collect();
    }
    cells
}
