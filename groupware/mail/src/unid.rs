//! The id of a message within its account, which includes its time of arrival.

use std::fmt;

/// The id of a message: 32 hexadecimal digits. The first half counts time downwards, so that ids
/// sort from the newest message to the oldest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unid(u128);

impl Unid {
    /// Digits of the written form.
    pub const DIGITS: usize = 32;

    /// The id of a message that arrived at a time, in microseconds since 1970. Random bits
    /// distinguish messages of the same time.
    pub fn new(received_us: i64, random: u128) -> Self {
        let downwards = u128::from(!received_us.max(0).cast_unsigned());
        Self(downwards << 64 | (random ^ random >> 64) & u128::from(u64::MAX))
    }

    /// Parses the written form, case-insensitively.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = text.len() == Self::DIGITS && text.bytes().all(|b| b.is_ascii_hexdigit());
        is_hex.then(|| u128::from_str_radix(text, 16).ok().map(Self))?
    }

    pub(crate) fn bits(self) -> u128 {
        self.0
    }

    pub(crate) fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// The time of arrival, microseconds since 1970.
    pub fn received_us(self) -> i64 {
        let downwards = u64::try_from(self.0 >> 64).unwrap_or_default();
        i64::try_from(!downwards).unwrap_or_default()
    }
}

impl fmt::Display for Unid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032X}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_from_the_newest_and_come_back() {
        let times = [0, 1, 1_767_225_600_000_000, i64::MAX];
        let names: Vec<_> = times.iter().map(|at| Unid::new(*at, 7 << 90 | 3)).collect();
        assert!(names.is_sorted_by(|a, b| a.to_string() > b.to_string()));
        for (name, at) in names.iter().zip(times) {
            assert_eq!(name.received_us(), at);
            assert_eq!(Unid::parse(&name.to_string()), Some(*name));
            assert_eq!(Unid::parse(&name.to_string().to_lowercase()), Some(*name));
        }
        for bad in ["", "+0000000000000000000000000000000", &"0".repeat(33)] {
            assert_eq!(Unid::parse(bad), None, "{bad}");
        }
    }
}
