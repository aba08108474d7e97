//! The identifier of content: its BLAKE3 hash.

use std::fmt;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The BLAKE3 hash of some content, 256 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Creates a hash from its bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Computes the hash of content.
    pub fn of(content: &[u8]) -> Self {
        Self(*blake3::hash(content).as_bytes())
    }

    /// Parses 64 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit| HEX.iter().position(|known| *known == digit);
            *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
        }
        Some(Self(bytes))
    }

    /// Returns the bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            for digit in [byte >> 4, byte & 15] {
                write!(f, "{}", char::from(HEX[usize::from(digit)]))?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentHash({self})")
    }
}

impl From<blake3::Hash> for ContentHash {
    fn from(hash: blake3::Hash) -> Self {
        Self(*hash.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_comes_back(bytes: [u8; 32]) {
            let hash = ContentHash::from_bytes(bytes);
            prop_assert_eq!(ContentHash::parse(&hash.to_string()), Some(hash));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = ContentHash::parse(&text);
        }
    }

    #[test]
    fn only_whole_hashes_are_read() {
        let text = ContentHash::of(b"x").to_string();
        assert!(ContentHash::parse(&text[1..]).is_none());
        assert!(ContentHash::parse(&text.to_uppercase()).is_none());
        assert!(ContentHash::parse(&format!("{}/", &text[1..])).is_none());
    }
}
