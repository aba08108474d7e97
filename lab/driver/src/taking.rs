//! A user's operations on shared state: it takes an entry of a queue before a step, puts one in after a step, and
//! leases a row of a pool. It knows no protocol.

use lab_client::time::{Nanos, nanos};
use lab_workload::{Data, RenderError, Slot};

use crate::client::Client;
use crate::user::{Due, Life, Shared};
use lab_queues::Pools;

impl<C: Client> Shared<C> {
    /// Returns true if a step takes an entry before its first request.
    pub(crate) fn takes(&self, step: usize) -> bool {
        self.sharing
            .of_step(step)
            .is_some_and(|queues| queues.take.is_some())
    }

    /// Takes the entry of a step; waits if there is none. Returns when its first request can be sent; `None` if no
    /// entry was available in time.
    pub(crate) async fn take(&self, life: &mut Life<C>, step: usize, due: Due) -> Option<Due> {
        let (queue, slot, within) = self.sharing.of_step(step)?.take.as_ref()?;
        let recorded = self.first_step + step;
        self.within_trial(due.meant).await;
        if let Some(entry) = queue.take() {
            life.user.scope.set_text(*slot, &entry);
            let now = self.clock.nanos();
            self.recorder.borrow_mut().took(now, recorded, 0);
            return Some(due);
        }
        let (place, began) = (life.user.place, self.clock.nanos());
        // The wait is neither think time nor response time.
        self.clear_under_way(place);
        self.transactions.thinks(place, began);
        let until = began.saturating_add(nanos(*within));
        let entry = tokio::select! {
            biased;
            entry = queue.wait() => Some(entry),
            () = life.sleep_until(&self.client, until.min(life.state.until)) => None,
        };
        self.took(life, (recorded, *slot), (began, entry))
    }

    /// Processes the end of the wait for an entry.
    fn took(
        &self,
        life: &mut Life<C>,
        (step, slot): (usize, Slot),
        (began, entry): (Nanos, Option<Box<str>>),
    ) -> Option<Due> {
        let now = self.clock.nanos();
        let state = &mut life.state;
        (state.at, state.moved) = (state.at.max(now), state.moved || now - began >= 1_000_000);
        self.transactions.goes_on(life.user.place, now);
        let mut recorder = self.recorder.borrow_mut();
        let Some(entry) = entry else {
            life.user.scope.clear(slot);
            if !life.state.leaves() {
                recorder.missed(now, step);
                self.transactions.ended(life.user.place, None, None);
            }
            return None;
        };
        recorder.took(now, step, now.saturating_sub(began));
        life.user.scope.set_text(slot, &entry);
        Some(Due {
            planned: None,
            meant: now,
        })
    }

    /// Puts the step's entry in, if all of its requests met their `expect`.
    pub(crate) fn put(&self, life: &mut Life<C>, step: usize) {
        let put = self
            .sharing
            .of_step(step)
            .and_then(|queues| queues.put.as_ref());
        let Some((queue, template)) = put else {
            return;
        };
        let mut entry = String::new();
        let rendered = template.render(&mut life.user.scope, &mut entry);
        match rendered {
            Ok(()) => {
                let kept = queue.put(entry.into());
                let (now, step) = (self.clock.nanos(), self.first_step + step);
                self.recorder.borrow_mut().put(now, step, kept);
            }
            // There is no entry to put in.
            Err(RenderError::EmptyList { .. }) => {}
            Err(error) => self.unmade(life, step, format!("put: {error}")),
        }
    }

    /// Returns true if each session holds a row of a pool exclusively.
    pub(crate) fn leases(&self) -> bool {
        let pools = self.sharing.pools.as_ref();
        pools.is_some_and(Pools::leases)
    }

    /// Leases the row of a session, after a wait if all are leased.
    pub(crate) async fn lease(&self, life: &mut Life<C>) {
        let Some(pools) = &self.sharing.pools else {
            return;
        };
        let (place, began) = (life.user.place, self.clock.nanos());
        if pools.lease(place).is_none() {
            let Some(wait) = pools.wait() else {
                return;
            };
            let until = life.state.until;
            let row = tokio::select! {
                biased;
                row = wait => row,
                () = life.sleep_until(&self.client, until) => {
                    life.state.at = life.state.at.max(until);
                    return;
                }
            };
            pools.hold(place, row);
            let (state, now) = (&mut life.state, self.clock.nanos());
            (state.at, state.moved) = (state.at.max(now), true);
            // The wait is neither think time nor response time.
            state.arrived = state.arrived.map(|_| now);
        }
        let now = self.clock.nanos();
        let waited = now.saturating_sub(began);
        let mut recorder = self.recorder.borrow_mut();
        recorder.leased(now, self.first_step, waited);
    }

    /// Sets the variables of the row that the session holds.
    pub(crate) fn set_leased(&self, life: &mut Life<C>) {
        let Some(pools) = &self.sharing.pools else {
            return;
        };
        if let Some((data, row)) = pools.held(life.user.place) {
            self.set_row(life, data, row);
        }
    }

    /// Returns the row of an ended session to the pool.
    pub(crate) fn release(&self, life: &Life<C>) {
        if let Some(pools) = &self.sharing.pools {
            pools.release(life.user.place);
        }
    }

    /// Assigns a request the next rows of rotating pools.
    pub(crate) fn rotate(&self, life: &mut Life<C>) {
        let Some(pools) = &self.sharing.pools else {
            return;
        };
        for (data, row) in pools.rotate() {
            self.set_row(life, data, row);
        }
    }

    fn set_row(&self, life: &mut Life<C>, data: &Data, row: u64) {
        if let Err(cause) = life.user.scope.set_row(data, row) {
            life.state.well = false;
            let now = self.clock.nanos();
            let mut recorder = self.recorder.borrow_mut();
            recorder.unmade(now, self.first_step, cause.into());
        }
    }
}
