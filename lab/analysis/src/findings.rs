//! Sentences that the numbers support, and the headline of the report.

use lab_archive::model::Environment;
use lab_plan::{Level, Metric};
use lab_stats::{WeightedMean, ratio};
use lab_trial::as_f64;
use lab_trial::checks::first_line;
use lab_trial::failed;
use lab_trial::format::{
    ONLY_CELL, at_cell, bound, count, figure, list, ms, part_of_load, percent, plural,
    plural_count, ratio as ratio_text, threshold, threshold_value, times as times_text,
};

use crate::capacity;
use crate::model::{
    CellSummary, Entry, Outcome, PublishedTable, StudyFacts, Summary, ThresholdResult,
    TrialAnalysis, Verdict,
};
use crate::published::transfer;

/// Smaller differences in response get no sentence.
const NOTABLE_RATIO: f64 = 1.1;
/// The maximum number of levels short of their load that are named; more are counted.
const MOST_PARTS: usize = 4;

/// The headline: one sentence on the result.
pub(crate) fn headline(
    study: &StudyFacts,
    summary: &Summary,
    cells: &[CellSummary],
    trials: &[TrialAnalysis],
) -> String {
    match summary.outcome {
        Outcome::SystemFailed => failure("The system under test failed", trials, |trial| {
            trial.system_failure.as_deref()
        }),
        Outcome::PreparationFailed => failure("The preparation failed", trials, |trial| {
            let failure = trial.preparation_failure.as_deref();
            failure.or(trial.system_failure.as_deref())
        }),
        Outcome::TooFewValidTrials if trials.is_empty() => {
            "No trial of this run is complete: there is nothing to report.".to_owned()
        }
        Outcome::TooFewValidTrials => format!(
            "This is not a measurement of every cell: {} of {} {} invalid.",
            summary.invalid,
            plural(summary.complete, "trial"),
            if summary.invalid == 1 { "is" } else { "are" },
        ),
        _ if summary.thresholds_failed > 0 => format!(
            "{} of {} failed: {}{}.",
            summary.thresholds_failed,
            plural(summary.thresholds, "threshold"),
            worst_threshold(trials).unwrap_or_else(|| worst_cell(cells)),
            took(cells, trials).map_or_else(String::new, |took| format!("; the server {took}"))
        ),
        _ if summary.aborted > 0 => aborted(trials),
        _ => carried(study, cells, trials),
    }
}

/// The limit of `abort_on` that was exceeded first, where, and in how many trials.
fn aborted(trials: &[TrialAnalysis]) -> String {
    let ended: Vec<&TrialAnalysis> = trials.iter().filter(|trial| trial.aborted).collect();
    let first = ended.first().map_or("", |trial| trial.label.as_str());
    let check = ended.iter().flat_map(|trial| failed(trial)).next();
    let why = check.map_or("", |check| check.evidence.as_str());
    format!(
        "{} of {} aborted, first at {first}: {why}.",
        ended.len(),
        plural(trials.len(), "trial")
    )
}

/// The first failure of each kind: where, in how many trials, and its message.
fn failure(
    what: &str,
    trials: &[TrialAnalysis],
    of: impl Fn(&TrialAnalysis) -> Option<&str>,
) -> String {
    let of = &of;
    let failed = || {
        trials
            .iter()
            .filter_map(move |trial| Some((trial, of(trial)?)))
    };
    let Some((first, message)) = failed().next() else {
        return format!("{what}.");
    };
    let others = match failed().count() {
        1 if trials.len() == 1 => String::new(),
        n if n == trials.len() => format!(", in all {n} trials"),
        n => format!(", in {n} of {} trials", trials.len()),
    };
    format!(
        "{what}{}{others}: {}.",
        at_cell(&first.label),
        first_line(message)
    )
}

/// The failed threshold that is furthest beyond its limit, with its step or stage, the measured value, and the cell.
fn worst_threshold(trials: &[TrialAnalysis]) -> Option<String> {
    let failed = trials
        .iter()
        .filter(|trial| trial.verdict == Verdict::Valid)
        .flat_map(|trial| trial.thresholds.iter().map(move |one| (trial, one)))
        .filter(|(_, one)| !one.holds);
    let beyond = |one: &ThresholdResult| {
        let value = one.value.filter(|_| !one.beyond).unwrap_or(f64::INFINITY);
        let ratio = lab_stats::ratio(value, one.limit).unwrap_or(f64::INFINITY);
        // For throughput, lower is worse; for a measure, what its limit says.
        match one.metric {
            Metric::Throughput => 1.0 / ratio,
            Metric::Measure => ratio.max(1.0 / ratio),
            _ => ratio,
        }
    };
    let (trial, worst) = failed.max_by(|a, b| beyond(a.1).total_cmp(&beyond(b.1)))?;
    let narrowed = worst.scope.words();
    let measured = match (&worst.reason, worst.value) {
        (Some(reason), _) => reason.clone(),
        (None, None) => "nothing was measured".to_owned(),
        (None, Some(_)) if worst.beyond => "measured a failed request".to_owned(),
        (None, Some(value)) => format!("measured {}", threshold_value(worst, value)),
    };
    Some(format!(
        "{}{narrowed}, {measured}{}",
        threshold(worst.metric, &worst.text),
        at_cell(&trial.label)
    ))
}

fn worst_cell(cells: &[CellSummary]) -> String {
    most_loaded(cells)
        .and_then(times_of)
        .unwrap_or_else(|| "see the thresholds".to_owned())
}

/// `took only 62 % of the planned load at 3,000 users`, for the cells short of their load; the worst trial counts.
fn took(cells: &[CellSummary], trials: &[TrialAnalysis]) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for cell in cells {
        let of_cell = trials.iter().filter(|trial| cell.is_of(trial));
        let Some(part) = of_cell
            .filter_map(TrialAnalysis::part_of_load)
            .reduce(f64::min)
        else {
            continue;
        };
        let what = if parts.is_empty() {
            " of the planned load"
        } else {
            ""
        };
        parts.push(format!(
            "{}{what}{}",
            part_of_load(part),
            at_cell(&cell.label)
        ));
    }
    let more = parts.len().saturating_sub(MOST_PARTS);
    parts.truncate(MOST_PARTS);
    if more > 0 {
        parts.push(format!(
            "not all of it at {}",
            plural(more, "further level")
        ));
    }
    (!parts.is_empty()).then(|| format!("took {}", list(&parts)))
}

fn carried(study: &StudyFacts, cells: &[CellSummary], trials: &[TrialAnalysis]) -> String {
    let errors: u64 = cells.iter().map(|cell| cell.errors).sum();
    let how = if errors == 0 {
        "without an error".to_owned()
    } else {
        format!("with {} errors", count(errors))
    };
    let times = most_loaded(cells).and_then(times_of);
    let times = times.map_or_else(String::new, |times| format!("; {times}"));
    if let Some(took) = took(cells, trials) {
        return format!("The server {took}, {how}{times}.");
    }
    let labels: Vec<String> = cells.iter().map(|cell| cell.label.clone()).collect();
    let stages = trials.iter().map(|trial| trial.stages.len()).max();
    let stages = stages.filter(|stages| *stages > 0 && labels.len() == 1);
    let what = if let Some(stages) = stages {
        format!("all {} of its load", plural(stages, "stage"))
    } else if labels == [ONLY_CELL] {
        "its load".to_owned()
    } else if study.factors == ["users"] {
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
    format!("The server carried {what} {how}{times}.")
}

/// `at 3,000 users the mean response was 9.80 ms (p95 21.4 ms)`.
fn times_of(cell: &CellSummary) -> Option<String> {
    let mean = cell.response_ms.mean?.mean;
    let p95 = cell
        .response_ms
        .p95
        .map(|p95| format!(" (p95 {} ms)", ms(p95.mean)));
    let at = at_cell(&cell.label);
    Some(format!(
        "{}the mean response was {} ms{}",
        at.strip_prefix(' ')
            .map_or_else(String::new, |at| format!("{at} ")),
        ms(mean),
        p95.unwrap_or_default()
    ))
}

/// The most loaded cell with a valid trial.
pub fn most_loaded(cells: &[CellSummary]) -> Option<&CellSummary> {
    cells
        .iter()
        .filter(|cell| cell.valid_trials > 0)
        .max_by_key(|cell| cell.users)
}

/// The least loaded cell that differs from `high` only in the number of users.
fn least_loaded<'a>(cells: &'a [CellSummary], high: &CellSummary) -> Option<&'a CellSummary> {
    cells
        .iter()
        .filter(|cell| cell.valid_trials > 0 && differ_in_users_only(cell, high))
        .min_by_key(|cell| cell.users)
        .filter(|cell| cell.users < high.users)
}

fn differ_in_users_only(one: &CellSummary, other: &CellSummary) -> bool {
    let is_users = |cell: &CellSummary, level: &Level| matches!(level, Level::Int(value) if *value == i64::from(cell.users));
    one.cell.iter().all(|(factor, level)| {
        other.cell.get(factor).is_some_and(|beside| {
            beside == level || (is_users(one, level) && is_users(other, beside))
        })
    })
}

/// The inputs of the findings.
pub(crate) struct Facts<'a> {
    pub(crate) study: &'a StudyFacts,
    pub(crate) environment: &'a Environment,
    pub(crate) summary: &'a Summary,
    pub(crate) cells: &'a [CellSummary],
    pub(crate) trials: &'a [TrialAnalysis],
    pub(crate) published: &'a [PublishedTable],
}

/// All other findings, in the order of importance.
pub(crate) fn findings(facts: &Facts<'_>) -> Vec<String> {
    let Facts {
        study,
        summary,
        cells,
        trials,
        published,
        ..
    } = *facts;
    let mut findings = Vec::new();
    findings.extend(incomplete(summary));
    findings.extend(errors(cells));
    findings.extend(resends(trials));
    findings.extend(over_limit(cells));
    findings.extend(transfer::sentence(cells));
    findings.extend(growth(cells));
    findings.extend(slowest_step(cells));
    findings.extend(headroom(facts));
    findings.extend(demand(cells));
    findings.extend(furthest(study, published));
    findings.extend(unseeded(study));
    findings
}

/// The steps whose requests differ between runs of one seed.
fn unseeded(study: &StudyFacts) -> Option<String> {
    let steps = crate::format::first_few(&study.unseeded_steps);
    (!study.unseeded_steps.is_empty()).then(|| {
        format!(
            "Requests of {steps} differ between runs of one seed: they have the time of day, a signature with a random \
             part, or what users share."
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
            "{} requests failed{}{step}.",
            count(worst.errors),
            at_cell(&worst.label)
        )
    })
}

/// Requests that were sent again, if they are more than a small part. They are no errors, but no sign of health: a
/// server that closes or resets each fiftieth connection must not look flawless.
fn resends(trials: &[TrialAnalysis]) -> Option<String> {
    /// As a part of all requests.
    const TOLD: f64 = 0.001;
    let resent: u64 = trials.iter().map(|trial| trial.stale_retries).sum();
    let all = trials.iter();
    let requests: u64 = all.map(|trial| trial.transactions + trial.errors).sum();
    let part = lab_stats::ratio(as_f64(resent), as_f64(requests))?;
    (part > TOLD).then(|| {
        format!(
            "{} of {} ({}) had to be sent again: the server closed or reset the connection, or refused \
             them, before it answered.",
            count(resent),
            plural_count(requests, "request"),
            percent(part * 100.0)
        )
    })
}

fn over_limit(cells: &[CellSummary]) -> Option<String> {
    let all: Vec<String> = cells
        .iter()
        .flat_map(|cell| cell.steps.iter().map(move |step| (cell, step)))
        .filter_map(|(cell, step)| {
            let known = step.bound.as_ref()?;
            Some(format!(
                "“{}”{} ({})",
                step.name,
                at_cell(&cell.label),
                bound(known)
            ))
        })
        .collect();
    let more = all.len().saturating_sub(MOST_PARTS);
    let mut named: Vec<String> = all.iter().take(MOST_PARTS).cloned().collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    (!all.is_empty()).then(|| {
        format!(
            "Longer than the time limit, so that there is a bound and no mean: {}.",
            list(&named)
        )
    })
}

/// Response between the least and the most users.
fn growth(cells: &[CellSummary]) -> Option<String> {
    let high = most_loaded(cells)?;
    let low = least_loaded(cells, high)?;
    let (from, to) = (low.response_ms.mean?.mean, high.response_ms.mean?.mean);
    let times = ratio(to, from)?;
    let users = f64::from(high.users) / f64::from(low.users.max(1));
    Some(if times >= NOTABLE_RATIO {
        format!(
            "{} times the users cost {} times the mean response: {} ms at {}, {} ms at {}.",
            times_text(users),
            times_text(times),
            ms(from),
            low.label,
            ms(to),
            high.label,
        )
    } else {
        format!(
            "The mean response did not grow with the users: {} ms at {}, {} ms at {}.",
            ms(from),
            low.label,
            ms(to),
            high.label,
        )
    })
}

fn slowest_step(cells: &[CellSummary]) -> Option<String> {
    let cell = most_loaded(cells)?;
    if cell.steps.len() < 2 {
        return None;
    }
    let all = cell.response_ms.mean?.mean;
    let mean = |step: &crate::model::StepSummary| step.response_ms.mean.map(|mean| mean.mean);
    let slowest = cell
        .steps
        .iter()
        .filter_map(|step| Some((mean(step)?, &step.name)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let times = ratio(slowest.0, all)?;
    Some(format!(
        "The slowest step{} is “{}”: {} ms on average, {} times the mean of all.",
        at_cell(&cell.label),
        slowest.1,
        ms(slowest.0),
        times_text(times)
    ))
}

fn counter(counters: &crate::model::Counters, name: &str) -> Option<f64> {
    counters.get(name).copied().flatten()
}

/// How much of its own cores each side used. The host's average would hide a side that used all of its cores.
fn headroom(facts: &Facts<'_>) -> Option<String> {
    let cell = most_loaded(facts.cells)?;
    let of_cell = |trial: &&TrialAnalysis| cell.is_of(trial) && trial.verdict == Verdict::Valid;
    let settings = &facts.trials.iter().find(of_cell)?.system_settings;
    let cores = lab_trial::cores_of_trial(facts.environment, settings)?;
    let busy = counter(&cell.system, "cpu_percent")?;
    let system = lab_stats::ratio(busy, as_f64(cores))?;
    let generator = generator_percent(facts.environment, cell, facts.trials);
    let beside = generator.map_or_else(String::new, |busy| {
        format!(", the generator {} of its own", percent(busy))
    });
    let disk = capacity::disk_busy(cell);
    let disk = disk.map_or_else(String::new, |busy| {
        format!("; the disk was {} busy", percent(busy))
    });
    let host = counter(&cell.host, "cpu_percent").filter(|_| facts.environment.pinning.shared);
    let left = cpu_left(system, generator, host);
    let full = capacity::bottleneck(cores, cell);
    // One sentence names one limit.
    let full = full.filter(|full| !left.is_limit || full.is_cpu && left.is_systems);
    let at = match cell.label.as_str() {
        ONLY_CELL => "The".to_owned(),
        label => format!("At {label} the"),
    };
    Some(format!(
        "{at} system used {} of its {}{beside}{disk}: {}{}.",
        percent(system),
        match cores {
            1 => "one core".to_owned(),
            n => plural(n as usize, "core"),
        },
        left.words,
        full.map_or_else(String::new, |full| format!("; {}", full.words))
    ))
}

/// CPU of the generator's worker in per cent of its cores; `None` if a trial lacks it. Several workers may share a
/// core.
fn generator_percent(
    environment: &Environment,
    cell: &CellSummary,
    trials: &[TrialAnalysis],
) -> Option<f64> {
    let pinned = environment.pinning.generator.len() as u64;
    let used = |trial: &TrialAnalysis| {
        let health = &trial.generator.health;
        let workers = u64::from(health.workers);
        let cores = if pinned == 0 {
            workers
        } else {
            pinned.min(workers)
        };
        let per_core = lab_stats::ratio(as_f64(workers), as_f64(cores))?;
        Some((health.cpu_fraction? * per_core * 100.0, 1.0))
    };
    let used: Option<Vec<(f64, f64)>> = trials
        .iter()
        .filter(|trial| cell.is_of(trial) && trial.verdict == Verdict::Valid)
        .map(used)
        .collect();
    used?.into_iter().collect::<WeightedMean>().mean()
}

/// The sentence on the CPU that is left.
struct CpuLeft {
    words: &'static str,
    /// Whether a CPU is the limit, and whether it is the system's own.
    is_limit: bool,
    is_systems: bool,
}

/// `shared` is the use of all cores, if both sides run on the same ones.
fn cpu_left(system: f64, generator: Option<f64>, shared: Option<f64>) -> CpuLeft {
    let (limit, little) = (90.0, 70.0);
    let other = generator.unwrap_or_default();
    let shared = shared.unwrap_or_default();
    let words = if system >= limit {
        "its CPU is the limit"
    } else if other >= limit {
        "the generator's CPU is the limit"
    } else if shared >= limit {
        "the CPU that they share is the limit"
    } else if system >= little {
        "little CPU is left to the system"
    } else if other >= little {
        "little CPU is left to the generator"
    } else if shared >= little {
        "little of the CPU that they share is left"
    } else if generator.is_some() {
        "neither side ran out of CPU"
    } else {
        "the system did not run out of CPU"
    };
    CpuLeft {
        words,
        is_limit: system.max(other).max(shared) >= limit,
        is_systems: system >= limit,
    }
}

fn demand(cells: &[CellSummary]) -> Option<String> {
    let high = most_loaded(cells)?;
    let of = |cell: &CellSummary| counter(&cell.system, "cpu_ms_per_transaction");
    let to = of(high)?;
    let low = least_loaded(cells, high).and_then(|low| Some((of(low)?, low)));
    Some(match low {
        Some((from, low)) => format!(
            "A transaction cost the system {} ms of CPU at {} and {} ms at {}.",
            ms(from),
            low.label,
            ms(to),
            high.label
        ),
        None => format!(
            "A transaction cost the system {} ms of CPU{}.",
            ms(to),
            at_cell(&high.label)
        ),
    })
}

/// The published figures that are closest to and furthest from ours, except those that differ by construction.
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
