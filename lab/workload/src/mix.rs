//! Populations: users of several kinds at the same time, each with a workload of its own. A user's number determines
//! its population, so that a larger load moves no user.

use crate::timing::mix;

/// Most populations of a load.
pub const MAX_POPULATIONS: usize = 20;

/// The unique name of a population's step; `population` is empty if there is only one.
#[must_use]
pub fn step_of(population: &str, step: &str) -> String {
    match population {
        "" => step.to_owned(),
        name => format!("{name}/{step}"),
    }
}

/// The seed of all draws of a population: from its name and the study's seed, whatever other populations exist.
#[must_use]
pub fn seed_of(seed: u64, population: &str) -> u64 {
    let bytes = population.bytes();
    bytes.fold(mix(seed), |seed, byte| mix(seed ^ u64::from(byte)))
}

/// Divides `all` among shares, one by one: a share never shrinks as `all` grows, and is always within one of its exact
/// part. No share is 0, and there is at least one.
#[must_use]
pub fn deal(all: u32, shares: &[u32]) -> Vec<u32> {
    let sum: i64 = shares.iter().map(|share| i64::from(*share)).sum();
    let mut counts = vec![0; shares.len()];
    if sum == 0 {
        return counts;
    }
    // Whole rounds need no division.
    let rounds = i64::from(all) / sum;
    for (count, share) in counts.iter_mut().zip(shares) {
        *count = (rounds * i64::from(*share)) as u32;
    }
    // Each earns its share in every turn; the one with the highest balance is next, and pays a whole round.
    let mut earned = vec![0i64; shares.len()];
    for _ in 0..i64::from(all) % sum {
        let mut next = 0;
        for (at, share) in shares.iter().enumerate() {
            earned[at] += i64::from(*share);
            if earned[at] > earned[next] {
                next = at;
            }
        }
        earned[next] -= sum;
        counts[next] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shares_are_dealt_out_one_by_one() {
        assert_eq!(deal(10, &[8, 2]), [8, 2]);
        assert_eq!(deal(3, &[8, 2]), [2, 1]);
        assert_eq!(deal(1, &[1, 1]), [1, 0]);
        assert_eq!(deal(0, &[1, 1]), [0, 0]);
    }

    #[test]
    fn draws_are_of_the_seed_and_the_name() {
        let seeds = [
            seed_of(1, "a"),
            seed_of(1, "b"),
            seed_of(2, "a"),
            seed_of(1, "ab"),
        ];
        for (at, seed) in seeds.iter().enumerate() {
            assert!(!seeds[..at].contains(seed));
        }
    }

    proptest! {
        #[test]
        fn more_users_are_never_fewer_of_a_share(
            shares in proptest::collection::vec(1u32..100, 1..6),
            all in 0u32..2_000,
        ) {
            let (now, next) = (deal(all, &shares), deal(all + 1, &shares));
            prop_assert_eq!(now.iter().sum::<u32>(), all);
            prop_assert_eq!(next.iter().sum::<u32>(), all + 1);
            let sum: u32 = shares.iter().sum();
            for ((now, next), share) in now.iter().zip(&next).zip(&shares) {
                prop_assert!(now <= next);
                let due = f64::from(all) * f64::from(*share) / f64::from(sum);
                prop_assert!((f64::from(*now) - due).abs() < shares.len() as f64, "{now} {due}");
            }
        }
    }
}
