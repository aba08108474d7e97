//! Bounds the memory of request bodies, in total and per source.

use groupware_net::{FairSemaphore, Gauge, Permit};
use groupware_runtime::Caller;

/// Bodies up to this size have a separate budget, so that large ones don't delay them.
pub(crate) const SMALL_BYTES: usize = 64 << 10;
/// Budget for small bodies of requests; the second value is for trusted programs.
const SMALL_BUDGET_BYTES: [usize; 2] = [32 << 20, 64 << 20];
/// Budget for large bodies of requests, of which a share holds the largest; the second value is for
/// trusted programs.
const LARGE_BUDGET_BYTES: [usize; 2] = [96 << 20, 256 << 20];
/// Budget that a small body takes before it is read; most need no more.
const FIRST_BYTES: usize = 4 << 10;
/// Bytes of a unit.
const UNIT_BYTES: usize = 1 << 10;

/// The budgets of small and large bodies.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    small: FairSemaphore,
    large: FairSemaphore,
}

impl BodyBudget {
    pub(crate) fn new() -> Self {
        Self {
            small: pool(SMALL_BUDGET_BYTES),
            large: pool(LARGE_BUDGET_BYTES),
        }
    }

    /// Gauges of the budgets of small bodies and of large ones.
    pub(crate) fn gauges(&self) -> [Gauge; 2] {
        [self.small.gauge(), self.large.gauge()]
    }

    /// Waits for the budget of a request body of up to so many bytes: all of a large one's, the first
    /// unit of a small one's. If others wait, the connection of the source that holds most is closed.
    pub(crate) async fn for_request(&self, caller: &Caller, bytes: usize) -> BodyPermit {
        let (pool, first) = match bytes <= SMALL_BYTES {
            true => (&self.small, bytes.min(FIRST_BYTES)),
            false => (&self.large, bytes),
        };
        let source = caller.source();
        let permit = pool.take_or_yield(&source, units(first), caller.ticket());
        let permit = permit.await;
        let whole = match bytes <= SMALL_BYTES {
            true => units(bytes),
            false => permit.units(),
        };
        BodyPermit { permit, whole }
    }
}

/// The budget that a request's body has so far; dropping it releases the budget.
#[derive(Debug)]
pub(crate) struct BodyPermit {
    permit: Permit,
    /// The units of the whole body.
    whole: usize,
}

impl BodyPermit {
    /// Waits until the permit covers so many bytes. A body beyond the first units takes all that it
    /// needs at once: while it waits, it holds so little that it delays no other.
    pub(crate) async fn grow_to(&mut self, bytes: usize) {
        let held = self.permit.units();
        if units(bytes) > held && held < self.whole {
            self.permit.grow(self.whole - held).await;
        }
    }
}

/// Returns a pool of so many bytes, with separate bytes for trusted programs.
pub(crate) fn pool([bytes, trusted_bytes]: [usize; 2]) -> FairSemaphore {
    FairSemaphore::new(bytes / UNIT_BYTES).with_trusted(trusted_bytes / UNIT_BYTES)
}

/// The units of so many bytes, rounded up.
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
        let mut larger = budget.for_request(&stranger, 10_000).await;
        for (bytes, units) in [(1, 6), (4096, 6), (4097, 12), (10_000, 12)] {
            larger.grow_to(bytes).await;
            assert_eq!(taken(), units, "{bytes}");
        }
        drop(larger);
        drop((all, small));
        assert_eq!(taken(), 0);
    }

    /// Many slow clients at one address: bodies with budget continue, and the others wait with little.
    #[tokio::test]
    async fn bodies_that_wait_hold_up_none_that_go_on() {
        let budget = BodyBudget::new();
        let caller = Caller::at(Ipv4Addr::new(192, 0, 2, 1).into());
        let mut bodies = Vec::new();
        for _ in 0..256 {
            bodies.push(budget.for_request(&caller, SMALL_BYTES).await);
        }
        let mut rounds = 0;
        while !bodies.is_empty() {
            let mut growing: Vec<_> = bodies
                .iter_mut()
                .map(|body| Box::pin(body.grow_to(SMALL_BYTES)))
                .collect();
            let mut done = Vec::new();
            for body in &mut growing {
                tokio::select! {
                    biased;
                    () = body.as_mut() => done.push(true),
                    () = std::future::ready(()) => done.push(false),
                }
            }
            drop(growing);
            let mut done = done.into_iter();
            let before = bodies.len();
            bodies.retain(|_| done.next() == Some(false));
            assert!(bodies.len() < before, "{before} block each other");
            rounds += 1;
        }
        assert!(rounds < 5, "{rounds}");
    }
}
