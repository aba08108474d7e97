//! Numbers as JSON writes them (RFC 8259, section 6), compared without rounding.

use std::cmp::Ordering;

/// Longest exponent that is parsed; larger ones are equal only if all digits are.
const MAX_EXPONENT_DIGITS: usize = 9;

/// Returns true if the text is a JSON number.
#[must_use]
pub fn is_json_number(text: &str) -> bool {
    Parts::of(text).is_some()
}

/// Returns true if two JSON numbers have one value, however they are written: `1000`, `1e3`, and `1000.0`.
#[must_use]
pub fn is_same_number(a: &str, b: &str) -> bool {
    let value = |text| Parts::of(text).and_then(|parts| parts.value());
    a == b || value(a).zip(value(b)).is_some_and(|(a, b)| a == b)
}

/// Compares two JSON numbers by their values; `None` if either is no number, or has an exponent that is too long.
#[must_use]
pub fn compare_numbers(a: &str, b: &str) -> Option<Ordering> {
    let value = |text| Parts::of(text).and_then(|parts| parts.value());
    let (a, b) = (value(a)?, value(b)?);
    let sign = |(is_negative, digits, _): &Normal| match (digits.is_empty(), is_negative) {
        (true, _) => 0,
        (false, true) => -1,
        (false, false) => 1,
    };
    // The place of the first digit, then the digits.
    let size = |(_, digits, power): &Normal| (digits.len() as i64 + power, digits.clone());
    Some(match sign(&a).cmp(&sign(&b)) {
        Ordering::Equal if sign(&a) > 0 => size(&a).cmp(&size(&b)),
        Ordering::Equal if sign(&a) < 0 => size(&b).cmp(&size(&a)),
        unequal_or_zero => unequal_or_zero,
    })
}

/// A number in its parts.
struct Parts<'t> {
    is_negative: bool,
    whole: &'t str,
    fraction: &'t str,
    exponent: &'t str,
}

/// Sign, digits without zeros at either end, and the power of ten of the last digit.
type Normal = (bool, String, i64);

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Option<Self> {
        let (is_negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => {
                let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                (mantissa, is_digits(digits).then_some(exponent)?)
            }
            None => (rest, ""),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, is_digits(fraction).then_some(fraction)?),
            None => (mantissa, ""),
        };
        let is_whole = is_digits(whole) && (whole == "0" || !whole.starts_with('0'));
        is_whole.then_some(Self {
            is_negative,
            whole,
            fraction,
            exponent,
        })
    }

    /// Returns `None` if the exponent is too long.
    fn value(&self) -> Option<Normal> {
        if self.exponent.len() > MAX_EXPONENT_DIGITS {
            return None;
        }
        let written: i64 = match self.exponent {
            "" => 0,
            exponent => exponent.parse().ok()?,
        };
        let digits = format!("{}{}", self.whole, self.fraction);
        let kept = digits.trim_end_matches('0');
        let zeros = i64::try_from(digits.len() - kept.len()).ok()?;
        let fraction = i64::try_from(self.fraction.len()).ok()?;
        Some(match kept.trim_start_matches('0') {
            "" => (false, String::new(), 0),
            kept => (
                self.is_negative,
                kept.to_owned(),
                written - fraction + zeros,
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_compared_by_value() {
        for (a, b) in [
            ("1000", "1e3"),
            ("1000.0", "1E+3"),
            ("0", "-0.00e7"),
            ("0.125", "125e-3"),
            ("18446744073709551557", "1.8446744073709551557e19"),
            ("1e99999999999", "1e99999999999"),
        ] {
            assert!(is_same_number(a, b), "{a} {b}");
        }
        for (a, b) in [
            ("18446744073709551557", "18446744073709551558"),
            ("1", "-1"),
            ("0.1", "0.10000000000000001"),
            ("1", "x"),
            ("01", "1"),
            ("1e99999999999", "2e99999999999"),
        ] {
            assert!(!is_same_number(a, b), "{a} {b}");
        }
    }

    #[test]
    fn numbers_are_ordered_by_value() {
        for (a, b) in [("1.0", "1"), ("1.10", "1.1"), ("0", "-0e3"), ("1e2", "100")] {
            assert_eq!(compare_numbers(a, b), Some(Ordering::Equal), "{a} {b}");
        }
        for (low, high) in [
            ("9", "10"),
            ("-10", "-9"),
            ("-1", "0"),
            ("0", "1e-400"),
            ("0.99", "1"),
            ("9.9e1", "1e2"),
            ("18446744073709551557", "18446744073709551558"),
            ("1e308", "1e309"),
        ] {
            assert_eq!(compare_numbers(low, high), Some(Ordering::Less));
            assert_eq!(compare_numbers(high, low), Some(Ordering::Greater));
        }
        assert_eq!(compare_numbers("1", "x"), None);
        assert_eq!(compare_numbers("1e99999999999", "1"), None);
    }

    proptest! {
        /// Compares with the order of Rust's integers and fractions.
        #[test]
        fn the_order_is_that_of_the_values(a in any::<i64>(), b in any::<i64>(), places in 0..30_i32) {
            let compared = |a: &str, b: &str| compare_numbers(a, b);
            prop_assert_eq!(compared(&a.to_string(), &b.to_string()), Some(a.cmp(&b)));
            let (a_scaled, b_scaled) = (format!("{a}e-{places}"), format!("{b}e-{places}"));
            prop_assert_eq!(compared(&a_scaled, &b_scaled), Some(a.cmp(&b)));
        }

        /// A text is a number exactly if serde_json accepts it as one.
        #[test]
        fn a_number_is_what_json_has(text in "-?[0-9]{0,3}(\\.[0-9]{0,2})?([eE][+-]?[0-9]{0,2})?") {
            let expected = serde_json::from_str::<serde_json::Number>(&text).is_ok();
            prop_assert_eq!(is_json_number(&text), expected);
        }
    }
}
