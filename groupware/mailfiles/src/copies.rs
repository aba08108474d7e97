//! Numbers equal messages of one moment to distinguish them.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

/// Counts of messages with equal bytes and times, by a 128-bit hash.
#[derive(Debug, Default)]
pub struct Copies(HashMap<(u64, u64), u64>);

impl Copies {
    /// Returns the number of a message among equal ones, from 0.
    pub fn number(&mut self, bytes: &[u8], received_us: i64) -> u64 {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let key = (
            hasher.hash_one((bytes, received_us)),
            hasher.hash_one((received_us, bytes, 1)),
        );
        let count = self.0.entry(key).or_default();
        *count += 1;
        *count - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_messages_of_one_moment_have_numbers() {
        let mut copies = Copies::default();
        let mut number = |bytes: &[u8], at| copies.number(bytes, at);
        assert_eq!(
            (number(b"a", 1), number(b"a", 1), number(b"a", 1)),
            (0, 1, 2)
        );
        assert_eq!((number(b"b", 1), number(b"a", 2)), (0, 0));
    }
}
