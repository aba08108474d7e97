//! A pool of what requests use, such as bytes of memory or turns, shared so that nobody starves others.
//!
//! - Whom the server trusts takes from the whole pool, or from one apart.
//! - Everybody else takes from a share first: a client's address has a quarter of the pool, and a user
//!   has one. Whoever has used it up waits for the own share only, and holds nothing else meanwhile.
//! - Clients that are nobody yet take from one half of the pool: the other half is left to users, however
//!   many strangers come.
//! - Within these bounds it is first come, first served.
//!
//! It doesn't know what is shared, nor who a user is.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Nothing is shared: everybody gets what they ask for. For a server that one is compared with, to find out what
/// sharing costs (`bench/admission.sh`); no other is built so.
const IS_FREE: bool = cfg!(plimsoll_without_shares);

/// A share is so much of a pool.
const SHARES: usize = 4;
/// Shares that nobody uses are forgotten at the latest when there are so many.
const KEPT_SHARES: usize = 1024;

/// Who takes something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// The server itself, or who is trusted as if it were.
    Trusted,
    /// Somebody at an address, as [`client_of`](crate::client_of) gives it.
    Client(IpAddr),
    /// A user who has signed in, by key.
    User(Arc<str>),
}

/// What is shared, in units.
#[derive(Debug)]
pub struct Pool {
    units: usize,
    all: Arc<Semaphore>,
    /// What those take from who are trusted, and how much that is.
    trusted: (Arc<Semaphore>, usize),
    /// The half that strangers take from.
    open: Arc<Semaphore>,
    shares: Mutex<Shares>,
    short: Arc<Short>,
}

/// How often there was not enough.
#[derive(Debug, Default)]
struct Short {
    waits: AtomicU64,
    refusals: AtomicU64,
}

/// What a pool holds now, and how often it was short of units since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStats {
    /// Units that users and strangers have together.
    pub units: usize,
    /// Of these, units that are taken; those of trusted sources among them, unless they have some apart.
    pub taken: usize,
    /// Of the taken ones, those of strangers.
    pub strangers: usize,
    /// Units apart for those who are trusted, and how many of them are taken.
    pub trusted: Option<(usize, usize)>,
    /// How often somebody had to wait.
    pub waits: u64,
    /// How often somebody who doesn't wait got nothing.
    pub refusals: u64,
}

/// Looks into a pool, wherever that is.
#[derive(Debug, Clone)]
pub struct Gauge {
    units: usize,
    trusted: (Arc<Semaphore>, usize),
    all: Arc<Semaphore>,
    open: Arc<Semaphore>,
    short: Arc<Short>,
}

impl Gauge {
    /// What the pool holds and has done.
    pub fn read(&self) -> PoolStats {
        let taken = |of: &Semaphore, units: usize| units.saturating_sub(of.available_permits());
        let (apart, apart_units) = &self.trusted;
        let is_apart = !Arc::ptr_eq(apart, &self.all);
        PoolStats {
            units: self.units,
            taken: taken(&self.all, self.units),
            strangers: taken(&self.open, open_units(self.units)),
            trusted: is_apart.then(|| (*apart_units, taken(apart, *apart_units))),
            waits: self.short.waits.load(Relaxed),
            refusals: self.short.refusals.load(Relaxed),
        }
    }
}

/// The half that is for strangers.
fn open_units(units: usize) -> usize {
    (units / 2).max(1)
}

#[derive(Debug)]
struct Shares {
    by_source: HashMap<Source, Arc<Semaphore>>,
    /// The number at which unused ones are looked for.
    look_at: usize,
}

/// What is taken from before the pool itself, in this order: who waits for a share of the own holds
/// nothing of the others'.
#[derive(Debug)]
struct Way {
    share: Option<Arc<Semaphore>>,
    open: Option<Arc<Semaphore>>,
    all: Arc<Semaphore>,
    short: Arc<Short>,
}

/// Units of a pool; dropping it gives them back.
#[derive(Debug)]
pub struct Permit {
    way: Way,
    units: u32,
    held: Vec<OwnedSemaphorePermit>,
}

impl Pool {
    /// A pool of so many units.
    pub fn new(units: usize) -> Self {
        let units = units.clamp(1, Semaphore::MAX_PERMITS);
        let all = Arc::new(Semaphore::new(units));
        Self {
            units,
            trusted: (Arc::clone(&all), units),
            all,
            open: Arc::new(Semaphore::new(open_units(units))),
            short: Arc::default(),
            shares: Mutex::new(Shares {
                by_source: HashMap::new(),
                look_at: KEPT_SHARES,
            }),
        }
    }

    /// The same, and so many units apart for those who are trusted.
    #[must_use]
    pub fn with_trusted(self, units: usize) -> Self {
        let units = units.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            trusted: (Arc::new(Semaphore::new(units)), units),
            ..self
        }
    }

    /// Looks into it from elsewhere.
    pub fn gauge(&self) -> Gauge {
        Gauge {
            units: self.units,
            trusted: (Arc::clone(&self.trusted.0), self.trusted.1),
            all: Arc::clone(&self.all),
            open: Arc::clone(&self.open),
            short: Arc::clone(&self.short),
        }
    }

    /// The most that one source ever has at once. Who asks for more waits for so much, and is given it.
    pub fn most(&self, source: &Source) -> usize {
        match source {
            Source::Trusted => self.trusted.1,
            _ => (self.units / SHARES).max(1),
        }
    }

    /// Waits for so many units, none of which may be missing.
    pub async fn take(&self, source: &Source, units: usize) -> Permit {
        let mut permit = self.none(source);
        permit.grow(self.bounded(source, units)).await;
        permit
    }

    /// So many units if they are there at once.
    pub fn try_take(&self, source: &Source, units: usize) -> Option<Permit> {
        let mut permit = self.none(source);
        let taken = u32::try_from(units).ok().and_then(|units| {
            for semaphore in permit.way.semaphores() {
                let taken = Arc::clone(semaphore).try_acquire_many_owned(units);
                permit.held.push(taken.ok()?);
            }
            Some(units)
        });
        let Some(units) = taken else {
            self.short.refusals.fetch_add(1, Relaxed);
            return None;
        };
        permit.units = units;
        Some(permit)
    }

    /// A permit for nothing yet, which can grow.
    pub fn none(&self, source: &Source) -> Permit {
        let is_stranger = matches!(source, Source::Client(_));
        let all = match source {
            Source::Trusted => &self.trusted.0,
            _ => &self.all,
        };
        Permit {
            way: Way {
                share: self.share(source),
                open: is_stranger.then(|| Arc::clone(&self.open)),
                all: Arc::clone(all),
                short: Arc::clone(&self.short),
            },
            units: 0,
            held: Vec::new(),
        }
    }

    /// Units that nobody holds.
    pub fn free(&self) -> usize {
        self.all.available_permits()
    }

    fn bounded(&self, source: &Source, units: usize) -> u32 {
        u32::try_from(units.min(self.most(source))).unwrap_or(u32::MAX)
    }

    fn share(&self, source: &Source) -> Option<Arc<Semaphore>> {
        if IS_FREE || *source == Source::Trusted {
            return None;
        }
        let mut shares = self.lock();
        if let Some(share) = shares.by_source.get(source) {
            return Some(Arc::clone(share));
        }
        if shares.by_source.len() >= shares.look_at {
            // Nobody holds or awaits a unit of those that only the table knows.
            shares
                .by_source
                .retain(|_, share| Arc::strong_count(share) > 1);
            shares.look_at = KEPT_SHARES.max(2 * shares.by_source.len());
        }
        let share = Arc::new(Semaphore::new(self.most(source)));
        shares.by_source.insert(source.clone(), Arc::clone(&share));
        Some(share)
    }

    fn lock(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Way {
    fn semaphores(&self) -> impl Iterator<Item = &Arc<Semaphore>> {
        let own = [self.share.as_ref(), self.open.as_ref()];
        let all = own.into_iter().flatten().chain([&self.all]);
        all.filter(|_| !IS_FREE)
    }
}

impl Permit {
    /// The units held.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Waits for so many more, which are held together with what there is.
    pub async fn grow(&mut self, more: u32) {
        let mut taken = Vec::with_capacity(3);
        for semaphore in self.way.semaphores() {
            // Who finds enough at once, as mostly, waits for nobody: those who wait are served first.
            if let Ok(at_once) = Arc::clone(semaphore).try_acquire_many_owned(more) {
                taken.push(at_once);
                continue;
            }
            self.way.short.waits.fetch_add(1, Relaxed);
            // No semaphore of a pool is ever closed.
            taken.extend(Arc::clone(semaphore).acquire_many_owned(more).await.ok());
        }
        if self.held.is_empty() {
            self.held = taken;
        } else {
            for (held, more) in self.held.iter_mut().zip(taken) {
                held.merge(more);
            }
        }
        self.units += more;
    }

    /// Gives the units back until something is done, and then waits for as many again.
    pub async fn give_way<T>(&mut self, until: impl Future<Output = T>) -> T {
        let units = std::mem::take(&mut self.units);
        self.held.clear();
        let done = until.await;
        self.grow(units).await;
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Source {
        Source::Client([192, 0, 2, last].into())
    }

    fn user(name: &str) -> Source {
        Source::User(name.into())
    }

    #[test]
    fn strangers_leave_half_to_users_and_a_quarter_to_each_other() {
        let pool = Pool::new(16);
        let first: Vec<_> = (0..9).map_while(|_| pool.try_take(&client(1), 1)).collect();
        assert_eq!(first.len(), 4);
        let second: Vec<_> = (0..9).map_while(|_| pool.try_take(&client(2), 1)).collect();
        assert_eq!(second.len(), 4);
        assert!(pool.try_take(&client(3), 1).is_none());
        let stats = pool.gauge().read();
        assert_eq!((stats.units, stats.taken, stats.strangers), (16, 8, 8));
        assert_eq!((stats.trusted, stats.refusals), (None, 3));
        let ada: Vec<_> = (0..9)
            .map_while(|_| pool.try_take(&user("ada"), 1))
            .collect();
        assert_eq!(ada.len(), 4);
        let bob = pool.try_take(&user("bob"), 4);
        assert!(bob.is_some() && pool.free() == 0);
        drop(first);
        assert!(pool.try_take(&client(3), 4).is_some());
        assert!(pool.try_take(&Source::Trusted, 5).is_none());
        drop((second, ada, bob));
        assert!(pool.try_take(&Source::Trusted, 16).is_some());
        assert_eq!(pool.free(), 16);
    }

    #[test]
    fn what_is_apart_for_the_trusted_is_theirs_alone() {
        let pool = Pool::new(4).with_trusted(100);
        assert_eq!(
            (pool.most(&Source::Trusted), pool.most(&client(1))),
            (100, 1)
        );
        let trusted = pool.try_take(&Source::Trusted, 100);
        assert!(trusted.is_some() && pool.free() == 4);
        assert_eq!(pool.gauge().read().trusted, Some((100, 100)));
        assert!(pool.try_take(&client(1), 1).is_some());
        assert!(pool.try_take(&Source::Trusted, 1).is_none());
    }

    #[test]
    fn the_smallest_pool_serves_everybody_in_turn() {
        let pool = Pool::new(1);
        for source in [Source::Trusted, client(1), user("ada")] {
            assert!(pool.try_take(&source, 1).is_some(), "{source:?}");
        }
    }

    #[tokio::test]
    async fn who_waits_for_the_own_share_holds_up_nobody() {
        let pool = Pool::new(8);
        let held = pool.take(&user("ada"), 100).await;
        assert_eq!(held.units(), 2);
        {
            let ada = user("ada");
            let mut more = std::pin::pin!(pool.take(&ada, 1));
            tokio::select! {
                biased;
                _ = more.as_mut() => panic!("that was all of hers"),
                () = std::future::ready(()) => {}
            }
            assert_eq!((pool.free(), pool.gauge().read().waits), (6, 1));
            drop(pool.take(&Source::Trusted, 6).await);
            drop(held);
            assert_eq!(more.await.units(), 1);
        }
        assert_eq!(pool.free(), 8);
    }

    #[tokio::test]
    async fn a_permit_grows_and_gives_way() {
        let pool = Pool::new(8);
        let mut permit = pool.none(&client(1));
        permit.grow(1).await;
        permit.grow(1).await;
        assert_eq!((permit.units(), pool.free()), (2, 6));
        permit.give_way(async { assert_eq!(pool.free(), 8) }).await;
        assert_eq!((permit.units(), pool.free()), (2, 6));
        drop(permit);
        assert_eq!(pool.free(), 8);
    }

    #[test]
    fn shares_that_nobody_uses_are_forgotten() {
        let pool = Pool::new(8);
        let held = pool.try_take(&user("ada"), 1);
        for number in 0..10_000_u32 {
            let source = Source::Client(IpAddr::from(number.to_be_bytes()));
            assert!(pool.try_take(&source, 1).is_some());
        }
        assert!(pool.lock().by_source.len() <= KEPT_SHARES);
        assert!(pool.lock().by_source.contains_key(&user("ada")));
        drop(held);
    }
}
