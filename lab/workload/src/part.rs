//! The division of users among generators: by the residues of their numbers, so that no part of the load depends on the
//! number of generators.

use serde::{Deserialize, Serialize};

/// Most residues over all parts: enough for any number of generators and any weights.
pub const MAX_RESIDUES: u32 = 10_000;

/// One generator's part of the users: those whose number modulo `of` is one of its residues; likewise of arriving
/// sessions. The part with residue 0 sends the probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Ascending, each below `of`; at least one.
    residues: Vec<u32>,
    /// At least one.
    of: u32,
}

impl Part {
    /// All users.
    #[must_use]
    pub fn whole() -> Self {
        Self {
            residues: vec![0],
            of: 1,
        }
    }

    /// A part for each weight, in proportion. Residues are assigned in turn, so that the parts of any range of users
    /// are in proportion, too: sessions arrive one after the other.
    ///
    /// `None` without weights, for a weight of 0, and for weights whose sum exceeds [`MAX_RESIDUES`].
    #[must_use]
    pub fn by_weights(weights: &[u32]) -> Option<Vec<Self>> {
        let sum: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        let of = u32::try_from(sum).ok().filter(|of| *of <= MAX_RESIDUES)?;
        if weights.is_empty() || weights.contains(&0) {
            return None;
        }
        let empty = Self {
            residues: Vec::new(),
            of,
        };
        let mut parts = vec![empty; weights.len()];
        // Each earns its weight in every turn; the one with the highest balance is next, and pays a whole round.
        let mut earned = vec![0i64; weights.len()];
        for residue in 0..of {
            let mut next = 0;
            for (at, weight) in weights.iter().enumerate() {
                earned[at] += i64::from(*weight);
                if earned[at] > earned[next] {
                    next = at;
                }
            }
            earned[next] -= i64::from(of);
            parts[next].residues.push(residue);
        }
        Some(parts)
    }

    /// Returns true if its invariants hold: a received part may violate them.
    pub fn is_sound(&self) -> bool {
        let rising = self.residues.windows(2).all(|pair| pair[0] < pair[1]);
        let last = self.residues.last();
        rising && self.of <= MAX_RESIDUES && last.is_some_and(|last| *last < self.of)
    }

    /// The index of a user, or of a session, within this part; `None` if it belongs to another part.
    pub fn place(&self, number: u64) -> Option<u64> {
        let of = u64::from(self.of);
        let residue = (number % of) as u32;
        let within = self.residues.binary_search(&residue).ok()?;
        Some(number / of * self.residues.len() as u64 + within as u64)
    }

    /// The number of the user, or session, at this index of the part.
    fn number(&self, place: u64) -> u64 {
        let own = self.residues.len() as u64;
        let residue = self.residues[(place % own) as usize];
        place / own * u64::from(self.of) + u64::from(residue)
    }

    /// Its users, of `all`, in order.
    pub fn users(&self, all: u32) -> impl Iterator<Item = u32> + Clone + '_ {
        let rounds = (0..all).step_by(self.of as usize);
        let users = rounds.flat_map(move |first| {
            let residues = self.residues.iter();
            residues.map(move |residue| first.saturating_add(*residue))
        });
        users.take_while(move |user| *user < all)
    }

    /// Its share of a number for all, rounded up.
    pub fn share(&self, all: u32) -> u32 {
        let own = u64::from(all) * self.residues.len() as u64;
        own.div_ceil(u64::from(self.of.max(1))) as u32
    }
}

/// One worker's part of its generator's part: every nth user or session.
#[derive(Debug, Clone)]
pub struct Slice {
    part: Part,
    worker: u64,
    workers: u64,
}

impl Slice {
    /// The slice of worker `worker` of `workers`.
    pub fn new(part: &Part, worker: usize, workers: usize) -> Self {
        Self {
            part: part.clone(),
            worker: worker as u64,
            workers: workers.max(1) as u64,
        }
    }

    /// Returns true if a user, or a session, belongs to this worker.
    pub fn has(&self, number: u64) -> bool {
        let place = self.part.place(number);
        place.is_some_and(|place| place % self.workers == self.worker)
    }

    /// The number of its nth item, from 0: no two workers, of any generators, have the same.
    pub fn number(&self, nth: u64) -> u64 {
        self.part.number(nth * self.workers + self.worker)
    }

    /// Its users, of `all`, in order.
    pub fn users(&self, all: u32) -> impl Iterator<Item = u32> + Clone + '_ {
        let mine = self.part.users(all).skip(self.worker as usize);
        mine.step_by(self.workers as usize)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn residues(weights: &[u32]) -> Vec<Vec<u32>> {
        let parts = Part::by_weights(weights).unwrap();
        parts.into_iter().map(|part| part.residues).collect()
    }

    #[test]
    fn residues_are_dealt_out_in_turn() {
        assert_eq!(residues(&[1, 1, 1]), [[0], [1], [2]]);
        assert_eq!(residues(&[2, 1]), [vec![0, 2], vec![1]]);
        assert_eq!(residues(&[1, 3]), [vec![1], vec![0, 2, 3]]);
        assert_eq!(residues(&[1]), [[0]]);
    }

    #[test]
    fn weights_that_make_no_parts_are_refused() {
        for weights in [&[][..], &[1, 0], &[MAX_RESIDUES, 1], &[u32::MAX, u32::MAX]] {
            assert_eq!(Part::by_weights(weights), None);
        }
    }

    #[test]
    fn a_part_that_lies_is_seen() {
        let sound = |residues: &[u32], of| {
            let residues = residues.to_vec();
            Part { residues, of }.is_sound()
        };
        assert!(sound(&[0], 1) && sound(&[0, 2], 3));
        assert!(!sound(&[], 1) && !sound(&[1], 1) && !sound(&[2, 0], 3));
        assert!(!sound(&[0, 0], 3) && !sound(&[0], 0) && !sound(&[0], MAX_RESIDUES + 1));
    }

    #[test]
    fn a_share_is_rounded_up() {
        let parts = Part::by_weights(&[2, 1]).unwrap();
        assert_eq!((parts[0].share(64), parts[1].share(64)), (43, 22));
        assert_eq!(Part::whole().share(64), 64);
    }

    proptest! {
        #[test]
        fn each_user_is_one_workers_and_parts_are_as_their_weights(
            weights in proptest::collection::vec(1u32..8, 1..6),
            workers in 1usize..4,
            all in 1u32..500,
        ) {
            let parts = Part::by_weights(&weights).unwrap();
            let sum: u32 = weights.iter().sum();
            let mut seen = Vec::new();
            for (part, weight) in parts.iter().zip(&weights) {
                prop_assert!(part.is_sound());
                let of_part: Vec<u32> = part.users(all).collect();
                // Always within one user of the weight's exact part.
                let due = f64::from(all * weight) / f64::from(sum);
                prop_assert!((of_part.len() as f64 - due).abs() < weights.len() as f64);
                for (place, user) in of_part.iter().enumerate() {
                    prop_assert_eq!(part.place(u64::from(*user)), Some(place as u64));
                }
                for worker in 0..workers {
                    let slice = Slice::new(part, worker, workers);
                    let users: Vec<u32> = slice.users(all).collect();
                    let has: Vec<u32> = (0..all).filter(|user| slice.has(u64::from(*user))).collect();
                    prop_assert_eq!(&users, &has);
                    for (nth, user) in (0..).zip(&users) {
                        prop_assert_eq!(slice.number(nth), u64::from(*user));
                    }
                    seen.extend(users);
                }
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..all).collect::<Vec<_>>());
        }
    }
}
