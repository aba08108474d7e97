//! Encodes frames in InfluxDB line protocol, which Telegraf, VictoriaMetrics, and QuestDB accept as well
//! (<https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/>).
//!
//! Counts cover the time since the line before, so that sums over any time are possible. So do times: a line for each
//! nonempty bucket, with its upper bound in seconds (`le`) and its count. Dashboards compute quantiles from the sums.

use std::fmt::Write as _;

use lab_stats::exponential::Exponential;

use crate::figure::{Figure, Frame, VALID, Value};

/// The lines of frames.
pub(crate) fn body(frames: &[Frame]) -> Vec<u8> {
    let mut text = String::new();
    for frame in frames {
        for figure in &frame.figures {
            if !frame.is_end || figure.metric == &VALID {
                line(&mut text, frame, figure);
            }
        }
    }
    text.into_bytes()
}

fn line(text: &mut String, frame: &Frame, figure: &Figure) {
    let at_ns = frame.at_ms * 1_000_000;
    let tags = tags(frame, figure);
    let name = figure.metric.name;
    match &figure.value {
        Value::Gauge(value) => {
            let _ = writeln!(text, "{name}{tags} value={value} {at_ns}");
        }
        Value::Count(_, new) => {
            let _ = writeln!(text, "{name}{tags} count={new}i {at_ns}");
        }
        Value::Times(_, new) if new.count() == 0 => {}
        Value::Times(_, new) => {
            let (count, sum) = (new.count(), new.sum_s());
            let _ = writeln!(text, "{name}{tags} count={count}i,sum={sum} {at_ns}");
            for (bound, count) in buckets(new) {
                let _ = writeln!(
                    text,
                    "{name}_bucket{tags},le={bound} count={count}i {at_ns}"
                );
            }
        }
    }
}

/// The nonempty buckets with their counts, by upper bound.
fn buckets(times: &Exponential) -> impl Iterator<Item = (String, u64)> {
    let all = times.count();
    let bounds = times
        .classic()
        .map(|(bound, count)| (bound.to_string(), count));
    let bounds = bounds.chain([("+Inf".to_owned(), all)]);
    let each = bounds.scan(0, |below, (bound, count)| {
        let within = count - std::mem::replace(below, count);
        Some((bound, within))
    });
    each.filter(|(_, count)| *count > 0)
}

fn tags(frame: &Frame, figure: &Figure) -> String {
    let whose = frame.of.labels();
    let whose = whose.iter().map(|(name, value)| (*name, value.as_str()));
    let own = figure.labels.iter().map(|(name, value)| (*name, &**value));
    let mut all: Vec<(&str, &str)> = whose.chain(own).collect();
    all.sort_unstable();
    // Receivers refuse a tag without a value.
    let all = all.into_iter().filter(|(_, value)| !value.is_empty());
    all.map(|(name, value)| format!(",{name}={}", escaped(value)))
        .collect()
}

/// Escapes a tag value. A line can't contain a line end, nor a tag end with a backslash.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for char in value.chars() {
        match char {
            ',' | '=' | ' ' => text.extend(['\\', char]),
            '\\' => text.push('/'),
            char if char.is_control() => text.push('_'),
            char => text.push(char),
        }
    }
    text
}
