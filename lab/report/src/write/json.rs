//! `result.json`, schema `plimsoll.result/1`; comparisons and histories beside it.

use lab_history::History;
use schemars::generate::SchemaSettings;
use serde::Serialize;

use lab_comparison::RunComparison;

use crate::Analysis;

/// The analysis as indented JSON with a final line end.
/// # Errors
/// # Errors
/// None in practice: an analysis holds nothing that JSON can't.
pub fn json(analysis: &Analysis) -> Result<String, serde_json::Error> {
    pretty(analysis)
}

/// The JSON Schema of [`json`]'s text.
#[must_use]
pub fn result_schema() -> serde_json::Value {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Analysis>()
        .to_value()
}

/// The comparison of runs as JSON, schema `plimsoll.comparison/1`.
///
/// # Errors
/// None in practice: every value has a JSON form.
pub fn runs_json(runs: &RunComparison) -> serde_json::Result<String> {
    pretty(runs)
}

/// Runs over time as JSON, schema `plimsoll.history/1`.
///
/// # Errors
/// None in practice: every value has a JSON form.
pub fn history_json(history: &History) -> serde_json::Result<String> {
    pretty(history)
}

pub(super) fn pretty(value: &impl Serialize) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}
