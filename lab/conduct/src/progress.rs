//! The figures of the progress display: a merge of the last windows. It draws nothing.

use std::collections::VecDeque;
use std::time::Duration;

use lab_counts::Hist;
use lab_driver::Window;

use crate::event::Progress;

/// Length of the window for the figures.
const HORIZON: Duration = Duration::from_secs(5);

/// One window without its steps.
#[derive(Debug)]
struct Slice {
    start: Duration,
    end: Duration,
    times: Hist,
}

/// The last windows, and sums since the start of the ramp.
#[derive(Debug)]
pub(crate) struct Rolling {
    slices: VecDeque<Slice>,
    users: u32,
    sessions: u64,
    waiting: u64,
    transactions: u64,
    errors: u64,
    /// Length of ramp and hold.
    planned: Duration,
    /// Time of the trials that follow.
    after: Duration,
}

impl Rolling {
    pub(crate) fn new(planned: Duration, after: Duration) -> Self {
        let slices = VecDeque::new();
        Self {
            slices,
            users: 0,
            sessions: 0,
            waiting: 0,
            transactions: 0,
            errors: 0,
            planned,
            after,
        }
    }

    /// Adds a window. `steps` is the number of steps without the probe.
    pub(crate) fn add(&mut self, window: &Window, steps: usize) {
        let mut times = Hist::<3>::default();
        for step in window.steps.iter().take(steps) {
            // Both resize themselves, so that every value fits.
            let _ = times.add(&step.times.ok);
            self.errors += step.failed();
        }
        self.users = window.counts.users;
        self.sessions += window.counts.cycles;
        self.waiting = window.counts.waiting;
        self.transactions += times.len();
        self.slices.push_back(Slice {
            start: window.start,
            end: window.end,
            times,
        });
        while self
            .slices
            .front()
            .is_some_and(|slice| slice.end + HORIZON <= window.end)
        {
            self.slices.pop_front();
        }
    }

    pub(crate) fn sessions(&self) -> u64 {
        self.sessions
    }

    pub(crate) fn transactions(&self) -> u64 {
        self.transactions
    }

    pub(crate) fn errors(&self) -> u64 {
        self.errors
    }

    /// The figures at `now` on the trial's clock.
    pub(crate) fn figures(&self, now: Duration) -> Progress {
        let mut times = Hist::<3>::default();
        for slice in &self.slices {
            let _ = times.add(&slice.times);
        }
        let ends = self.slices.front().zip(self.slices.back());
        let span = ends.map_or(0.0, |(first, last)| (last.end - first.start).as_secs_f64());
        let remaining = self.planned.saturating_sub(now);
        let ms = |p| (!times.is_empty()).then(|| times.value_at_quantile(p) as f64 / 1e3);
        Progress {
            users: self.users,
            sessions: self.sessions,
            waiting: self.waiting,
            tx_per_s: if span > 0.0 {
                times.len() as f64 / span
            } else {
                0.0
            },
            p50_ms: ms(0.5),
            p95_ms: ms(0.95),
            errors: self.errors,
            elapsed: now,
            remaining,
            run_remaining: remaining + self.after,
        }
    }
}

#[cfg(test)]
mod tests {
    use lab_counts::{ErrorClass, StepWindow};

    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn step(times_us: &[u64], failed: u64) -> StepWindow {
        let mut step = StepWindow::default();
        for us in times_us {
            step.times.ok.record(*us).unwrap();
        }
        step.counts.ok = times_us.len() as u64;
        step.counts.errors[ErrorClass::Status] = failed;
        step
    }

    fn window(start: u64, end: u64, steps: Vec<StepWindow>) -> Window {
        let mut window = Window {
            start: at(start),
            end: at(end),
            steps,
            ..Window::default()
        };
        window.counts.users = 7;
        window
    }

    #[test]
    fn nothing_yet_is_nothing() {
        let figures = Rolling::new(at(60_000), at(5_000)).figures(at(500));
        assert_eq!(
            (figures.users, figures.p95_ms, figures.errors),
            (0, None, 0)
        );
        assert!(figures.tx_per_s.abs() < f64::EPSILON);
        assert_eq!(
            (figures.remaining, figures.run_remaining),
            (at(59_500), at(64_500))
        );
    }

    #[test]
    fn figures_are_of_the_last_five_seconds_and_errors_of_all() {
        let mut rolling = Rolling::new(at(60_000), at(0));
        for second in 0..20 {
            // The first ten seconds are slow and faulty.
            let (us, failed) = if second < 10 {
                (900_000, 2)
            } else {
                (1_000, 0)
            };
            let steps = vec![
                step(&[us; 40], failed),
                step(&[us; 10], 0),
                step(&[7; 999], 9),
            ];
            rolling.add(&window(second * 1000, (second + 1) * 1000, steps), 2);
        }
        let figures = rolling.figures(at(20_000));
        assert!(
            (figures.tx_per_s - 50.0).abs() < 1e-9,
            "the probe is not among them"
        );
        assert!((figures.p95_ms.unwrap() - 1.0).abs() < 0.01);
        assert_eq!((figures.users, figures.errors), (7, 20));
        assert_eq!((rolling.transactions(), rolling.errors()), (1000, 20));
        assert_eq!(rolling.figures(at(99_000)).remaining, Duration::ZERO);
    }

    #[test]
    fn quantiles_come_from_merged_counts() {
        let mut rolling = Rolling::new(at(10_000), at(0));
        rolling.add(&window(0, 1000, vec![step(&[1_000; 90], 0)]), 1);
        rolling.add(&window(1000, 2000, vec![step(&[50_000; 10], 0)]), 1);
        let p95 = rolling.figures(at(2000)).p95_ms.unwrap();
        assert!((p95 - 50.0).abs() < 0.1, "{p95}: not a mean of 1 and 50");
    }
}
