//! Draws from distributions with a source of random bits: the same bits give the same draws.

/// Largest mean, deviation, and rank.
const MOST: f64 = 1e12;
/// Largest exponent of a Zipf distribution.
const MOST_EXPONENT: f64 = 100.0;
/// Maximum attempts per rank; nine of ten are accepted at once.
const TRIES: usize = 1_000;
/// Most values with shares.
const MAX_SHARES: usize = 100;

/// A distribution of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Draw {
    /// With a mean and a standard deviation.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
    },
    /// Ranks: the frequency of rank k is proportional to k to the power of a negative exponent.
    Zipf(Zipf),
}

/// A drawn number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Drawn {
    /// Any number.
    Real(f64),
    /// A rank.
    Whole(i64),
}

impl Draw {
    /// Returns a normal distribution.
    ///
    /// # Errors
    /// Describes invalid parameters.
    pub fn normal(mean: f64, deviation: f64) -> Result<Self, String> {
        if !(-MOST..=MOST).contains(&mean) {
            return Err(format!("a mean of {mean} is not within -{MOST} to {MOST}"));
        }
        if !(0.0..=MOST).contains(&deviation) {
            return Err(format!(
                "a standard deviation of {deviation} is not within 0 to {MOST}"
            ));
        }
        Ok(Self::Normal { mean, deviation })
    }

    /// Returns a distribution of ranks from 1 to `n`.
    ///
    /// # Errors
    /// Describes invalid parameters.
    pub fn zipf(n: f64, exponent: f64) -> Result<Self, String> {
        if !(1.0..=MOST).contains(&n) || n.fract() != 0.0 {
            return Err(format!("{n} is not a whole number within 1 to {MOST}"));
        }
        if !(0.0..=MOST_EXPONENT).contains(&exponent) {
            return Err(format!(
                "an exponent of {exponent} is not within 0 to {MOST_EXPONENT}"
            ));
        }
        Ok(Self::Zipf(Zipf::new(n, exponent)))
    }

    /// Draws the next number. A normal one takes one draw of the bits.
    pub fn next(&self, bits: &mut impl FnMut() -> u64) -> Drawn {
        match self {
            Self::Normal { mean, deviation } => {
                // The quantile of 0 is minus infinity; use half a step of the 53-bit grid instead.
                let place = unit(bits()).max(f64::EPSILON / 4.0);
                Drawn::Real(mean + deviation * normal_quantile(place))
            }
            Self::Zipf(zipf) => Drawn::Whole(zipf.next(bits)),
        }
    }
}

/// Maps bits to [0, 1).
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Ranks by rejection-inversion (Hörmann and Derflinger, *Rejection-inversion to generate variates from monotone
/// discrete distributions*, ACM TOMACS 6(3), 1996): no table, whatever `n` is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zipf {
    n: f64,
    exponent: f64,
    /// The integral of the density up to one half, and up to the last rank.
    first: f64,
    last: f64,
    /// Ranks this close to the drawn point are accepted at once.
    near: f64,
}

impl Zipf {
    fn new(n: f64, exponent: f64) -> Self {
        let mut zipf = Self {
            n,
            exponent,
            first: 0.0,
            last: 0.0,
            near: 0.0,
        };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(n + 0.5);
        zipf.near = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn next(&self, bits: &mut impl FnMut() -> u64) -> i64 {
        for _ in 0..TRIES {
            let u = self.last + unit(bits()) * (self.first - self.last);
            let point = self.inverse(u);
            let rank = (point + 0.5).floor().clamp(1.0, self.n);
            let is_near = rank - point <= self.near;
            if is_near || u >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as i64;
            }
        }
        1
    }

    fn density(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.exponent) * log;
        // (eᵗ - 1) ÷ t, which is 1 at t = 0.
        let slope = if t == 0.0 { 1.0 } else { t.exp_m1() / t };
        slope * log
    }

    fn inverse(&self, x: f64) -> f64 {
        let t = (x * (1.0 - self.exponent)).max(-1.0);
        // ln(1 + t) ÷ t, which is 1 at t = 0.
        let slope = if t == 0.0 { 1.0 } else { t.ln_1p() / t };
        (slope * x).exp()
    }
}

/// The standard normal quantile by Acklam's rational approximation (2003): relative error below 1.15e-9. One draw gives
/// one value, which the polar and ziggurat methods can't guarantee. Undefined at 0 and 1.
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    const LOW: f64 = 0.02425;
    let tail = |q: f64| polynomial(&C, q) / polynomial(&D, q);
    if p < LOW {
        tail((-2.0 * p.ln()).sqrt())
    } else if p > 1.0 - LOW {
        -tail((-2.0 * (1.0 - p).ln()).sqrt())
    } else {
        let q = p - 0.5;
        let r = q * q;
        polynomial(&A, r) * q / polynomial(&B, r)
    }
}

/// Horner's rule, highest power first.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, c| sum * x + c)
}

/// Parses values with shares, as `a 80%, b 20%`: each with the end of its share, the last at 1.
///
/// # Errors
/// A sentence that describes the fault; `what` names the values.
pub fn shares<T>(
    text: &str,
    what: &str,
    mut value: impl FnMut(&str) -> Result<T, String>,
) -> Result<Vec<(T, f64)>, String> {
    let mut values = Vec::new();
    let mut total = 0.0;
    for entry in text.split(',') {
        let entry = entry.trim();
        let (written, share) = entry
            .strip_suffix('%')
            .and_then(|entry| entry.trim_end().rsplit_once([' ', ':']))
            .ok_or_else(|| format!("`{entry}` is not a {what} with a share"))?;
        let value = value(written.trim_end_matches([' ', ':']))?;
        let share: f64 = match share.trim().parse() {
            Ok(share) if (0.0..=100.0).contains(&share) => share,
            _ => return Err(format!("`{share}%` is not a share")),
        };
        total += share;
        values.push((value, total));
    }
    if values.len() > MAX_SHARES {
        return Err(format!("there are at most {MAX_SHARES} {what}s"));
    }
    if (total - 100.0_f64).abs() > 0.01 {
        return Err(format!("the shares add up to {total}%, not to 100%"));
    }
    for (_, end) in &mut values {
        *end /= total;
    }
    Ok(values)
}

/// Returns the value whose share contains this place in [0, 1).
pub fn share_at<T>(values: &[(T, f64)], place: f64) -> Option<&T> {
    let found = values.iter().find(|(_, end)| place < *end);
    found.or(values.last()).map(|(value, _)| value)
}

/// Returns one of the values, with the probability of its share.
pub fn weighted<T>(values: &[(T, f64)], bits: u64) -> Option<&T> {
    share_at(values, unit(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64 (Steele, Lea, Flood, 2014).
    fn bits(mut seed: u64) -> impl FnMut() -> u64 {
        move || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = seed;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }
    }

    const DRAWS: usize = 200_000;

    #[test]
    fn normal_draws_have_their_moments() {
        let draw = Draw::normal(100.0, 15.0).unwrap();
        let mut bits = bits(1);
        let values: Vec<f64> = (0..DRAWS)
            .map(|_| match draw.next(&mut bits) {
                Drawn::Real(value) => (value - 100.0) / 15.0,
                Drawn::Whole(_) => panic!("no rank"),
            })
            .collect();
        let moment = |power| values.iter().map(|v| v.powi(power)).sum::<f64>() / DRAWS as f64;
        // Five standard errors: √(1, 2, 15, 96 ÷ n).
        for (power, expected, variance) in [
            (1, 0.0, 1.0),
            (2, 1.0, 2.0),
            (3, 0.0, 15.0),
            (4, 3.0, 96.0f64),
        ] {
            let off = (moment(power) - expected).abs();
            assert!(
                off < 5.0 * (variance / DRAWS as f64).sqrt(),
                "moment {power} is off by {off}"
            );
        }
        let always = Draw::normal(3.5, 0.0).unwrap();
        assert_eq!(always.next(&mut bits), Drawn::Real(3.5));
    }

    #[test]
    fn ranks_come_as_often_as_the_law_says() {
        for (n, exponent) in [
            (1, 1.0),
            (2, 0.0),
            (10, 0.5),
            (10, 1.0),
            (10, 1.2),
            (7, 3.0),
            (3, 40.0),
        ] {
            let draw = Draw::zipf(f64::from(n), exponent).unwrap();
            let mut bits = bits(3);
            let mut counts = vec![0_u32; n as usize + 1];
            for _ in 0..DRAWS {
                match draw.next(&mut bits) {
                    Drawn::Whole(rank) => counts[rank as usize] += 1,
                    Drawn::Real(_) => panic!("no rank"),
                }
            }
            let weight = |rank: i32| f64::from(rank).powf(-exponent);
            let total: f64 = (1..=n).map(weight).sum();
            for rank in 1..=n {
                let p = weight(rank) / total;
                let expected = p * DRAWS as f64;
                let error = (expected * (1.0 - p)).sqrt().max(1.0);
                let off = (f64::from(counts[rank as usize]) - expected).abs();
                assert!(
                    off < 5.0 * error,
                    "rank {rank} of {n} by {exponent}: off by {off}"
                );
            }
        }
    }

    #[test]
    fn ranks_of_a_million_million_need_no_table() {
        let draw = Draw::zipf(1e12, 1.0).unwrap();
        let mut bits = bits(5);
        let ranks: Vec<i64> = (0..1_000)
            .map(|_| match draw.next(&mut bits) {
                Drawn::Whole(rank) => rank,
                Drawn::Real(_) => panic!("no rank"),
            })
            .collect();
        assert!(
            ranks
                .iter()
                .all(|rank| (1..=1_000_000_000_000).contains(rank))
        );
        // With a logarithmic distribution, half of them are below the square root.
        let low = ranks.iter().filter(|rank| **rank < 1_000_000).count();
        assert!((400..600).contains(&low), "{low}");
    }

    #[test]
    fn same_bits_give_the_same_draws() {
        let mut bits = bits(7);
        let normal = Draw::normal(0.0, 1.0).unwrap();
        let zipf = Draw::zipf(1000.0, 1.1).unwrap();
        let drawn: Vec<String> = (0..3)
            .map(|_| format!("{:?} {:?}", normal.next(&mut bits), zipf.next(&mut bits)))
            .collect();
        let expected = [
            "Real(-0.2797627957386446) Whole(831)",
            "Real(1.2858980645516795) Whole(7)",
            "Real(-0.11949425660652463) Whole(86)",
        ];
        assert_eq!(drawn, expected);
    }

    #[test]
    fn numbers_that_make_no_distribution_are_refused() {
        for (mean, deviation) in [
            (f64::NAN, 1.0),
            (f64::INFINITY, 1.0),
            (0.0, -1.0),
            (0.0, f64::NAN),
            (1e13, 1.0),
        ] {
            assert!(Draw::normal(mean, deviation).is_err(), "{mean} {deviation}");
        }
        for (n, exponent) in [
            (0.0, 1.0),
            (1.5, 1.0),
            (f64::NAN, 1.0),
            (1e13, 1.0),
            (2.0, -0.1),
            (2.0, f64::NAN),
        ] {
            assert!(Draw::zipf(n, exponent).is_err(), "{n} {exponent}");
        }
    }

    #[test]
    fn values_have_their_shares() {
        let read = |text| shares(text, "value", |value| Ok(value.to_owned()));
        let values = read("red wine 80%, b: 15 %, c 5%").unwrap();
        let mut bits = bits(9);
        let mut counts = [0_u32; 3];
        for _ in 0..DRAWS {
            let drawn = weighted(&values, bits()).unwrap();
            counts[["red wine", "b", "c"]
                .iter()
                .position(|name| name == drawn)
                .unwrap()] += 1;
        }
        for (count, p) in counts.into_iter().zip([0.8, 0.15, 0.05f64]) {
            let error = (p * (1.0 - p) * DRAWS as f64).sqrt();
            assert!(
                (f64::from(count) - p * DRAWS as f64).abs() < 5.0 * error,
                "{counts:?}"
            );
        }
        for wrong in [
            "",
            "a",
            "a 80%",
            "a 80%, b 30%",
            "a -1%, b 101%",
            "a x%",
            "80%, 20%",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
