//! `asked.jsonl`: for each ask a line about its counters, then a line for each answer.

use serde::{Deserialize, Serialize};

use crate::recorder::{Answer, MOST_SERIES, Recorded};
use crate::series::Series;

/// Most asks of a file.
const MOST_ASKS: usize = 64;
/// Most lines of a file.
const MOST_LINES: usize = 100_000;

/// A line that is not of this form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct BadLine {
    /// From 1.
    pub line: usize,
    /// The problem.
    pub problem: String,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Head {
        name: String,
        series: Vec<Counter>,
        #[serde(default)]
        left_out: u64,
        asked: u64,
        missed: u64,
    },
    Values {
        name: String,
        t_ms: f64,
        values: Vec<Option<f64>>,
    },
    Problem {
        name: String,
        t_ms: f64,
        problem: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Counter {
    #[serde(flatten)]
    series: Series,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
}

/// Largest file.
const MOST_BYTES: usize = 16 << 20;

/// The text of a file, of at most 16 MiB. Of larger data, intermediate answers and the counters that changed least
/// are dropped.
#[must_use]
pub fn to_jsonl(mut all: Vec<Recorded>) -> String {
    loop {
        let text = text(&all);
        if text.len() <= MOST_BYTES {
            return text;
        }
        all.iter_mut().for_each(Recorded::shrink);
    }
}

fn text(all: &[Recorded]) -> String {
    let mut text = String::new();
    let mut put = |line: &Line| {
        // Texts and finite numbers always have a form.
        text.push_str(&serde_json::to_string(line).unwrap_or_default());
        text.push('\n');
    };
    for one in all {
        let series = one.series.iter();
        put(&Line::Head {
            name: one.name.clone(),
            series: series
                .map(|(series, unit)| Counter {
                    series: series.clone(),
                    unit: unit.clone(),
                })
                .collect(),
            left_out: one.left_out,
            asked: one.asked,
            missed: one.missed,
        });
        for answer in &one.answers {
            let (name, t_ms) = (one.name.clone(), answer.t_ms);
            put(&match &answer.values {
                Ok(values) => Line::Values {
                    name,
                    t_ms,
                    values: values.clone(),
                },
                Err(problem) => Line::Problem {
                    name,
                    t_ms,
                    problem: problem.clone(),
                },
            });
        }
    }
    text
}

/// Reads a file.
///
/// # Errors
/// The first line that is not of this form.
pub fn from_jsonl(bytes: &[u8]) -> Result<Vec<Recorded>, BadLine> {
    let mut all: Vec<Recorded> = Vec::new();
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    for (at, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let wrong = |problem: String| BadLine {
            line: at + 1,
            problem,
        };
        if at >= MOST_LINES {
            return Err(wrong(format!("there are over {MOST_LINES} lines")));
        }
        let line: Line = serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
        take(line, &mut all).map_err(wrong)?;
    }
    Ok(all)
}

fn take(line: Line, all: &mut Vec<Recorded>) -> Result<(), String> {
    let (name, t_ms, values) = match line {
        Line::Head {
            name,
            series,
            left_out,
            asked,
            missed,
        } => {
            if series.len() > MOST_SERIES || all.len() >= MOST_ASKS {
                return Err("there are too many counters".to_owned());
            }
            if all.iter().any(|one| one.name == name) {
                return Err(format!("`{name}` begins twice"));
            }
            all.push(Recorded {
                name,
                series: series
                    .into_iter()
                    .map(|one| (one.series, one.unit))
                    .collect(),
                left_out,
                asked,
                missed,
                answers: Vec::new(),
            });
            return Ok(());
        }
        Line::Values { name, t_ms, values } => (name, t_ms, Ok(values)),
        Line::Problem {
            name,
            t_ms,
            problem,
        } => (name, t_ms, Err(problem)),
    };
    let of = all.iter_mut().find(|one| one.name == name);
    let of = of.ok_or_else(|| format!("nothing is said of what `{name}` counts"))?;
    if values
        .as_ref()
        .is_ok_and(|values| values.len() != of.series.len())
    {
        return Err(format!(
            "`{name}` has {} counters, and this line another number",
            of.series.len()
        ));
    }
    if of.answers.last().is_some_and(|last| last.t_ms > t_ms) {
        return Err("it is earlier than the line before".to_owned());
    }
    of.answers.push(Answer { t_ms, values });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded() -> Recorded {
        let mut series = Series::of("calls");
        series
            .labels
            .push(("query".to_owned(), "select 1".to_owned()));
        Recorded {
            name: "db.statements".to_owned(),
            series: vec![(series, None), (Series::of("usec"), Some("µs".to_owned()))],
            left_out: 3,
            asked: 3,
            missed: 1,
            answers: vec![
                Answer {
                    t_ms: 5000.5,
                    values: Ok(vec![Some(1.0), None]),
                },
                Answer {
                    t_ms: 15_000.0,
                    values: Err("late".to_owned()),
                },
                Answer {
                    t_ms: 25_000.0,
                    values: Ok(vec![Some(7.25), Some(2.0)]),
                },
            ],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let all = [recorded()];
        let text = to_jsonl(all.to_vec());
        assert!(text.starts_with(
            r#"{"name":"db.statements","series":[{"column":"calls","labels":[["query","select 1"]]},"#
        ));
        assert!(text.contains(r#"{"name":"db.statements","t_ms":5000.5,"values":[1.0,null]}"#));
        assert_eq!(from_jsonl(text.as_bytes()).unwrap(), all);
        assert_eq!(from_jsonl(b"").unwrap(), []);
    }

    #[test]
    fn what_is_too_large_is_made_smaller() {
        let counter = |n: usize| {
            let mut series = Series::of("calls");
            let label = |at: usize| (format!("label {at}"), format!("{n} {}", "x".repeat(650)));
            series.labels = (0..16).map(label).collect();
            (series, None)
        };
        let values = |t: u32| Answer {
            t_ms: f64::from(t),
            values: Ok((0..2_000_u32).map(|n| Some(f64::from(t * n))).collect()),
        };
        let large = Recorded {
            series: (0..2_000).map(counter).collect(),
            answers: (0..20).map(values).collect(),
            ..recorded()
        };
        let text = to_jsonl(vec![large]);
        assert!(text.len() <= MOST_BYTES);
        let read = from_jsonl(text.as_bytes()).unwrap().remove(0);
        assert_eq!(read.series.len(), 1_000);
        assert_eq!(read.left_out, 3 + 1_000);
        // The counters that changed most are left, and the first and the last answer.
        assert!(read.series[0].0.labels[0].1.starts_with("1000 "));
        assert!((read.answers.last().unwrap().t_ms - 19.0).abs() < 1e-9);
    }

    #[test]
    fn damage_is_found_with_its_line() {
        let text = to_jsonl(vec![recorded()]);
        let lines: Vec<&str> = text.lines().collect();
        for (damaged, line, says) in [
            (lines[1].to_owned(), 1, "nothing is said"),
            (format!("{}\n{}", lines[0], lines[0]), 2, "begins twice"),
            (
                format!("{}\n{}\n{}", lines[0], lines[3], lines[1]),
                3,
                "earlier",
            ),
            (format!("{}\n{}", lines[0], &lines[1][..30]), 2, "EOF"),
            (
                format!("{}\n{}", lines[0], lines[1].replace(",null", "")),
                2,
                "another number",
            ),
            (format!("{}\n{{\"name\":3}}", lines[0]), 2, "did not match"),
        ] {
            let error = from_jsonl(damaged.as_bytes()).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
