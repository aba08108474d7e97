//! The universal scalability law: X(N) = γN ÷ (1 + α(N − 1) + βN(N − 1)).
//!
//! γ is the throughput of one user, α the part of the work that queues (contention), β the part that grows with every
//! pair (coherence); throughput peaks at N* = √((1 − α) ÷ β). Source: Gunther, *Guerrilla Capacity Planning*, 2007,
//! chapters 4 to 6. It needs six levels or more, one of them a single user, and a demand per user that doesn't change
//! with N. If β's interval contains 0 there is no peak to extrapolate to, so none is returned.

use crate::interval::student_t_975;
use crate::number::count;

/// Fewer distinct loads don't separate α from β.
pub const LEAST_LEVELS: usize = 6;

/// Rounds of reweighting; weights converge to six digits within a few.
const ROUNDS: usize = 12;

/// A fitted figure with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fitted {
    /// Best fit.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The law as fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usl {
    /// Throughput of one user.
    pub gamma: Fitted,
    /// Contention.
    pub alpha: Fitted,
    /// Coherence.
    pub beta: Fitted,
    /// The load at which throughput peaks; `None` if β's interval contains 0, or α isn't below 1.
    pub peak: Option<Fitted>,
    /// Standard deviation of throughput around the fit, as a part of it.
    pub scatter: f64,
    curve: Curve,
}

/// Inputs of the band around the law.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Curve {
    solution: Vector,
    inverse: Matrix,
    most: f64,
    /// Standard errors are this factor times a root of the inverse's form.
    factor: f64,
}

impl Usl {
    /// Returns the throughput at a load.
    #[must_use]
    pub fn throughput(&self, load: f64) -> f64 {
        let queue = self.alpha.value * (load - 1.0) + self.beta.value * load * (load - 1.0);
        self.gamma.value * load / (1.0 + queue)
    }

    /// Returns the throughput at a load with the 95 % band of the law there: N ÷ X is linear in the solution, so its
    /// interval is exact for given weights, and X's interval follows from it. The upper end is infinite if the interval
    /// of N ÷ X contains 0.
    #[must_use]
    pub fn band(&self, load: f64) -> Fitted {
        let curve = &self.curve;
        let row = row(load, curve.most);
        let per_user = dot(&row, &curve.solution);
        let form = dot(&row, &times(&curve.inverse, &row)).max(0.0);
        let half = curve.factor * form.sqrt();
        let high = per_user - half;
        Fitted {
            value: load / per_user,
            low: load / (per_user + half),
            high: if high > 0.0 {
                load / high
            } else {
                f64::INFINITY
            },
        }
    }
}

/// Fits pairs of load and throughput, one per trial.
///
/// N ÷ X is linear in 1 ÷ γ, α ÷ γ, and β ÷ γ; least squares with weights for a constant *relative* error of X, which
/// are found by reweighting. Intervals by the delta method with Student's t on n − 3 degrees of freedom. `None` with
/// fewer than [`LEAST_LEVELS`] loads, without a load of 1, with values that aren't positive, or if the points don't
/// determine the law.
#[must_use]
pub fn fit(points: &[(f64, f64)]) -> Option<Usl> {
    let usable = |value: f64| value.is_finite() && value > 0.0;
    if points.iter().any(|(n, x)| !usable(*n) || !usable(*x)) {
        return None;
    }
    let mut loads: Vec<f64> = points.iter().map(|point| point.0).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    if loads.len() < LEAST_LEVELS || (loads[0] - 1.0).abs() > f64::EPSILON {
        return None;
    }
    let most = *loads.last()?;
    let mut weights: Vec<f64> = points.iter().map(|(n, x)| (x / n).powi(2)).collect();
    let mut solved = None;
    for _ in 0..ROUNDS {
        let (inverse, right) = normal(points, &weights, most)?;
        let solution = times(&inverse, &right);
        for (weight, (n, _)) in weights.iter_mut().zip(points) {
            let fitted = dot(&row(*n, most), &solution);
            if fitted > 0.0 {
                *weight = fitted.powi(-2);
            }
        }
        solved = Some((inverse, solution));
    }
    let (inverse, solution) = solved?;
    let freedom = points.len() - 3;
    let squares: f64 = points
        .iter()
        .zip(&weights)
        .map(|((n, x), weight)| weight * (n / x - dot(&row(*n, most), &solution)).powi(2))
        .sum();
    let scatter = (squares / count(freedom)).sqrt();
    Some(law(
        &solution,
        &inverse,
        most,
        scatter,
        student_t_975(freedom),
    ))
}

type Vector = [f64; 3];
type Matrix = [Vector; 3];

/// The terms in which N ÷ X is linear; columns of similar size keep the equations well conditioned.
fn row(n: f64, most: f64) -> Vector {
    [1.0, (n - 1.0) / most, n * (n - 1.0) / (most * most)]
}

/// Returns the inverse of the weighted normal matrix, and its right side.
fn normal(points: &[(f64, f64)], weights: &[f64], most: f64) -> Option<(Matrix, Vector)> {
    let mut matrix = [[0.0; 3]; 3];
    let mut right = [0.0; 3];
    for ((n, x), weight) in points.iter().zip(weights) {
        let row = row(*n, most);
        for i in 0..3 {
            right[i] += weight * row[i] * n / x;
            for j in 0..3 {
                matrix[i][j] += weight * row[i] * row[j];
            }
        }
    }
    Some((inverse(&matrix)?, right))
}

/// Inverts by cofactors; `None` for a singular matrix.
fn inverse(m: &Matrix) -> Option<Matrix> {
    let minor = |i: usize, j: usize| {
        let (a, b, c, d) = ((i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3);
        m[a][c] * m[b][d] - m[a][d] * m[b][c]
    };
    let determinant: f64 = (0..3).map(|j| m[0][j] * minor(0, j)).sum();
    let scale: f64 = (0..3).map(|i| m[i][i]).product();
    if determinant.abs() <= 1e-14 * scale.abs() {
        return None;
    }
    let mut inverse = [[0.0; 3]; 3];
    for (i, line) in inverse.iter_mut().enumerate() {
        for (j, value) in line.iter_mut().enumerate() {
            *value = minor(j, i) / determinant;
        }
    }
    Some(inverse)
}

fn times(matrix: &Matrix, vector: &Vector) -> Vector {
    [0, 1, 2].map(|i| dot(&matrix[i], vector))
}

fn dot(a: &Vector, b: &Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns γ, α, β, and the peak from the solution: 1/γ, α/γ × most, β/γ × most².
fn law(solution: &Vector, inverse: &Matrix, most: f64, scatter: f64, t: f64) -> Usl {
    let [a, b, c] = *solution;
    // Standard error of a function with this gradient (delta method).
    let error =
        |gradient: Vector| scatter * dot(&gradient, &times(inverse, &gradient)).max(0.0).sqrt();
    let fitted = |value: f64, gradient: Vector| {
        let half = t * error(gradient);
        Fitted {
            value,
            low: value - half,
            high: value + half,
        }
    };
    let gamma = fitted(1.0 / a, [-1.0 / (a * a), 0.0, 0.0]);
    let alpha = fitted(b / a / most, [-b / (a * a * most), 1.0 / (a * most), 0.0]);
    let square = most * most;
    let beta = fitted(
        c / a / square,
        [-c / (a * a * square), 0.0, 1.0 / (a * square)],
    );
    // ln N* = (ln(a − b/most) − ln(c/most²)) ÷ 2, symmetric on the scale of logs.
    let left = a - b / most;
    let peak = (beta.low > 0.0 && left > 0.0).then(|| {
        let value = (left * square / c).sqrt();
        let log = error([0.5 / left, -0.5 / (left * most), -0.5 / c]);
        Fitted {
            value,
            low: value * (-t * log).exp(),
            high: value * (t * log).exp(),
        }
    });
    Usl {
        gamma,
        alpha,
        beta,
        peak,
        scatter,
        curve: Curve {
            solution: *solution,
            inverse: *inverse,
            most,
            factor: t * scatter,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(alpha: f64, beta: f64, loads: &[f64]) -> Vec<(f64, f64)> {
        let at = |n: f64| 995.6 * n / (1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0));
        loads.iter().map(|n| (*n, at(*n))).collect()
    }

    #[test]
    fn exact_points_give_the_law_back() {
        let loads = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
        let fitted = fit(&points(0.0267, 0.000_769, &loads)).unwrap();
        assert!((fitted.gamma.value - 995.6).abs() < 1e-6);
        assert!((fitted.alpha.value - 0.0267).abs() < 1e-9);
        assert!((fitted.beta.value - 0.000_769).abs() < 1e-10);
        // √((1 − 0.0267) ÷ 0.000769) = 35.6.
        let peak = fitted.peak.unwrap();
        assert!((peak.value - 35.576).abs() < 0.01, "{peak:?}");
        assert!(
            (fitted.throughput(16.0) / points(0.0267, 0.000_769, &[16.0])[0].1 - 1.0).abs() < 1e-9
        );
        assert!(fitted.scatter < 1e-9);
    }

    #[test]
    fn without_coherence_there_is_no_peak() {
        let mut points = points(0.05, 0.0, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        for (at, point) in points.iter_mut().enumerate() {
            point.1 *= if at % 2 == 0 { 1.02 } else { 0.98 };
        }
        let fitted = fit(&points).unwrap();
        assert!(
            fitted.beta.low < 0.0 && fitted.beta.high > 0.0,
            "{fitted:?}"
        );
        assert_eq!(fitted.peak, None);
    }

    #[test]
    fn too_little_to_fit_is_none() {
        assert_eq!(fit(&points(0.1, 0.001, &[1.0, 2.0, 4.0, 8.0, 16.0])), None);
        assert_eq!(
            fit(&points(0.1, 0.001, &[2.0, 3.0, 4.0, 8.0, 16.0, 32.0])),
            None
        );
        assert_eq!(fit(&[]), None);
        let mut holed = points(0.1, 0.001, &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
        holed[2].1 = 0.0;
        assert_eq!(fit(&holed), None);
    }
}
