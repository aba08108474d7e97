//! Values of a workload's parameters, which are also the levels of a study's factors.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of a factor in a cell, or of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Level {
    /// A whole number (users, threads …).
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text (a path, a name).
    Text(String),
    /// A switch (`true` or `false`).
    Bool(bool),
}

/// Values by name: constants of a workload's templates.
pub type Parameters = BTreeMap<String, Level>;
