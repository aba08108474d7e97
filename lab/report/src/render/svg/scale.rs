//! Scales of axes: the positions of values, and the values with labels.

/// Above this ratio of largest to smallest value, a linear axis hides the smaller ones.
pub(super) const LOG_FROM: f64 = 12.0;

/// A scale from its lower to its upper end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    /// From 0 to this value.
    Linear(f64),
    /// Decades between these; both positive.
    Log(f64, f64),
}

impl Scale {
    /// A linear scale that shows `most` and ends on a round number.
    pub(super) fn up_to(most: f64) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let step = nice_step(most, 5.0);
        Self::Linear((most / step).ceil() * step)
    }

    /// A scale that shows all values: logarithmic if a linear one would hide the smaller ones.
    pub(super) fn of(values: &[f64]) -> Self {
        let most = values.iter().copied().fold(0.0, f64::max);
        let positive = values.iter().copied().filter(|value| *value > 0.0);
        let least = positive.fold(f64::INFINITY, f64::min);
        let is_log = most / least > LOG_FROM && values.iter().all(|value| *value > 0.0);
        match is_log {
            true => Self::Log(decade(least), nice_log_end(most)),
            false => Self::up_to(most),
        }
    }

    pub(super) fn is_log(self) -> bool {
        matches!(self, Self::Log(..))
    }

    /// The position of a value, 0 … 1.
    pub(super) fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear(end) => value / end,
            Self::Log(low, high) => (value / low).ln() / (high / low).ln(),
        }
    }

    pub(super) fn ticks(self) -> Vec<f64> {
        match self {
            Self::Linear(end) => multiples(nice_step(end, 5.0), end),
            Self::Log(low, high) => {
                let decades = (high / low).log10().floor() as i32;
                let steps: &[f64] = if decades < 2 {
                    &[1.0, 2.0, 5.0]
                } else {
                    &[1.0]
                };
                let all = (0..=decades)
                    .flat_map(|n| steps.iter().map(move |step| step * low * 10f64.powi(n)));
                all.filter(|tick| *tick <= high * 1.0001).collect()
            }
        }
    }
}

/// A step of 1, 2, 2.5, or 5 × 10ⁿ that cuts `end` into at most `parts`.
pub(super) fn nice_step(end: f64, parts: f64) -> f64 {
    let raw = end / parts;
    let nice = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .find(|nice| nice * decade(raw) >= raw * 0.999);
    nice.unwrap_or(10.0) * decade(raw)
}

fn decade(value: f64) -> f64 {
    10f64.powf(value.log10().floor())
}

/// The end of a logarithmic axis that shows `most`: 1, 2, or 5 × 10ⁿ.
fn nice_log_end(most: f64) -> f64 {
    let nice = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|nice| nice * decade(most) >= most);
    nice.unwrap_or(10.0) * decade(most)
}

pub(super) fn multiples(step: f64, end: f64) -> Vec<f64> {
    let count = (end / step + 1e-6).floor() as usize;
    (0..=count.min(20)).map(|n| n as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_round_numbers() {
        for (most, end) in [
            (5252.0, 6000.0),
            (0.9, 1.0),
            (21.4, 25.0),
            (100.0, 100.0),
            (0.0, 1.0),
        ] {
            let Scale::Linear(found) = Scale::up_to(most) else {
                panic!("{most}");
            };
            assert!((found - end).abs() < 1e-9, "{most}: {found}");
        }
        assert_eq!(multiples(15.0, 60.0), [0.0, 15.0, 30.0, 45.0, 60.0]);
    }

    #[test]
    fn values_that_lie_decades_apart_are_shown_by_decades() {
        assert_eq!(Scale::of(&[2.0, 20.0]), Scale::up_to(20.0));
        let wide = Scale::of(&[2.0, 300.0]);
        assert!(wide.is_log());
        assert_eq!(wide.ticks(), [1.0, 10.0, 100.0]);
        let near = Scale::of(&[11.0, 140.0]);
        assert_eq!(near.ticks(), [10.0, 20.0, 50.0, 100.0, 200.0]);
        assert!((wide.place(1.0)).abs() < 1e-9);
        // 0 has no place on a logarithmic scale.
        assert!(!Scale::of(&[0.0, 1.0, 100.0]).is_log());
    }
}
