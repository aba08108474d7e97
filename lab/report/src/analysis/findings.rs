//! Sentences that the numbers support, and the one that stands above the report.

use lab_archive::Environment;
use lab_stats::ratio;

use super::capacity;
use crate::format::{
    count, figure, list, ms, percent, plural, ratio as ratio_text, times as times_text,
};
use crate::model::{
    CellSummary, Entry, Outcome, PublishedTable, StudyFacts, Summary, TrialAnalysis, Verdict,
};

/// Differences in response below this aren't worth a sentence.
const NOTABLE_RATIO: f64 = 1.1;

/// One sentence that says what came out.
pub(super) fn headline(
    study: &StudyFacts,
    summary: &Summary,
    cells: &[CellSummary],
    trials: &[TrialAnalysis],
) -> String {
    match summary.outcome {
        Outcome::SystemFailed => {
            let failed = trials.iter().find(|trial| trial.system_failure.is_some());
            let label = failed.map_or_else(String::new, |trial| format!(" at {}", trial.label));
            format!("The system under test failed{label}.")
        }
        Outcome::TooFewValidTrials if trials.is_empty() => {
            "No trial of this run is complete: there is nothing to report.".to_owned()
        }
        Outcome::TooFewValidTrials => format!(
            "This is not a measurement of every cell: {} of {} {} invalid.",
            summary.invalid,
            plural(summary.complete, "trial"),
            if summary.invalid == 1 { "is" } else { "are" },
        ),
        Outcome::ThresholdFailed => format!(
            "{} of {} failed: {}.",
            summary.thresholds_failed,
            plural(summary.thresholds, "threshold"),
            worst_cell(cells)
        ),
        Outcome::Ok => carried(study, cells),
    }
}

fn worst_cell(cells: &[CellSummary]) -> String {
    most_loaded(cells)
        .and_then(times_of)
        .unwrap_or_else(|| "see the thresholds".to_owned())
}

fn carried(study: &StudyFacts, cells: &[CellSummary]) -> String {
    let errors: u64 = cells.iter().map(|cell| cell.errors).sum();
    let labels: Vec<String> = cells.iter().map(|cell| cell.label.clone()).collect();
    let what = if study.factors == ["users"] {
        let users: Vec<String> = cells
            .iter()
            .map(|cell| count(u64::from(cell.users)))
            .collect();
        format!("{} users", list(&users))
    } else if labels.len() <= 3 {
        list(&labels)
    } else {
        plural(labels.len(), "cell")
    };
    let how = if errors == 0 {
        "without an error".to_owned()
    } else {
        format!("with {} errors", count(errors))
    };
    match most_loaded(cells).and_then(times_of) {
        Some(times) => format!("The server carried {what} {how}; {times}."),
        None => format!("The server carried {what} {how}."),
    }
}

/// `at 3,000 users the mean response was 9.80 ms (p95 21.4 ms)`.
fn times_of(cell: &CellSummary) -> Option<String> {
    let mean = cell.response_ms.mean?.mean;
    let p95 = cell
        .response_ms
        .p95
        .map(|p95| format!(" (p95 {} ms)", ms(p95.mean)));
    Some(format!(
        "at {} the mean response was {} ms{}",
        cell.label,
        ms(mean),
        p95.unwrap_or_default()
    ))
}

fn most_loaded(cells: &[CellSummary]) -> Option<&CellSummary> {
    cells
        .iter()
        .filter(|cell| cell.valid_trials > 0)
        .max_by_key(|cell| cell.users)
}

/// The least loaded of the cells that differ from `loaded` in the number of users alone.
fn least_loaded<'a>(cells: &'a [CellSummary], loaded: &CellSummary) -> Option<&'a CellSummary> {
    let alike = |cell: &CellSummary| {
        let mut levels = cell.cell.iter().chain(&loaded.cell);
        levels.all(|(factor, _)| {
            factor == "users" || cell.cell.get(factor) == loaded.cell.get(factor)
        })
    };
    cells
        .iter()
        .filter(|cell| cell.valid_trials > 0 && alike(cell))
        .min_by_key(|cell| cell.users)
}

/// What else the numbers say, in the order of weight.
pub(super) fn findings(
    study: &StudyFacts,
    summary: &Summary,
    cells: &[CellSummary],
    trials: &[TrialAnalysis],
    published: &[PublishedTable],
    environment: &Environment,
) -> Vec<String> {
    let mut findings = Vec::new();
    findings.extend(invalid_trials(trials));
    findings.extend(incomplete(summary));
    findings.extend(errors(cells));
    findings.extend(growth(cells));
    findings.extend(slowest_step(cells));
    let limit = most_loaded(cells).and_then(|cell| capacity::bottleneck(environment, cell));
    findings.extend(limit.or_else(|| headroom(cells)));
    findings.extend(demand(cells));
    findings.extend(furthest(study, published));
    findings
}

fn invalid_trials(trials: &[TrialAnalysis]) -> Option<String> {
    let invalid: Vec<String> = trials
        .iter()
        .filter(|trial| trial.verdict == Verdict::Invalid)
        .map(|trial| format!("trial {} ({})", trial.id, trial.label))
        .collect();
    (!invalid.is_empty()).then(|| {
        format!(
            "Not a measurement, and left out of every figure: {}. The checks say why.",
            list(&invalid)
        )
    })
}

fn incomplete(summary: &Summary) -> Option<String> {
    let missing = summary.planned.saturating_sub(summary.complete);
    (missing > 0).then(|| {
        format!(
            "{} of {} planned {} not run; the run can be resumed.",
            missing,
            plural(summary.planned, "trial"),
            if missing == 1 { "was" } else { "were" }
        )
    })
}

fn errors(cells: &[CellSummary]) -> Option<String> {
    let errors: u64 = cells.iter().map(|cell| cell.errors).sum();
    let worst = cells.iter().max_by_key(|cell| cell.errors)?;
    (errors > 0).then(|| {
        let step = worst.steps.iter().max_by_key(|step| step.errors);
        let step = step.map_or_else(String::new, |step| {
            format!(", most of them in “{}” ({})", step.name, count(step.errors))
        });
        format!(
            "{} requests failed at {}{step}.",
            count(worst.errors),
            worst.label
        )
    })
}

/// Response between the least and the most users.
fn growth(cells: &[CellSummary]) -> Option<String> {
    let high = most_loaded(cells)?;
    let low = least_loaded(cells, high)?;
    if low.users == high.users {
        return None;
    }
    let (from, to) = (low.response_ms.mean?.mean, high.response_ms.mean?.mean);
    let times = ratio(to, from)?;
    let users = f64::from(high.users) / f64::from(low.users.max(1));
    let (low_users, high_users) = (count(low.users.into()), count(high.users.into()));
    Some(if times >= NOTABLE_RATIO {
        format!(
            "{} times the users cost {} times the mean response: {} ms at {low_users} users, {} ms \
             at {high_users}.",
            times_text(users),
            times_text(times),
            ms(from),
            ms(to),
        )
    } else {
        format!(
            "The mean response did not grow with the users: {} ms at {low_users}, {} ms at \
             {high_users}.",
            ms(from),
            ms(to),
        )
    })
}

fn slowest_step(cells: &[CellSummary]) -> Option<String> {
    let cell = most_loaded(cells)?;
    let all = cell.response_ms.mean?.mean;
    let mean = |step: &crate::model::StepSummary| step.response_ms.mean.map(|mean| mean.mean);
    let slowest = cell
        .steps
        .iter()
        .filter_map(|step| Some((mean(step)?, &step.name)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let times = ratio(slowest.0, all)?;
    Some(format!(
        "The slowest step at {} is “{}”: {} ms on average, {} times the mean of all.",
        cell.label,
        slowest.1,
        ms(slowest.0),
        times_text(times)
    ))
}

fn counter(counters: &crate::model::Counters, name: &str) -> Option<f64> {
    counters.get(name).copied().flatten()
}

/// Where the system's own CPU or its throughput is not known.
fn headroom(cells: &[CellSummary]) -> Option<String> {
    let cell = most_loaded(cells)?;
    let host = counter(&cell.host, "cpu_percent")?;
    let disk = counter(&cell.host, "disk_busy_percent");
    let disk = disk.map_or_else(String::new, |busy| format!(", the disk {}", percent(busy)));
    let left = if host < 70.0 {
        "neither side ran out of CPU"
    } else if host < 90.0 {
        "little CPU is left"
    } else {
        "the CPU is the limit"
    };
    Some(format!(
        "At {} the host's CPU was {} busy{disk}: {left}.",
        cell.label,
        percent(host)
    ))
}

fn demand(cells: &[CellSummary]) -> Option<String> {
    let high = most_loaded(cells)?;
    let low = least_loaded(cells, high)?;
    let of = |cell: &CellSummary| counter(&cell.system, "cpu_ms_per_transaction");
    let to = of(high)?;
    Some(match of(low).filter(|_| low.users != high.users) {
        Some(from) => format!(
            "A transaction cost the system {} ms of CPU at {} and {} ms at {}.",
            ms(from),
            low.label,
            ms(to),
            high.label
        ),
        None => format!("A transaction cost the system {} ms of CPU.", ms(to)),
    })
}

/// The published figures that ours is closest to and furthest from; those that differ by
/// construction don't take part.
fn furthest(study: &StudyFacts, published: &[PublishedTable]) -> Option<String> {
    let distance = |entry: &&Entry| entry.ratio.map_or(0.0, |ratio| ratio.ln().abs());
    let sped_up = crate::model::speed_note(study.speed);
    let comparable = |entry: &&Entry| {
        let by_load = sped_up.is_some() && entry.metric != "transactions";
        entry.note.is_none() && entry.ratio.is_some_and(|ratio| ratio > 0.0) && !by_load
    };
    let entries = || {
        published
            .iter()
            .flat_map(|table| &table.entries)
            .filter(comparable)
    };
    let far = entries().max_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let what = far
        .step
        .as_ref()
        .map_or_else(|| far.name.clone(), |step| format!("“{step}”"));
    let figures = format!(
        "{what} at {} ({} here, {} published, {})",
        far.label,
        figure(far.ours?),
        figure(far.published?),
        ratio_text(far.ratio?)
    );
    Some(match sped_up {
        None => format!("Furthest from the published figures: {figures}."),
        Some(_) => format!(
            "At speed {} only the number of transactions compares with the published figures; \
             furthest from it: {figures}.",
            study.speed
        ),
    })
}
