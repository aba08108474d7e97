//! Sizes in workloads and in the templates' profiles: `4096`, `64 KiB`.

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// The text is no number with a unit.
    #[error("`{0}` is not a size")]
    Unreadable(String),
    /// The size is above the limit.
    #[error("it is more than {0} bytes")]
    TooLarge(u64),
}

/// Parses a size in bytes, at most `max`: `4096`, `64 KiB`, `30 MB`.
///
/// # Errors
/// A text that is no size, or a size above `max`.
pub fn size(text: &str, max: u64) -> Result<u64, SizeError> {
    let trimmed = text.trim();
    let digits = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(trimmed.len());
    let unreadable = || SizeError::Unreadable(trimmed.to_owned());
    let number: f64 = trimmed[..digits].parse().map_err(|_| unreadable())?;
    let unit: f64 = match trimmed[digits..].trim() {
        "" | "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(unreadable()),
    };
    let bytes = number * unit;
    if bytes > max as f64 {
        return Err(SizeError::TooLarge(max));
    }
    Ok(bytes.round() as u64)
}
