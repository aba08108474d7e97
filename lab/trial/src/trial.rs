//! One trial: its figures, checks, and thresholds.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use lab_archive::TrialData;
use lab_archive::model::{Manifest, TrialEnd, TrialRecord, WindowLine};
use lab_counts::{Attempts, ErrorClass, Scope};
use lab_plan::checks::{Cause, CheckId};
use lab_plan::{Decides, Find, LoadKind, Prediction, Question, Threshold, Trial};
use lab_stats::histogram::MergeError;

use crate::attempts::{self, Limits, attempts};
use crate::error::ReportError;
use crate::format::{cell_label, plural_count};
use crate::groups::Groups;
use crate::measures::{OfMeasure, judged_numbers, measures};
use crate::model::{
    Arrivals, Bound, Check, CheckOutcome, Connections, Counters, ErrorExamples, Generator,
    Lateness, PartCounters, Point, PopulationAnalysis, ProbeCounts, QueueAnalysis, Series,
    SlowRequest, StepAnalysis, ThresholdResult, Times, Transfer, TrialAnalysis, Verdict,
};
use crate::number::as_f64;
use crate::populations::{OfPopulation, populations};
use crate::predicted::{self, Predicted, mean_wait_ms};
use crate::queues::queues;
use crate::stages::{Stage, stages};
use crate::sums::{self, Names, StepSum, Sums, hold, p95_by_group, sum_over};
use crate::tags::{OfTag, tags};
use crate::transactions::{Transactions, transactions};
use crate::warmup::{Batch, Warmup, batches, warmup};
use crate::{checks, counters, notes, notesmark, thresholds, transfer};

/// Inputs of a trial's judgement.
pub struct Input<'a> {
    /// Manifest of its run.
    pub manifest: &'a Manifest,
    /// Question of its run, with thresholds.
    pub study: &'a Question,
    /// See [`crate::step_names`].
    pub steps: &'a [String],
    /// Its entry in the plan.
    pub planned: &'a Trial,
    /// Set for a search for the load line.
    pub find: Option<&'a Find>,
    /// Its data in the archive.
    pub data: &'a TrialData,
}

/// The judgement of a trial before its cell's warm-up is known.
pub struct Judged {
    /// All checks except the steady state.
    checks: Vec<Check>,
    /// See [`TrialAnalysis::disturbed`].
    disturbed: bool,
    /// The stages of its load: no warm-up is cut from them.
    stages: Vec<Stage>,
    /// Batches to find its warm-up; empty for an incomplete trial.
    pub batches: Vec<Batch>,
}

impl Judged {
    /// Returns true if its series may be used for its cell.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let invalid = |check: &Check| check.outcome == CheckOutcome::Invalid;
        !self.checks.iter().any(invalid)
    }
}

fn merge(input: &Input<'_>) -> impl Fn(MergeError) -> ReportError {
    let trial = input.data.record.id;
    move |source| ReportError::Merge { trial, source }
}

fn names<'a>(input: &Input<'a>) -> Names<'a> {
    let limited = input.planned.load.time_limit_ms.is_some();
    let has_probe = input.study.workload.probe;
    Names::new(input.manifest, has_probe, limited)
}

/// Checks the measurement over the whole hold.
///
/// # Errors
/// [`ReportError::Merge`].
pub fn judge(input: &Input<'_>) -> Result<Judged, ReportError> {
    let names = names(input);
    let hold = hold(input.data, input.planned.load.kind);
    let sums = sum_over(&names, input.data, hold).map_err(merge(input))?;
    let over_hold = counters::over_hold(&input.data.monitor, &hold);
    let predicted = predicted::by_name(input.planned);
    let prediction = input.planned.prediction.as_ref();
    let stages = stages(&names, input.data, &input.planned.load, prediction);
    let stages = stages.map_err(merge(input))?;
    let facts = checks::Facts {
        planned: input.planned,
        predicted: &predicted,
        study: input.study,
        cores: input.manifest.environment.cores,
        names: &names,
        data: input.data,
        sums: &sums,
        stages: &stages,
        monitored: &over_hold,
    };
    let mut found = checks::all(&facts);
    let is_duet = input.data.record.duet.is_some();
    Ok(Judged {
        disturbed: is_duet && checks::of_both_sides(&mut found),
        checks: found,
        batches: match input.data.record.end {
            // A changing load has no steady state.
            TrialEnd::Complete if input.planned.load.changes() => Vec::new(),
            TrialEnd::Complete => batches(&names, input.data, &sums),
            TrialEnd::SystemFailed { .. }
            | TrialEnd::PreparationFailed { .. }
            | TrialEnd::GeneratorFailed { .. }
            | TrialEnd::AgentLost { .. }
            | TrialEnd::Aborted { .. } => Vec::new(),
        },
        stages,
    })
}

/// Returns response times of a scope in equal parts of the hold, after this cut. A stage's are those of all.
///
/// # Errors
/// [`ReportError::Merge`].
pub fn answers_by_part(
    input: &Input<'_>,
    cut_ms: f64,
    parts: usize,
    scope: &Scope,
) -> Result<Vec<Histogram<u64>>, ReportError> {
    let steps = input.study.workload.steps_of(scope);
    let of = |step: &str| steps.is_none_or(|steps| steps.iter().any(|one| one == step));
    let mut hold = hold(input.data, input.planned.load.kind);
    hold.start_ms += cut_ms.min(hold.length_ms());
    sums::answers_by_part(&names(input), input.data, &hold, parts, &of).map_err(merge(input))
}

/// Returns an upper bound on the mean time of requests without interference, µs, over the hold after `cut_ms`.
///
/// # Errors
/// [`ReportError::Merge`].
pub fn own_time(input: &Input<'_>, cut_ms: f64) -> Result<Option<f64>, ReportError> {
    let mut hold = hold(input.data, input.planned.load.kind);
    hold.start_ms += cut_ms.min(hold.length_ms());
    let sums = sum_over(&names(input), input.data, hold).map_err(merge(input))?;
    Ok(lab_stats::interference::own_time(sums.steps.values()))
}

/// The sources of a trial's figures.
struct Measured<'a> {
    input: &'a Input<'a>,
    cut_ms: f64,
    sums: Sums,
    stages: Vec<Stage>,
    populations: Vec<OfPopulation>,
    tags: Vec<OfTag>,
    transactions: Transactions,
    queues: Vec<QueueAnalysis>,
    measures: Vec<OfMeasure>,
    series: Series,
    monitored: counters::Monitored,
    predicted: BTreeMap<String, Predicted>,
    /// By step with a request that was aborted at the time limit.
    bounds: BTreeMap<String, Bound>,
}

/// Judges a trial by itself, with the warm-up from its own series: the one judgement of a search's trials, both when
/// they end and in the report.
///
/// # Errors
/// [`ReportError::Merge`].
pub fn alone(input: &Input<'_>) -> Result<TrialAnalysis, ReportError> {
    let judged = judge(input)?;
    let warmup = warmup(&[&judged.batches]);
    figures(input, judged, &warmup)
}

/// Returns the figures of a judged trial, over the hold after its warm-up.
///
/// # Errors
/// [`ReportError::Merge`].
pub fn figures(
    input: &Input<'_>,
    judged: Judged,
    warmup: &Warmup,
) -> Result<TrialAnalysis, ReportError> {
    let names = names(input);
    let kind = input.planned.load.kind;
    let whole_hold = hold(input.data, kind);
    let mut hold = whole_hold;
    let cut_ms = warmup.cut_ms.min(hold.length_ms());
    hold.start_ms += cut_ms;
    let disturbed = judged.disturbed;
    let mut checks = judged.checks;
    if input.data.record.end == TrialEnd::Complete {
        let load = &input.planned.load;
        let steady = checks::steady_state(warmup, load, whole_hold.length_ms());
        let at = checks
            .iter()
            .position(|check| check.id == CheckId::TailSample);
        checks.insert(at.unwrap_or(checks.len()), steady);
    }
    let sums = sum_over(&names, input.data, hold).map_err(merge(input))?;
    let measured = Measured {
        input,
        cut_ms,
        monitored: counters::over_hold(&input.data.monitor, &hold),
        predicted: predicted::by_name(input.planned),
        bounds: bounds(&sums, input.planned.load.time_limit_ms.map(as_f64)),
        stages: judged.stages,
        populations: populations(input.study, input.planned, &sums).map_err(merge(input))?,
        tags: tags(input.study, &sums).map_err(merge(input))?,
        measures: measures(input.manifest, &names, &sums).map_err(merge(input))?,
        series: series(input, &names).map_err(merge(input))?,
        transactions: transactions(input.manifest, &names, input.data, &hold)
            .map_err(merge(input))?,
        queues: queues(&input.study.workload, input.data, &sums).map_err(merge(input))?,
        sums,
    };
    let judged = measured.judged().map_err(merge(input))?;
    Ok(TrialAnalysis {
        disturbed,
        ..measured.analysis(&names, checks, judged)
    })
}

impl<'a> Measured<'a> {
    /// Returns the attempts within a scope.
    fn attempts(&self, scope: &Scope) -> Result<Attempts, MergeError> {
        let mut unanswered = self.input.data.record.unanswered.as_ref();
        let sums = match scope {
            Scope::All | Scope::Step(_) | Scope::Transaction(_) | Scope::Measure(_) => {
                Some(&self.sums)
            }
            Scope::Stage(name) => {
                let at = self.stages.iter().position(|one| one.plan.name == *name);
                // Only requests of the last stage can be without a response at the end.
                unanswered =
                    unanswered.filter(|_| at.is_some_and(|at| at + 1 == self.stages.len()));
                at.map(|at| &self.stages[at].sums)
            }
            Scope::Population(name) => {
                let mut named = self.populations.iter().filter(|one| one.is_named(name));
                named.next().map(|one| &one.sums)
            }
            Scope::Tag(name) => {
                let mut named = self.tags.iter().filter(|one| one.is_named(name));
                named.next().map(|one| &one.sums)
            }
        };
        let load = &self.input.planned.load;
        let limits = Limits {
            unanswered,
            timeout_ms: as_f64(load.timeout_ms()),
            time_limit_ms: load.time_limit_ms.map(as_f64),
        };
        match (scope, sums) {
            (Scope::Measure(_), _) => Ok(Attempts::default()),
            (Scope::Transaction(name), _) => {
                Ok(self.transactions.attempts(name, &self.sums, limits))
            }
            (_, Some(sums)) => attempts(scope, sums, limits),
            (_, None) => Ok(Attempts::default()),
        }
    }

    fn judged(&self) -> Result<Thresholds, MergeError> {
        let limits = &self.input.study.thresholds;
        let subject_to = self.input.find.map(|find| &find.subject_to);
        // Thresholds share few scopes, whose histograms are merged once each.
        let mut by_scope = BTreeMap::from([(&Scope::All, self.attempts(&Scope::All)?)]);
        let judged = || limits.iter().chain(subject_to.into_iter().flatten());
        for one in judged() {
            if !by_scope.contains_key(&one.scope) {
                by_scope.insert(&one.scope, self.attempts(&one.scope)?);
            }
        }
        let measures = (&self.measures[..], self.sums.hold.cycles);
        let numbers = judged_numbers(judged(), measures, &self.input.data.record)?;
        let judge = |one: &Threshold| match &one.scope {
            Scope::Measure(name) => numbers[name.as_str()].judge(one),
            scope => {
                let measured = thresholds::measured(one.metric, one.aggregate, &by_scope[scope]);
                thresholds::judge(one, measured, "")
            }
        };
        let deciding = match self.input.study.decides {
            Some(Decides::Named(named)) => {
                let of = self.attempts(named.scope())?;
                Some(thresholds::measured(named.metric(), named.aggregate(), &of))
            }
            _ => None,
        };
        let by_script = notes::test_failed(&self.input.data.record).map(thresholds::of_script);
        Ok(Thresholds {
            deciding,
            carried: subject_to
                .map(|limits| by_script.is_none() && limits.iter().all(|one| judge(one).holds)),
            thresholds: limits.iter().map(judge).chain(by_script).collect(),
            all: attempts::summary(&by_scope[&Scope::All]),
        })
    }

    /// For a search: returns true if its thresholds pass in a trial that only external noise made invalid. Such noise
    /// delays responses, and the whole load was offered.
    fn held_while_disturbed(checks: &[Check], judged: &Thresholds) -> bool {
        let mut failed = checks
            .iter()
            .filter(|check| check.outcome == CheckOutcome::Invalid);
        checks::cause(checks) == Some(Cause::Outside)
            && failed.all(|check| checks::spoils_times_only(check.id))
            && judged.carried == Some(true)
    }

    fn prediction(&self) -> Option<&'a Prediction> {
        self.input.planned.prediction.as_ref()
    }

    /// Returns the bound of all steps together.
    fn over_all(&self) -> Option<Bound> {
        self.bounds.values().copied().reduce(Bound::and)
    }

    fn analysis(self, names: &Names<'_>, checks: Vec<Check>, judged: Thresholds) -> TrialAnalysis {
        let (input, sums, record) = (self.input, &self.sums, &self.input.data.record);
        TrialAnalysis {
            id: record.id,
            attempt_of: record.attempt_of,
            repeated_by: None,
            block: input.planned.block,
            cell: input.planned.cell.clone(),
            control: input.planned.control,
            duet: record.duet.clone(),
            disturbed: false,
            label: label(input),
            started: record.started.clone(),
            verdict: verdict(&checks),
            cause: checks::cause(&checks),
            system_failure: system_failure(&record.end),
            preparation_failure: preparation_failure(&record.end),
            before_load: record.end != TrialEnd::Complete && input.data.windows.is_empty(),
            aborted: matches!(record.end, TrialEnd::Aborted { .. }),
            test_failed: notes::test_failed(record),
            not_counted: notes::not_counted(record),
            held_while_disturbed: Self::held_while_disturbed(&checks, &judged),
            thresholds: judged.thresholds,
            deciding: judged.deciding,
            carried: of_valid(judged.carried, &checks),
            checks,
            users: input.planned.load.users,
            arrivals: arrivals(input.planned, sums),
            ramp_ms: record.ramp_ms,
            hold_ms: record.hold_ms,
            warmup_cut_ms: self.cut_ms,
            elapsed_ms: record.elapsed_ms,
            transactions: sums.whole.ok(),
            transactions_predicted: self.prediction().map(|plan| plan.transactions),
            errors: sums.whole.errors(),
            errors_by_class: sums.whole.errors_by_class.clone(),
            skipped: sums.whole.skipped(),
            cycles: sums.whole.cycles,
            overruns: sums.whole.overruns,
            stale_retries: sums.whole.stale_retries,
            connections: connections(record, sums),
            unanswered: record.unanswered.clone(),
            throughput_per_s: throughput_per_s(sums),
            notesmark_per_min: notesmark::per_min(throughput_per_s(sums)),
            delivered_per_s: sums.hold.per_s(sums.hold.sent()),
            offered_per_s: self.prediction().map(|plan| plan.offered_per_s),
            response_ms: Times::of(&sums.response).under(self.over_all()),
            response_with_failures_ms: judged.all,
            service_ms: Times::of(sums.service_times()).under(self.over_all()),
            steps: steps(input.steps, sums, &self.predicted, &self.bounds),
            stages: self.stages.iter().map(Stage::analysis).collect(),
            populations: of_each(&self.populations),
            tags: self.tags.iter().map(OfTag::analysis).collect(),
            named_transactions: self.transactions.analysis(sums, self.prediction()),
            queues: self.queues,
            measures: self.measures.into_iter().map(|one| one.analysis).collect(),
            probe_ms: sums.probe.as_ref().map(Times::of),
            probe: probe(input, sums),
            transfer: transfer_of(input, sums),
            lateness_ms: Lateness::of(&sums.lateness),
            loop_lag_ms: (!sums.loop_lag.is_empty()).then(|| Lateness::of(&sums.loop_lag)),
            system: counters::with_demand(self.monitored.system, throughput_per_s(sums)),
            host: counters::with_transfers(self.monitored.host, throughput_per_s(sums)),
            parts: counters_of(self.monitored.parts),
            generator: generator(record, self.monitored.generator),
            setup_transactions: record.setup_transactions,
            setup_errors: record.setup_errors,
            error_examples: error_examples(input),
            slowest: slowest(input, names, sums),
            system_settings: record.system_settings.clone(),
            notes: notes::sentences(record),
            series: self.series,
        }
    }
}

/// Returns the judgement, if the trial is valid.
fn of_valid(judged: Option<bool>, checks: &[Check]) -> Option<bool> {
    judged.filter(|_| verdict(checks) == Verdict::Valid)
}

/// Returns the transactions per second in the hold.
fn throughput_per_s(sums: &Sums) -> Option<f64> {
    sums.hold.per_s(sums.hold.ok())
}

/// The thresholds' results for a trial's attempts.
struct Thresholds {
    thresholds: Vec<ThresholdResult>,
    /// The deciding figure, if the study names one with parts.
    deciding: Option<crate::model::Measured>,
    /// For a search: whether its thresholds pass.
    carried: Option<bool>,
    /// Figures of all attempts.
    all: crate::model::Attempts,
}

fn of_each(populations: &[OfPopulation]) -> Vec<PopulationAnalysis> {
    populations.iter().map(OfPopulation::analysis).collect()
}

fn generator(record: &TrialRecord, counters: Counters) -> Generator {
    Generator {
        health: record.generator.clone(),
        counters,
    }
}

fn probe(input: &Input<'_>, sums: &Sums) -> Option<ProbeCounts> {
    let (transactions, errors) = sums.whole.probe;
    input.study.workload.probe.then_some(ProbeCounts {
        transactions,
        errors,
    })
}

fn verdict(checks: &[Check]) -> Verdict {
    let is_invalid = |check: &Check| check.outcome == CheckOutcome::Invalid;
    if checks.iter().any(is_invalid) {
        Verdict::Invalid
    } else {
        Verdict::Valid
    }
}

/// Describes the cell, with the users of a search, and a mark for controls.
fn label(input: &Input<'_>) -> String {
    let planned = input.planned;
    let mut label = cell_label(input.study, &planned.cell);
    if input.find.is_some() {
        let users = plural_count(u64::from(planned.load.users), "user");
        label = if planned.cell.is_empty() {
            users
        } else {
            format!("{label} · {users}")
        };
    }
    if planned.control {
        label.push_str(" (control)");
    }
    label
}

/// Returns the bounds by step with a request that was aborted at the time limit.
fn bounds(sums: &Sums, limit_ms: Option<f64>) -> BTreeMap<String, Bound> {
    let bound = |(name, step): (&String, &StepSum)| {
        let bound = Bound {
            time_limit_ms: limit_ms?,
            over: step.over_limit,
            of: step.sent(),
        };
        (bound.over > 0).then(|| (name.clone(), bound))
    };
    sums.whole.steps.iter().filter_map(bound).collect()
}

/// Requests aborted at a time limit are no errors.
fn error_examples(input: &Input<'_>) -> ErrorExamples {
    let limited = input.planned.load.time_limit_ms.is_some();
    let all = input.data.record.error_examples.iter();
    all.filter(|example| !(limited && example.class == ErrorClass::Timeout))
        .cloned()
        .collect()
}

fn arrivals(planned: &Trial, sums: &Sums) -> Option<Arrivals> {
    let rate_per_s = planned.load.arrivals_per_s()?;
    let staged = planned.load.changes();
    let drawn = planned.prediction.as_ref().filter(|_| staged);
    let drawn = drawn.and_then(|plan| plan.arrivals);
    let hold_s = as_f64(planned.load.hold_ms) / 1000.0;
    Some(Arrivals {
        arrived_per_s: sums.hold.per_s(sums.hold.arrived)?,
        planned_per_s: drawn.map_or(rate_per_s, |drawn| drawn.hold / hold_s),
        waiting_max: sums.hold.waiting_max,
        dropped: sums.whole.dropped,
    })
}

/// Returns the data transferred by the sessions of a sequence; other loads have no session times.
fn transfer_of(input: &Input<'_>, sums: &Sums) -> Option<Transfer> {
    if !matches!(input.planned.load.kind, LoadKind::Sequence { .. }) {
        return None;
    }
    let session = input.study.session(&input.planned.parameters)?;
    let carried = session.transfer.as_ref()?;
    let raw = input.data.record.raw.as_ref();
    Some(transfer::of_trial(carried, &sums.sessions, raw))
}

/// Returns the counters of system parts on their own machines.
fn counters_of(parts: Vec<counters::OfPart>) -> Vec<PartCounters> {
    parts.into_iter().map(|part| part.counters).collect()
}

fn system_failure(end: &TrialEnd) -> Option<String> {
    match end {
        TrialEnd::Complete
        | TrialEnd::PreparationFailed { .. }
        | TrialEnd::GeneratorFailed { .. }
        | TrialEnd::AgentLost { .. }
        | TrialEnd::Aborted { .. } => None,
        TrialEnd::SystemFailed { message } => Some(message.clone()),
    }
}

fn preparation_failure(end: &TrialEnd) -> Option<String> {
    match end {
        TrialEnd::PreparationFailed { message, .. } => Some(message.clone()),
        TrialEnd::Complete
        | TrialEnd::SystemFailed { .. }
        | TrialEnd::GeneratorFailed { .. }
        | TrialEnd::AgentLost { .. }
        | TrialEnd::Aborted { .. } => None,
    }
}

fn steps(
    names: &[String],
    sums: &Sums,
    predicted: &BTreeMap<String, Predicted>,
    bounds: &BTreeMap<String, Bound>,
) -> Vec<StepAnalysis> {
    let nothing = StepSum::default();
    let unplanned = Predicted::default();
    names
        .iter()
        .map(|name| {
            let sum = sums.whole.steps.get(name).unwrap_or(&nothing);
            let plan = predicted.get(name).unwrap_or(&unplanned);
            let bound = bounds.get(name).copied();
            let times = sums.steps.get(name).map(Times::of).unwrap_or_default();
            let service = sums.step_service.get(name).map_or(times, Times::of);
            StepAnalysis {
                name: name.clone(),
                transactions: sum.ok,
                predicted: plan.requests,
                errors: sum.failed(),
                skipped: sum.skipped,
                retries: sum.sent_again(),
                wait_ms: mean_wait_ms(sum),
                wait_planned_ms: plan.wait_ms,
                body_bytes: per_answer(sum, sum.bytes),
                plain_body_bytes: per_answer(sum, sum.decoded_bytes())
                    .filter(|_| sum.decoded_bytes() != sum.bytes),
                bound,
                response_ms: times.under(bound),
                service_ms: service.under(bound),
                phases_ms: phases(name, sums),
            }
        })
        .collect()
}

/// Returns the protocols that users spoke, if they requested another version of HTTP than 1.1.
fn connections(record: &TrialRecord, sums: &Sums) -> Option<Connections> {
    let asked = record.system_settings.get(lab_archive::HTTP);
    let asked = asked.is_some_and(|asked| asked.contains("HTTP/2"));
    asked.then_some(Connections {
        opened: sums.whole.connects,
        http2: sums.whole.http2_connects,
    })
}

/// Returns times of the phases of a step's responses, by the phase's name.
fn phases(step: &str, sums: &Sums) -> BTreeMap<&'static str, Times> {
    let its = sums
        .step_phases
        .iter()
        .filter(|((name, _), _)| name == step);
    its.map(|((_, kind), histogram)| (kind.name(), Times::of(histogram)))
        .collect()
}

/// Returns the mean size of a response. Requests without a response don't count.
fn per_answer(sum: &StepSum, bytes: u64) -> Option<f64> {
    let errors = sum.errors.iter();
    let answered = errors.filter(|(class, _)| !class.is_without_response());
    let answered: u64 = answered.map(|(_, count)| count).sum();
    lab_stats::ratio(as_f64(bytes), as_f64(sum.ok + answered))
}

/// Maximum slow requests to report.
const MOST_SLOW: usize = 5;

/// Returns the slowest requests of the hold that began a trace.
fn slowest(input: &Input<'_>, names: &Names<'_>, sums: &Sums) -> Vec<SlowRequest> {
    let windows = input.data.windows.iter();
    let in_hold = windows.filter(|w| sums.hold_span.contains(w.start_ms, w.end_ms));
    let slow = in_hold.filter_map(|window| {
        let slow = window.slowest.as_ref()?;
        Some(SlowRequest {
            step: names.step(slow.step)?.to_owned(),
            response_ms: slow.response_ms,
            trace: slow.trace.clone(),
        })
    });
    let mut slow: Vec<SlowRequest> = slow.collect();
    slow.sort_by(|a, b| b.response_ms.total_cmp(&a.response_ms));
    slow.truncate(MOST_SLOW);
    slow
}

fn series(input: &Input<'_>, names: &Names<'_>) -> Result<Series, MergeError> {
    let answers = input.data.windows.iter().map(|window| {
        let (ok, errors) = names.answers(window);
        ok + errors
    });
    let grouped = Groups::new(&input.data.windows, answers.sum());
    let p95_us = p95_by_group(names, input.data, &grouped)?;
    let mut groups: BTreeMap<usize, Group> = BTreeMap::new();
    for window in &input.data.windows {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "`as` saturates; times are positive milliseconds"
        )]
        let group = groups
            .entry(grouped.of(window.start_ms.round() as u64))
            .or_default();
        let (ok, errors) = names.answers(window);
        group.add(window, ok, errors);
    }
    let load = groups
        .into_iter()
        .map(|(index, group)| group.point(p95_us.get(&index).copied().flatten()))
        .collect();
    // The chart shows the system together with its host.
    let there = input.data.record.environment.system_host.as_ref();
    let cores = there.map_or(input.manifest.environment.cores, |there| there.cores);
    Ok(Series {
        load,
        counters: counters::series(&input.data.monitor, cores),
    })
}

/// Merged neighbouring windows.
#[derive(Default)]
struct Group {
    start_ms: Option<f64>,
    end_ms: f64,
    users: u32,
    arrived: u64,
    waiting: u64,
    ok: u64,
    errors: u64,
}

impl Group {
    fn add(&mut self, window: &WindowLine, ok: u64, errors: u64) {
        self.start_ms.get_or_insert(window.start_ms);
        self.end_ms = window.end_ms;
        self.users = window.counts.users;
        self.arrived += window.counts.arrived;
        self.waiting = window.counts.waiting;
        self.ok += ok;
        self.errors += errors;
    }

    fn point(&self, p95_us: Option<u64>) -> Point {
        let start_ms = self.start_ms.unwrap_or_default();
        let seconds = (self.end_ms - start_ms) / 1000.0;
        Point {
            t_ms: f64::midpoint(start_ms, self.end_ms),
            users: self.users,
            arrived_per_s: lab_stats::ratio(as_f64(self.arrived), seconds).unwrap_or_default(),
            waiting: self.waiting,
            transactions_per_s: lab_stats::ratio(as_f64(self.ok), seconds).unwrap_or_default(),
            errors_per_s: lab_stats::ratio(as_f64(self.errors), seconds).unwrap_or_default(),
            p95_ms: p95_us.map(|us| as_f64(us) / 1000.0),
        }
    }
}
