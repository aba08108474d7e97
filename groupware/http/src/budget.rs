//! Bounds the memory that bodies of requests take, all together and for each source.

use groupware_net::{Gauge, Permit, Pool, Source};

/// Bodies up to this size have a budget of their own, so that large ones don't hold them up.
pub(crate) const SMALL_BYTES: usize = 64 << 10;
/// Budget for small bodies of requests, and what there is of it for those who are trusted.
const SMALL_BUDGET_BYTES: [usize; 2] = [32 << 20, 64 << 20];
/// Budget for large bodies of requests, of which a share holds the largest, and the same of those who are
/// trusted.
const LARGE_BUDGET_BYTES: [usize; 2] = [96 << 20, 256 << 20];
/// What budgets are counted in.
const UNIT_BYTES: usize = 1 << 10;

/// The budgets that there are.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    small: Pool,
    large: Pool,
}

impl BodyBudget {
    pub(crate) fn new() -> Self {
        Self {
            small: pool(SMALL_BUDGET_BYTES),
            large: pool(LARGE_BUDGET_BYTES),
        }
    }

    /// Look into the budgets of small bodies and of large ones.
    pub(crate) fn gauges(&self) -> [Gauge; 2] {
        [self.small.gauge(), self.large.gauge()]
    }

    /// Waits for the budget of a request's body of up to so many bytes. That of a large one, which only
    /// those send who are known, is taken before any of it comes in; of a small one nothing is: it is
    /// taken as it comes in, so that who sends little holds little.
    pub(crate) async fn for_request(&self, source: &Source, bytes: usize) -> BodyPermit {
        BodyPermit(match bytes <= SMALL_BYTES {
            true => self.small.none(source),
            false => self.large.take(source, units(bytes)).await,
        })
    }
}

/// The budget that a request's body has so far, until this goes.
#[derive(Debug)]
pub(crate) struct BodyPermit(Permit);

impl BodyPermit {
    /// Waits until it covers so many bytes. A large one has all that its source may have from the start.
    pub(crate) async fn grow_to(&mut self, bytes: usize) {
        if bytes > SMALL_BYTES {
            return;
        }
        let missing = units(bytes).saturating_sub(self.0.units() as usize);
        if missing > 0 {
            self.0
                .grow(u32::try_from(missing).unwrap_or(u32::MAX))
                .await;
        }
    }
}

/// A pool of so many bytes, and of so many for those who are trusted.
pub(crate) fn pool([bytes, trusted_bytes]: [usize; 2]) -> Pool {
    Pool::new(bytes / UNIT_BYTES).with_trusted(trusted_bytes / UNIT_BYTES)
}

/// Counted up.
pub(crate) fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRANGER: Source = Source::Client(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    #[tokio::test]
    async fn large_requests_leave_the_budget_of_small_ones() {
        let budget = BodyBudget::new();
        let all = budget
            .for_request(&Source::User("ada".into()), usize::MAX)
            .await;
        let share = LARGE_BUDGET_BYTES[0] / UNIT_BYTES / 4;
        assert_eq!(
            LARGE_BUDGET_BYTES[0] / UNIT_BYTES - budget.large.free(),
            share
        );
        let mut small = budget.for_request(&STRANGER, 1).await;
        small.grow_to(1).await;
        let taken = || SMALL_BUDGET_BYTES[0] / UNIT_BYTES - budget.small.free();
        assert_eq!(taken(), 1);
        drop((all, small));
        assert_eq!(taken(), 0);
    }

    #[tokio::test]
    async fn small_requests_take_what_has_come_in() {
        let budget = BodyBudget::new();
        let taken = || SMALL_BUDGET_BYTES[0] / UNIT_BYTES - budget.small.free();
        let mut small = budget.for_request(&STRANGER, SMALL_BYTES).await;
        for (bytes, units) in [(1, 1), (2, 1), (1024, 1), (1025, 2), (SMALL_BYTES, 64)] {
            small.grow_to(bytes).await;
            assert_eq!(taken(), units, "{bytes}");
        }
    }
}
