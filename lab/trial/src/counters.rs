//! Counters of host and processes over the hold, and their series for charts.
//!
//! A row has rates since the row before it, so a row counts for the hold if both lie in it; rows are weighted by their
//! length. Gaps add nothing: a counter without a value is `None`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lab_archive::MonitorTable;
use lab_stats::WeightedMean;

use crate::model::{Counters, PartCounters, Sample};
use crate::sums::Hold;

/// Maximum points of a chart.
const MOST_SAMPLES: usize = 160;

/// Counters that `result.json` always has, sampled or not.
const HOST: [&str; 9] = [
    "cpu_percent",
    "disk_transfers_per_s",
    "disk_kb_per_s",
    "disk_queue_length",
    "disk_busy_percent",
    "memory_committed_mb",
    "memory_available_mb",
    "network_kb_per_s",
    "scan_rate_pages_per_s",
];
const SYSTEM: [&str; 2] = ["cpu_percent", "rss_mb_max"];

/// Counters with an informative maximum: `NAME_max` is added to the mean.
const PEAKS: [&str; 3] = ["rss_mb", "threads", "open_files"];
/// Parts of a hold that differ by less are reported as one: a last row of another machine may be late.
const ALIKE: f64 = 0.02;
/// The maximum sampling interval of counters, apart from those of another program.
const SELDOM_MS: f64 = 1000.0;
/// The maximum interval of another program's counters.
const SLOW_MS: f64 = 5000.0;
/// Prefix of counters of the machine, and of the system's processes on it.
const HOST_OF: &str = "host.";
const SYSTEM_OF: &str = "system.";
/// Separates the name of a system part on its own machine from that of its counter.
const OF_PART: char = '/';
/// A running total; it has no mean.
const TOTAL: &str = "cpu_ms_total";

/// The monitor's counters over a hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Monitored {
    pub(crate) host: Counters,
    pub(crate) system: Counters,
    pub(crate) generator: Counters,
    /// Counters of the generator's machine, if that is not the system's.
    pub(crate) generator_host: Counters,
    /// Counters of system parts on their own machines; [`Self::system`] includes them in its sums.
    pub(crate) parts: Vec<OfPart>,
    /// The part of the hold covered by samples, by source.
    pub(crate) coverage: Coverage,
}

/// Counters of a part of the system.
#[derive(Debug, Clone, Default)]
pub(crate) struct OfPart {
    /// Its counters.
    pub(crate) counters: PartCounters,
    /// Like [`Coverage::host_missing`], for its machine.
    pub(crate) missing: f64,
}

/// The part of a hold covered by samples, 0…1. Rows with this machine's counters may lack those of another machine.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Coverage {
    /// Rows with any counter.
    pub(crate) rows: f64,
    pub(crate) host: f64,
    /// `None` for a system whose processes were not to be sampled.
    pub(crate) system: Option<f64>,
    pub(crate) generator: Option<f64>,
    /// The part of the sampled hold without counters of the machine, 0…1. Rows that lie partly in the hold count too: a
    /// short hold has few others.
    pub(crate) host_missing: f64,
}

impl Coverage {
    fn of(table: &MonitorTable, hold: &Hold) -> Self {
        let of = |prefix: &str| covered(table, hold, prefix);
        Self {
            rows: of("").unwrap_or_default(),
            host: of(HOST_OF).unwrap_or_default(),
            system: of(SYSTEM_OF),
            generator: of("generator."),
            host_missing: host_missing(table, hold, HOST_OF),
        }
    }

    /// Returns the smallest coverage, and its source.
    pub(crate) fn least(&self) -> (&'static str, f64) {
        let others = [
            ("the system", self.system),
            ("the generator", self.generator),
        ];
        let others = others
            .into_iter()
            .filter_map(|(of, part)| Some((of, part?)));
        let host = ("the machine", self.host);
        others.fold(host, |least, one| if one.1 < least.1 { one } else { least })
    }

    /// Returns true if all sources have nearly the same coverage.
    pub(crate) fn is_alike(&self) -> bool {
        let others = [self.system, self.generator].into_iter().flatten();
        let is_near = |part: f64| (part - self.host).abs() < ALIKE;
        others.into_iter().all(is_near)
    }
}

/// Averages the counters over the hold.
pub(crate) fn over_hold(table: &MonitorTable, hold: &Hold) -> Monitored {
    let parts = parts(table, hold);
    let table = &*whole(table);
    let rows = rows_in(table, hold);
    let mut monitored = Monitored {
        parts,
        host: of_prefix(table, &rows, HOST_OF),
        system: of_prefix(table, &rows, SYSTEM_OF),
        generator: of_prefix(table, &rows, "generator."),
        generator_host: of_prefix(table, &rows, "generator_host."),
        coverage: Coverage::of(table, hold),
    };
    for name in HOST {
        monitored.host.entry(name.to_owned()).or_default();
    }
    for name in SYSTEM {
        monitored.system.entry(name.to_owned()).or_default();
    }
    monitored
}

/// Returns the system parts on their own machines, in the order of their counters.
fn parts(table: &MonitorTable, hold: &Hold) -> Vec<OfPart> {
    let mut names: Vec<&str> = Vec::new();
    let all = table.columns.iter();
    for (part, _) in all.filter_map(|column| column.split_once(OF_PART)) {
        if !names.contains(&part) {
            names.push(part);
        }
    }
    let rows = rows_in(table, hold);
    let of = |part: &str| OfPart {
        counters: PartCounters {
            name: part.to_owned(),
            system: of_prefix(table, &rows, &format!("{part}{OF_PART}{SYSTEM_OF}")),
            host: of_prefix(table, &rows, &format!("{part}{OF_PART}{HOST_OF}")),
        },
        missing: host_missing(table, hold, &format!("{part}{OF_PART}{HOST_OF}")),
    };
    names.into_iter().map(of).collect()
}

/// Adds counters of the system over all its machines: each the sum over its parts, and a gap if one has none.
fn whole(table: &MonitorTable) -> Cow<'_, MonitorTable> {
    let of_parts = |name: &str| -> Vec<usize> {
        let is_its = |column: &String| {
            column
                .split_once(OF_PART)
                .is_some_and(|(_, of_part)| of_part == name)
        };
        let all = table.columns.iter().enumerate();
        all.filter_map(|(at, column)| is_its(column).then_some(at))
            .collect()
    };
    let columns = table.columns.iter().enumerate();
    let columns = columns.filter(|(_, name)| name.starts_with(SYSTEM_OF));
    let sums: Vec<(usize, Vec<usize>)> = columns.map(|(at, name)| (at, of_parts(name))).collect();
    if sums.iter().all(|(_, parts)| parts.is_empty()) {
        return Cow::Borrowed(table);
    }
    let mut whole = table.clone();
    for (_, row) in &mut whole.rows {
        for (at, parts) in &sums {
            let all = parts.iter().chain([at]);
            let sum = all.map(|at| row.get(*at).copied().flatten()).sum();
            if let Some(value) = row.get_mut(*at) {
                *value = sum;
            }
        }
    }
    Cow::Owned(whole)
}

type Row<'a> = (f64, &'a [Option<f64>]);

/// Returns the part of the hold covered by whole rows in which any of these counters has a value; `None` if there are
/// no such counters.
fn covered(table: &MonitorTable, hold: &Hold, prefix: &str) -> Option<f64> {
    let spans = spans(table, prefix)?.into_iter();
    let within = spans.filter(|(start, end)| hold.contains(*start, *end));
    let covered: f64 = within.map(|(start, end)| end - start).sum();
    Some(lab_stats::ratio(covered, hold.length_ms()).unwrap_or_default())
}

/// See [`Coverage`]. Late rows have counters for all the time since the row before; if no row covers the hold, nothing
/// counts as missing.
fn host_missing(table: &MonitorTable, hold: &Hold, host: &str) -> f64 {
    let touched = |prefix: &str| -> f64 {
        let spans = spans(table, prefix).into_iter().flatten();
        let parts = spans.map(|(start, end)| end.min(hold.end_ms) - start.max(hold.start_ms));
        parts.map(|part| part.max(0.0)).sum()
    };
    let there = lab_stats::ratio(touched(host), touched(""));
    there.map_or(0.0, |there| (1.0 - there).max(0.0))
}

/// Returns the spans covered by rows in which any of these counters has a value; `None` if there are no such counters.
/// A row later than twice the usual interval after the one before is the first after a gap.
fn spans(table: &MonitorTable, prefix: &str) -> Option<Vec<(f64, f64)>> {
    let columns = (0..table.columns.len()).filter(|at| table.columns[*at].starts_with(prefix));
    let columns: Vec<usize> = columns.collect();
    columns.first()?;
    let has = |row: &[Option<f64>]| {
        columns
            .iter()
            .any(|at| matches!(row.get(*at), Some(Some(_))))
    };
    // Rates are since the row before, so the first row has none.
    let first = table.rows.iter().position(|(_, row)| has(row));
    let first = first.map_or(0, |at| at.saturating_sub(1));
    let rows = table.rows.iter().enumerate().skip(first);
    let rows = rows.filter(|(at, (_, row))| *at == first || has(row));
    let times: Vec<f64> = rows.map(|(_, (at, _))| *at).collect();
    let of_all: Vec<f64> = table.rows.iter().map(|(at, _)| *at).collect();
    let own = usual_span(&times);
    let usual = match own <= SLOW_MS {
        true => own,
        false => own.min(usual_span(&of_all).max(SELDOM_MS)),
    };
    let spans = times.windows(2).map(|pair| (pair[0], pair[1]));
    Some(
        spans
            .filter(|(start, end)| end - start <= 2.0 * usual)
            .collect(),
    )
}

/// Returns the usual interval.
fn usual_span(times: &[f64]) -> f64 {
    let mut spans: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    spans.sort_by(f64::total_cmp);
    let middle = spans.len().saturating_sub(1) / 2;
    spans.get(middle).copied().unwrap_or_default()
}

/// Returns the rows whose whole span lies in the hold, each with its length.
fn rows_in<'a>(table: &'a MonitorTable, hold: &Hold) -> Vec<Row<'a>> {
    table
        .rows
        .windows(2)
        .filter(|pair| hold.contains(pair[0].0, pair[1].0))
        .map(|pair| (pair[1].0 - pair[0].0, pair[1].1.as_slice()))
        .collect()
}

fn of_prefix(table: &MonitorTable, rows: &[Row<'_>], prefix: &str) -> Counters {
    let mut counters = BTreeMap::new();
    for (column, name) in table.columns.iter().enumerate() {
        let Some(name) = name.strip_prefix(prefix) else {
            continue;
        };
        if name == TOTAL {
            continue;
        }
        let values = || {
            rows.iter()
                .filter_map(|(span, row)| Some(((*row.get(column)?)?, *span)))
        };
        let mean = values().collect::<WeightedMean>().mean();
        counters.insert(name.to_owned(), mean);
        if PEAKS.contains(&name) {
            let peak = values().map(|(value, _)| value).reduce(f64::max);
            counters.insert(format!("{name}_max"), peak);
        }
    }
    counters
}

/// Returns the CPU time of the system per transaction: utilisation ÷ throughput (the utilisation law).
pub(crate) fn cpu_ms_per_transaction(
    system: &Counters,
    throughput_per_s: Option<f64>,
) -> Option<f64> {
    let cores_busy = system.get("cpu_percent").copied().flatten()? / 100.0;
    lab_stats::ratio(cores_busy * 1000.0, throughput_per_s?)
}

/// Returns the storage traffic of the system's own processes per transaction, KB, as accounted by the kernel
/// (`/proc/PID/io`). `None` if it isn't.
pub(crate) fn disk_kb_per_transaction(
    system: &Counters,
    throughput_per_s: Option<f64>,
) -> Option<f64> {
    let counter = |name: &str| system.get(name).copied().flatten();
    let kb_per_s = counter("read_kb_per_s")? + counter("write_kb_per_s")?;
    lab_stats::ratio(kb_per_s, throughput_per_s?)
}

/// Returns the counters for charts, with neighbours averaged.
pub(crate) fn series(table: &MonitorTable, cores: u32) -> Vec<Sample> {
    let column = |name: &str| table.column(name);
    let (host, system, disk) = (
        column("host.cpu_percent"),
        column("system.cpu_percent"),
        column("host.disk_transfers_per_s"),
    );
    let size = table.rows.len().div_ceil(MOST_SAMPLES).max(1);
    table
        .rows
        .chunks(size)
        .map(|rows| Sample {
            t_ms: mean_of(rows.iter().map(|(t, _)| Some(*t))).unwrap_or_default(),
            host_cpu_percent: mean_at(rows, host),
            system_cpu_percent: mean_at(rows, system).map(|one| one / f64::from(cores.max(1))),
            disk_transfers_per_s: mean_at(rows, disk),
        })
        .collect()
}

fn mean_at(rows: &[(f64, Vec<Option<f64>>)], column: Option<usize>) -> Option<f64> {
    let column = column?;
    mean_of(
        rows.iter()
            .map(|(_, row)| row.get(column).copied().flatten()),
    )
}

fn mean_of(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values
        .flatten()
        .map(|value| (value, 1.0))
        .collect::<WeightedMean>()
        .mean()
}

/// Adds the system's resource demand per transaction to its counters.
pub(crate) fn with_demand(mut system: Counters, throughput_per_s: Option<f64>) -> Counters {
    system.insert(
        "cpu_ms_per_transaction".to_owned(),
        cpu_ms_per_transaction(&system, throughput_per_s),
    );
    let disk = disk_kb_per_transaction(&system, throughput_per_s);
    system.insert("disk_kb_per_transaction".to_owned(), disk);
    system
}

/// Adds the host's transfers per transaction to its counters.
pub(crate) fn with_transfers(mut host: Counters, throughput_per_s: Option<f64>) -> Counters {
    for (name, rate) in [
        ("disk_transfers_per_transaction", "disk_transfers_per_s"),
        ("disk_kb_per_transaction", "disk_kb_per_s"),
        ("network_kb_per_transaction", "network_kb_per_s"),
    ] {
        let per_s = host.get(rate).copied().flatten();
        let each = per_s.zip(throughput_per_s);
        let each = each.and_then(|(rate, throughput)| lab_stats::ratio(rate, throughput));
        host.insert(name.to_owned(), each);
    }
    host
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> MonitorTable {
        let columns = ["host.cpu_percent", "system.cpu_percent", "system.rss_mb"];
        MonitorTable {
            columns: columns.map(str::to_owned).to_vec(),
            rows: vec![
                (0.0, vec![None, None, Some(10.0)]),
                (1000.0, vec![Some(90.0), Some(90.0), Some(900.0)]),
                (2000.0, vec![Some(10.0), Some(40.0), Some(20.0)]),
                (4000.0, vec![Some(40.0), None, Some(30.0)]),
            ],
        }
    }

    #[test]
    fn rows_of_the_ramp_do_not_count_and_long_rows_count_more() {
        let monitored = over_hold(&table(), &Hold::new(1000, 3000));
        assert_eq!(monitored.host["cpu_percent"], Some(30.0));
        assert_eq!(
            monitored.system["cpu_percent"],
            Some(40.0),
            "a gap adds nothing"
        );
        assert_eq!(monitored.system["rss_mb_max"], Some(30.0));
        assert!((monitored.coverage.host - 1.0).abs() < 1e-9);
        assert!(monitored.coverage.is_alike());
    }

    #[test]
    fn a_system_on_several_machines_is_their_sum_and_each_machine_has_its_own() {
        let columns = [
            "host.cpu_percent",
            "system.cpu_percent",
            "db/host.cpu_percent",
            "db/system.cpu_percent",
        ];
        let row = |t: f64, part: Option<f64>| (t, vec![Some(50.0), Some(40.0), part, part]);
        let table = MonitorTable {
            columns: columns.map(str::to_owned).to_vec(),
            rows: vec![
                row(0.0, Some(9.0)),
                row(1000.0, Some(10.0)),
                row(2000.0, Some(30.0)),
                row(3000.0, None),
            ],
        };
        let monitored = over_hold(&table, &Hold::new(0, 3000));
        assert_eq!(monitored.host["cpu_percent"], Some(50.0));
        assert_eq!(monitored.system["cpu_percent"], Some(60.0));
        let part = &monitored.parts[0];
        assert_eq!(part.counters.name, "db");
        assert_eq!(part.counters.system["cpu_percent"], Some(20.0));
        assert_eq!(part.counters.host["cpu_percent"], Some(20.0));
        assert!((part.missing - 1.0 / 3.0).abs() < 1e-9, "{part:?}");
        let coverage = monitored.coverage;
        assert_eq!((coverage.host, coverage.host_missing), (1.0, 0.0));
        let (of, covered) = coverage.least();
        assert_eq!(of, "the system");
        assert!((covered - 2.0 / 3.0).abs() < 1e-9, "{coverage:?}");
    }

    #[test]
    fn a_long_gap_between_rows_is_not_covered() {
        let rows = [0.0, 1000.0, 2000.0, 3000.0, 8000.0, 9000.0, 10_000.0];
        let table = MonitorTable {
            columns: vec!["host.cpu_percent".to_owned()],
            rows: rows.map(|t| (t, vec![Some(10.0)])).to_vec(),
        };
        let monitored = over_hold(&table, &Hold::new(0, 10_000));
        let coverage = monitored.coverage;
        assert!((coverage.host - 0.5).abs() < 1e-9, "{coverage:?}");
        assert_eq!((coverage.system, coverage.generator), (None, None));
        assert_eq!(coverage.host_missing, 0.0, "nothing but late");
    }

    #[test]
    fn rows_without_another_machines_counters_do_not_cover_its_part() {
        let columns = ["host.cpu_percent", "system.rss_mb", "generator.rss_mb"];
        let row = |second: u32| {
            let there = (second < 5).then_some(1.0);
            (f64::from(second) * 1000.0, vec![there, there, Some(2.0)])
        };
        let table = MonitorTable {
            columns: columns.map(str::to_owned).to_vec(),
            rows: (0..=10).map(row).collect(),
        };
        let coverage = over_hold(&table, &Hold::new(0, 10_000)).coverage;
        assert_eq!(
            (coverage.system, coverage.generator),
            (Some(0.4), Some(1.0))
        );
        assert_eq!(coverage.least(), ("the machine", 0.4));
        assert!((coverage.host_missing - 0.6).abs() < 1e-9);
        assert!(!coverage.is_alike());
    }

    #[test]
    fn two_samples_far_apart_do_not_cover_what_is_between_them() {
        let row = |second: u32| {
            let there = matches!(second, 0 | 9).then_some(1.0);
            (f64::from(second) * 1000.0, vec![there, Some(2.0)])
        };
        let table = MonitorTable {
            columns: vec!["host.cpu_percent".to_owned(), "generator.rss_mb".to_owned()],
            rows: (0..=10).map(row).collect(),
        };
        let coverage = over_hold(&table, &Hold::new(0, 10_000)).coverage;
        assert_eq!((coverage.host, coverage.generator), (0.0, Some(1.0)));
    }

    #[test]
    fn counters_that_come_less_often_than_rows_cover_the_time_between_them() {
        let row = |tenth: u32| {
            let there = tenth.is_multiple_of(10).then_some(1.0);
            (f64::from(tenth) * 100.0, vec![there, Some(2.0)])
        };
        let table = MonitorTable {
            columns: vec!["host.cpu_percent".to_owned(), "generator.rss_mb".to_owned()],
            rows: (0..=100).map(row).collect(),
        };
        let coverage = over_hold(&table, &Hold::new(0, 10_000)).coverage;
        assert_eq!((coverage.host, coverage.generator), (1.0, Some(1.0)));
    }

    /// Rows each 100 ms, of which these have the machine's counters.
    fn each_tenth(tenths: u32, has: impl Fn(u32) -> bool) -> MonitorTable {
        let row = |tenth: u32| {
            let there = has(tenth).then_some(1.0);
            (f64::from(tenth) * 100.0, vec![there, Some(2.0)])
        };
        MonitorTable {
            columns: vec!["host.cpu_percent".to_owned(), "generator.rss_mb".to_owned()],
            rows: (0..=tenths).map(row).collect(),
        }
    }

    #[test]
    fn of_a_short_hold_what_lies_in_it_in_part_is_not_missing() {
        let table = each_tenth(150, |tenth| tenth % 10 == 5);
        let coverage = over_hold(&table, &Hold::new(10_000, 3_000)).coverage;
        assert!((coverage.host - 2.0 / 3.0).abs() < 1e-9, "{coverage:?}");
        assert!(coverage.host_missing < 1e-9, "{coverage:?}");
        let table = each_tenth(130, |tenth| tenth % 10 == 5);
        let coverage = over_hold(&table, &Hold::new(10_000, 3_000)).coverage;
        let expected = 0.5 / 3.0;
        assert!(
            (coverage.host_missing - expected).abs() < 1e-9,
            "{coverage:?}"
        );
    }

    #[test]
    fn counters_that_take_long_each_time_cover_it() {
        let table = each_tenth(100, |tenth| tenth.is_multiple_of(25));
        let coverage = over_hold(&table, &Hold::new(0, 10_000)).coverage;
        assert_eq!((coverage.host, coverage.host_missing), (1.0, 0.0));
    }

    #[test]
    fn where_no_row_tells_of_the_hold_none_lacks_counters() {
        let rows = [0.0, 100.0, 200.0, 300.0, 5000.0];
        let table = MonitorTable {
            columns: vec!["host.cpu_percent".to_owned()],
            rows: rows.map(|t| (t, vec![Some(10.0)])).to_vec(),
        };
        let monitored = over_hold(&table, &Hold::new(300, 4_700));
        assert_eq!(monitored.host["cpu_percent"], Some(10.0));
        let coverage = monitored.coverage;
        assert_eq!((coverage.rows, coverage.host_missing), (0.0, 0.0));
    }

    #[test]
    fn what_was_never_sampled_is_null() {
        let monitored = over_hold(&MonitorTable::default(), &Hold::new(0, 1000));
        assert_eq!(monitored.host["disk_kb_per_s"], None);
        assert_eq!(monitored.system["rss_mb_max"], None);
        assert_eq!(monitored.coverage, Coverage::default());
    }

    #[test]
    fn demand_by_the_utilisation_law() {
        let system = Counters::from([("cpu_percent".to_owned(), Some(50.0))]);
        assert_eq!(cpu_ms_per_transaction(&system, Some(1000.0)), Some(0.5));
        assert_eq!(cpu_ms_per_transaction(&system, Some(0.0)), None);
        assert_eq!(cpu_ms_per_transaction(&Counters::new(), Some(1000.0)), None);
    }
}
