//! Differences of a system's counters, in sentences.

use crate::model::{AskDifference, CounterDifference};
use crate::series::shortened;
use crate::units::{is_time, value};

/// The maximum number of labels named for a pair of cells; `result.json` has all of them.
const MOST_NAMED: usize = 10;
/// The maximum number of counters named for one of these.
const MOST_OF_ONE: usize = 4;
/// Letters of a label's text.
const LETTERS: usize = 120;

/// All sentences of a comparison.
pub(crate) fn sentences(of: &AskDifference) -> Vec<String> {
    let (a, b, ask) = (&of.a, &of.b, &of.ask);
    if let Some(reason) = &of.reason {
        return vec![format!("{b} against {a}, `{ask}`: not compared: {reason}.")];
    }
    if of.findings.is_empty() {
        let counters = plural(of.tested, "counter");
        return vec![format!(
            "{b} against {a}, `{ask}`: none of {counters} differs beyond noise."
        )];
    }
    let groups = groups(&of.findings);
    let named = groups.iter().take(MOST_NAMED).map(|group| sentence(group));
    let head = format!("{b} against {a}, `{ask}`, per transaction:");
    let more = groups.len().saturating_sub(MOST_NAMED);
    let more = (more > 0).then(|| format!("{more} more in result.json."));
    std::iter::once(head).chain(named).chain(more).collect()
}

/// The finding of a run: ``after against before, `db.statements`: `select … where owner = $1` takes 3.10 ms [2.90, 3.30]
/// more per transaction (total_exec_time).`` `None` where nothing differs.
#[must_use]
pub fn summary(of: &AskDifference) -> Option<String> {
    let groups = groups(&of.findings);
    let of_time = groups.iter().find_map(|group| {
        let mut times = group.iter().filter(|one| is_time(one.unit.as_deref()));
        times.next()
    });
    let one = of_time.or_else(|| groups.first()?.first())?;
    let more = if one.difference > 0.0 { "more" } else { "less" };
    let sign = one.difference.signum();
    let interval = one.interval.map(|(low, high)| match one.difference > 0.0 {
        true => (low, high),
        false => (-high, -low),
    });
    let size = value(one.difference * sign, one.unit.as_deref(), interval);
    let column = &one.column;
    let (b, a, ask) = (&of.b, &of.a, &of.ask);
    let what = match subject(one) {
        Some(subject) if is_time(one.unit.as_deref()) => {
            format!("{subject} takes {size} {more} per transaction ({column})")
        }
        Some(subject) => format!("{subject} counts {size} {more} of `{column}` per transaction"),
        None => format!("`{column}` is {size} {more} per transaction"),
    };
    Some(format!("{b} against {a}, `{ask}`: {what}."))
}

/// Findings of the same labels together, in the order of the first of each.
fn groups(findings: &[CounterDifference]) -> Vec<Vec<&CounterDifference>> {
    let mut groups: Vec<Vec<&CounterDifference>> = Vec::new();
    for one in findings {
        let has = |group: &&mut Vec<&CounterDifference>| {
            !one.labels.is_empty() && group[0].labels == one.labels
        };
        match groups.iter_mut().find(has) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    for group in &mut groups {
        group.sort_by_key(|one| !is_time(one.unit.as_deref()));
    }
    groups
}

/// `` `select …`: +3.10 ms [2.90, 3.30] total_exec_time, +812 [800, 830] shared_blks_hit. ``
fn sentence(group: &[&CounterDifference]) -> String {
    let named = group.iter().take(MOST_OF_ONE).map(|one| {
        let size = value(one.difference, one.unit.as_deref(), one.interval);
        let plus = if one.difference >= 0.0 { "+" } else { "" };
        format!("{plus}{size} {}", one.column)
    });
    let named: Vec<String> = named.collect();
    let more = group.len().saturating_sub(MOST_OF_ONE);
    let more = match more {
        0 => String::new(),
        more => format!(", and {}", plural(more, "more counter")),
    };
    let subject = subject(group[0]).map_or_else(String::new, |subject| format!("{subject}: "));
    format!("{subject}{}{more}.", named.join(", "))
}

/// The subject of the counter: the texts of its labels.
fn subject(of: &CounterDifference) -> Option<String> {
    let texts: Vec<String> = of
        .labels
        .iter()
        .map(|(_, text)| shortened(text, LETTERS))
        .collect();
    (!texts.is_empty()).then(|| format!("`{}`", texts.join(", ").replace('`', "'")))
}

fn plural(n: usize, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::change::OfTrial;
    use crate::differences::{Rules, Sides, compare};
    use crate::series::Series;

    const RULES: Rules<'static> = Rules {
        seed: 7,
        smallest: 0.05,
        swapped: None,
    };

    fn series(column: &str, query: &str) -> Series {
        Series {
            column: column.to_owned(),
            labels: vec![("query".to_owned(), query.to_owned())],
        }
    }

    /// Eight blocks of twelve statements with some noise, of which one takes `factor` times as long in *b*.
    fn trials(factor: f64) -> Vec<(OfTrial, OfTrial)> {
        let noise = |seed: u32| 1.0 + f64::from((seed * 7919) % 101) / 1000.0;
        let of = |block: u32, is_b: bool| {
            let mut values = BTreeMap::new();
            let mut units = BTreeMap::new();
            for statement in 0..12_u32 {
                let query = format!("select {statement}");
                let slow = if statement == 5 && is_b { factor } else { 1.0 };
                let seed = block * 31 + statement * 5 + u32::from(is_b) * 3;
                let ms = 0.1 * f64::from(statement + 1) * slow * noise(seed);
                values.insert(
                    series("calls", &query),
                    Some(1.0 + noise(seed + 1) / 1000.0),
                );
                values.insert(series("total_exec_time", &query), Some(ms));
                units.insert(series("total_exec_time", &query), "ms".to_owned());
            }
            OfTrial {
                name: "db".to_owned(),
                values,
                units,
                transactions: 5_000.0,
                notes: Vec::new(),
            }
        };
        (0..8)
            .map(|block| (of(block, false), of(block, true)))
            .collect()
    }

    fn compared(trials: &[(OfTrial, OfTrial)]) -> AskDifference {
        let blocks = trials.iter().map(|(a, b)| Some((a, b))).collect();
        let sides = [Sides {
            a: "before",
            b: "after",
            blocks,
        }];
        compare("db.statements", &sides, RULES).remove(0)
    }

    #[test]
    fn the_statement_that_takes_longer_is_named() {
        let found = compared(&trials(3.0));
        assert_eq!(found.tested, 24);
        let named: Vec<_> = found.findings.iter().map(|one| &one.labels[0].1).collect();
        assert_eq!(named, ["select 5"], "{found:#?}");
        let summary = summary(&found).unwrap();
        assert!(
            summary.starts_with("after against before, `db.statements`: `select 5` takes 1.2"),
            "{summary}"
        );
        assert!(
            summary.ends_with("] more per transaction (total_exec_time)."),
            "{summary}"
        );
        assert_eq!(found.sentences.len(), 2);
    }

    #[test]
    fn equal_cells_and_few_blocks_name_nothing() {
        let mut trials = trials(1.0);
        let found = compared(&trials);
        assert!(found.findings.is_empty());
        assert_eq!(
            found.sentences,
            ["after against before, `db.statements`: none of 24 counters differs beyond noise."]
        );
        trials.truncate(5);
        let found = compared(&trials);
        assert!(found.reason.unwrap().starts_with("only 5 blocks have"));
        assert_eq!(summary(&compared(&trials[..5])), None);
    }

    #[test]
    fn a_statement_that_one_side_never_ran_counts_nothing_there() {
        let mut trials = trials(1.0);
        for (a, _) in &mut trials {
            a.values
                .retain(|series, _| series.labels[0].1 != "select 3");
        }
        let found = compared(&trials);
        let named: Vec<_> = found.findings.iter().map(|one| &one.labels[0].1).collect();
        assert_eq!(named, ["select 3", "select 3"]);
        assert!((found.findings[0].mean_a).abs() < 1e-12);
    }

    #[test]
    fn gaps_leave_the_block_out() {
        let mut trials = trials(3.0);
        for (_, b) in trials.iter_mut().take(3) {
            b.values.insert(series("total_exec_time", "select 5"), None);
        }
        // Five blocks are left of this counter.
        assert!(compared(&trials).findings.is_empty());
    }

    #[test]
    fn counters_without_labels_are_their_own_subject() {
        let one = CounterDifference {
            column: "keyspace_misses".to_owned(),
            labels: Vec::new(),
            unit: None,
            mean_a: 0.1,
            mean_b: 0.05,
            difference: -0.05,
            interval: Some((-0.06, -0.04)),
            p: 0.01,
            part: Some(-0.5),
        };
        let of = AskDifference {
            ask: "cache".to_owned(),
            a: "a".to_owned(),
            b: "b".to_owned(),
            blocks: 8,
            tested: 1,
            findings: vec![one],
            reason: None,
            sentences: Vec::new(),
        };
        assert_eq!(
            summary(&of).as_deref(),
            Some(
                "b against a, `cache`: `keyspace_misses` is 0.0500 [0.0400, 0.0600] less per transaction."
            )
        );
        assert_eq!(
            sentences(&of)[1],
            "−0.0500 [−0.0600, −0.0400] keyspace_misses."
        );
    }

    #[test]
    fn long_texts_keep_both_ends() {
        let text = format!("select {} where owner = $1", "x, ".repeat(100));
        let short = shortened(&text, LETTERS);
        assert!(short.starts_with("select x") && short.ends_with("where owner = $1"));
        assert!(short.chars().count() <= LETTERS);
    }
}
