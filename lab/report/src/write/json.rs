//! `result.json`, schema `plimsoll.result/1`.

use lab_comparison::RunComparison;

use crate::Analysis;

/// The analysis as indented JSON with a final line end.
///
/// # Errors
/// None in practice: an analysis holds nothing that JSON can't.
pub fn json(analysis: &Analysis) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(analysis)?;
    text.push('\n');
    Ok(text)
}

/// The comparison of runs as JSON, schema `plimsoll.comparison/1`.
///
/// # Errors
/// None in practice: every value has a JSON form.
pub fn runs_json(runs: &RunComparison) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(runs)?;
    text.push('\n');
    Ok(text)
}
