//! Caches results for repeated texts, within a bound.

use std::collections::HashMap;

/// Most cached texts.
const MAX_KNOWN: usize = 10_000;
/// Longest cached text.
const MAX_TEXT: usize = 200;

/// Results by text.
#[derive(Debug)]
pub(super) struct Known<V>(HashMap<Box<[u8]>, V>);

impl<V> Default for Known<V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<V: Clone> Known<V> {
    /// The result for a text, computed if it isn't cached.
    pub(super) fn get(&mut self, text: &[u8], find: impl FnOnce() -> V) -> V {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let found = find();
        // If most texts occur once, evicting for each would cost more than it saves.
        if text.len() <= MAX_TEXT && self.0.len() < MAX_KNOWN {
            self.0.insert(text.into(), found.clone());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found_out_once_and_their_number_is_bounded() {
        let mut known = Known::default();
        assert_eq!(known.get(b"a", || 1), 1);
        assert_eq!(known.get(b"a", || 2), 1);
        let long = [b'x'; MAX_TEXT + 1];
        assert_eq!((known.get(&long, || 3), known.get(&long, || 4)), (3, 4));
        for text in 0..2 * MAX_KNOWN {
            known.get(text.to_string().as_bytes(), || 0);
            assert!(known.0.len() <= MAX_KNOWN);
        }
    }
}
