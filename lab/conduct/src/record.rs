//! Converts the driver's windows to the archive's lines. It judges nothing and drops nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_archive::{
    ArchiveError, Kind, LatenessLine, Outcome, Series, SlowestLine, TrialWriter, Unanswered,
    WindowLine,
};
use lab_counts::StepCounts;
use lab_driver::Window;

/// Writes a window: its histograms, then its line.
pub(crate) fn write(writer: &mut TrialWriter, window: &Window) -> Result<(), ArchiveError> {
    let (start, end) = (window.start, window.end);
    for (number, step) in (0u16..).zip(&window.steps) {
        let times = &step.times;
        let series = |outcome, kind| Series::Step {
            step: number,
            outcome,
            kind,
        };
        for (series, histogram) in [
            (series(Outcome::Ok, Kind::Response), &times.ok),
            (series(Outcome::Ok, Kind::Service), &times.service),
            (series(Outcome::Error, Kind::Response), &times.error),
            (
                series(Outcome::Unanswered, Kind::Response),
                &times.unanswered,
            ),
        ] {
            writer.histogram(series, start, end, histogram)?;
        }
        for (kind, histogram) in Kind::PHASES.into_iter().zip(&times.phases) {
            writer.histogram(series(Outcome::Ok, kind), start, end, histogram)?;
        }
        let shared = [&times.queue_wait, &times.lease_wait];
        let events = Kind::EVENTS.into_iter().zip(&times.events);
        for (kind, histogram) in events.chain(Kind::SHARED.into_iter().zip(shared)) {
            writer.histogram(series(Outcome::Ok, kind), start, end, histogram)?;
        }
        for (place, histogram) in (0u16..).zip(&times.measures) {
            let series = Series::Measure {
                step: number,
                place,
            };
            writer.histogram(series, start, end, histogram)?;
        }
    }
    for (number, one) in (0u16..).zip(&window.transactions) {
        for (outcome, elapsed, histogram) in [
            (Outcome::Ok, false, &one.time),
            (Outcome::Ok, true, &one.elapsed),
            (Outcome::Unanswered, false, &one.unfinished_time),
            (Outcome::Unanswered, true, &one.unfinished_elapsed),
        ] {
            let series = Series::Transaction {
                transaction: number,
                outcome,
                elapsed,
            };
            writer.histogram(series, start, end, histogram)?;
        }
    }
    writer.histogram(Series::Lateness, start, end, &window.lateness)?;
    writer.histogram(Series::Loop, start, end, &window.loop_lag)?;
    writer.histogram(Series::Session, start, end, &window.sessions)?;
    writer.window(&line(window))
}

fn line(window: &Window) -> WindowLine {
    let lateness = &window.lateness;
    let sum_us = lateness.iter_recorded().fold(0u64, |sum, value| {
        sum.saturating_add(
            value
                .value_iterated_to()
                .saturating_mul(value.count_at_value()),
        )
    });
    let steps = window.steps.iter().map(|step| &step.counts);
    let transactions = window.transactions.iter().map(|one| &one.counts);
    WindowLine {
        start_ms: ms(window.start),
        end_ms: ms(window.end),
        handed_over_ms: Some(ms(window.handed_over)),
        counts: window.counts,
        lateness: LatenessLine {
            count: lateness.len(),
            sum_us,
            max_us: lateness.max(),
        },
        steps: counted(steps),
        transactions: counted(transactions),
        slowest: window.slowest.map(|slow| SlowestLine {
            step: slow.step as u16,
            response_ms: ms(slow.response),
            trace: slow.trace.id(),
        }),
    }
}

/// The nonzero counts, by index.
fn counted<'a>(all: impl Iterator<Item = &'a StepCounts>) -> BTreeMap<u16, StepCounts> {
    let all = (0u16..).zip(all.cloned());
    all.filter(|(_, counts)| *counts != StepCounts::default())
        .collect()
}

/// The requests without a response of a window, if it has any.
pub(crate) fn unanswered(window: &Window) -> Option<Unanswered> {
    let (count, oldest) = window.unanswered();
    let oldest_ms = ms(oldest);
    (count > 0).then_some(Unanswered { count, oldest_ms })
}

/// Milliseconds with their fraction.
pub(crate) fn ms(t: Duration) -> f64 {
    t.as_secs_f64() * 1e3
}

/// Milliseconds without their fraction.
pub(crate) fn whole_ms(t: Duration) -> u64 {
    u64::try_from(t.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use lab_counts::{ErrorClass, StepWindow, WindowCounts};

    use super::*;

    #[test]
    fn a_line_has_the_windows_counts_and_omits_idle_steps() {
        let mut busy = StepWindow::default();
        busy.times.ok.record_n(1500, 4).unwrap();
        busy.counts.ok = 4;
        busy.counts.errors[ErrorClass::Connect] = 2;
        busy.counts.add_body(9000, 30_000);
        let mut window = Window {
            start: Duration::from_micros(200_500),
            end: Duration::from_micros(400_250),
            handed_over: Duration::from_micros(400_750),
            counts: WindowCounts {
                users: 6,
                cycles: 2,
                ..WindowCounts::default()
            },
            steps: vec![StepWindow::default(), busy.clone(), StepWindow::default()],
            ..Window::default()
        };
        window.lateness.record_n(2, 3).unwrap();
        window.lateness.record(10).unwrap();
        let line = line(&window);
        assert_eq!((line.start_ms, line.end_ms), (200.5, 400.25));
        assert_eq!(line.handed_over_ms, Some(400.75));
        assert_eq!(line.counts, window.counts);
        assert_eq!(
            line.lateness,
            LatenessLine {
                count: 4,
                sum_us: 16,
                max_us: 10
            }
        );
        assert_eq!(line.steps, BTreeMap::from([(1, busy.counts)]));
    }
}
