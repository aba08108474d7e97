//! Sessions that are in use, so that a request need not look at the store for its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use groupware_people::{Account, SecretHash, Session};

/// Threads that look up sessions at the same moment rarely meet in one of these.
const SHARDS: usize = 64;

/// A session that is remembered.
#[derive(Debug)]
pub(crate) struct Cached {
    pub(crate) account: Arc<Account>,
    pub(crate) session: Session,
    /// The use that is stored, or about to be.
    pub(crate) noted: i64,
}

type Shard = HashMap<SecretHash, Cached>;

/// Sessions by the hash of their token, within a bound. What is forgotten isn't over: it is in the store.
#[derive(Debug)]
pub(crate) struct Cache {
    shards: Vec<Mutex<Shard>>,
    per_shard: usize,
    count: AtomicUsize,
    /// Raised before any session is forgotten because it is over.
    ended: AtomicU64,
}

/// The sessions that had ended at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(u64);

impl Cache {
    /// For so many.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            per_shard: most.div_ceil(SHARDS).max(1),
            count: AtomicUsize::new(0),
            ended: AtomicU64::new(0),
        }
    }

    /// To be taken before the store is asked for a session.
    pub(crate) fn moment(&self) -> Moment {
        Moment(self.ended.load(Ordering::SeqCst))
    }

    /// Remembers what the store had at a moment or later. If any session was forgotten since, it may be this
    /// one: then it isn't.
    pub(crate) fn remember(&self, hash: SecretHash, cached: Cached, since: Moment) {
        let mut shard = self.shard(&hash);
        if self.ended.load(Ordering::SeqCst) != since.0 {
            return;
        }
        let before = shard.len();
        if before >= self.per_shard {
            make_room(&mut shard, self.per_shard);
        }
        shard.insert(hash, cached);
        let after = shard.len();
        drop(shard);
        self.count.fetch_add(after, Ordering::Relaxed);
        self.count.fetch_sub(before, Ordering::Relaxed);
    }

    /// Does something with a session, if it is remembered; and forgets it, if that gives `None`.
    pub(crate) fn with<T>(
        &self,
        hash: &SecretHash,
        work: impl FnOnce(&mut Cached) -> Option<T>,
    ) -> Option<T> {
        let mut shard = self.shard(hash);
        let done = work(shard.get_mut(hash)?);
        if done.is_none() {
            shard.remove(hash);
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        done
    }

    /// Forgets sessions that are over.
    pub(crate) fn forget(&self, ended: &[SecretHash]) {
        if ended.is_empty() {
            return;
        }
        self.ended.fetch_add(1, Ordering::SeqCst);
        for hash in ended {
            if self.shard(hash).remove(hash).is_some() {
                self.count.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Forgets all: any may be over.
    pub(crate) fn forget_all(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
        for shard in &self.shards {
            let mut shard = lock(shard);
            self.count.fetch_sub(shard.len(), Ordering::Relaxed);
            shard.clear();
        }
    }

    /// How many there are, those included that nobody has noticed to be over.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn shard(&self, hash: &SecretHash) -> MutexGuard<'_, Shard> {
        lock(&self.shards[usize::from(hash[0]) % SHARDS])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets those whose users have ended them, and, if that isn't enough, the eighth that was idle longest: that
/// many at once, so that a full shard isn't sorted for every session.
fn make_room(shard: &mut Shard, most: usize) {
    shard.retain(|_, cached| cached.account.admits(cached.session.stamp));
    if shard.len() < most {
        return;
    }
    let mut ages: Vec<_> = shard
        .iter()
        .map(|(hash, cached)| (cached.session.used, *hash))
        .collect();
    ages.sort_unstable();
    for (_, hash) in ages.into_iter().take((most / 8).max(1)) {
        shard.remove(&hash);
    }
}

#[cfg(test)]
mod tests {
    use groupware_people::{Credentials, UserName};

    use super::*;

    fn cached(used: i64) -> Cached {
        let name = UserName::parse("ada").unwrap();
        Cached {
            account: Arc::new(Account::new(name, 0, Credentials::default())),
            session: Session {
                stamp: 0,
                started_us: 0,
                used,
            },
            noted: used,
        }
    }

    fn hash(number: u32) -> SecretHash {
        let mut hash = [0; 32];
        hash[..4].copy_from_slice(&number.to_le_bytes());
        hash
    }

    fn has(cache: &Cache, number: u32) -> bool {
        cache.with(&hash(number), |_| Some(())).is_some()
    }

    #[test]
    fn what_ended_while_the_store_was_asked_is_not_remembered() {
        let cache = Cache::new(100);
        let early = cache.moment();
        cache.forget(&[hash(1)]);
        cache.remember(hash(1), cached(0), early);
        assert!(!has(&cache, 1));
        cache.remember(hash(1), cached(0), cache.moment());
        assert!(has(&cache, 1) && cache.count() == 1);
        cache.forget(&[hash(1), hash(2)]);
        assert!(!has(&cache, 1) && cache.count() == 0);
        cache.remember(hash(1), cached(0), cache.moment());
        cache.remember(hash(1), cached(0), cache.moment());
        assert_eq!(cache.count(), 1);
        cache.forget_all();
        assert_eq!((has(&cache, 1), cache.count()), (false, 0));
    }

    #[test]
    fn the_bound_holds_and_the_newest_stay() {
        let cache = Cache::new(SHARDS * 8);
        for number in 0..5000 {
            cache.remember(hash(number), cached(number.into()), cache.moment());
        }
        let held: usize = cache.shards.iter().map(|shard| lock(shard).len()).sum();
        assert!(held <= SHARDS * 8, "{held}");
        assert_eq!(held, cache.count());
        assert!(has(&cache, 4999) && !has(&cache, 0));
    }
}
