//! The identifier of an object: a content in an object store.

use std::fmt;

/// 128 random bits, unique to each put. Equal content put twice gives two objects: removing one never affects the
/// other, however late the removal takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(u128);

/// The place of stored content, for a change that refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// In a file, which a pin preserves.
    InFile,
    /// In an existing object, which has a record.
    Known,
    /// In this new object, whose put is recorded as begun.
    New(ObjectId),
}

impl ObjectId {
    /// Creates an identifier from its bits.
    pub fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Returns the bits of the identifier.
    pub fn bits(self) -> u128 {
        self.0
    }

    /// Parses 32 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_name = text.len() == 32 && text.bytes().all(is_digit);
        let bits = is_name.then(|| u128::from_str_radix(text, 16).ok())?;
        bits.map(Self)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_comes_back(bits: u128) {
            let id = ObjectId::from_bits(bits);
            prop_assert_eq!(ObjectId::parse(&id.to_string()), Some(id));
        }

        #[test]
        fn what_is_read_is_written_so(text in "[0-9a-fA-F+]{30,33}") {
            if let Some(id) = ObjectId::parse(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
