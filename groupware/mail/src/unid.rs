//! The name of a message within its mailbox, which also says when it came.

use std::fmt;

/// Names a message: 32 hexadecimal digits, of which the first half counts time downwards, so that
/// names in order are messages from the newest to the oldest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unid(u128);

impl Unid {
    /// Digits of the written form.
    pub const DIGITS: usize = 32;

    /// The name of a message that came at a moment, microseconds since 1970, told apart from
    /// others of that moment by random bits.
    pub fn new(received_us: i64, random: u128) -> Self {
        let downwards = u128::from(!received_us.max(0).cast_unsigned());
        Self(downwards << 64 | (random ^ random >> 64) & u128::from(u64::MAX))
    }

    /// Reads the written form, in whatever case.
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

    /// When the message came, microseconds since 1970.
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
