//! A pool of units that requests use, such as bytes of memory or turns, shared by max-min fairness.
//!
//! - A source is an address, a user, or the trusted programs together. A source has at most a
//!   quarter of the pool; all unauthenticated addresses together have at most a half.
//! - A request that doesn't fit waits. The next unit goes to the waiting source that holds least; sources that hold
//!   equally much take turns. A source that has used up its own share waits for itself and blocks no other.
//! - A permit may name its connection. Where a source waits because others hold all units, the source that
//!   holds most yields: the connection of its oldest permit is closed. This frees a unit for a new source.
//! - Trusted sources take from the whole pool, or from units of their own, and never yield.
//!
//! The pool knows neither its units' meaning nor the users.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::admission::ConnectionIdentity;

mod permit;

pub use permit::Permit;

/// Disables sharing: every request is granted at once. Only the server that measures the cost of
/// sharing (`bench/admission.sh`) is built so.
const IS_FREE: bool = cfg!(plimsoll_without_shares);

/// A share is this fraction of a pool: one in so many.
const SHARES: usize = 4;
/// Most units of a pool.
const MOST_UNITS: usize = u32::MAX as usize;

/// The principal that takes units: the key of fair sharing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// The server itself, or a program that is trusted like it.
    Trusted,
    /// An unauthenticated client at an address, as returned by [`client_of`](crate::client_of).
    Client(IpAddr),
    /// A signed-in user, by key.
    User(Arc<str>),
}

/// Shared units. Clones are handles of the same pool.
#[derive(Debug, Clone)]
pub struct FairSemaphore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    units: usize,
    /// Separate units for trusted sources.
    trusted: Option<usize>,
    /// Whether a source may hold all units while no other waits.
    is_of_turns: bool,
    /// Most waiting requests.
    most_waiting: usize,
    state: Mutex<State>,
    waits: AtomicU64,
    refusals: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// Units taken, including those of trusted sources unless these have separate units.
    taken: usize,
    /// Separate units taken.
    apart: usize,
    /// Units taken by unauthenticated clients.
    strangers: usize,
    /// Units of permits whose connections are being closed.
    yielding: usize,
    /// The number of the last request or permit.
    last: u64,
    shares: HashMap<Principal, Share>,
    waiting: HashMap<Principal, Queue>,
}

/// The units of a source.
#[derive(Debug, Default)]
struct Share {
    held: usize,
    /// Permits that can yield, the oldest first.
    permits: BTreeMap<u64, Yielding>,
}

/// A permit that can yield.
#[derive(Debug)]
struct Yielding {
    units: usize,
    ticket: Arc<ConnectionIdentity>,
    /// Its connection is being closed.
    is_ending: bool,
}

/// The waiting requests of a source.
#[derive(Debug, Default)]
struct Queue {
    /// When the source was served last, or queued first.
    turn: u64,
    requests: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    rank: u32,
    units: usize,
    granted: oneshot::Sender<()>,
}

/// The units of a pool now, and how often it was short of units since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStats {
    /// Units that users and unauthenticated clients share.
    pub units: usize,
    /// Of these, units that are taken, including those of trusted sources unless these have separate units.
    pub taken: usize,
    /// Of the taken units, those of unauthenticated clients.
    pub strangers: usize,
    /// Separate units of trusted sources, and how many of them are taken.
    pub trusted: Option<(usize, usize)>,
    /// The number of requests that had to wait.
    pub waits: u64,
    /// The number of requests that were refused.
    pub refusals: u64,
}

/// Reads the state of a pool from any thread.
#[derive(Debug, Clone)]
pub struct Gauge(Arc<Inner>);

impl Gauge {
    /// Returns the pool's current state and totals.
    pub fn read(&self) -> PoolStats {
        let pool = &*self.0;
        let state = pool.lock();
        PoolStats {
            units: pool.units,
            taken: state.taken,
            strangers: state.strangers,
            trusted: pool.trusted.map(|units| (units, state.apart)),
            waits: pool.waits.load(Relaxed),
            refusals: pool.refusals.load(Relaxed),
        }
    }
}

impl FairSemaphore {
    /// Returns a pool of so many units.
    pub fn new(units: usize) -> Self {
        Self::with(Inner {
            units: units.clamp(1, MOST_UNITS),
            trusted: None,
            is_of_turns: false,
            most_waiting: usize::MAX,
            state: Mutex::default(),
            waits: AtomicU64::default(),
            refusals: AtomicU64::default(),
        })
    }

    /// Returns a pool of so many short turns: a source may take all of them while no other waits.
    /// At most `most_waiting` requests wait.
    pub fn of_turns(turns: usize, most_waiting: usize) -> Self {
        Self::with(Inner {
            is_of_turns: true,
            most_waiting,
            ..Self::new(turns).into_inner()
        })
    }

    /// Adds separate units for trusted sources.
    #[must_use]
    pub fn with_trusted(self, units: usize) -> Self {
        Self::with(Inner {
            trusted: Some(units.clamp(1, MOST_UNITS)),
            ..self.into_inner()
        })
    }

    fn with(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// Takes the settings of an unused pool.
    fn into_inner(self) -> Inner {
        Inner {
            units: self.0.units,
            trusted: self.0.trusted,
            is_of_turns: self.0.is_of_turns,
            most_waiting: self.0.most_waiting,
            state: Mutex::default(),
            waits: AtomicU64::default(),
            refusals: AtomicU64::default(),
        }
    }

    /// Returns a reader of the pool's state.
    pub fn gauge(&self) -> Gauge {
        Gauge(Arc::clone(&self.0))
    }

    /// The most units that one source can hold at once. A larger request waits for this many, and is granted.
    pub fn most(&self, source: &Principal) -> usize {
        self.0.most(source)
    }

    /// Waits for so many units, and takes all of them together.
    pub async fn take(&self, source: &Principal, units: usize) -> Permit {
        let mut permit = self.none(source);
        permit.grow(units.min(self.most(source))).await;
        permit
    }

    /// Takes units like `take`. If others wait and this source holds most, its connection is closed.
    pub async fn take_or_yield(
        &self,
        source: &Principal,
        units: usize,
        ticket: Option<Arc<ConnectionIdentity>>,
    ) -> Permit {
        let mut permit = self.take(source, units).await;
        permit.can_yield(ticket);
        permit
    }

    /// Waits for a unit. Requests of a lower rank are served first. If too many wait, one of the
    /// highest rank gets `None`.
    pub async fn take_ranked(&self, source: &Principal, rank: u32) -> Option<Permit> {
        let mut permit = self.none(source);
        let is_granted = permit.wait_for(1, rank).await;
        is_granted.then_some(permit)
    }

    /// Returns true if a source's own share has so many units left.
    pub fn has_share(&self, source: &Principal, units: usize) -> bool {
        IS_FREE || self.0.lock().held(source) + units <= self.most(source)
    }

    /// Takes so many units if they are free. If others hold them, the source that holds most
    /// yields, so that the next try succeeds.
    pub fn try_take_or_yield(
        &self,
        source: &Principal,
        units: usize,
        ticket: Option<Arc<ConnectionIdentity>>,
    ) -> Option<Permit> {
        let Some(mut permit) = self.try_take(source, units) else {
            self.0.evict_for(&mut self.0.lock(), source, units);
            return None;
        };
        permit.can_yield(ticket);
        Some(permit)
    }

    /// Takes so many units if they are free.
    pub fn try_take(&self, source: &Principal, units: usize) -> Option<Permit> {
        let pool = &self.0;
        let mut state = pool.lock();
        if !pool.fits(&state, source, units) {
            drop(state);
            pool.refusals.fetch_add(1, Relaxed);
            return None;
        }
        pool.grant(&mut state, source, units);
        drop(state);
        let mut permit = self.none(source);
        permit.units = units;
        Some(permit)
    }

    /// Returns a permit without units, which can grow.
    pub fn none(&self, source: &Principal) -> Permit {
        Permit {
            pool: Arc::clone(&self.0),
            source: source.clone(),
            units: 0,
            number: None,
        }
    }

    /// The number of free units.
    pub fn free(&self) -> usize {
        self.0.units.saturating_sub(self.0.lock().taken)
    }
}

/// Why a request gets no units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Short {
    /// The source's own share is used up.
    Own,
    /// The half of unauthenticated clients is used up.
    Strangers,
    /// The pool is used up.
    All,
}

impl Inner {
    fn most(&self, source: &Principal) -> usize {
        match source {
            Principal::Trusted => self.trusted.unwrap_or(self.units),
            _ if self.is_of_turns => self.units,
            _ => (self.units / SHARES).max(1),
        }
    }

    /// The most units of all unauthenticated clients together.
    fn most_of_strangers(&self) -> usize {
        match self.is_of_turns {
            true => self.units,
            false => (self.units / 2).max(1),
        }
    }

    /// The free units that this source may take from.
    fn room(&self, state: &State, source: &Principal) -> usize {
        match (source, self.trusted) {
            (Principal::Trusted, Some(units)) => units.saturating_sub(state.apart),
            _ => self.units.saturating_sub(state.taken),
        }
    }

    fn short(&self, state: &State, source: &Principal, units: usize) -> Option<Short> {
        let held = state.held(source);
        let is_stranger = matches!(source, Principal::Client(_));
        if IS_FREE {
            None
        } else if held + units > self.most(source) {
            Some(Short::Own)
        } else if is_stranger && state.strangers + units > self.most_of_strangers() {
            Some(Short::Strangers)
        } else if units > self.room(state, source) {
            Some(Short::All)
        } else {
            None
        }
    }

    fn fits(&self, state: &State, source: &Principal, units: usize) -> bool {
        self.short(state, source, units).is_none()
    }

    fn grant(&self, state: &mut State, source: &Principal, units: usize) {
        match (source, self.trusted) {
            (Principal::Trusted, Some(_)) => state.apart += units,
            _ => state.taken += units,
        }
        if matches!(source, Principal::Client(_)) {
            state.strangers += units;
        }
        match state.shares.get_mut(source) {
            Some(share) => share.held += units,
            None => {
                let share = Share {
                    held: units,
                    permits: BTreeMap::new(),
                };
                state.shares.insert(source.clone(), share);
            }
        }
    }

    /// Releases units, and serves requests that wait for them.
    fn release(&self, source: &Principal, units: usize, number: Option<u64>) {
        let mut state = self.lock();
        match (source, self.trusted) {
            (Principal::Trusted, Some(_)) => state.apart = state.apart.saturating_sub(units),
            _ => state.taken = state.taken.saturating_sub(units),
        }
        if matches!(source, Principal::Client(_)) {
            state.strangers = state.strangers.saturating_sub(units);
        }
        let mut ended = None;
        if let Some(share) = state.shares.get_mut(source) {
            share.held = share.held.saturating_sub(units);
            ended = number.and_then(|number| share.permits.remove(&number));
            if share.held == 0 && share.permits.is_empty() {
                state.shares.remove(source);
            }
        }
        if let Some(ended) = ended.filter(|ended| ended.is_ending) {
            state.yielding = state.yielding.saturating_sub(ended.units);
        }
        self.serve(&mut state);
    }

    /// Grants units to waiting requests that fit, the source that holds least first.
    fn serve(&self, state: &mut State) {
        let mut are_strangers_short = false;
        while !state.waiting.is_empty() {
            let next = state.waiting.iter().filter_map(|(source, queue)| {
                let at = queue.first()?;
                let request = &queue.requests[at];
                let short = self.short(state, source, request.units);
                let waits_for_itself = short == Some(Short::Own);
                let is_behind = are_strangers_short && matches!(source, Principal::Client(_));
                let order = (request.rank, state.held(source), queue.turn);
                (!waits_for_itself && !is_behind).then_some((order, source, at, short))
            });
            let Some((_, source, at, short)) = next.min_by_key(|(order, ..)| *order) else {
                return;
            };
            match short {
                None => {}
                Some(Short::Strangers) => {
                    are_strangers_short = true;
                    continue;
                }
                Some(_) => return,
            }
            let source = source.clone();
            let Some(request) = state.unqueue(&source, at) else {
                return;
            };
            self.grant(state, &source, request.units);
            // The receiver still exists: the request would have left the queue itself.
            let _ = request.granted.send(());
        }
    }

    /// Makes the source that holds most yield to a request of another source that holds less.
    fn evict_for(&self, state: &mut State, source: &Principal, units: usize) {
        let short = self.short(state, source, units);
        let room = match short {
            Some(Short::Strangers) => self.most_of_strangers().saturating_sub(state.strangers),
            Some(Short::All) if *source != Principal::Trusted => self.room(state, source),
            _ => return,
        };
        let (are_strangers, own) = (short == Some(Short::Strangers), state.held(source));
        let takes_part = |source: &Principal| match source {
            Principal::Trusted => false,
            Principal::User(_) => !are_strangers,
            Principal::Client(_) => true,
        };
        // The units being yielded also serve other waiting sources that hold as little.
        let mut missing = state.claimed(takes_part, own).max(units);
        missing = missing.saturating_sub(room + state.yielding);
        while missing > 0 {
            let heaviest = state.heaviest(takes_part);
            let Some((held, oldest, holder)) = heaviest.filter(|(.., holder)| holder != source)
            else {
                return;
            };
            // Among unauthenticated clients, a source that holds as much as a newcomer asks for
            // yields too: else many addresses with few units each would lock out all others.
            let is_newcomer = are_strangers && own == 0 && held >= units;
            if held <= own + units && !is_newcomer {
                return;
            }
            let freed = state.end(&holder, oldest);
            missing = missing.saturating_sub(freed.max(1));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// The index of the request to serve first.
    fn first(&self) -> Option<usize> {
        let requests = self.requests.iter().enumerate();
        let first = requests.min_by_key(|(_, request)| (request.rank, request.number));
        first.map(|(at, _)| at)
    }
}

impl State {
    fn held(&self, source: &Principal) -> usize {
        self.shares.get(source).map_or(0, |share| share.held)
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn queue(&mut self, source: &Principal, request: Waiting) {
        let number = request.number;
        let queue = self.waiting.entry(source.clone()).or_default();
        if queue.requests.is_empty() {
            queue.turn = number;
        }
        queue.requests.push_back(request);
    }

    /// Removes a request from its queue; the source's next request is served after all other sources' first ones.
    fn unqueue(&mut self, source: &Principal, at: usize) -> Option<Waiting> {
        let turn = self.next();
        let queue = self.waiting.get_mut(source)?;
        let request = queue.requests.remove(at);
        queue.turn = turn;
        if queue.requests.is_empty() {
            self.waiting.remove(source);
        }
        request
    }

    fn waiting(&self) -> usize {
        let queues = self.waiting.values();
        queues.map(|queue| queue.requests.len()).sum()
    }

    /// The units of the first requests of all sources that hold at most so many.
    fn claimed(&self, takes_part: impl Fn(&Principal) -> bool, held: usize) -> usize {
        let queues = self.waiting.iter();
        let queues = queues.filter(|(source, _)| takes_part(source) && self.held(source) <= held);
        queues
            .filter_map(|(_, queue)| queue.requests.front())
            .map(|request| request.units)
            .sum()
    }

    /// The source that holds most, without units being yielded; its oldest permit that can yield.
    /// Ties are broken by the oldest permit.
    fn heaviest(&self, takes_part: impl Fn(&Principal) -> bool) -> Option<(usize, u64, Principal)> {
        let holders = self.shares.iter().filter(|(source, _)| takes_part(source));
        let holders = holders.filter_map(|(source, share)| {
            let permits = || share.permits.iter();
            let oldest = permits().find(|(_, permit)| !permit.is_ending)?;
            let ending = permits().filter(|(_, permit)| permit.is_ending);
            let ending: usize = ending.map(|(_, permit)| permit.units).sum();
            Some((share.held.saturating_sub(ending), *oldest.0, source))
        });
        let heaviest = holders.max_by_key(|(held, oldest, _)| (*held, u64::MAX - oldest))?;
        Some((heaviest.0, heaviest.1, heaviest.2.clone()))
    }

    /// Adds units to a permit that can yield.
    fn grown(&mut self, (source, number): (&Principal, Option<u64>), more: usize) {
        let Some(number) = number else { return };
        let share = self.shares.get_mut(source);
        if let Some(permit) = share.and_then(|share| share.permits.get_mut(&number)) {
            permit.units += more;
            if permit.is_ending {
                self.yielding += more;
            }
        }
    }

    /// Closes the connection of a permit; returns the units that this frees.
    fn end(&mut self, holder: &Principal, number: u64) -> usize {
        let share = self.shares.get_mut(holder);
        let Some(permit) = share.and_then(|share| share.permits.get_mut(&number)) else {
            return 0;
        };
        permit.is_ending = true;
        permit.ticket.displace();
        self.yielding += permit.units;
        permit.units
    }

    /// Refuses one of the requests to be served last: the newest of the source that has most of them.
    fn refuse_last(&mut self) {
        let last = self.waiting.iter().filter_map(|(source, queue)| {
            let requests = queue.requests.iter().enumerate();
            let (at, last) = requests.max_by_key(|(_, request)| (request.rank, request.number))?;
            let order = (last.rank, queue.requests.len(), last.number);
            Some((order, source, at))
        });
        let last = last.max_by_key(|(order, ..)| *order);
        if let Some((source, at)) = last.map(|(_, source, at)| (source.clone(), at))
            && let Some(queue) = self.waiting.get_mut(&source)
        {
            queue.requests.remove(at);
            if queue.requests.is_empty() {
                self.waiting.remove(&source);
            }
        }
    }
}

#[cfg(test)]
mod tests;
