//! Student's t: the p and the interval of a mean of a few values.

/// Returns the two-sided p of `t` with this many degrees of freedom; 1 without any.
///
/// It is the regularised incomplete beta function at `freedom` ÷ (`freedom` + t²). Source: Abramowitz &
/// Stegun, *Handbook of Mathematical Functions*, 26.7.1 with 26.5.27.
#[must_use]
pub fn p_of(t: f64, freedom: f64) -> f64 {
    if freedom.is_nan() || freedom <= 0.0 || t.is_nan() {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5).clamp(0.0, 1.0)
}

/// Returns the t whose two-sided p is `alpha`; infinite without a degree of freedom.
#[must_use]
pub fn t_of(alpha: f64, freedom: f64) -> f64 {
    if freedom.is_nan() || freedom <= 0.0 || alpha <= 0.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while p_of(high, freedom) > alpha {
        high *= 2.0;
        if high > 1e12 {
            return f64::INFINITY;
        }
    }
    // Bisects down to two neighbouring floats; near 0 there are ever more of them.
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if p_of(middle, freedom) > alpha {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// Returns I_x(a, b), by its continued fraction in the form of Lentz; Press et al., *Numerical Recipes*, 3rd ed.,
/// section 6.4.
pub(crate) fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    // The fraction converges quickly on this side of the mean only.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for step in 1..500 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            change = c * d;
            result *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// Returns ln Γ(x) of a positive x: Stirling's series, after raising x by Γ(x + 1) = x Γ(x). Abramowitz & Stegun,
/// 6.1.41.
fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut less) = (x, 0.0);
    while x < 10.0 {
        less += x.ln();
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - less
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, at_05, at_10) in [
            (1.0, 12.706, 6.314),
            (2.0, 4.303, 2.920),
            (3.0, 3.182, 2.353),
            (10.0, 2.228, 1.812),
            (30.0, 2.042, 1.697),
            (100.0, 1.984, 1.660),
        ] {
            assert!((t_of(0.05, freedom) - at_05).abs() < 6e-4, "{freedom}");
            assert!((t_of(0.10, freedom) - at_10).abs() < 6e-4, "{freedom}");
            assert!((p_of(t_of(0.05, freedom), freedom) - 0.05).abs() < 1e-9);
        }
    }

    /// With one degree of freedom it is Cauchy's, with two it has a closed form.
    #[test]
    fn few_degrees_have_closed_forms() {
        for t in [0.0, 0.1, 1.0, 2.5, 40.0, 1e5] {
            let one = 1.0 - 2.0 / std::f64::consts::PI * f64::atan(t);
            let two = 1.0 - t / (2.0 + t * t).sqrt();
            assert!((p_of(t, 1.0) - one).abs() < 1e-10, "{t}");
            assert!((p_of(t, 2.0) - two).abs() < 1e-10, "{t}");
        }
    }

    #[test]
    fn what_is_not_known_shows_nothing() {
        assert_eq!(p_of(5.0, 0.0), 1.0);
        assert_eq!(p_of(f64::NAN, 3.0), 1.0);
        assert_eq!(t_of(0.05, 0.0), f64::INFINITY);
        assert_eq!(p_of(f64::INFINITY, 3.0), 0.0);
    }
}
