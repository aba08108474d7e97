//! The ids of registrations: 128 bits, in the written forms of the two protocols.

use std::fmt;

/// The id of a registration: a UUID in a record's URI, a key of 32 hexadecimal digits in XML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub(crate) u128);

impl Id {
    /// Returns an id of random bits.
    pub fn from_random(bits: u128) -> Self {
        Self(bits)
    }

    /// Derives an id from parts: the same parts give the same id.
    pub(crate) fn of_parts(parts: &[&str]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Self::from_bytes(first_16(hasher.finalize().as_bytes()))
    }

    /// Returns the id of a key of the XML protocol. Its first version used a service's access point
    /// as key, which is still accepted.
    pub(crate) fn of_key(key: &str) -> Self {
        Self::parse(key).unwrap_or_else(|| Self::of_parts(&[key]))
    }

    /// Parses both written forms: 32 hexadecimal digits, with hyphens anywhere.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bits = 0_u128;
        let mut digits = 0;
        for letter in text.bytes().filter(|letter| *letter != b'-') {
            let digit = char::from(letter).to_digit(16)?;
            bits = (bits << 4) | u128::from(digit);
            digits += 1;
            if digits > 32 {
                return None;
            }
        }
        (digits == 32 && text.len() <= 36).then_some(Self(bits))
    }

    /// The key of the XML protocol.
    pub fn key(self) -> String {
        format!("{:032x}", self.0)
    }

    pub(crate) fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }
}

/// The first half of a hash: 128 bits are enough to distinguish records.
pub(crate) fn first_16(hash: &[u8; 32]) -> [u8; 16] {
    std::array::from_fn(|i| hash[i])
}

/// The form of a UUID.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key();
        let part = |from: usize, to: usize| key.get(from..to).unwrap_or_default();
        write!(
            f,
            "{}-{}-{}-{}-{}",
            part(0, 8),
            part(8, 12),
            part(12, 16),
            part(16, 20),
            part(20, 32)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let id = Id(0x0123_4567_89ab_cdef_0011_2233_4455_6677);
        assert_eq!(id.to_string(), "01234567-89ab-cdef-0011-223344556677");
        assert_eq!(Id::parse(&id.to_string()), Some(id));
        assert_eq!(Id::parse(&id.key()), Some(id));
        assert_eq!(Id::parse(&id.key().to_uppercase()), Some(id));
        let long = "0".repeat(33);
        for wrong in ["", "0", "x", &long, &"-".repeat(36), &id.key()[1..]] {
            assert_eq!(Id::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(Id::of_parts(&["ab", "c"]), Id::of_parts(&["a", "bc"]));
        assert_eq!(Id::of_parts(&["ab", "c"]), Id::of_parts(&["ab", "c"]));
    }
}
