//! New identifiers for one request, from given random bits.

/// A source of identifiers, seeded with 128 random bits by the caller. The same seed gives the same identifiers, so a
/// repeated decision is identical.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids(u128);

impl Ids {
    /// Odd, so that all 2^128 steps differ; 2^128 divided by the golden ratio, so that
    /// neighbours share no visible prefix.
    const STEP: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;

    /// Creates a source with this seed.
    pub fn from_random(bits: u128) -> Self {
        Self(bits)
    }

    /// Returns the next identifier.
    pub fn take(&mut self) -> u128 {
        let id = self.0;
        self.0 = self.0.wrapping_add(Self::STEP);
        id
    }

    /// Returns the identifier that follows `number` others.
    pub fn nth(self, number: usize) -> u128 {
        self.0.wrapping_add(Self::STEP.wrapping_mul(number as u128))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_new_and_repeatable() {
        let start = Ids::from_random(u128::MAX - 7);
        let mut ids = start;
        let taken: Vec<u128> = (0..100).map(|_| ids.take()).collect();
        let again: Vec<u128> = (0..100).map(|number| start.nth(number)).collect();
        assert_eq!(taken, again);
        let distinct: std::collections::BTreeSet<_> = taken.iter().collect();
        assert_eq!(distinct.len(), 100);
    }
}
