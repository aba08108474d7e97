//! `result.json`, schema `plimsoll.result/1`.

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
