//! Bounds the memory that bodies of requests take, all together and for each source.

use groupware_net::{Gauge, Permit, Pool};
use groupware_runtime::Caller;

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

    /// Waits for the budget of a request's body of up to so many bytes, before any of it is read: a request that
    /// waits holds nothing. Where others wait, the connection of the source that holds most is closed.
    pub(crate) async fn for_request(&self, caller: &Caller, bytes: usize) -> Permit {
        let pool = match bytes <= SMALL_BYTES {
            true => &self.small,
            false => &self.large,
        };
        pool.take_or_yield(&caller.source(), units(bytes), caller.ticket())
            .await
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
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn large_requests_leave_the_budget_of_small_ones() {
        let budget = BodyBudget::new();
        let [ada, stranger] = [1, 2].map(|last| Caller::at(Ipv4Addr::new(192, 0, 2, last).into()));
        let all = budget.for_request(&ada, usize::MAX).await;
        let share = LARGE_BUDGET_BYTES[0] / UNIT_BYTES / 4;
        assert_eq!(
            LARGE_BUDGET_BYTES[0] / UNIT_BYTES - budget.large.free(),
            share
        );
        let taken = || SMALL_BUDGET_BYTES[0] / UNIT_BYTES - budget.small.free();
        let small = budget.for_request(&stranger, 1025).await;
        assert_eq!(taken(), 2);
        drop((all, small));
        assert_eq!(taken(), 0);
    }

    /// Many who send slowly from one address: those that have room go on, and the others wait with nothing.
    #[tokio::test]
    async fn a_body_has_all_its_budget_before_it_is_read() {
        let budget = BodyBudget::new();
        let caller = Caller::at(Ipv4Addr::new(192, 0, 2, 1).into());
        let most = budget.small.most(&caller.source());
        let mut held = Vec::new();
        for _ in 0..most / units(SMALL_BYTES) {
            held.push(budget.for_request(&caller, SMALL_BYTES).await);
        }
        let mut next = Box::pin(budget.for_request(&caller, SMALL_BYTES));
        tokio::select! {
            biased;
            _ = next.as_mut() => panic!("its share is used up"),
            () = std::future::ready(()) => {}
        }
        held.pop();
        assert_eq!(next.await.units(), units(SMALL_BYTES));
    }
}
