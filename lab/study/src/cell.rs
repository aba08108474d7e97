//! The settings of a study as written, and what they come to in one cell.
//!
//! Settings may name factors (`users: "{{ users }}"`), so their values are known only per cell;
//! loading a study works out every cell once, so that a plan finds no new errors.

use lab_workload::Template;

use crate::demand::LoadTemplate;
use crate::file::{At, Scalar};
use crate::model::{Cell, Level};
use crate::system::SystemsTemplate;
use crate::text_error::TextError;

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

/// A setting as written: its key, its text, and its place.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) field: String,
    pub(crate) template: Template,
    pub(crate) at: At<Scalar>,
}

/// A setting that makes no sense in a cell.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{field}` is `{text}`: {cause}")]
pub(crate) struct CellError {
    /// The key in the file.
    pub(crate) field: String,
    /// Its text in the cell.
    pub(crate) text: String,
    /// What is wrong with it.
    pub(crate) cause: TextError,
    /// As written.
    pub(crate) at: Box<At<Scalar>>,
}

impl Setting {
    /// What it comes to in `cell`.
    pub(crate) fn value<T>(
        &self,
        cell: &Cell,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Result<T, CellError> {
        let error = |text: &str, cause: TextError| CellError {
            field: self.field.clone(),
            text: text.to_owned(),
            cause,
            at: Box::new(self.at.clone()),
        };
        let source = self.template.source();
        let text = self
            .template
            .render_setting(cell)
            .map_err(|cause| error(source, TextError::new(cause.to_string(), 0..source.len())))?;
        parse(&text).map_err(|cause| error(&text, cause))
    }
}

/// A setting that may be left out.
pub(crate) trait Optional {
    /// What it comes to in `cell`, if it is there.
    fn value<T>(
        &self,
        cell: &Cell,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Result<Option<T>, CellError>;
}

impl Optional for Option<Setting> {
    fn value<T>(
        &self,
        cell: &Cell,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Result<Option<T>, CellError> {
        self.as_ref().map(|s| s.value(cell, parse)).transpose()
    }
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
