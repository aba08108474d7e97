//! Frames as OpenMetrics text with times, from which Prometheus makes blocks of what is long over
//! (`promtool tsdb create-blocks-from openmetrics`): by remote write it takes nothing that is older than
//! about an hour.

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
        // The end of a series needs no telling where the next sample is of another trial.
        for sample in series.samples.iter().filter(|one| !one.value.is_nan()) {
            let (value, at_ms) = (sample.value, sample.at_ms);
            let at = format!("{}.{:03}", at_ms.div_euclid(1000), at_ms.rem_euclid(1000));
            let _ = writeln!(text, "{name}{{{labels}}} {value} {at}");
        }
    }
    text.into_bytes()
}

/// As a label's value: backslash, quote, and line end are escaped.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
