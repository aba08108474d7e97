//! The counters of a system in one trial, per transaction.

use std::collections::BTreeMap;

use crate::recorder::Recorded;
use crate::series::Series;

/// The minimum part of the hold between the first and the last answer.
const LEAST_PART: f64 = 0.5;
/// The latest time after the end of the hold at which an answer still counts: the last query is sent at the end.
const AFTER_MS: f64 = 2_000.0;
/// The earliest time before the start of the hold at which an answer counts, due to rounding.
const BEFORE_MS: f64 = 50.0;

/// The counters of one ask in one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct OfTrial {
    /// The name of the ask.
    pub name: String,
    /// The increase of each counter per transaction; `None` where the trial has no value.
    pub values: BTreeMap<Series, Option<f64>>,
    /// Units, where they are known.
    pub units: BTreeMap<Series, String>,
    /// Transactions between the first and the last answer.
    pub transactions: f64,
    /// Warnings for the reader of the trial.
    pub notes: Vec<String>,
}

impl OfTrial {
    /// Returns the counters from `from_ms` to `to_ms` on the trial's clock; `transactions` returns the number of
    /// transactions between two moments.
    #[must_use]
    pub fn of(
        recorded: &Recorded,
        (from_ms, to_ms): (f64, f64),
        transactions: impl Fn(f64, f64) -> f64,
    ) -> Self {
        let name = &recorded.name;
        let mut found = Self {
            name: name.clone(),
            values: BTreeMap::new(),
            units: BTreeMap::new(),
            transactions: 0.0,
            notes: missing(recorded).into_iter().collect(),
        };
        let within = |t_ms: f64| (from_ms - BEFORE_MS..=to_ms + AFTER_MS).contains(&t_ms);
        let answers = recorded.answers.iter().filter(|one| within(one.t_ms));
        let answers: Vec<(f64, &Vec<Option<f64>>)> = answers
            .filter_map(|one| Some((one.t_ms, one.values.as_ref().ok()?)))
            .collect();
        let span = match (answers.first(), answers.last()) {
            (Some((first, _)), Some((last, _))) => (*first, *last),
            _ => (0.0, 0.0),
        };
        let is_enough = span.1 - span.0 >= LEAST_PART * (to_ms - from_ms) && to_ms > from_ms;
        found.transactions = if is_enough {
            transactions(span.0, span.1)
        } else {
            0.0
        };
        if found.transactions <= 0.0 {
            if recorded.missed < recorded.asked {
                found.notes.push(format!(
                    "What the system counts as `{name}` was read over too little of the hold, and is left out."
                ));
            }
            return found;
        }
        let mut back = 0;
        for (place, (series, unit)) in recorded.series.iter().enumerate() {
            let values = answers.iter().map(|(_, values)| values[place]);
            let change = change(values);
            back += usize::from(change.is_none());
            let value = change.map(|change| change / found.transactions);
            found.values.insert(series.clone(), value);
            if let Some(unit) = unit {
                found.units.insert(series.clone(), unit.clone());
            }
        }
        if back > 0 {
            let counters = if back == 1 {
                "1 counter".to_owned()
            } else {
                format!("{back} counters")
            };
            found.notes.push(format!(
                "{counters} of `{name}` went back or vanished and {} no value: the system counted anew, or {}.",
                if back == 1 { "has" } else { "have" },
                if back == 1 { "it counts nothing" } else { "they count nothing" }
            ));
        }
        if recorded.left_out > 0 {
            found.notes.push(format!(
                "`{name}` has more counters than are kept: the {} that changed least are left out. Choose some by `keep`.",
                recorded.left_out
            ));
        }
        found
    }
}

/// The difference between the first and the last value; a counter that appears later began at 0. `None` if it
/// decreased or vanished.
fn change(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let mut first = None;
    let mut last: Option<f64> = None;
    for value in values {
        first.get_or_insert(value.unwrap_or_default());
        last = match (last, value) {
            (Some(_), None) => return None,
            (Some(before), Some(value)) if value < before => return None,
            (_, value) => value,
        };
    }
    Some(last.unwrap_or_default() - first.unwrap_or_default())
}

/// Returns the warning about missing answers.
fn missing(recorded: &Recorded) -> Option<String> {
    let Recorded {
        name,
        asked,
        missed,
        ..
    } = recorded;
    if *missed == 0 {
        return None;
    }
    recorded.unanswered().or_else(|| {
        let problem = recorded.problem().unwrap_or("it came too late");
        Some(format!(
            "{missed} of {asked} answers of `{name}` are missing: {problem}."
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::how::{How, Read};
    use crate::recorder::Recorder;

    fn recorded(answers: &[(u64, Option<&str>)]) -> Recorded {
        let mut recorder = Recorder::new("db", How::of(Read::Lines), Duration::from_secs(20));
        for (at, (second, text)) in answers.iter().enumerate() {
            let answer = text.ok_or_else(|| "late".to_owned());
            recorder.take(
                Duration::from_secs(*second),
                answer,
                at + 1 == answers.len(),
            );
        }
        recorder.finish()
    }

    fn shown(of: &OfTrial) -> Vec<(String, Option<f64>)> {
        let values = of.values.iter();
        values
            .map(|(series, value)| (series.to_string(), *value))
            .collect()
    }

    fn per_second(from: f64, to: f64) -> f64 {
        (to - from) / 1e3
    }

    #[test]
    fn differences_are_per_transaction_of_their_span() {
        let of = recorded(&[
            (2, Some("a: 100\n")),
            (5, Some("a: 160\n")),
            (15, Some("a: 200\nb: 5\n")),
            (25, Some("a: 260\nb: 20\n")),
        ]);
        let of = OfTrial::of(&of, (5_000.0, 25_000.0), per_second);
        assert_eq!(of.notes, Vec::<String>::new());
        let expected = [("a".to_owned(), Some(5.0)), ("b".to_owned(), Some(1.0))];
        assert_eq!(shown(&of), expected);
        assert!((of.transactions - 20.0).abs() < 1e-9);
    }

    #[test]
    fn counters_that_went_back_are_gaps() {
        let of = recorded(&[
            (5, Some("a: 100\nb: 7\nc: 1\n")),
            (15, Some("a: 20\nb: 9\nc: 1\n")),
            (25, Some("a: 260\nc: 1\n")),
        ]);
        let of = OfTrial::of(&of, (5_000.0, 25_000.0), per_second);
        let expected = [
            ("a".to_owned(), None),
            ("b".to_owned(), None),
            ("c".to_owned(), Some(0.0)),
        ];
        assert_eq!(shown(&of), expected);
        assert_eq!(
            of.notes,
            [
                "2 counters of `db` went back or vanished and have no value: the system counted anew, or they count nothing."
            ]
        );
    }

    #[test]
    fn missing_answers_are_said() {
        let late = recorded(&[(5, Some("a: 1\n")), (15, None), (25, Some("a: 21\n"))]);
        let of = OfTrial::of(&late, (5_000.0, 25_000.0), per_second);
        assert_eq!(shown(&of), [("a".to_owned(), Some(1.0))]);
        assert_eq!(of.notes, ["1 of 3 answers of `db` are missing: late."]);
        let short = recorded(&[
            (5, None),
            (15, None),
            (20, Some("a: 1\n")),
            (25, Some("a: 21\n")),
        ]);
        let of = OfTrial::of(&short, (5_000.0, 25_000.0), per_second);
        assert!(of.values.is_empty());
        assert!(
            of.notes[1].contains("too little of the hold"),
            "{:?}",
            of.notes
        );
        let none = OfTrial::of(&recorded(&[(5, None)]), (5_000.0, 25_000.0), per_second);
        assert_eq!(
            none.notes,
            ["The system did not say what it counts as `db`: late."]
        );
    }
}
