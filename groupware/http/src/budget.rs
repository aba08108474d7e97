//! Bounds the memory that bodies of requests and responses take, all together.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Bodies up to this size have a budget of their own, so that large ones don't hold them up.
pub(crate) const SMALL_BYTES: usize = 64 << 10;
/// BodyBudget for small bodies of requests.
const SMALL_BUDGET_BYTES: usize = 64 << 20;
/// BodyBudget for large bodies of requests.
const LARGE_BUDGET_BYTES: usize = 256 << 20;
/// BodyBudget for large bodies of responses that clients have yet to receive. Small ones are bounded by
/// the number of connections.
pub(crate) const RESPONSE_BUDGET_BYTES: usize = 256 << 20;
/// What budgets are counted in.
const UNIT_BYTES: usize = 1 << 10;

/// The budgets that there are.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    small: Semaphore,
    large: Semaphore,
    responses: Arc<Semaphore>,
}

impl BodyBudget {
    /// `response_bytes` is the budget of large bodies of responses.
    pub(crate) fn new(response_bytes: usize) -> Self {
        Self {
            small: Semaphore::new(SMALL_BUDGET_BYTES / UNIT_BYTES),
            large: Semaphore::new(LARGE_BUDGET_BYTES / UNIT_BYTES),
            responses: Arc::new(Semaphore::new(response_bytes / UNIT_BYTES)),
        }
    }

    /// Waits for the budget of a request's body of up to so many bytes. That of a large one, which only
    /// those send who are known, is taken before any of it comes in; of a small one nothing is: it is
    /// taken as it comes in, so that who sends little holds little.
    pub(crate) async fn for_request(&self, bytes: usize) -> BodyPermit<'_> {
        let (budget, at_once) = match bytes <= SMALL_BYTES {
            true => (&self.small, 0),
            false => (&self.large, units(bytes.min(LARGE_BUDGET_BYTES))),
        };
        BodyPermit {
            budget,
            permit: budget.acquire_many(at_once).await.ok(),
        }
    }

    /// Has a response keep its budget until the last byte of its body is sent or given up; `None` if
    /// there is none.
    pub(crate) async fn for_response(&self, response: Response) -> Option<Response> {
        let size = response.body().size_hint().lower();
        if size <= SMALL_BYTES as u64 {
            return Some(response);
        }
        let bytes = usize::try_from(size).ok()?;
        let permit = Arc::clone(&self.responses)
            .try_acquire_many_owned(units(bytes))
            .ok()?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.ok()?.to_bytes();
        let held = Bytes::from_owner(BudgetedBytes {
            bytes,
            _permit: permit,
        });
        Some(Response::from_parts(parts, Body::from(held)))
    }
}

/// The budget that a request's body has so far, until this goes.
#[derive(Debug)]
pub(crate) struct BodyPermit<'a> {
    budget: &'a Semaphore,
    permit: Option<SemaphorePermit<'a>>,
}

impl BodyPermit<'_> {
    /// Waits until it covers so many bytes.
    pub(crate) async fn grow_to(&mut self, bytes: usize) {
        let held = self.permit.as_ref().map_or(0, SemaphorePermit::num_permits);
        let held = u32::try_from(held).unwrap_or(u32::MAX);
        let missing = units(bytes).saturating_sub(held);
        if missing == 0 {
            return;
        }
        // The budgets are never closed.
        if let Ok(more) = self.budget.acquire_many(missing).await {
            match &mut self.permit {
                Some(permit) => permit.merge(more),
                none => *none = Some(more),
            }
        }
    }
}

/// Counted up; more than fits never gets a permit.
fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

/// Bytes that give their budget back when the last reference to them goes, which is when hyper has
/// written them, not when it has taken them.
struct BudgetedBytes {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for BudgetedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(future)
    }

    #[test]
    fn large_responses_keep_their_budget_as_long_as_their_bytes_live() {
        block_on(async {
            let budget = BodyBudget::new(200 << 10);
            let response = || Response::new(Body::from(vec![7; 100 << 10]));
            let first = budget.for_response(response()).await.unwrap();
            let second = budget.for_response(response()).await.unwrap();
            assert!(budget.for_response(response()).await.is_none());
            assert_eq!(second.body().size_hint().exact(), Some(100 << 10));
            let bytes = second.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(bytes, vec![7; 100 << 10]);
            let part = bytes.slice(5..6);
            drop(bytes);
            assert!(budget.for_response(response()).await.is_none());
            drop((part, first));
            assert!(budget.for_response(response()).await.is_some());
            assert_eq!(budget.responses.available_permits(), 200);
            // Small ones need none.
            let _all = budget.responses.acquire_many(200).await.unwrap();
            let small = Response::new(Body::from(vec![7; SMALL_BYTES]));
            assert!(budget.for_response(small).await.is_some());
        });
    }

    #[test]
    fn large_requests_leave_the_budget_of_small_ones() {
        block_on(async {
            let budget = BodyBudget::new(0);
            let all = budget.for_request(usize::MAX).await;
            assert_eq!(budget.large.available_permits(), 0);
            let mut small = budget.for_request(1).await;
            small.grow_to(1).await;
            let taken = || SMALL_BUDGET_BYTES / UNIT_BYTES - budget.small.available_permits();
            assert_eq!(taken(), 1);
            drop((all, small));
            assert_eq!(taken(), 0);
        });
    }

    #[test]
    fn small_requests_take_what_has_come_in() {
        block_on(async {
            let budget = BodyBudget::new(0);
            let taken = || SMALL_BUDGET_BYTES / UNIT_BYTES - budget.small.available_permits();
            let mut small = budget.for_request(SMALL_BYTES).await;
            for (bytes, units) in [(1, 1), (2, 1), (1024, 1), (1025, 2), (SMALL_BYTES, 64)] {
                small.grow_to(bytes).await;
                assert_eq!(taken(), units, "{bytes}");
            }
        });
    }
}
