//! One trial: its figures, checks, and thresholds.

use std::collections::BTreeMap;

use lab_archive::TrialData;
use lab_archive::model::{Manifest, TrialEnd};
use lab_stats::quantile;
use lab_study::model::Study;
use lab_study::plan::Trial;

use super::sums::{Names, StepSum, Sums, sum, sum_over};
use super::warmup::warmup;
use super::{ReportError, capacity, checks, counters, thresholds};
use crate::format::cell_label;
use crate::model::{
    CheckOutcome, Generator, Lateness, Point, Series, StepAnalysis, Times, TrialAnalysis, Verdict,
};

/// What one trial is judged from.
pub(super) struct Input<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) study: &'a Study,
    pub(super) steps: &'a [String],
    pub(super) planned: &'a Trial,
    pub(super) data: &'a TrialData,
}

/// What the plan predicts of the steps of one name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Predicted {
    pub(super) requests: u64,
    pub(super) waits: u64,
    pub(super) wait_ms: Option<f64>,
}

pub(super) fn analyse(input: &Input<'_>) -> Result<TrialAnalysis, ReportError> {
    let record = &input.data.record;
    let names = Names::new(input.manifest, input.study.workload.probe.is_some());
    let merge = |source| ReportError::Merge {
        trial: record.id,
        source,
    };
    let whole_hold = sum(&names, input.data).map_err(merge)?;
    let over_hold = counters::over_hold(&input.data.monitor, &whole_hold.hold_span);
    let warmup = warmup(&names, input.data, &whole_hold);
    let predicted = predicted_by_name(input.planned);
    let facts = checks::Facts {
        planned: input.planned,
        predicted: &predicted,
        study: input.study,
        speed: input.manifest.speed,
        names: &names,
        data: input.data,
        sums: &whole_hold,
        coverage: over_hold.coverage,
        warmup: &warmup,
        demand_s: demand_s(input.manifest, &over_hold, &whole_hold),
    };
    let checks = checks::all(&facts);
    let (sums, monitored) = if warmup.cut_ms > 0.0 {
        let sums = sum_over(&names, input.data, warmup.hold).map_err(merge)?;
        let monitored = counters::over_hold(&input.data.monitor, &warmup.hold);
        (sums, monitored)
    } else {
        (whole_hold, over_hold)
    };
    let invalid = checks
        .iter()
        .any(|check| check.outcome == CheckOutcome::Invalid);
    let prediction = input.planned.prediction.as_ref();
    let throughput_per_s = sums.hold.per_s(sums.hold.ok());
    let mut system = monitored.system;
    system.insert(
        "cpu_ms_per_transaction".to_owned(),
        counters::cpu_ms_per_transaction(&system, throughput_per_s),
    );
    let mut host = monitored.host;
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
    Ok(TrialAnalysis {
        id: record.id,
        block: input.planned.block,
        cell: input.planned.cell.clone(),
        label: cell_label(input.study, &input.planned.cell),
        started: record.started.clone(),
        verdict: if invalid {
            Verdict::Invalid
        } else {
            Verdict::Valid
        },
        system_failure: system_failure(&record.end),
        thresholds: thresholds::judge(
            &input.study.thresholds,
            &sums,
            throughput_per_s,
            record.unanswered.as_ref(),
        ),
        checks,
        users: input.planned.load.users,
        ramp_ms: record.ramp_ms,
        hold_ms: record.hold_ms,
        warmup_cut_ms: warmup.cut_ms,
        elapsed_ms: record.elapsed_ms,
        transactions: sums.whole.ok(),
        transactions_predicted: prediction.map(|plan| plan.transactions),
        errors: sums.whole.errors(),
        errors_by_class: sums.whole.errors_by_class.clone(),
        skipped: sums.whole.skipped(),
        cycles: sums.whole.cycles,
        overruns: sums.whole.overruns,
        stale_retries: sums.whole.stale_retries,
        unanswered: record.unanswered.clone(),
        throughput_per_s,
        delivered_per_s: sums.hold.per_s(sums.hold.sent()),
        offered_per_s: prediction.map(|plan| plan.offered_per_s),
        response_ms: Times::of(&sums.response),
        service_ms: Times::of(sums.service.as_ref().unwrap_or(&sums.response)),
        steps: steps(input.steps, &sums, &predicted),
        probe_ms: sums.probe.as_ref().map(Times::of),
        lateness_ms: Lateness::of(&sums.lateness),
        system,
        host,
        generator: Generator {
            health: record.generator.clone(),
            counters: monitored.generator,
        },
        setup_transactions: record.setup_transactions,
        setup_errors: record.setup_errors,
        error_examples: record.error_examples.clone(),
        system_settings: record.system_settings.clone(),
        notes: record.notes.clone(),
        series: series(input, &names, &sums),
    })
}

/// CPU time of the system per answered request, in seconds, over the cores that it may use.
fn demand_s(manifest: &Manifest, monitored: &counters::Monitored, sums: &Sums) -> Option<f64> {
    let answered = sums.hold.per_s(sums.hold.ok() + sums.hold.errors());
    let cpu_ms = counters::cpu_ms_per_transaction(&monitored.system, answered)?;
    let cores = capacity::system_cores(&manifest.environment);
    Some(cpu_ms / 1000.0 / as_f64(cores))
}

fn system_failure(end: &TrialEnd) -> Option<String> {
    match end {
        TrialEnd::Complete => None,
        TrialEnd::SystemFailed { message } => Some(message.clone()),
    }
}

/// The plan's steps, those of one name together.
fn predicted_by_name(planned: &Trial) -> BTreeMap<String, Predicted> {
    let mut by_name: BTreeMap<String, Predicted> = BTreeMap::new();
    for step in planned.prediction.iter().flat_map(|plan| &plan.steps) {
        let sum = by_name.entry(step.name.clone()).or_default();
        let before = sum.wait_ms.unwrap_or_default() * as_f64(sum.waits);
        sum.requests += step.requests;
        sum.waits += step.waits;
        let after = before + step.mean_wait_ms * as_f64(step.waits);
        sum.wait_ms = (sum.waits > 0).then(|| after / as_f64(sum.waits));
    }
    by_name
}

fn steps(
    names: &[String],
    sums: &Sums,
    predicted: &BTreeMap<String, Predicted>,
) -> Vec<StepAnalysis> {
    let nothing = StepSum::default();
    let unplanned = Predicted::default();
    names
        .iter()
        .map(|name| {
            let sum = sums.whole.steps.get(name).unwrap_or(&nothing);
            let plan = predicted.get(name).unwrap_or(&unplanned);
            StepAnalysis {
                name: name.clone(),
                transactions: sum.ok,
                predicted: plan.requests,
                errors: sum.errors,
                skipped: sum.skipped,
                wait_ms: mean_wait_ms(sum),
                wait_planned_ms: plan.wait_ms,
                body_bytes: lab_stats::ratio(as_f64(sum.bytes), as_f64(sum.ok + sum.errors)),
                response_ms: sums.steps.get(name).map(Times::of).unwrap_or_default(),
            }
        })
        .collect()
}

/// Mean wait as it really lasted.
pub(super) fn mean_wait_ms(step: &StepSum) -> Option<f64> {
    lab_stats::ratio(as_f64(step.wait_sum_us) / 1000.0, as_f64(step.waits))
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
pub(super) fn as_f64(count: u64) -> f64 {
    count as f64
}

fn series(input: &Input<'_>, names: &Names<'_>, sums: &Sums) -> Series {
    let mut groups: BTreeMap<usize, Group> = BTreeMap::new();
    for window in &input.data.windows {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "`as` saturates; times are positive milliseconds"
        )]
        let group = groups
            .entry(sums.groups.of(window.start_ms.round() as u64))
            .or_default();
        let (ok, errors) = names.answers(window);
        group.add(window.start_ms, window.end_ms, window.users, ok, errors);
    }
    let load = groups
        .into_iter()
        .map(|(index, group)| {
            let times = sums.group_response.get(&index);
            group.point(times.and_then(|times| quantile(times, 0.95)))
        })
        .collect();
    let cores = input.manifest.environment.cores;
    Series {
        load,
        counters: counters::series(&input.data.monitor, cores),
    }
}

/// Neighbouring windows together.
#[derive(Default)]
struct Group {
    start_ms: Option<f64>,
    end_ms: f64,
    users: u32,
    ok: u64,
    errors: u64,
}

impl Group {
    fn add(&mut self, start_ms: f64, end_ms: f64, users: u32, ok: u64, errors: u64) {
        self.start_ms.get_or_insert(start_ms);
        self.end_ms = end_ms;
        self.users = users;
        self.ok += ok;
        self.errors += errors;
    }

    fn point(&self, p95_us: Option<u64>) -> Point {
        let start_ms = self.start_ms.unwrap_or_default();
        let seconds = (self.end_ms - start_ms) / 1000.0;
        Point {
            t_ms: f64::midpoint(start_ms, self.end_ms),
            users: self.users,
            transactions_per_s: lab_stats::ratio(as_f64(self.ok), seconds).unwrap_or_default(),
            errors_per_s: lab_stats::ratio(as_f64(self.errors), seconds).unwrap_or_default(),
            p95_ms: p95_us.map(|us| as_f64(us) / 1000.0),
        }
    }
}
