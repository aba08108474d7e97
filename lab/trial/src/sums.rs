//! Sums of a trial's windows and histograms, over the whole trial and over the hold.
//!
//! A window counts for the hold if its whole span lies in it. Windows and histograms have the same spans, so the same
//! rule, on whole milliseconds, selects the same ones.

use std::collections::BTreeMap;
use std::ops::Deref;

use hdrhistogram::Histogram;
use lab_archive::model::{Manifest, WindowLine};
use lab_archive::{Interval, Kind, Outcome, PROBE, Series, TrialData};
use lab_counts::{ErrorClass, StepCounts};
use lab_plan::LoadKind;
use lab_stats::histogram::MergeError;
use lab_stats::{Merger, Sparse, WeightedMean, quantile};

use crate::groups::Groups;
use crate::model::ErrorCounts;

/// The hold on the trial's clock, in whole ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hold {
    /// Its start: the ramp's end.
    pub(crate) start_ms: f64,
    /// Its end.
    pub(crate) end_ms: f64,
}

impl Hold {
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds of a trial stay far below 2^52"
    )]
    pub(crate) fn new(ramp_ms: u64, hold_ms: u64) -> Self {
        Self {
            start_ms: ramp_ms as f64,
            end_ms: (ramp_ms + hold_ms) as f64,
        }
    }

    /// Returns true if the whole span lies in the hold. Spans are rounded to whole ms, as in histograms; one ms of
    /// slack, because both ends may have been rounded outwards.
    pub(crate) fn contains(&self, start_ms: f64, end_ms: f64) -> bool {
        start_ms.round() >= self.start_ms && end_ms.round() <= self.end_ms + 1.0
    }

    /// Returns true if the span of histograms lies in the hold.
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds of a trial stay far below 2^52"
    )]
    pub(crate) fn contains_interval(&self, interval: &Interval) -> bool {
        self.contains(interval.start_ms as f64, interval.end_ms as f64)
    }

    /// Returns its length.
    pub(crate) fn length_ms(&self) -> f64 {
        self.end_ms - self.start_ms
    }
}

/// Counts of one step, if the load may have a time limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StepSum {
    /// Without the requests that were aborted at the time limit.
    counts: StepCounts,
    /// Requests that were aborted at the time limit: a bound, no errors.
    pub(crate) over_limit: u64,
}

impl Deref for StepSum {
    type Target = StepCounts;

    fn deref(&self) -> &StepCounts {
        &self.counts
    }
}

impl StepSum {
    pub(crate) fn add(&mut self, names: &Names<'_>, line: &StepCounts) {
        self.counts += line;
        if names.limited {
            self.over_limit += std::mem::take(&mut self.counts.errors[ErrorClass::Timeout]);
        }
    }

    /// Returns its counts without those of the time limit.
    pub(crate) fn counts(&self) -> &StepCounts {
        &self.counts
    }

    /// Counts sessions that were turned away.
    pub(crate) fn turn_away(&mut self, sessions: u64) {
        self.counts.turned_away += sessions;
    }

    /// Returns the planned requests that ended in any way, skipped steps, and requests dropped after failures: all that
    /// the plan had for the users.
    pub(crate) fn attempts(&self) -> u64 {
        self.sent() + self.skipped + self.not_reached
    }

    /// Returns the planned requests that ended in any way: the server's load, except for redirects and retries.
    pub(crate) fn sent(&self) -> u64 {
        self.ended() + self.over_limit
    }
}

/// Counts over a stretch of a trial, without the probe.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Counts {
    /// By step name.
    pub(crate) steps: BTreeMap<String, StepSum>,
    pub(crate) errors_by_class: ErrorCounts,
    /// Users, weighted by the windows' length.
    pub(crate) users: WeightedMean,
    /// Total length of the windows.
    pub(crate) span_ms: f64,
    pub(crate) windows: u64,
    pub(crate) cycles: u64,
    pub(crate) overruns: u64,
    /// Requests sent again because the server had closed their idle connection, or had not processed them.
    pub(crate) stale_retries: u64,
    /// Cookies that users lost because the server set more than they keep.
    pub(crate) evicted_cookies: u64,
    /// Opened connections, and those of them that speak HTTP/2.
    pub(crate) connects: u64,
    pub(crate) http2_connects: u64,
    /// Arrived sessions.
    pub(crate) arrived: u64,
    /// Maximum number of them waiting for a connection at a window's end.
    pub(crate) waiting_max: u64,
    /// Sessions turned away.
    pub(crate) dropped: u64,
    pub(crate) probe: (u64, u64),
}

impl Counts {
    fn add(&mut self, names: &Names<'_>, window: &WindowLine) {
        let span_ms = window.end_ms - window.start_ms;
        self.span_ms += span_ms;
        self.windows += 1;
        let head = &window.counts;
        let users = f64::from(head.users);
        self.users.add(users, span_ms);
        self.arrived += head.arrived;
        self.waiting_max = self.waiting_max.max(head.waiting);
        self.dropped += head.dropped;
        self.cycles += head.cycles;
        self.overruns += head.overruns;
        self.stale_retries += head.stale_retries;
        self.evicted_cookies += head.evicted_cookies;
        self.connects += head.connects;
        self.http2_connects += head.http2_connects;
        for (step, line) in &window.steps {
            let Some(name) = names.step(*step) else {
                self.probe.0 += line.ok;
                self.probe.1 += line.failed();
                continue;
            };
            let step = self.steps.entry(name.to_owned()).or_default();
            step.add(names, line);
            for (class, count) in names.errors_of(line) {
                *self.errors_by_class.entry(class).or_default() += count;
            }
        }
    }

    fn total(&self, of: impl Fn(&StepSum) -> u64) -> u64 {
        self.steps.values().map(of).sum()
    }

    pub(crate) fn ok(&self) -> u64 {
        self.total(|step| step.ok)
    }

    pub(crate) fn errors(&self) -> u64 {
        self.total(|step| step.failed())
    }

    pub(crate) fn over_limit(&self) -> u64 {
        self.total(|step| step.over_limit)
    }

    pub(crate) fn skipped(&self) -> u64 {
        self.total(|step| step.skipped)
    }

    pub(crate) fn not_reached(&self) -> u64 {
        self.total(|step| step.not_reached)
    }

    pub(crate) fn sent_again(&self) -> u64 {
        self.total(|step| step.sent_again())
    }

    /// Sums over the steps.
    pub(crate) fn step(&self) -> StepSum {
        let mut sum = StepSum::default();
        for step in self.steps.values() {
            sum.counts += &step.counts;
            sum.over_limit += step.over_limit;
        }
        sum
    }

    pub(crate) fn cut_off(&self) -> u64 {
        self.total(|step| step.cut_off)
    }

    pub(crate) fn attempts(&self) -> u64 {
        self.total(StepSum::attempts)
    }

    pub(crate) fn sent(&self) -> u64 {
        self.total(StepSum::sent)
    }

    /// Returns the counts of these steps alone; values that aren't counted by step are those of all.
    pub(crate) fn of_steps(&self, names: &[String]) -> Self {
        let steps = names
            .iter()
            .filter_map(|name| self.steps.get_key_value(name));
        let steps: BTreeMap<_, _> = steps
            .map(|(name, sum)| (name.clone(), sum.clone()))
            .collect();
        Self {
            dropped: steps.values().map(|step| step.turned_away).sum(),
            steps,
            ..self.clone()
        }
    }

    /// Returns `count` per second of these windows; `None` without any.
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    pub(crate) fn per_s(&self, count: u64) -> Option<f64> {
        (self.span_ms > 0.0).then(|| count as f64 / self.span_ms * 1000.0)
    }
}

/// The data of a trial for all later stages.
#[derive(Debug, Clone)]
pub(crate) struct Sums {
    pub(crate) hold_span: Hold,
    pub(crate) whole: Counts,
    pub(crate) hold: Counts,
    /// Response times in the hold, by step name.
    pub(crate) steps: BTreeMap<String, Histogram<u64>>,
    /// The same from the actual send, if the archive has it separately.
    pub(crate) step_service: BTreeMap<String, Histogram<u64>>,
    /// Times of the phases of responses in the hold, by step name and phase; none in archives of earlier versions.
    pub(crate) step_phases: BTreeMap<(String, Kind), Histogram<u64>>,
    /// Numbers in responses in the hold, in thousandths, by step and index of the measure.
    pub(crate) measures: BTreeMap<(u16, u16), Histogram<u64>>,
    /// Response times of all steps in the hold, without the probe.
    pub(crate) response: Histogram<u64>,
    /// The same from the actual send, if separate.
    pub(crate) service: Option<Histogram<u64>>,
    /// Times of failed requests in the hold.
    pub(crate) failed: Histogram<u64>,
    /// Ages of the requests without a response at the end, by step name; none in archives of earlier versions.
    pub(crate) unanswered: BTreeMap<String, Histogram<u64>>,
    pub(crate) probe: Option<Histogram<u64>>,
    pub(crate) lateness: Histogram<u64>,
    /// Lag of the generator's loop in the hold; empty if it wasn't sampled.
    pub(crate) loop_lag: Histogram<u64>,
    /// Times of a sequence's sessions.
    pub(crate) sessions: Histogram<u64>,
    /// Answered requests in all histograms of the trial, without the probe's: ok, error.
    pub(crate) recorded: (u64, u64),
    /// Total time of all of these, s.
    pub(crate) answered_s: f64,
    /// Sum (µs) and number of all response times in the hold, by start of their window.
    pub(crate) window_response: BTreeMap<u64, (f64, u64)>,
    /// The longest of them, µs, by start of their window.
    pub(crate) window_longest: BTreeMap<u64, u64>,
}

impl Sums {
    /// Returns the times from the actual send.
    pub(crate) fn service_times(&self) -> &Histogram<u64> {
        self.service.as_ref().unwrap_or(&self.response)
    }

    /// Returns the ages of all requests without a response.
    ///
    /// # Errors
    /// [`MergeError`].
    pub(crate) fn unanswered(&self) -> Result<Histogram<u64>, MergeError> {
        merge_all(self.unanswered.values())
    }

    /// Returns the sums of these steps alone. Times of failures, and values that aren't kept by step, are those of all.
    pub(crate) fn of_steps(&self, names: &[String]) -> Result<Self, MergeError> {
        let of = |times: &BTreeMap<String, Histogram<u64>>| -> BTreeMap<String, Histogram<u64>> {
            let own = names.iter().filter_map(|name| times.get_key_value(name));
            own.map(|(name, times)| (name.clone(), times.clone()))
                .collect()
        };
        let (steps, step_service) = (of(&self.steps), of(&self.step_service));
        let unanswered = of(&self.unanswered);
        Ok(Self {
            whole: self.whole.of_steps(names),
            hold: self.hold.of_steps(names),
            response: merge_all(steps.values())?,
            service: match step_service.is_empty() {
                true => None,
                false => Some(merge_all(step_service.values())?),
            },
            steps,
            step_service,
            unanswered,
            ..self.clone()
        })
    }
}

pub(crate) fn merge_all<'a>(
    times: impl Iterator<Item = &'a Histogram<u64>>,
) -> Result<Histogram<u64>, MergeError> {
    let mut merger = Merger::default();
    for one in times {
        merger.add(one)?;
    }
    Ok(merger.into_merged())
}

/// Maps tags to steps, and identifies failed requests.
pub(crate) struct Names<'a> {
    names: &'a [String],
    probe: Option<usize>,
    /// The load has a time limit: an aborted request is a bound, no error.
    limited: bool,
}

impl<'a> Names<'a> {
    /// The last name is the probe, if the workload has one.
    pub(crate) fn new(manifest: &'a Manifest, has_probe: bool, limited: bool) -> Self {
        let names = manifest.steps.as_slice();
        let probe = names
            .len()
            .checked_sub(1)
            .filter(|last| has_probe && names[*last] == PROBE);
        Self {
            names,
            probe,
            limited,
        }
    }

    fn errors_of(&self, line: &StepCounts) -> impl Iterator<Item = (ErrorClass, u64)> + use<> {
        let limited = self.limited;
        let all = line.errors.iter();
        all.filter(move |(class, _)| !(limited && *class == ErrorClass::Timeout))
    }

    fn errors(&self, line: &StepCounts) -> u64 {
        self.errors_of(line).map(|(_, count)| count).sum()
    }

    /// Returns the name of a step's tag; `None` for the probe's.
    pub(crate) fn step(&self, tag: u16) -> Option<&'a str> {
        let index = usize::from(tag);
        (Some(index) != self.probe)
            .then(|| self.names.get(index).map(String::as_str))
            .flatten()
    }

    /// Returns the responses that met their `expect`, and the failed requests, of a window without the probe.
    pub(crate) fn answers(&self, window: &WindowLine) -> (u64, u64) {
        let steps = window
            .steps
            .iter()
            .filter(|(tag, _)| self.step(**tag).is_some());
        steps.fold((0, 0), |(ok, errors), (_, line)| {
            (ok + line.ok, errors + self.errors(line))
        })
    }

    /// Returns true if it has the response times of one of these steps.
    fn is_answer(&self, series: Series, of: &impl Fn(&str) -> bool) -> bool {
        match series {
            Series::Step {
                step,
                outcome: Outcome::Ok,
                kind: Kind::Response,
            } => self.step(step).is_some_and(of),
            _ => false,
        }
    }

    /// Returns true if the tag is the probe's.
    pub(crate) fn is_probe(&self, tag: u16) -> bool {
        self.probe == Some(usize::from(tag))
    }
}

/// Returns the hold of a trial. A sequence ends with its last session, long before its time is up.
pub(crate) fn hold(data: &TrialData, kind: LoadKind) -> Hold {
    let mut hold = Hold::new(data.record.ramp_ms, data.record.hold_ms);
    if matches!(kind, LoadKind::Sequence { .. }) {
        let end = data.windows.iter().map(|window| window.end_ms.round());
        let end = end.fold(hold.start_ms, f64::max);
        hold.end_ms = hold.end_ms.min(end);
    }
    hold
}

/// Sums a trial, with this stretch of it as its hold.
pub(crate) fn sum_over(
    names: &Names<'_>,
    data: &TrialData,
    hold: Hold,
) -> Result<Sums, MergeError> {
    add_up(names, data, hold, |_, _| true)
}

/// Sums a stretch of a trial, ignoring the rest.
pub(crate) fn sum_within(
    names: &Names<'_>,
    data: &TrialData,
    stretch: Hold,
) -> Result<Sums, MergeError> {
    let lies_within = |start_ms, end_ms| stretch.contains(start_ms, end_ms);
    add_up(names, data, stretch, lies_within)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of a trial stay far below 2^52"
)]
fn add_up(
    names: &Names<'_>,
    data: &TrialData,
    hold: Hold,
    counts: impl Fn(f64, f64) -> bool,
) -> Result<Sums, MergeError> {
    let mut whole = Counts::default();
    let mut held = Counts::default();
    let windows = data.windows.iter();
    for window in windows.filter(|window| counts(window.start_ms, window.end_ms)) {
        whole.add(names, window);
        if hold.contains(window.start_ms, window.end_ms) {
            held.add(names, window);
        }
    }
    let mut merge = Merge::default();
    let intervals = data.hlog.iter();
    let mut times = Sparse::default();
    for interval in intervals.filter(|one| counts(one.start_ms as f64, one.end_ms as f64)) {
        interval.read_counts(&mut times);
        merge.add(
            names,
            &hold,
            interval.series,
            (interval.start_ms, interval.end_ms),
            &times,
        )?;
    }
    Ok(merge.finish(hold, whole, held))
}

/// Returns the 95th percentile of all responses of each group of windows, in µs; `None` if they are too few for it.
pub(crate) fn p95_by_group(
    names: &Names<'_>,
    data: &TrialData,
    groups: &Groups,
) -> Result<BTreeMap<usize, Option<u64>>, MergeError> {
    let of_all = |_: &str| true;
    let answers = data
        .hlog
        .iter()
        .filter(|one| names.is_answer(one.series, &of_all));
    let mut answers: Vec<_> = answers.map(|one| (groups.of(one.start_ms), one)).collect();
    // Responses in order of time are already in order of their groups.
    answers.sort_by_key(|(group, _)| *group);
    let (mut merger, mut times) = (Merger::default(), Sparse::default());
    let mut of_group = |of_one: &[(usize, &Interval)]| {
        merger.clear();
        for (_, interval) in of_one {
            interval.read_counts(&mut times);
            merger.add_sparse(&times)?;
        }
        Ok((of_one[0].0, quantile(merger.merged(), 0.95)))
    };
    let by_group = answers.chunk_by(|(a, _), (b, _)| a == b);
    by_group.map(&mut of_group).collect()
}

/// Returns response times in equal parts of a hold, by the middle of their window.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "milliseconds of a trial stay far below 2^52, and `as` saturates"
)]
pub(crate) fn answers_by_part(
    names: &Names<'_>,
    data: &TrialData,
    hold: &Hold,
    parts: usize,
    of: &impl Fn(&str) -> bool,
) -> Result<Vec<Histogram<u64>>, MergeError> {
    let mut mergers: Vec<Merger> = (0..parts).map(|_| Merger::default()).collect();
    let part_ms = hold.length_ms() / parts.max(1) as f64;
    let mut times = Sparse::default();
    for interval in data
        .hlog
        .iter()
        .filter(|one| names.is_answer(one.series, of))
    {
        let (start_ms, end_ms) = (interval.start_ms as f64, interval.end_ms as f64);
        let at = (f64::midpoint(start_ms, end_ms) - hold.start_ms) / part_ms;
        if hold.contains_interval(interval)
            && let Some(merger) = mergers.get_mut(at as usize)
        {
            interval.read_counts(&mut times);
            merger.add_sparse(&times)?;
        }
    }
    Ok(mergers.into_iter().map(Merger::into_merged).collect())
}

#[derive(Default)]
struct Merge {
    steps: BTreeMap<String, Merger>,
    step_service: BTreeMap<String, Merger>,
    step_phases: BTreeMap<(String, Kind), Merger>,
    measures: BTreeMap<(u16, u16), Merger>,
    response: Merger,
    service: Option<Merger>,
    failed: Merger,
    unanswered: BTreeMap<String, Merger>,
    probe: Option<Merger>,
    lateness: Merger,
    loop_lag: Merger,
    sessions: Merger,
    recorded: (u64, u64),
    answered_s: f64,
    window_response: BTreeMap<u64, (f64, u64)>,
    window_longest: BTreeMap<u64, u64>,
}

impl Merge {
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds of a trial stay far below 2^52"
    )]
    fn add(
        &mut self,
        names: &Names<'_>,
        hold: &Hold,
        series: Series,
        span: (u64, u64),
        times: &Sparse,
    ) -> Result<(), MergeError> {
        let in_hold = hold.contains(span.0 as f64, span.1 as f64);
        let (step, outcome, kind) = match series {
            Series::Step {
                step,
                outcome,
                kind,
            } => (step, outcome, kind),
            Series::Lateness if in_hold => return self.lateness.add_sparse(times),
            Series::Loop if in_hold => return self.loop_lag.add_sparse(times),
            Series::Session => return self.sessions.add_sparse(times),
            Series::Measure { step, place } if in_hold => {
                let kept = self.measures.entry((step, place)).or_default();
                return kept.add_sparse(times);
            }
            Series::Lateness
            | Series::Loop
            | Series::Measure { .. }
            | Series::Transaction { .. } => return Ok(()),
        };
        if names.is_probe(step) {
            let ok = in_hold && outcome == Outcome::Ok && kind == Kind::Response;
            return if ok {
                self.probe.get_or_insert_default().add_sparse(times)
            } else {
                Ok(())
            };
        }
        let Some(name) = names.step(step) else {
            return Ok(());
        };
        match (outcome, kind) {
            (Outcome::Ok, Kind::Response) => {
                self.add_response(name, span.0, in_hold, times)?;
            }
            (Outcome::Error, Kind::Response) => {
                self.recorded.1 += times.len();
                self.answered_s += times.sum() / 1e6;
                if in_hold {
                    self.failed.add_sparse(times)?;
                }
            }
            (Outcome::Unanswered, Kind::Response) => {
                let ages = self.unanswered.entry(name.to_owned()).or_default();
                ages.add_sparse(times)?;
            }
            (Outcome::Ok, Kind::Service) if in_hold => {
                self.service.get_or_insert_default().add_sparse(times)?;
                self.step_service
                    .entry(name.to_owned())
                    .or_default()
                    .add_sparse(times)?;
            }
            (_, Kind::Service) => {}
            (Outcome::Ok, phase) if in_hold => {
                let key = (name.to_owned(), phase);
                self.step_phases.entry(key).or_default().add_sparse(times)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a step's response times to the window that begins at `start_ms`.
    fn add_response(
        &mut self,
        step: &str,
        start_ms: u64,
        in_hold: bool,
        times: &Sparse,
    ) -> Result<(), MergeError> {
        self.recorded.0 += times.len();
        let took = times.sum();
        self.answered_s += took / 1e6;
        if in_hold {
            self.response.add_sparse(times)?;
            let window = self.window_response.entry(start_ms).or_default();
            window.0 += took;
            window.1 += times.len();
            let longest = times.iter().map(|one| one.least).max();
            let so_far = self.window_longest.entry(start_ms).or_default();
            *so_far = longest.unwrap_or_default().max(*so_far);
            self.steps
                .entry(step.to_owned())
                .or_default()
                .add_sparse(times)?;
        }
        Ok(())
    }

    fn finish(self, hold_span: Hold, whole: Counts, hold: Counts) -> Sums {
        Sums {
            hold_span,
            whole,
            hold,
            steps: merged(self.steps),
            step_service: merged(self.step_service),
            step_phases: merged(self.step_phases),
            measures: merged(self.measures),
            response: self.response.into_merged(),
            service: self.service.map(Merger::into_merged),
            failed: self.failed.into_merged(),
            unanswered: merged(self.unanswered),
            probe: self.probe.map(Merger::into_merged),
            lateness: self.lateness.into_merged(),
            loop_lag: self.loop_lag.into_merged(),
            sessions: self.sessions.into_merged(),
            recorded: self.recorded,
            answered_s: self.answered_s,
            window_response: self.window_response,
            window_longest: self.window_longest,
        }
    }
}

fn merged<K: Ord>(mergers: BTreeMap<K, Merger>) -> BTreeMap<K, Histogram<u64>> {
    mergers
        .into_iter()
        .map(|(key, merger)| (key, merger.into_merged()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_windows_of_the_hold_count() {
        let hold = Hold::new(12_000, 48_000);
        assert!(hold.contains(12_000.0, 12_192.0));
        assert!(
            hold.contains(11_999.6, 12_191.6),
            "it rounds to the ramp's end"
        );
        assert!(!hold.contains(11_904.0, 12_096.0), "it began in the ramp");
        assert!(hold.contains(59_808.0, 60_000.4));
        assert!(
            !hold.contains(59_904.0, 60_096.0),
            "it ended after the hold"
        );
    }
}
