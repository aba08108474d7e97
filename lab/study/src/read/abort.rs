//! Validates the conditions that end a trial early: `error_rate > 50%`.

use std::time::Duration;

use lab_language::{Problems, TextError, parsed, units, unknown_name};

use super::threshold::threshold;
use lab_plan::Scope;

use crate::extent::MAX_PHASE;
use crate::file::AbortFile;
use crate::model::{Metric, Threshold};

/// The minimum duration of a violation, unless a study sets another.
const USUAL: Duration = Duration::from_secs(10);

/// A limit, and how long it has to be passed at speed 1.
pub(super) fn aborts(
    file: Option<&Vec<AbortFile>>,
    problems: &mut Problems,
) -> Vec<(Threshold, Duration)> {
    let all = file.into_iter().flatten();
    all.filter_map(|one| abort(one, problems)).collect()
}

fn abort(file: &AbortFile, problems: &mut Problems) -> Option<(Threshold, Duration)> {
    let (when, lasts) = match file {
        AbortFile::Limit(when) => (when, None),
        AbortFile::For(both) => (&both.when, both.lasts.as_ref()),
    };
    let when = parsed(when, "abort_on", limit, problems);
    let lasts = match lasts {
        Some(at) => parsed(at, "for", lasting, problems),
        None => Some(USUAL),
    };
    Some((when?, lasts?))
}

/// Parses the metric's name and the limit as a threshold.
fn limit(text: &str) -> Result<Threshold, TextError> {
    const METRICS: [(&str, Metric); 4] = [
        ("error_rate", Metric::ErrorRate),
        ("response_time", Metric::ResponseTime),
        ("service_time", Metric::ServiceTime),
        ("throughput", Metric::Throughput),
    ];
    let trimmed = text.trim_start();
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    let end = trimmed.find(|c| !in_name(c)).unwrap_or(trimmed.len());
    let (name, rest) = trimmed.split_at(end);
    let Some((_, metric)) = METRICS.iter().find(|(known, _)| *known == name) else {
        let names = METRICS.map(|(known, _)| known);
        let (message, help) = unknown_name("metric", name, &names);
        let at = text.len() - trimmed.len();
        return Err(TextError::new(message, at..at + name.len()).help(help));
    };
    // A rate has a single figure.
    let is_bare = rest.trim_start().starts_with(['<', '>']);
    if is_bare && metric.is_time() {
        let error = TextError::new(
            "a time has several figures, and none is named",
            0..text.len(),
        );
        return Err(error.help(example(*metric)));
    }
    let written = match is_bare {
        true => format!("rate{rest}"),
        false => rest.to_owned(),
    };
    let read = threshold(*metric, Scope::All, "", &written);
    let mut read = read.map_err(|error| TextError {
        at: 0..text.len(),
        help: Some(example(*metric).to_owned()),
        ..error
    })?;
    text.trim().clone_into(&mut read.text);
    Ok(read)
}

fn example(metric: Metric) -> &'static str {
    match metric {
        Metric::ErrorRate | Metric::Resends => "write `error_rate > 50%`",
        Metric::Throughput => "write `throughput < 10/s`",
        _ => "write `response_time p(95) > 5s`",
    }
}

fn lasting(text: &str) -> Result<Duration, TextError> {
    let lasts = units::duration(text, MAX_PHASE)?;
    match lasts < Duration::from_millis(1) {
        true => Err(TextError::new("it takes 1 ms at least", 0..text.len())),
        false => Ok(lasts),
    }
}
