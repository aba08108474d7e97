//! Formats numbers and names for people. It knows no layout.

mod code;

use lab_plan::checks::Unit;
use lab_plan::{Aggregate, Cell, Level, Metric, Question};

use crate::model::{Bound, ThresholdResult};

pub use code::{code, micros, shortened, signed_micros};

/// The mark for a missing figure.
pub const NONE: &str = "–";

/// Formats a count with grouped thousands: `94,500`.
pub fn count(n: u64) -> String {
    group(&n.to_string())
}

/// Formats a time in ms, three significant digits: `0.412`, `4.13`, `52.5`, `306`, `5,027`.
pub fn ms(value: f64) -> String {
    figure(value)
}

/// Formats a rate: `0.500`, `28.9`, `5,252`.
pub fn rate(value: f64) -> String {
    figure(value)
}

/// Formats any figure with about three significant digits, never in scientific notation.
pub fn figure(value: f64) -> String {
    // An empty sum is −0.0, which would be confusing.
    let value = if value == 0.0 { 0.0 } else { value };
    let size = value.abs();
    let digits = if size == 0.0 || size >= 99.95 {
        0
    } else if size >= 9.995 {
        1
    } else if size >= 0.9995 {
        2
    } else if size >= 0.0995 {
        3
    } else {
        4
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text
        .split_once('.')
        .map_or((text.as_str(), None), |(w, r)| (w, Some(r)));
    let whole = group(whole);
    rest.map_or_else(|| whole.clone(), |rest| format!("{whole}.{rest}"))
}

/// `12.3 %`.
pub fn percent(value: f64) -> String {
    let text = figure(value);
    format!("{text} %")
}

/// Formats a limit as people write it: `0.5 %`, `1000 ms`, `2.42 %`.
pub fn limit(value: f64, unit: Unit) -> String {
    // A derived limit has more digits than useful.
    let digits = if value.abs() >= 1.0 { 2 } else { 4 };
    let text = format!("{value:.digits$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match unit {
        Unit::Percent => format!("{text} %"),
        Unit::Milliseconds => format!("{text} ms"),
    }
}

/// `+1.2 %`, `−0.4 %`.
pub fn signed_percent(value: f64) -> String {
    let digits = format!("{:.1}", value.abs());
    let sign = match (digits.as_str(), value < 0.0) {
        ("0.0", _) => "±",
        (_, true) => "−",
        (_, false) => "+",
    };
    format!("{sign}{digits} %")
}

/// Formats a ratio: `×1.02`, `×60.1`, `×0.019`.
pub fn ratio(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 99.5 => 0,
        size if size >= 9.95 => 1,
        size if size >= 0.095 => 2,
        _ => 3,
    };
    format!("×{value:.digits$}")
}

/// Formats a ratio for readers: `+12.5 %` near 1, `×3.60` further away.
pub fn ratio_or_percent(value: f64) -> String {
    if (0.5..1.5).contains(&value) {
        signed_percent((value - 1.0) * 100.0)
    } else {
        ratio(value)
    }
}

/// Formats a multiple: `2`, `1.46`, `60.1`.
pub fn times(value: f64) -> String {
    let text = figure(value);
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

/// Formats the figure, or the mark for none.
pub fn or_none(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), show)
}

/// Formats a duration in the most suitable unit: `60 min`, `48 s`, `12.5 s`, `200 ms`.
pub fn duration(length_ms: f64) -> String {
    let (value, unit) = if length_ms >= 120_000.0 {
        (length_ms / 60_000.0, "min")
    } else if length_ms >= 1000.0 {
        (length_ms / 1000.0, "s")
    } else {
        (length_ms, "ms")
    };
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// `only 62 %`, or `104 %`.
pub fn part_of_load(part: f64) -> String {
    let only = if part < 1.0 { "only " } else { "" };
    format!("{only}{}", percent_of(part))
}

/// Formats the bound of operations over the time limit: `> 5 min`, or `1 of 30 > 5 min`.
pub fn bound(bound: &Bound) -> String {
    let limit = duration(bound.time_limit_ms);
    match bound.of - bound.over.min(bound.of) {
        0 => format!("> {limit}"),
        _ => format!("{} of {} > {limit}", count(bound.over), count(bound.of)),
    }
}

/// Formats a level.
pub fn level(level: &Level) -> String {
    match level {
        Level::Int(value) => value.to_string(),
        Level::Float(value) => value.to_string(),
        Level::Text(value) => value.clone(),
        Level::Bool(value) => value.to_string(),
    }
}

/// Formats a level on its own: `indexed`, but `interfaces 100`.
pub fn bare_level(factor: &str, of: &Level) -> String {
    match of {
        Level::Text(text) => text.clone(),
        _ => format!("{factor} {}", level(of)),
    }
}

/// The label of a cell without factors.
pub const ONLY_CELL: &str = "the only cell";

/// Formats ` at 1,000 users`; empty for a study with a single cell, which needs no name.
#[must_use]
pub fn at_cell(label: &str) -> String {
    match label {
        ONLY_CELL => String::new(),
        label => format!(" at {label}"),
    }
}

/// Formats a cell, factors in file order: `1,000 users`, or `users 25 · http_threads 10`.
pub fn cell_label(study: &Question, cell: &Cell) -> String {
    if let (1, Some(Level::Int(users))) = (cell.len(), cell.get("users")) {
        return format!("{} users", group(&users.to_string()));
    }
    let mut parts = Vec::with_capacity(cell.len());
    for factor in &study.matrix {
        if let Some(value) = cell.get(&factor.name) {
            parts.push(format!("{} {}", factor.name, level(value)));
        }
    }
    if parts.is_empty() {
        ONLY_CELL.to_owned()
    } else {
        parts.join(" · ")
    }
}

/// `46 requests were still unanswered, the oldest for 31.2 s`.
pub fn still_unanswered(n: u64, oldest_ms: f64) -> String {
    let (s, were) = if n == 1 { ("", "was") } else { ("s", "were") };
    let oldest = duration(oldest_ms);
    format!(
        "{} request{s} {were} still unanswered, the oldest for {oldest}",
        count(n)
    )
}

/// Formats the value of a threshold in the unit of its metric: `12 ms`, `0.3 %`, `40 per s`, `99.998 %` of a measure.
pub fn threshold_value(of: &ThresholdResult, value: f64) -> String {
    match (of.metric, of.aggregate) {
        (time, _) if time.is_time() => format!("{} ms", figure(value)),
        (Metric::ErrorRate | Metric::Resends, _) => percent(value * 100.0),
        // One failed check in many must be seen.
        (Metric::Measure, Aggregate::Rate) => {
            let text = format!("{:.4}", value * 100.0);
            format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
        }
        (Metric::Measure, _) => {
            let text = format!("{} {}", figure(value), of.unit);
            text.trim_end().to_owned()
        }
        _ => format!("{} per s", figure(value)),
    }
}

/// Formats a threshold: `response time p(95) < 300ms`, `error rate < 0.1%`.
pub fn threshold(metric: Metric, text: &str) -> String {
    let metric = match metric {
        Metric::ResponseTime => "response time",
        Metric::ServiceTime => "service time",
        Metric::FirstEvent => "first event",
        Metric::BetweenEvents => "between events",
        Metric::TransactionTime => "transaction time",
        Metric::TransactionElapsed => "elapsed time",
        Metric::ErrorRate => "error rate",
        Metric::Resends => "resends",
        Metric::Throughput => "throughput",
        // Its name follows.
        Metric::Measure => return text.trim().to_owned(),
    };
    let text = text.trim();
    format!(
        "{metric} {}",
        text.strip_prefix("rate").unwrap_or(text).trim_start()
    )
}

/// `1 user`, `12,000 users`.
pub fn plural_count(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// `1 trial`, `3 trials`.
pub fn plural(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// `a`, `a and b`, `a, b, and c`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [most @ .., last] => format!("{}, and {last}", most.join(", ")),
    }
}

/// Formats names in a readable line; all of them are in the records of the trials.
pub fn first_few(names: &[String]) -> String {
    const FEW: usize = 10;
    let more = names.len().saturating_sub(FEW);
    if more < 2 {
        return names.join(", ");
    }
    format!("{}, and {more} more", names[..FEW].join(", "))
}

/// Replaces characters that could control a terminal or reorder a line: control and bidirectional formatting characters
/// become `�`.
pub fn plain(text: &str) -> String {
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars()
        .map(|c| if steers(c) { '\u{fffd}' } else { c })
        .collect()
}

/// Formats whole per cents, but never 100 for a part below all.
fn percent_of(part: f64) -> String {
    let percents = part * 100.0;
    if percents > 99.0 && percents < 101.0 {
        format!("{percents:.1} %")
    } else {
        format!("{percents:.0} %")
    }
}

fn group(digits: &str) -> String {
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", digits), |rest| ("−", rest));
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (0.0123, "0.0123"),
            (0.4121, "0.412"),
            (0.9999, "1.00"),
            (4.126, "4.13"),
            (52.54, "52.5"),
            (99.97, "100"),
            (305.8, "306"),
            (5027.2, "5,027"),
            (-1234.5, "−1,234"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(figure(value), text, "{value}");
        }
    }

    #[test]
    fn ratios_and_percents() {
        assert_eq!(ratio(1.0117), "×1.01");
        assert_eq!(ratio(60.12), "×60.1");
        assert_eq!(ratio(0.0185), "×0.018");
        assert_eq!(signed_percent(-0.42), "−0.4 %");
        assert_eq!(signed_percent(-0.04), "±0.0 %");
        assert_eq!([2.0, 60.0, 1.456].map(times), ["2", "60", "1.46"]);
        assert_eq!(duration(3_600_000.0), "60 min");
        assert_eq!(duration(48_000.0), "48 s");
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b, and c");
    }

    #[test]
    fn long_lists_are_cut() {
        let names = |count: u32| (0..count).map(|n| format!("a{n}")).collect::<Vec<_>>();
        assert!(first_few(&names(11)).ends_with("a9, a10"));
        let line = first_few(&names(200));
        assert!(line.ends_with("a8, a9, and 190 more"), "{line}");
    }

    #[test]
    fn bounds_say_how_many_were_over() {
        let text = |over, of| {
            bound(&Bound {
                time_limit_ms: 300_000.0,
                over,
                of,
            })
        };
        assert_eq!([text(1, 1), text(30, 30)], ["> 5 min"; 2]);
        assert_eq!(text(1, 1030), "1 of 1,030 > 5 min");
    }

    #[test]
    fn escapes_do_not_reach_a_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\u{202e}c\n"), "a�[2Jb�c�");
    }
}
