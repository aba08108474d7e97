//! Counters of host and processes over the hold, and their series for charts.
//!
//! A row holds rates since the row before it, so a row counts for the hold if both lie in it; rows
//! are weighted by their length. Gaps add nothing: a counter without a value is `None`.

use std::collections::BTreeMap;

use lab_archive::MonitorTable;
use lab_stats::WeightedMean;

use crate::model::{Counters, Sample};
use crate::sums::Hold;

/// Most points of a chart.
const MOST_SAMPLES: usize = 160;

/// What `result.json` always has, sampled or not.
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

/// Counters that say more by their largest value: `NAME_max` stands beside the mean.
const PEAKS: [&str; 3] = ["rss_mb", "threads", "open_files"];
/// A running total; it has no mean.
const TOTAL: &str = "cpu_ms_total";

/// What the monitor says of a hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct Monitored {
    pub(crate) host: Counters,
    pub(crate) system: Counters,
    pub(crate) generator: Counters,
    /// The part of the hold that samples cover, 0…1.
    pub(crate) coverage: f64,
}

/// Averages the counters over the hold.
pub(crate) fn over_hold(table: &MonitorTable, hold: &Hold) -> Monitored {
    let rows = rows_in(table, hold);
    let gap_ms = 2.0 * median_interval(table);
    let covered: f64 = rows
        .iter()
        .map(|(span_ms, _)| span_ms)
        .filter(|span_ms| **span_ms <= gap_ms)
        .sum();
    let mut monitored = Monitored {
        host: of_prefix(table, &rows, "host."),
        system: of_prefix(table, &rows, "system."),
        generator: of_prefix(table, &rows, "generator."),
        coverage: if hold.length_ms() > 0.0 {
            covered / hold.length_ms()
        } else {
            0.0
        },
    };
    for name in HOST {
        monitored.host.entry(name.to_owned()).or_default();
    }
    for name in SYSTEM {
        monitored.system.entry(name.to_owned()).or_default();
    }
    monitored
}

type Row<'a> = (f64, &'a [Option<f64>]);

/// How far apart rows usually are. A row that comes later than twice this is the first after a gap.
fn median_interval(table: &MonitorTable) -> f64 {
    let mut spans: Vec<f64> = table.rows.windows(2).map(|p| p[1].0 - p[0].0).collect();
    spans.sort_by(f64::total_cmp);
    spans.get(spans.len() / 2).copied().unwrap_or_default()
}

/// Rows whose whole span lies in the hold, each with its length.
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

/// CPU time of the system per transaction: utilisation ÷ throughput (the utilisation law).
pub(crate) fn cpu_ms_per_transaction(
    system: &Counters,
    throughput_per_s: Option<f64>,
) -> Option<f64> {
    let cores_busy = system.get("cpu_percent").copied().flatten()? / 100.0;
    lab_stats::ratio(cores_busy * 1000.0, throughput_per_s?)
}

/// The counters that charts show, neighbours averaged.
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
        assert!((monitored.coverage - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_long_gap_between_rows_is_not_covered() {
        let rows = [0.0, 1000.0, 2000.0, 3000.0, 8000.0, 9000.0, 10_000.0];
        let table = MonitorTable {
            columns: vec!["host.cpu_percent".to_owned()],
            rows: rows.map(|t| (t, vec![Some(10.0)])).to_vec(),
        };
        let monitored = over_hold(&table, &Hold::new(0, 10_000));
        assert!((monitored.coverage - 0.5).abs() < 1e-9, "{monitored:?}");
    }

    #[test]
    fn what_was_never_sampled_is_null() {
        let monitored = over_hold(&MonitorTable::default(), &Hold::new(0, 1000));
        assert_eq!(monitored.host["disk_kb_per_s"], None);
        assert_eq!(monitored.system["rss_mb_max"], None);
        assert!(monitored.coverage.abs() < f64::EPSILON);
    }

    #[test]
    fn demand_by_the_utilisation_law() {
        let system = Counters::from([("cpu_percent".to_owned(), Some(50.0))]);
        assert_eq!(cpu_ms_per_transaction(&system, Some(1000.0)), Some(0.5));
        assert_eq!(cpu_ms_per_transaction(&system, Some(0.0)), None);
        assert_eq!(cpu_ms_per_transaction(&Counters::new(), Some(1000.0)), None);
    }
}
