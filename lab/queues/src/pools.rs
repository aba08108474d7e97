//! Pools of rows that users share. The workers get the rows in turn. Each worker lends a row to one user at a time, or
//! gives its rows to requests in rotation. It knows no steps and no time.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use lab_workload::{Data, Lease, Workload};

use crate::waiters::{Left, Ticket, Waiters};
use lab_workload::part::Slice;

/// The value for no row.
const NONE: u64 = u64::MAX;

/// A worker's rows of a pool, by their numbers in the file.
#[derive(Debug)]
pub(crate) struct Rows {
    name: Box<str>,
    slice: Slice,
    all: u64,
    /// How many of its rows were given out for the first time.
    begun: Cell<u64>,
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Returned rows, in the order of their return.
    free: VecDeque<u64>,
    waiters: Waiters<u64>,
}

impl Rows {
    fn new(name: &str, slice: Slice, all: u64) -> Self {
        Self {
            name: name.into(),
            slice,
            all,
            begun: Cell::new(0),
            state: RefCell::default(),
        }
    }

    /// Returns the next row that was never given out; `None` once all were.
    fn fresh(&self) -> Option<u64> {
        let nth = self.begun.get();
        let row = Some(self.slice.number(nth)).filter(|row| *row < self.all)?;
        self.begun.set(nth + 1);
        Some(row)
    }

    /// Returns the next row of all, in rotation.
    fn next(&self) -> u64 {
        self.fresh().unwrap_or_else(|| {
            self.begun.set(1);
            self.slice.number(0)
        })
    }

    /// Returns a row that no session holds.
    fn lease(&self) -> Option<u64> {
        let state = &mut *self.state.borrow_mut();
        // Waiting users are served first.
        if !state.waiters.is_empty() {
            return None;
        }
        self.fresh().or_else(|| state.free.pop_front())
    }

    fn wait(self: &Rc<Self>) -> Leasing {
        Leasing {
            ticket: self.state.borrow_mut().waiters.join(),
            rows: Rc::clone(self),
        }
    }

    fn give_back(&self, row: u64) {
        let state = &mut *self.state.borrow_mut();
        if let Err(row) = state.waiters.give(row) {
            state.free.push_back(row);
        }
    }
}

/// The wait of a user for a row. Dropping it ends the wait.
#[derive(Debug)]
pub struct Leasing {
    rows: Rc<Rows>,
    ticket: Ticket<u64>,
}

impl Future for Leasing {
    type Output = u64;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u64> {
        self.ticket.poll_given(cx)
    }
}

impl Drop for Leasing {
    fn drop(&mut self) {
        let left = self.rows.state.borrow_mut().waiters.leave(&self.ticket);
        if let Left::Given(row) = left {
            self.rows.give_back(row);
        }
    }
}

/// The pools of all populations on a worker; pools of the same name are one pool.
#[derive(Debug, Default)]
pub struct WorkerPools(Vec<Rc<Rows>>);

impl WorkerPools {
    /// Returns the pools of these workloads.
    pub fn of<'a>(workloads: impl Iterator<Item = &'a Workload>, slice: &Slice) -> Self {
        let mut pools: Vec<Rc<Rows>> = Vec::new();
        for one in workloads.flat_map(|workload| &workload.shared) {
            if let Some((rows, _)) = one.pool()
                && pools.iter().all(|known| *known.name != *one.name)
            {
                pools.push(Rc::new(Rows::new(&one.name, slice.clone(), rows.rows)));
            }
        }
        Self(pools)
    }

    /// Returns the pools of a workload, for this number of users of its population; `None` if it has none.
    pub fn of_population(&self, workload: &Workload, users: usize) -> Option<Pools> {
        let named = |name: &str| self.0.iter().find(|rows| *rows.name == *name);
        let (mut leased, mut rotated) = (None, Vec::new());
        for one in &workload.shared {
            let Some((data, lease)) = one.pool() else {
                continue;
            };
            let Some(rows) = named(&one.name) else {
                continue;
            };
            let pool = (Rc::clone(rows), Arc::clone(data));
            match lease {
                Lease::Session => leased = Some(pool),
                Lease::Request => rotated.push(pool),
            }
        }
        let held = leased.as_ref().map_or(0, |_| users);
        (leased.is_some() || !rotated.is_empty()).then(|| Pools {
            leased,
            rotated,
            held: vec![Cell::new(NONE); held].into(),
        })
    }
}

type Pool = (Rc<Rows>, Arc<Data>);

/// The pools of a population's users on a worker.
#[derive(Debug)]
pub struct Pools {
    /// The pool from which each session leases a row.
    leased: Option<Pool>,
    /// Pools from which each request gets the next row.
    rotated: Vec<Pool>,
    /// The row that each user holds.
    held: Box<[Cell<u64>]>,
}

impl Pools {
    /// Returns the row that a user holds, if any.
    pub fn held(&self, user: usize) -> Option<(&Data, u64)> {
        let (_, data) = self.leased.as_ref()?;
        let row = self.held[user].get();
        (row != NONE).then_some((data, row))
    }

    /// Returns true if each session holds a row exclusively.
    pub fn leases(&self) -> bool {
        self.leased.is_some()
    }

    /// Returns the pools that give each request another row, with the row's number.
    pub fn rotate(&self) -> impl Iterator<Item = (&Data, u64)> {
        self.rotated
            .iter()
            .map(|(rows, data)| (&**data, rows.next()))
    }

    /// Assigns a user a row that no session holds; `None` if all are leased.
    pub fn lease(&self, user: usize) -> Option<u64> {
        let (rows, _) = self.leased.as_ref()?;
        let row = rows.lease()?;
        self.hold(user, row);
        Some(row)
    }

    /// Waits for a row. The caller passes it to `hold`.
    pub fn wait(&self) -> Option<Leasing> {
        self.leased.as_ref().map(|(rows, _)| rows.wait())
    }

    /// Records the row of a user.
    pub fn hold(&self, user: usize, row: u64) {
        self.held[user].set(row);
    }

    /// Returns the row of a user whose session is over.
    pub fn release(&self, user: usize) {
        let Some((rows, _)) = &self.leased else {
            return;
        };
        let row = self.held[user].replace(NONE);
        if row != NONE {
            rows.give_back(row);
        }
    }
}
