//! Held units, and requests that wait for units.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tokio::sync::oneshot;

use super::{IS_FREE, Inner, Principal, Waiting, Yielding};
use crate::admission::ConnectionIdentity;

/// Units of a pool; dropping the permit releases them.
#[derive(Debug)]
pub struct Permit {
    pub(super) pool: Arc<Inner>,
    pub(super) source: Principal,
    pub(super) units: usize,
    /// Its key among the source's permits that can yield.
    pub(super) number: Option<u64>,
}

/// A queued request; dropping it removes the request from the queue.
struct Place<'a> {
    pool: &'a Inner,
    source: &'a Principal,
    number: u64,
    units: usize,
    granted: oneshot::Receiver<()>,
    is_over: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.pool.lock();
        let queue = state.waiting.get(self.source);
        let at = queue.and_then(|queue| {
            let mut requests = queue.requests.iter();
            requests.position(|request| request.number == self.number)
        });
        match at {
            Some(at) => {
                state.unqueue(self.source, at);
                // Others may have waited behind it.
                self.pool.serve(&mut state);
            }
            // The request was granted or refused, and the caller stopped waiting.
            None => {
                drop(state);
                if self.granted.try_recv().is_ok() {
                    self.pool.release(self.source, self.units, None);
                }
            }
        }
    }
}

impl Permit {
    /// The units held.
    pub fn units(&self) -> usize {
        self.units
    }

    /// Waits for so many more units, which are added to the permit.
    pub async fn grow(&mut self, more: usize) {
        self.wait_for(more, 0).await;
    }

    /// Returns true if the units were granted.
    pub(super) async fn wait_for(&mut self, more: usize, rank: u32) -> bool {
        let (granted, waits) = oneshot::channel();
        let number = {
            let pool = &*self.pool;
            let mut state = pool.lock();
            if state.waiting.is_empty() && pool.fits(&state, &self.source, more) {
                pool.grant(&mut state, &self.source, more);
                state.grown((&self.source, self.number), more);
                self.units += more;
                return true;
            }
            let number = state.next();
            let request = Waiting {
                number,
                rank,
                units: more,
                granted,
            };
            state.queue(&self.source, request);
            pool.serve(&mut state);
            let queue = state.waiting.get(&self.source);
            let is_waiting =
                queue.is_some_and(|queue| queue.requests.iter().any(|one| one.number == number));
            if is_waiting {
                pool.waits.fetch_add(1, Relaxed);
                pool.evict_for(&mut state, &self.source, more);
                if state.waiting() > pool.most_waiting {
                    pool.refusals.fetch_add(1, Relaxed);
                    state.refuse_last();
                }
            }
            number
        };
        let mut place = Place {
            pool: &self.pool,
            source: &self.source,
            number,
            units: more,
            granted: waits,
            is_over: false,
        };
        let is_granted = (&mut place.granted).await.is_ok();
        place.is_over = true;
        drop(place);
        if is_granted {
            self.units += more;
            if self.number.is_some() {
                let of = (&self.source, self.number);
                self.pool.lock().grown(of, more);
            }
        }
        is_granted
    }

    /// If others wait for units, and this source holds most, this connection is closed.
    pub(super) fn can_yield(&mut self, ticket: Option<Arc<ConnectionIdentity>>) {
        let Some(ticket) = ticket.filter(|_| !IS_FREE && self.source != Principal::Trusted) else {
            return;
        };
        let mut state = self.pool.lock();
        let number = state.next();
        if let Some(share) = state.shares.get_mut(&self.source) {
            let permit = Yielding {
                units: self.units,
                ticket,
                is_ending: false,
            };
            share.permits.insert(number, permit);
            self.number = Some(number);
        }
    }

    /// Releases the units until a future completes, and then waits for as many again.
    pub async fn yield_until<T>(&mut self, until: impl Future<Output = T>) -> T {
        let units = std::mem::take(&mut self.units);
        self.pool.release(&self.source, units, self.number.take());
        let done = until.await;
        self.grow(units).await;
        done
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.units > 0 || self.number.is_some() {
            self.pool
                .release(&self.source, self.units, self.number.take());
        }
    }
}
