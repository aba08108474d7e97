//! Reports of workers as they travel: counts as numbers, histograms in HdrHistogram's V2 form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::Histogram;
use lab_stats::encoding::{decode_v2, encode_v2};
use serde::{Deserialize, Serialize};

use super::error::MessageError;
use crate::event::{DIGITS, PHASE_DIGITS, Slowest, StepWindow, Unanswered};
use crate::report::{Example, Report, SetupCounts, WorkerWindow};
use lab_client::ClientCounts;
use lab_client::Nanos;
use lab_client::{ErrorClass, Phase};
use lab_workload::{MAX_MEASURES, TraceContext};

/// A [`Report`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireReport {
    Setup(SetupCounts),
    SetupStepDone(SetupCounts),
    Window {
        index: u64,
        end: Nanos,
        handed_over: Nanos,
        window: Box<WireWindow>,
    },
    Example {
        t: Nanos,
        step: usize,
        setup: bool,
        class: usize,
        detail: Box<str>,
        #[serde(default)]
        trace: Option<TraceContext>,
    },
    Ended {
        cut: bool,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WireWindow {
    users: u32,
    cycles: u64,
    overruns: u64,
    arrived: u64,
    waiting: u64,
    dropped: u64,
    client: ClientCounts,
    unanswered: Unanswered,
    lateness: WireHistogram,
    loop_lag: WireHistogram,
    sessions: WireHistogram,
    steps: Vec<WireStep>,
    #[serde(default)]
    slowest: Option<Slowest>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WireStep {
    ok: WireHistogram,
    service: WireHistogram,
    error: WireHistogram,
    phases: [WireHistogram; Phase::COUNT],
    events: [WireHistogram; 2],
    #[serde(default)]
    measures: Vec<WireHistogram>,
    errors: [u64; 5],
    redirects: u64,
    #[serde(default)]
    retries: u64,
    #[serde(default)]
    retry_wait_us: u64,
    #[serde(default)]
    cut_off: u64,
    skipped: u64,
    waits: u64,
    wait_sum_us: u64,
    bytes: u64,
    plain_bytes: u64,
}

/// V2 form in base64; empty for one without values.
#[derive(Debug, Serialize, Deserialize)]
struct WireHistogram(String);

impl WireHistogram {
    fn new(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self(String::new());
        }
        let mut bytes = Vec::new();
        encode_v2(histogram, &mut bytes).expect("an hour in µs takes 180 KiB at most");
        Self(BASE64.encode(bytes))
    }

    fn read(&self) -> Result<Histogram<u64>, MessageError> {
        self.read_with(DIGITS)
    }

    /// As one of so many digits, whatever the other side made. One without values has next to no room:
    /// a report of 30 steps has hundreds of those, and who merges reports of many generators passes them by.
    fn read_with(&self, digits: u8) -> Result<Histogram<u64>, MessageError> {
        if self.0.is_empty() {
            return Ok(
                Histogram::new_with_bounds(1, 2, 0).expect("the least bounds that there are")
            );
        }
        let nonsense = |error: String| MessageError::Nonsense(error);
        let bytes = BASE64
            .decode(&self.0)
            .map_err(|e| nonsense(e.to_string()))?;
        let read = decode_v2(&bytes).map_err(|e| nonsense(e.to_string()))?;
        if (read.low(), read.sigfig()) == (1, digits) {
            return Ok(read);
        }
        let mut into = Histogram::new(digits).expect("digits that are usual");
        into.add(&read)
            .map_err(|e| nonsense(format!("its values can't be held: {e}")))?;
        Ok(into)
    }
}

fn read_phases(
    sent: &[WireHistogram; Phase::COUNT],
) -> Result<[Histogram<u64>; Phase::COUNT], MessageError> {
    let phases = sent.iter().map(|sent| sent.read_with(PHASE_DIGITS));
    let phases: Vec<_> = phases.collect::<Result<_, MessageError>>()?;
    Ok(phases.try_into().expect("as many as were sent"))
}

fn read_measures(sent: &[WireHistogram]) -> Result<Vec<Histogram<u64>>, MessageError> {
    if sent.len() > MAX_MEASURES {
        let told = format!("a step of {} measures", sent.len());
        return Err(MessageError::Nonsense(told));
    }
    sent.iter().map(WireHistogram::read).collect()
}

impl WireReport {
    pub(crate) fn new(report: &Report) -> Self {
        match report {
            Report::Setup(counts) => Self::Setup(*counts),
            Report::SetupStepDone(counts) => Self::SetupStepDone(*counts),
            Report::Window {
                index,
                end,
                handed_over,
                window,
            } => Self::Window {
                index: *index,
                end: *end,
                handed_over: *handed_over,
                window: Box::new(WireWindow::new(window)),
            },
            Report::Example(example) => Self::Example {
                t: example.t,
                step: example.step,
                setup: example.setup,
                class: example.class.index(),
                detail: example.detail.clone(),
                trace: example.trace,
            },
            Report::Ended { cut } => Self::Ended { cut: *cut },
        }
    }

    pub(crate) fn into_report(self) -> Result<Report, MessageError> {
        Ok(match self {
            Self::Setup(counts) => Report::Setup(counts),
            Self::SetupStepDone(counts) => Report::SetupStepDone(counts),
            Self::Window {
                index,
                end,
                handed_over,
                window,
            } => Report::Window {
                index,
                end,
                handed_over,
                window: Box::new(window.read()?),
            },
            Self::Example {
                t,
                step,
                setup,
                class,
                detail,
                trace,
            } => Report::Example(Example {
                t,
                step,
                setup,
                class: *ErrorClass::ALL
                    .get(class)
                    .ok_or_else(|| MessageError::Nonsense(format!("error class {class}")))?,
                detail,
                trace,
            }),
            Self::Ended { cut } => Report::Ended { cut },
        })
    }
}

impl WireWindow {
    fn new(window: &WorkerWindow) -> Self {
        let step = |step: &StepWindow| WireStep {
            ok: WireHistogram::new(&step.ok),
            service: WireHistogram::new(&step.service),
            error: WireHistogram::new(&step.error),
            phases: step.phases.each_ref().map(WireHistogram::new),
            events: step.events.each_ref().map(WireHistogram::new),
            measures: step.measures.iter().map(WireHistogram::new).collect(),
            errors: step.errors,
            redirects: step.redirects,
            retries: step.retries,
            retry_wait_us: step.retry_wait_us,
            cut_off: step.cut_off,
            skipped: step.skipped,
            waits: step.waits,
            wait_sum_us: step.wait_sum_us,
            bytes: step.bytes,
            plain_bytes: step.plain_bytes,
        };
        Self {
            users: window.users,
            cycles: window.cycles,
            overruns: window.overruns,
            arrived: window.arrived,
            waiting: window.waiting,
            dropped: window.dropped,
            client: window.client,
            unanswered: window.unanswered,
            lateness: WireHistogram::new(&window.lateness),
            loop_lag: WireHistogram::new(&window.loop_lag),
            sessions: WireHistogram::new(&window.sessions),
            steps: window.steps.iter().map(step).collect(),
            slowest: window.slowest,
        }
    }

    fn read(&self) -> Result<WorkerWindow, MessageError> {
        let step = |step: &WireStep| {
            Ok(StepWindow {
                ok: step.ok.read()?,
                service: step.service.read()?,
                error: step.error.read()?,
                phases: read_phases(&step.phases)?,
                events: [step.events[0].read()?, step.events[1].read()?],
                measures: read_measures(&step.measures)?,
                errors: step.errors,
                redirects: step.redirects,
                retries: step.retries,
                retry_wait_us: step.retry_wait_us,
                cut_off: step.cut_off,
                skipped: step.skipped,
                waits: step.waits,
                wait_sum_us: step.wait_sum_us,
                bytes: step.bytes,
                plain_bytes: step.plain_bytes,
            })
        };
        Ok(WorkerWindow {
            users: self.users,
            cycles: self.cycles,
            overruns: self.overruns,
            arrived: self.arrived,
            waiting: self.waiting,
            dropped: self.dropped,
            client: self.client,
            unanswered: self.unanswered,
            lateness: self.lateness.read()?,
            loop_lag: self.loop_lag.read()?,
            sessions: self.sessions.read()?,
            steps: self
                .steps
                .iter()
                .map(step)
                .collect::<Result<_, MessageError>>()?,
            slowest: self.slowest,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::channel::Piped;
    use super::super::message::{FromGenerator, hear, tell};
    use super::*;
    use crate::event::{Window, new_histogram};

    /// Response times by generator, µs.
    fn times() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let time = prop_oneof![1u64..2_000, 1u64..1_000_000, 1u64..3_600_000_000];
        proptest::collection::vec(proptest::collection::vec(time, 0..200), 1..8)
    }

    /// Over the wire and back, as between two processes.
    fn sent(window: WorkerWindow) -> WorkerWindow {
        let report = Report::Window {
            index: 3,
            end: 4,
            handed_over: 5,
            window: Box::new(window),
        };
        let report = WireReport::new(&report);
        let mut bytes = Vec::new();
        let message = FromGenerator::Report { worker: 0, report };
        tell(&mut Piped(&mut bytes), &message).unwrap();
        match hear(&mut Piped(&bytes[..])).unwrap() {
            Some(FromGenerator::Report { report, .. }) => match report.into_report().unwrap() {
                Report::Window { window, .. } => *window,
                _ => panic!("another report"),
            },
            _ => panic!("another message"),
        }
    }

    proptest! {
        #[test]
        fn merged_generators_have_the_quantiles_of_one_that_recorded_everything(times in times()) {
            let mut one = new_histogram();
            let mut merged = Window::empty(1);
            for generator in &times {
                let mut window = WorkerWindow::new(1);
                for time in generator {
                    one.record(*time).unwrap();
                    window.steps[0].ok.record(*time).unwrap();
                    window.steps[0].service.record(time / 2).unwrap();
                }
                merged.add(&sent(window));
            }
            let ok = &merged.steps[0].ok;
            prop_assert_eq!(ok.len(), one.len());
            for q in [0.0, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
                prop_assert_eq!(ok.value_at_quantile(q), one.value_at_quantile(q));
            }
            prop_assert_eq!(ok, &one);
            prop_assert_eq!(merged.steps[0].service.len(), one.len());
        }
    }

    #[test]
    fn counts_arrive_as_they_were_sent() {
        let mut window = WorkerWindow::new(2);
        (window.users, window.cycles, window.overruns) = (1, 2, 3);
        (window.arrived, window.waiting, window.dropped) = (4, 5, 6);
        window.client.connects = 7;
        window.client.stale_retries = 8;
        window.client.http2_connects = 20;
        window.unanswered.count = 9;
        window.unanswered.oldest = std::time::Duration::from_nanos(10);
        window.sessions.record(15).unwrap();
        window.loop_lag.record(16).unwrap();
        window.steps[0].phases[3].record(19).unwrap();
        window.steps[0].events[1].record(21).unwrap();
        window.steps[0].measure(1).record(23).unwrap();
        let step = &mut window.steps[1];
        (step.errors, step.skipped) = ([1, 2, 3, 4, 5], 11);
        (step.waits, step.wait_sum_us) = (12, 13);
        (step.bytes, step.plain_bytes, step.redirects) = (14, 17, 18);
        (step.retries, step.retry_wait_us, step.cut_off) = (20, 21, 22);
        let mut expected = Window::empty(2);
        expected.add(&window);
        let mut found = Window::empty(2);
        found.add(&sent(window));
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }
}
