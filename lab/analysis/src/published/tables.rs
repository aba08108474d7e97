//! Published figures beside ours.
//!
//! Two shapes of CSV are supported. *By level*: the first columns name factors of the study and each row belongs to the
//! cells with those levels; every other column is a metric, or has the mean response in ms of the step that it is named
//! after. *By step*: the first column is `step`, and a column `FACTOR_LEVEL` (`users_1000`) has the mean response of
//! that step in ms. Lines that begin with `#` are the source.

use jiff::SignedDuration;
use lab_plan::{Cell, Published, Question};
use lab_trial::as_f64;
use lab_trial::format::{duration, figure, level, or_none};

use super::transfer;
use crate::model::{
    AsIs, CellSummary, Entry, PublishedTable, StepSummary, TrialAnalysis, Verdict, speed_note,
};

/// Published and planned lengths that differ by more than this differ by construction.
const SAME_LENGTH: f64 = 0.01;
/// Columns of the monitor, by its own names.
const HOST: [&str; 11] = [
    "cpu_percent",
    "disk_transfers_per_s",
    "disk_kb_per_s",
    "disk_queue_length",
    "disk_busy_percent",
    "disk_service_ms",
    "memory_committed_percent",
    "memory_committed_mb",
    "memory_available_mb",
    "network_kb_per_s",
    "scan_rate_pages_per_s",
];
/// Columns that Linux counts differently from the reports' system.
const COMMITTED: [&str; 2] = ["memory_committed_percent", "memory_committed_mb"];
/// Columns that hold a mean response.
const RESPONSES: [&str; 3] = ["response_mean_ms", "response_ms", "response_s"];
/// Columns that follow from the length of a run.
const BY_LENGTH: [&str; 3] = ["elapsed", "tps", "average_tps"];

/// Joins every published file of the study with the cells.
pub(crate) fn compare(
    study: &Question,
    speed: f64,
    trials: &[TrialAnalysis],
    cells: &[CellSummary],
) -> Vec<PublishedTable> {
    let ours = Ours {
        study,
        speed,
        trials,
        cells,
    };
    study
        .published
        .iter()
        .map(|published| table(&ours, published))
        .collect()
}

struct Ours<'a> {
    study: &'a Question,
    speed: f64,
    trials: &'a [TrialAnalysis],
    cells: &'a [CellSummary],
}

fn table(ours: &Ours<'_>, published: &Published) -> PublishedTable {
    let mut table = PublishedTable {
        file: published.name.clone(),
        source: source_lines(&published.text),
        notes: speed_note(ours.speed).into_iter().collect(),
        entries: Vec::new(),
        transfers: Vec::new(),
        as_is: None,
        left_out: Vec::new(),
    };
    match read(&published.text) {
        Err(error) => table
            .left_out
            .push(format!("the file can't be read: {error}")),
        Ok((header, rows)) if header.first().is_some_and(|name| name == "step") => {
            by_step(ours, &header, &rows, &mut table);
        }
        Ok((header, rows)) => {
            table.transfers = transfer::published(&header, &rows);
            if table.transfers.is_empty() {
                by_level(ours, &header, &rows, &mut table);
                if table.entries.is_empty() && !rows.is_empty() {
                    let none =
                        "nothing of it stands beside figures of this run, whose levels are others";
                    table.left_out = vec![none.to_owned()];
                    table.as_is = Some(as_is(keys(ours, &header), &header, &rows));
                }
            }
        }
    }
    table
}

fn source_lines(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix('#'))
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

type Rows = Vec<Vec<String>>;

fn read(text: &str) -> Result<(Vec<String>, Rows), csv::Error> {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let header = reader.headers()?.iter().map(str::to_owned).collect();
    let rows = reader
        .records()
        .map(|record| record.map(|fields| fields.iter().map(str::to_owned).collect()))
        .collect::<Result<_, _>>()?;
    Ok((header, rows))
}

fn by_step(ours: &Ours<'_>, header: &[String], rows: &Rows, table: &mut PublishedTable) {
    for (at, column) in header.iter().enumerate().skip(1) {
        let cells: Vec<&CellSummary> = ours
            .cells
            .iter()
            .filter(|cell| names_cell(ours.study, column, &cell.cell))
            .collect();
        if cells.is_empty() {
            table.left_out.push(format!(
                "column {column}: no trial of this run has that level"
            ));
        }
        for row in rows {
            let (Some(step), Some(text)) = (row.first(), row.get(at)) else {
                continue;
            };
            for cell in &cells {
                entries_of_step(cell, step, text, table);
            }
        }
    }
}

/// One entry for each step of that name; `Open one invitation (2)` is another step with this name.
fn entries_of_step(cell: &CellSummary, step: &str, text: &str, table: &mut PublishedTable) {
    let mine: Vec<&StepSummary> = cell
        .steps
        .iter()
        .filter(|mine| base_name(&mine.name) == step)
        .collect();
    for step in &mine {
        let value = step.response_ms.mean.map(|mean| mean.mean);
        let mut entry = entry(cell, "response_mean_ms", text, value);
        entry.step = Some(step.name.clone());
        table.entries.push(entry);
    }
    if mine.is_empty() {
        let mut entry = entry(cell, "response_mean_ms", text, None);
        entry.step = Some(step.to_owned());
        entry.note = Some("the workload has no such step".to_owned());
        table.entries.push(entry);
    }
}

/// The name without its number: `Open one invitation (2)` is `Open one invitation`.
fn base_name(name: &str) -> &str {
    let numbered = name
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once(" ("));
    match numbered {
        Some((base, number)) if number.bytes().all(|b| b.is_ascii_digit()) => base,
        _ => name,
    }
}

/// `users_1000` names the cells whose factor `users` is at level `1000`.
fn names_cell(study: &Question, column: &str, cell: &Cell) -> bool {
    study.matrix.iter().any(|factor| {
        let rest = column
            .strip_prefix(factor.name.as_str())
            .and_then(|r| r.strip_prefix('_'));
        rest.is_some_and(|rest| {
            cell.get(&factor.name)
                .is_some_and(|value| level(value) == rest)
        })
    })
}

/// Leading columns that name factors of the study.
fn keys(ours: &Ours<'_>, header: &[String]) -> usize {
    let is_factor = |name: &&String| ours.study.matrix.iter().any(|f| f.name == **name);
    header.iter().take_while(is_factor).count()
}

/// Parses the file into a table; the columns that name a row become one. After a mean response follows the same as a
/// multiple of the first row's.
fn as_is(keys: usize, header: &[String], rows: &Rows) -> AsIs {
    let response = header
        .iter()
        .position(|name| RESPONSES.contains(&&**name))
        .filter(|at| *at >= keys);
    let own = |row: &Vec<String>| parse(row.get(response?)?);
    let first = rows.first().and_then(own);
    let line = |texts: Vec<String>, times: String| {
        let mut line = vec![texts[..keys].join(" · ")];
        for (at, text) in texts.into_iter().enumerate().skip(keys) {
            line.push(text);
            line.extend((Some(at) == response).then(|| times.clone()));
        }
        line
    };
    let times = |row: &Vec<String>| {
        let times = own(row).zip(first);
        let times = times.and_then(|(own, first)| lab_stats::ratio(own, first));
        or_none(times, figure)
    };
    let heads = header.iter().map(|name| name_of(name)).collect();
    AsIs {
        heads: line(heads, "÷ first row's".to_owned()),
        rows: rows
            .iter()
            .map(|row| line(row.clone(), times(row)))
            .collect(),
    }
}

fn by_level(ours: &Ours<'_>, header: &[String], rows: &Rows, table: &mut PublishedTable) {
    let factors = keys(ours, header);
    if factors == 0 {
        table
            .left_out
            .push("no leading column names a factor of this study".to_owned());
        return;
    }
    for row in rows {
        let at_levels = |cell: &&CellSummary| {
            header[..factors].iter().zip(row).all(|(factor, text)| {
                cell.cell
                    .get(factor)
                    .is_some_and(|value| level(value) == *text)
            })
        };
        let cells: Vec<&CellSummary> = ours.cells.iter().filter(at_levels).collect();
        if cells.is_empty() {
            let key: Vec<String> = header
                .iter()
                .zip(row)
                .take(factors)
                .map(|(f, text)| format!("{f} {text}"))
                .collect();
            table
                .left_out
                .push(format!("{}: not among this run's trials", key.join(", ")));
        }
        let elapsed = header
            .iter()
            .position(|name| name == "elapsed")
            .and_then(|at| row.get(at));
        for cell in cells {
            let by_construction = elapsed.and_then(|text| length_note(ours, cell, text));
            for (column, text) in header
                .iter()
                .zip(row)
                .skip(factors)
                .filter(|(_, t)| !t.is_empty())
            {
                if cell
                    .steps
                    .iter()
                    .any(|step| base_name(&step.name) == *column)
                {
                    entries_of_step(cell, column, text, table);
                    continue;
                }
                table.entries.push(level_entry(
                    ours,
                    cell,
                    column,
                    text,
                    by_construction.as_ref(),
                ));
            }
        }
    }
}

fn level_entry(
    ours: &Ours<'_>,
    cell: &CellSummary,
    column: &str,
    text: &str,
    by_construction: Option<&String>,
) -> Entry {
    let counterpart = counterpart(ours, cell, column);
    let known = counterpart.is_some();
    let mut entry = entry(cell, column, text, counterpart.flatten());
    entry.note = if !known {
        Some(no_counterpart(column).to_owned())
    } else if BY_LENGTH.contains(&column) {
        by_construction.cloned()
    } else if COMMITTED.contains(&column) {
        Some("Linux's Committed_AS; counts reserved, not used".to_owned())
    } else {
        None
    };
    entry
}

fn no_counterpart(column: &str) -> &'static str {
    match column {
        "disk_split_io_per_s" => "Windows counts split transfers; Linux counts merged ones only",
        _ => "this lab measures nothing of that name",
    }
}

/// The note on figures that follow from a run's length, if the lengths differ.
fn length_note(ours: &Ours<'_>, cell: &CellSummary, published: &str) -> Option<String> {
    let published_ms = parse(published)? * 1000.0;
    let trial = ours.trials.iter().find(|trial| cell.is_of(trial))?;
    let planned_ms = as_f64(trial.ramp_ms + trial.hold_ms) * ours.speed;
    let differs = (planned_ms / published_ms - 1.0).abs() > SAME_LENGTH;
    differs.then(|| {
        format!(
            "differs by construction: ramp and hold last {} by plan, the report's run {published}",
            duration(planned_ms)
        )
    })
}

fn entry(cell: &CellSummary, metric: &str, text: &str, ours: Option<f64>) -> Entry {
    let published = parse(text);
    Entry {
        cell: cell.cell.clone(),
        label: cell.label.clone(),
        step: None,
        metric: metric.to_owned(),
        name: name_of(metric),
        published_text: text.to_owned(),
        published,
        ours,
        ratio: ours
            .zip(published)
            .and_then(|(ours, theirs)| lab_stats::ratio(ours, theirs)),
        note: None,
    }
}

/// A number, or a length of time such as `53m57s` in seconds.
fn parse(text: &str) -> Option<f64> {
    let number = text.parse::<f64>().ok().filter(|value| value.is_finite());
    number.or_else(|| {
        text.parse::<SignedDuration>()
            .ok()
            .map(|length| length.as_secs_f64())
    })
}

/// Our figure for a published column: `None` if there is no such figure, `Some(None)` if it exists but wasn't measured.
fn counterpart(ours: &Ours<'_>, cell: &CellSummary, column: &str) -> Option<Option<f64>> {
    let mean = |estimate: Option<crate::model::Estimate>| estimate.map(|estimate| estimate.mean);
    let response = mean(cell.response_ms.mean);
    let throughput = mean(cell.throughput_per_s);
    let probe = cell.probe_ms.and_then(|times| mean(times.mean));
    Some(match column {
        "transactions" => mean(cell.transactions),
        "errors" => cell.errors_per_trial,
        "throughput_per_s" | "average_tps" => throughput,
        "tps" => elapsed_s(ours, cell)
            .zip(mean(cell.transactions))
            .and_then(|(elapsed, n)| lab_stats::ratio(n, elapsed)),
        "notesmark_tpm" => mean(cell.notesmark_per_min),
        "elapsed" => elapsed_s(ours, cell),
        "response_mean_ms" | "response_ms" => response,
        "response_s" => response.map(|ms| ms / 1000.0),
        "probe_ms" => probe,
        "probe_s" => probe.map(|ms| ms / 1000.0),
        other if HOST.contains(&other) => cell.host.get(other).copied().flatten(),
        _ => return None,
    })
}

/// Mean length of the cell's valid trials.
fn elapsed_s(ours: &Ours<'_>, cell: &CellSummary) -> Option<f64> {
    let valid = |trial: &&TrialAnalysis| cell.is_of(trial) && trial.verdict == Verdict::Valid;
    let lengths = ours
        .trials
        .iter()
        .filter(valid)
        .map(|t| (as_f64(t.elapsed_ms) / 1000.0, 1.0));
    lengths.collect::<lab_stats::WeightedMean>().mean()
}

/// A column in words, with its unit.
fn name_of(column: &str) -> String {
    let known = match column {
        "transactions" => "transactions",
        "errors" => "errors",
        "throughput_per_s" => "throughput, per s",
        "average_tps" => "throughput, per s",
        "tps" => "transactions/elapsed, per s",
        "elapsed" => "elapsed, s",
        "notesmark_tpm" => "NotesMark, per min",
        "response_mean_ms" | "response_ms" => "mean response, ms",
        "response_s" => "mean response, s",
        "probe_ms" => "mean probe response, ms",
        "probe_s" => "mean probe response, s",
        "cpu_percent" => "CPU of the host, %",
        "disk_transfers_per_s" => "disk transfers, per s",
        "disk_kb_per_s" => "disk, KB per s",
        "disk_split_io_per_s" => "disk split I/O, per s",
        "disk_queue_length" => "disk queue length",
        "disk_busy_percent" => "disk busy, %",
        "disk_service_ms" => "disk service time, ms",
        "memory_committed_percent" => "memory committed, %",
        "memory_committed_mb" => "memory committed, MB",
        "memory_available_mb" => "memory available, MB",
        "network_kb_per_s" => "network, KB per s",
        "scan_rate_pages_per_s" => "page scans, per s",
        other => return other.replace('_', " "),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values_are_numbers_lengths_or_words() {
        assert_eq!(parse("28.9"), Some(28.9));
        assert_eq!(parse("53m57s"), Some(3237.0));
        assert_eq!(parse("more than 5 minutes"), None);
        assert_eq!(parse("NaN"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_step_may_be_numbered() {
        assert_eq!(base_name("Open one invitation (12)"), "Open one invitation");
        assert_eq!(
            base_name("Open one (big) invitation"),
            "Open one (big) invitation"
        );
        assert_eq!(base_name("Open (one)"), "Open (one)");
    }

    #[test]
    fn what_stands_beside_nothing_is_shown_as_it_is() {
        let rows = |text: &str| -> Rows {
            let lines = text.lines();
            lines
                .map(|line| line.split(' ').map(str::to_owned).collect())
                .collect()
        };
        let header = &rows("storage cpus response_ms scans")[0];
        let table = as_is(2, header, &rows("RAID0 4 5027 75\nRAID5 8 250 100"));
        assert_eq!(table.heads[0], "storage · cpus");
        assert_eq!(table.heads[2], "÷ first row's");
        let expected = rows("RAID0_·_4 5027 1.00 75\nRAID5_·_8 250 0.0497 100");
        let expected: Vec<Vec<String>> = expected
            .into_iter()
            .map(|row| row.into_iter().map(|text| text.replace('_', " ")).collect())
            .collect();
        assert_eq!(table.rows, expected);
        let odd = as_is(0, &rows("a b")[0], &rows("1 2"));
        assert_eq!(odd.rows, rows(" 1 2"));
    }

    #[test]
    fn comment_lines_are_the_source() {
        assert_eq!(
            source_lines("# One.\n#\n# Two.\na,b\n1,2\n"),
            ["One.", "Two."]
        );
    }
}
