//! Sizes with shares: `500 B 10%, 2 KB 80%, 10 MB 10%`, drawn so that the shares are exact.
//!
//! With independent draws one trial might have no 10 MB mail and the next one three: the rarest size would be the
//! noise. Here all draws of a block are numbered, those of one round (each user's k-th draw) consecutively. Draw n is
//! the size at the fraction {s + nφ} of all sizes, φ being the golden ratio: Kronecker's sequence, whose share in any
//! stretch is off by the order of log N ÷ N, compared with 1 ÷ √N at random (Niederreiter, *Random Number Generation
//! and Quasi-Monte Carlo Methods*, 1992, section 3.1). The first user of a round is random, lest one user has all large
//! mails.

use lab_filters::size;

use crate::scope::UserScope;

/// Maximum size.
const MAX_BYTES: u64 = crate::render_error::MAX_RENDERED_BYTES as u64;
/// Sizes and the end of each one's share, the last at 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Profile(Vec<(u64, f64)>);

impl Profile {
    /// Parses `size share%, …`; the error is a sentence.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let size = |text: &str| size(text, MAX_BYTES).map_err(|error| error.to_string());
        lab_filters::shares(text, "size", size).map(Self)
    }

    /// Draws the next size of a user.
    pub(super) fn draw(&self, scope: &mut UserScope) -> u64 {
        self.at(scope.next_stratum())
    }

    fn at(&self, place: f64) -> u64 {
        lab_filters::share_at(&self.0, place).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::stratum;

    #[test]
    fn sizes_and_shares_are_read() {
        let profile = Profile::parse("500 B 10%, 2 KB: 80 %, 10 MB 10%").unwrap();
        let sizes: Vec<u64> = profile.0.iter().map(|(size, _)| *size).collect();
        assert_eq!(sizes, [500, 2_000, 10_000_000]);
        assert_eq!(profile.at(0.05), 500);
        assert_eq!(profile.at(0.5), 2_000);
        assert_eq!(profile.at(0.95), 10_000_000);
        for wrong in [
            "",
            "500 B",
            "500 B 10",
            "500 B 10%",
            "10%",
            "500 parsecs 100%",
            "1 GB 100%",
            "1 B 60%, 2 B 60%",
            "1 B -5%, 2 B 105%",
        ] {
            assert!(Profile::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// 30 users with 7 draws each: 1% of 210 draws is always two; at random it is 0 to 6.
    #[test]
    fn a_rare_size_is_as_rare_as_it_says() {
        let profile = Profile::parse("1 KB 99%, 10 MB 1%").unwrap();
        for block in 0..200 {
            let mut large = 0;
            for user in 0..30 {
                for draw in 0..7 {
                    let place = stratum(1, block, (user, 30), draw);
                    large += u32::from(profile.at(place) > 1000);
                }
            }
            assert!((1..=4).contains(&large), "{large} of 210 in block {block}");
        }
    }
}
