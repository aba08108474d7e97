//! The name of an object: a piece of content that lies in an object store.

use std::fmt;

/// 128 random bits, of which no two puts have the same. Equal content that is put twice is two objects: what
/// removes the one can't touch the other, however late it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(u128);

/// Where content was put, so that a change may refer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// In a file, which a pin keeps there.
    InFile,
    /// An object that is referred to by its record has it.
    Known,
    /// This new object has it, of which a record says that it was begun.
    New(ObjectId),
}

impl ObjectId {
    /// The name with these bits.
    pub fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Its bits.
    pub fn bits(self) -> u128 {
        self.0
    }

    /// Reads 32 lower-case hexadecimal digits.
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
