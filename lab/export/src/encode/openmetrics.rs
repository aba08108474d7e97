//! Encodes frames as OpenMetrics text with times, from which Prometheus makes blocks of old data
//! (`promtool tsdb create-blocks-from openmetrics`): remote write rejects data that is older than about an hour.

use std::fmt::Write as _;

use super::prometheus::{Histograms, series};
use crate::figure::Frame;

/// The last line of a file.
pub(crate) const END: &str = "# EOF\n";

/// The lines of frames, without [`END`].
pub(crate) fn body(frames: &[Frame]) -> Vec<u8> {
    let mut text = String::new();
    for series in series(frames, Histograms::Classic) {
        let (names, labels): (Vec<_>, Vec<_>) = series
            .labels
            .iter()
            .partition(|label| label.name == "__name__");
        let name = names.first().map_or("", |label| &label.value);
        let labels = labels
            .iter()
            .map(|label| format!("{}=\"{}\"", label.name, escaped(&label.value)));
        let labels = labels.collect::<Vec<_>>().join(",");
        // The end of a series is implied if the next sample is of another trial.
        for sample in series.samples.iter().filter(|one| !one.value.is_nan()) {
            let (value, at_ms) = (sample.value, sample.at_ms);
            let at = format!("{}.{:03}", at_ms.div_euclid(1000), at_ms.rem_euclid(1000));
            let _ = writeln!(text, "{name}{{{labels}}} {value} {at}");
        }
    }
    text.into_bytes()
}

/// Escapes backslash, quote, and line end in a label value.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
