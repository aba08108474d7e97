//! Little's law: users = throughput × (response time + think time).
//!
//! Source: Little, "A Proof for the Queuing Formula L = λW", Operations Research 9 (1961); as a
//! check on a load generator: Faban, and wrk#114, which was found so. The law only checks anything
//! if its sides come from *independent* estimates: counted users on one side; counted completions
//! and **planned** waits on the other. With measured waits it is an identity that can't fail.

/// One station of a closed loop: a step with its rate and times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Station {
    /// Completions per second.
    pub per_s: f64,
    /// Mean time that each takes, in seconds.
    pub seconds: f64,
}

/// Users that the stations hold on average: Σ Xᵢ·Wᵢ.
#[must_use]
pub fn users(stations: impl IntoIterator<Item = Station>) -> f64 {
    stations
        .into_iter()
        .map(|station| station.per_s * station.seconds)
        .sum()
}

/// The part of `users`' time that went into `busy_s` seconds of waiting for answers during
/// `hold_s`: at most this part of the load can be missing because the server was slow.
///
/// `None` without users or time.
#[must_use]
pub fn busy_fraction(busy_s: f64, users: f64, hold_s: f64) -> Option<f64> {
    let all = users * hold_s;
    (all > 0.0 && busy_s.is_finite()).then(|| (busy_s / all).clamp(0.0, 1.0))
}

/// A quantity over time, constant in pieces: when each ends (s), in order, the first from 0 on, and
/// its value. Before and after them it is 0.
#[derive(Debug, Clone, Default)]
pub struct Curve(pub Vec<(f64, f64)>);

impl Curve {
    /// The mean from one moment to another; `None` if there is no time between them.
    #[must_use]
    pub fn mean(&self, (from_s, to_s): (f64, f64)) -> Option<f64> {
        let area = |t| self.sum(t, |past, of_piece| past.min(of_piece));
        (to_s > from_s).then(|| (area(to_s) - area(from_s)) / (to_s - from_s))
    }

    /// The mean, from one moment to another, of the means over the last `back_s` before each moment:
    /// what those have met on average who come by, and have been on their way for so long.
    #[must_use]
    pub fn trailing_mean(&self, (from_s, to_s): (f64, f64), back_s: f64) -> Option<f64> {
        // The integral of the integral: a mean of means is the difference of its differences.
        let twice = |t: f64| {
            self.sum(t, |past, of_piece| {
                let within = past.min(of_piece);
                within * within / 2.0 + within * (past - within)
            })
        };
        let met = twice(to_s) - twice(from_s) - twice(to_s - back_s) + twice(from_s - back_s);
        (to_s > from_s && back_s > 0.0).then(|| met / back_s / (to_s - from_s))
    }

    /// Σ value × `of(time since the piece began, its length)` over the pieces begun by a moment.
    fn sum(&self, moment_s: f64, of: impl Fn(f64, f64) -> f64) -> f64 {
        let begins = std::iter::once(0.0).chain(self.0.iter().map(|(end_s, _)| *end_s));
        self.0
            .iter()
            .zip(begins)
            .take_while(|(_, begin_s)| *begin_s < moment_s)
            .map(|((end_s, value), begin_s)| value * of(moment_s - begin_s, end_s - begin_s))
            .sum()
    }
}

/// How much longer a step took on average in the cycles that come to their end in a stretch than in the
/// stretch itself; less than 0 for a server that gets slower. A cycle began up to `cycle_s` earlier. By
/// Little's law both are the steps under way ÷ those that end per second, of all users together, so that
/// it does not matter how many users there were when.
///
/// `None` where no step ended.
#[must_use]
pub fn earlier_step_s(
    under_way: &Curve,
    ended_per_s: &Curve,
    stretch_s: (f64, f64),
    cycle_s: f64,
) -> Option<f64> {
    let now = crate::ratio(under_way.mean(stretch_s)?, ended_per_s.mean(stretch_s)?)?;
    let then = crate::ratio(
        under_way.trailing_mean(stretch_s, cycle_s)?,
        ended_per_s.trailing_mean(stretch_s, cycle_s)?,
    )?;
    Some(then - now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE_S: f64 = 12.0;
    const WINDOW_S: f64 = 0.05;

    /// Three hundred users who begin over `ramp_s` and do six steps in each cycle, `waits_s` apart; a
    /// step that begins at *t* takes `step_s(t)`. The mean rest of those that end in the cycle's length
    /// after the ramp: as it was, and by counts as a report has them.
    fn rests(ramp_s: f64, waits_s: [f64; 6], step_s: impl Fn(f64) -> f64) -> (f64, f64) {
        let hold = (ramp_s.max(PACE_S), ramp_s.max(PACE_S) + PACE_S);
        let windows = (hold.1 / WINDOW_S).ceil() as usize;
        let (mut begins, mut ends) = (vec![0.0; windows], vec![0.0; windows]);
        let mut count = |list: bool, at: f64| {
            let list = if list { &mut begins } else { &mut ends };
            if let Some(slot) = list.get_mut((at / WINDOW_S) as usize) {
                *slot += 1.0;
            }
        };
        let (mut real, mut took) = (Vec::new(), Vec::new());
        for user in 0..300 {
            let mut cycle = ramp_s * f64::from(user) / 300.0;
            while cycle < hold.1 {
                let mut now = cycle;
                for wait_s in waits_s {
                    now += wait_s;
                    count(true, now);
                    let took_s = step_s(now);
                    now += took_s;
                    count(false, now);
                    if now >= hold.0 && now < hold.1 {
                        took.push(took_s);
                    }
                }
                cycle += PACE_S;
                assert!(now <= cycle, "no cycle overruns");
                if cycle >= hold.0 && cycle < hold.1 {
                    real.push(cycle - now);
                }
            }
        }
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let (mut under_way, mut ended, mut now) = (Curve::default(), Curve::default(), 0.0);
        for (window, (begun, gone)) in begins.iter().zip(&ends).enumerate() {
            now += begun - gone;
            let end_s = (window + 1) as f64 * WINDOW_S;
            under_way.0.push((end_s, now));
            ended.0.push((end_s, gone / WINDOW_S));
        }
        let earlier = earlier_step_s(&under_way, &ended, hold, PACE_S).unwrap();
        let waits_s: f64 = waits_s.iter().sum();
        (
            mean(&real),
            PACE_S - waits_s - 6.0 * (mean(&took) + earlier),
        )
    }

    #[test]
    fn rests_before_a_hold_are_told_from_counts() {
        let spread = [1.0; 6];
        let early = [0.1; 6];
        // Little's law warns where 3 % of the users' time are missing.
        let close = |(real, told): (f64, f64), part: f64| {
            assert!((real - told).abs() < part * PACE_S, "{real} {told}");
        };
        // A server that is as fast as ever, whatever the ramp and wherever in their cycle users are busy.
        for ramp_s in [0.5, 2.0, 12.0, 30.0] {
            for waits_s in [spread, early] {
                close(rests(ramp_s, waits_s, |_| 0.4), 0.01);
            }
        }
        // One that gets slower within the hold.
        for ramp_s in [12.0, 24.0] {
            let slowing = move |at: f64| 0.05 + ((at - ramp_s) / PACE_S).clamp(0.0, 1.0) * 0.7;
            close(rests(ramp_s, spread, slowing), 0.025);
            let (real, told) = rests(ramp_s, spread, slowing);
            let by_hold = {
                let mean_s = 0.05 + 0.35;
                PACE_S - 6.0 - 6.0 * mean_s
            };
            assert!(
                (real - by_hold).abs() > 2.0 * (real - told).abs(),
                "{real} {told} {by_hold}"
            );
        }
    }

    #[test]
    fn means_of_a_curve() {
        // 0 for 10 s, then 1 for 10 s.
        let step = Curve(vec![(10.0, 0.0), (15.0, 1.0), (20.0, 1.0)]);
        let close = |found: Option<f64>, wanted: f64| {
            assert!(
                (found.unwrap() - wanted).abs() < 1e-12,
                "{found:?} {wanted}"
            );
        };
        close(step.mean((0.0, 20.0)), 0.5);
        close(step.mean((5.0, 15.0)), 0.5);
        close(step.mean((10.0, 30.0)), 0.5);
        // Over the 10 s before each moment from 10 to 20, the part with 1 grows from 0 to 1.
        close(step.trailing_mean((10.0, 20.0), 10.0), 0.5);
        // At 15 s and 5 s back it is 1 from 15 on, and grows to it before.
        close(step.trailing_mean((10.0, 20.0), 5.0), 0.75);
        close(step.trailing_mean((15.0, 20.0), 5.0), 1.0);
        // What lies before the first piece counts as 0.
        close(Curve(vec![(4.0, 1.0)]).trailing_mean((0.0, 4.0), 4.0), 0.5);
        assert_eq!(step.mean((5.0, 5.0)), None);
        assert_eq!(step.trailing_mean((5.0, 6.0), 0.0), None);
    }

    #[test]
    fn a_closed_loop_adds_up() {
        // 10 users, each thinks 0.9 s and is served in 0.1 s: 10 per second.
        let think = Station {
            per_s: 10.0,
            seconds: 0.9,
        };
        let serve = Station {
            per_s: 10.0,
            seconds: 0.1,
        };
        assert!((users([think, serve]) - 10.0).abs() < 1e-12);
    }

    #[test]
    fn the_busy_part_is_a_part() {
        assert_eq!(busy_fraction(5.0, 10.0, 1.0), Some(0.5));
        assert_eq!(busy_fraction(50.0, 10.0, 1.0), Some(1.0));
        assert_eq!(busy_fraction(5.0, 0.0, 1.0), None);
        assert_eq!(busy_fraction(f64::NAN, 1.0, 1.0), None);
    }
}
