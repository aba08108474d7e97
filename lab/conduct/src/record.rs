//! From the driver's windows to the archive's lines. It judges nothing and drops nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_archive::{
    ArchiveError, Kind, LatenessLine, Outcome, Series, SlowestLine, StepLine, TrialWriter,
    WindowLine,
};
use lab_driver::{ErrorClass, StepWindow, Window};

/// Writes a window: its histograms, then its line.
pub(crate) fn write(writer: &mut TrialWriter, window: &Window) -> Result<(), ArchiveError> {
    let (start, end) = (window.start, window.end);
    for (number, step) in (0u16..).zip(&window.steps) {
        let series = |outcome, kind| Series::Step {
            step: number,
            outcome,
            kind,
        };
        for (series, histogram) in [
            (series(Outcome::Ok, Kind::Response), &step.ok),
            (series(Outcome::Ok, Kind::Service), &step.service),
            (series(Outcome::Error, Kind::Response), &step.error),
        ] {
            writer.histogram(series, start, end, histogram)?;
        }
        for (kind, histogram) in Kind::PHASES.into_iter().zip(&step.phases) {
            writer.histogram(series(Outcome::Ok, kind), start, end, histogram)?;
        }
        for (kind, histogram) in Kind::EVENTS.into_iter().zip(&step.events) {
            writer.histogram(series(Outcome::Ok, kind), start, end, histogram)?;
        }
        for (place, histogram) in (0u16..).zip(&step.measures) {
            let series = Series::Measure {
                step: number,
                place,
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
    let steps = (0u16..)
        .zip(&window.steps)
        .map(|(number, step)| (number, step_line(step)));
    WindowLine {
        start_ms: ms(window.start),
        end_ms: ms(window.end),
        handed_over_ms: Some(ms(window.handed_over)),
        users: window.users,
        cycles: window.cycles,
        arrived: window.arrived,
        waiting: window.waiting,
        dropped: window.dropped,
        overruns: window.overruns,
        connects: window.connects,
        http2_connects: window.http2_connects,
        stale_retries: window.stale_retries,
        lateness: LatenessLine {
            count: lateness.len(),
            sum_us,
            max_us: lateness.max(),
        },
        steps: steps
            .filter(|(_, step)| *step != StepLine::default())
            .collect(),
        slowest: window.slowest.map(|slow| SlowestLine {
            step: slow.step as u16,
            response_ms: ms(slow.response),
            trace: slow.trace.id(),
        }),
    }
}

fn step_line(step: &StepWindow) -> StepLine {
    let errors = ErrorClass::ALL
        .into_iter()
        .map(|c| (class(c), step.errors[c.index()]));
    let errors: BTreeMap<_, _> = errors.filter(|(_, count)| *count > 0).collect();
    StepLine {
        ok: step.ok.len(),
        errors,
        redirects: step.redirects,
        retries: step.retries,
        retry_wait_us: step.retry_wait_us,
        cut_off: step.cut_off,
        skipped: step.skipped,
        waits: step.waits,
        wait_sum_us: step.wait_sum_us,
        bytes: step.bytes,
        plain_bytes: (step.plain_bytes != step.bytes).then_some(step.plain_bytes),
    }
}

/// The archive's name of a class.
pub(crate) fn class(class: ErrorClass) -> lab_archive::ErrorClass {
    match class {
        ErrorClass::Status => lab_archive::ErrorClass::Status,
        ErrorClass::Timeout => lab_archive::ErrorClass::Timeout,
        ErrorClass::Connect => lab_archive::ErrorClass::Connect,
        ErrorClass::Reset => lab_archive::ErrorClass::Reset,
        ErrorClass::Check => lab_archive::ErrorClass::Check,
    }
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
    use lab_driver::new_histogram;

    use super::*;

    #[test]
    fn a_line_has_the_windows_counts_and_leaves_quiet_steps_out() {
        let mut busy = StepWindow::empty();
        busy.ok.record_n(1500, 4).unwrap();
        busy.error.record(9).unwrap();
        busy.errors = [1, 0, 2, 0, 0];
        (busy.retries, busy.retry_wait_us, busy.cut_off) = (2, 900, 1);
        (busy.skipped, busy.waits, busy.wait_sum_us, busy.bytes) = (3, 5, 700, 9000);
        busy.plain_bytes = 30_000;
        let mut lateness = new_histogram();
        lateness.record_n(2, 3).unwrap();
        lateness.record(10).unwrap();
        let window = Window {
            start: Duration::from_micros(200_500),
            end: Duration::from_micros(400_250),
            users: 6,
            cycles: 2,
            overruns: 1,
            connects: 8,
            http2_connects: 3,
            stale_retries: 1,
            handed_over: Duration::from_micros(400_750),
            arrived: 4,
            waiting: 2,
            dropped: 1,
            unanswered: lab_driver::Unanswered::default(),
            lateness,
            loop_lag: new_histogram(),
            sessions: new_histogram(),
            steps: vec![StepWindow::empty(), busy, StepWindow::empty()],
            slowest: None,
        };
        let line = line(&window);
        assert_eq!((line.start_ms, line.end_ms), (200.5, 400.25));
        assert_eq!((line.users, line.cycles, line.overruns), (6, 2, 1));
        assert_eq!((line.connects, line.stale_retries), (8, 1));
        assert_eq!(line.http2_connects, 3);
        assert_eq!((line.arrived, line.waiting, line.dropped), (4, 2, 1));
        assert_eq!(line.handed_over_ms, Some(400.75));
        assert_eq!(
            line.lateness,
            LatenessLine {
                count: 4,
                sum_us: 16,
                max_us: 10
            }
        );
        let errors = BTreeMap::from([
            (lab_archive::ErrorClass::Status, 1),
            (lab_archive::ErrorClass::Connect, 2),
        ]);
        let expected = StepLine {
            ok: 4,
            errors,
            redirects: 0,
            retries: 2,
            retry_wait_us: 900,
            cut_off: 1,
            skipped: 3,
            waits: 5,
            wait_sum_us: 700,
            bytes: 9000,
            plain_bytes: Some(30_000),
        };
        assert_eq!(line.steps, BTreeMap::from([(1, expected)]));
    }

    #[test]
    fn classes_keep_their_names() {
        for driver_class in ErrorClass::ALL {
            let archived = serde_json::to_value(class(driver_class)).unwrap();
            assert_eq!(archived, driver_class.name());
        }
    }
}
