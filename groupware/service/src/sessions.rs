//! Who is signed in, by the hash of the cookie's token. In memory: a restart signs everybody out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use groupware_people::{Account, SecretHash, hash_secret};

use crate::random;

/// Threads that look up sessions at the same moment rarely meet in one of these.
const SHARDS: usize = 64;

#[derive(Debug)]
struct Session {
    account: Arc<Account>,
    started: Duration,
    last_used: Duration,
}

/// How long sessions last.
#[derive(Debug, Clone, Copy)]
pub struct Lifetime {
    /// Without a request.
    pub idle: Duration,
    /// With however many.
    pub total: Duration,
}

impl Lifetime {
    fn is_over(self, session: &Session, now: Duration) -> bool {
        now.saturating_sub(session.last_used) >= self.idle
            || now.saturating_sub(session.started) >= self.total
    }
}

/// What can be told of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionLine {
    /// What it is called. It opens nothing.
    pub id: String,
    /// How long ago it began.
    pub age: Duration,
    /// How long ago its last request was.
    pub idle: Duration,
    /// It is the session of this token.
    pub is_own: bool,
}

/// What a session is called: the beginning of its token's hash, from which nobody finds the token.
fn id_of(hash: &SecretHash) -> String {
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

type Shard = HashMap<SecretHash, Session>;

/// All sessions, within a bound.
#[derive(Debug)]
pub struct Sessions {
    shards: Vec<Mutex<Shard>>,
    per_shard: usize,
    lifetime: Lifetime,
    count: AtomicUsize,
}

impl Sessions {
    /// At most so many sessions.
    pub fn new(most: usize, lifetime: Lifetime) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let per_shard = most.div_ceil(SHARDS).max(1);
        Self {
            shards,
            per_shard,
            lifetime,
            count: AtomicUsize::new(0),
        }
    }

    /// Starts a session and returns its token, which is kept nowhere else. What the user signed in
    /// with may have changed since it was looked at: the caller looks once more afterwards, when
    /// [`end_all`](Self::end_all) can find the session.
    pub fn start(&self, account: &Arc<Account>, now: Duration) -> String {
        let token = random::secret();
        let hash = hash_secret(&token);
        let session = Session {
            account: Arc::clone(account),
            started: now,
            last_used: now,
        };
        let oldest = account.add_session(hash);
        let evicted = {
            let mut shard = self.shard(&hash);
            let evicted = match shard.len() >= self.per_shard {
                true => make_room(&mut shard, self.per_shard, now, self.lifetime),
                false => Vec::new(),
            };
            shard.insert(hash, session);
            evicted
        };
        self.count.fetch_add(1, Relaxed);
        self.count.fetch_sub(evicted.len(), Relaxed);
        for (hash, account) in evicted {
            account.remove_session(&hash);
        }
        if let Some(oldest) = oldest {
            self.drop_one(&oldest);
        }
        token
    }

    /// The account of a session that isn't over.
    pub fn find(&self, token: &str, now: Duration) -> Option<Arc<Account>> {
        let hash = hash_secret(token);
        let mut shard = self.shard(&hash);
        let session = shard.get_mut(&hash)?;
        if !self.lifetime.is_over(session, now) {
            session.last_used = now;
            return Some(Arc::clone(&session.account));
        }
        let expired = shard.remove(&hash)?;
        drop(shard);
        self.count.fetch_sub(1, Relaxed);
        expired.account.remove_session(&hash);
        None
    }

    /// Ends a session; one that doesn't exist is ended already.
    pub fn end(&self, token: &str) {
        let hash = hash_secret(token);
        if let Some(session) = self.drop_one(&hash) {
            session.account.remove_session(&hash);
        }
    }

    /// Ends every session of a user.
    pub fn end_all(&self, account: &Account) {
        for hash in account.take_sessions() {
            self.drop_one(&hash);
        }
    }

    /// A user's sessions, oldest first; `own` is the token of the one that asks.
    pub fn of(&self, account: &Account, own: Option<&str>, now: Duration) -> Vec<SessionLine> {
        let own = own.map(hash_secret);
        let line = |hash: SecretHash| {
            let shard = self.shard(&hash);
            let session = shard.get(&hash)?;
            (!self.lifetime.is_over(session, now)).then(|| SessionLine {
                id: id_of(&hash),
                age: now.saturating_sub(session.started),
                idle: now.saturating_sub(session.last_used),
                is_own: own == Some(hash),
            })
        };
        account.sessions().into_iter().filter_map(line).collect()
    }

    /// Ends a user's session of this name; whether there was one.
    pub fn end_one(&self, account: &Account, id: &str) -> bool {
        let mut sessions = account.sessions().into_iter();
        let Some(hash) = sessions.find(|hash| id_of(hash) == id) else {
            return false;
        };
        account.remove_session(&hash);
        self.drop_one(&hash).is_some()
    }

    /// Ends every session of a user but that of this token.
    pub fn end_others(&self, account: &Account, own: &str) {
        let own = hash_secret(own);
        for hash in account.sessions().into_iter().filter(|hash| *hash != own) {
            account.remove_session(&hash);
            self.drop_one(&hash);
        }
    }

    /// How many there are, those included that nobody has noticed to be over.
    pub fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    fn drop_one(&self, hash: &SecretHash) -> Option<Session> {
        let session = self.shard(hash).remove(hash);
        self.count
            .fetch_sub(usize::from(session.is_some()), Relaxed);
        session
    }

    fn shard(&self, hash: &SecretHash) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[usize::from(hash[0]) % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the sessions that expired and, if that isn't enough, the eighth that was idle longest:
/// that many at once, so that a full shard isn't sorted for every sign-in.
fn make_room(
    shard: &mut Shard,
    most: usize,
    now: Duration,
    lifetime: Lifetime,
) -> Vec<(SecretHash, Arc<Account>)> {
    let mut gone: Vec<_> = shard
        .extract_if(|_, session| lifetime.is_over(session, now))
        .map(|(h, s)| (h, s.account))
        .collect();
    if shard.len() >= most {
        let mut ages: Vec<_> = shard.iter().map(|(hash, s)| (s.last_used, *hash)).collect();
        ages.sort_unstable();
        for (_, hash) in ages.into_iter().take((most / 8).max(1)) {
            gone.extend(shard.remove(&hash).map(|session| (hash, session.account)));
        }
    }
    gone
}

#[cfg(test)]
mod tests {
    use groupware_people::{Credentials, UserName};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const LIFETIME: Lifetime = Lifetime {
        idle: HOUR,
        total: HOUR.saturating_mul(3),
    };

    fn account(name: &str) -> Arc<Account> {
        Arc::new(Account::new(
            UserName::parse(name).unwrap(),
            0,
            Credentials::default(),
        ))
    }

    #[test]
    fn a_session_lasts_while_it_is_used() {
        let sessions = Sessions::new(100, LIFETIME);
        let token = sessions.start(&account("ada"), Duration::ZERO);
        for at in [HOUR / 2, HOUR, HOUR * 3 / 2] {
            assert_eq!(&**sessions.find(&token, at).unwrap().name.key(), "ada");
        }
        assert!(sessions.find("", HOUR).is_none());
        assert!(sessions.find(&token, HOUR * 5 / 2).is_none());
        assert_eq!(sessions.count(), 0);
    }

    #[test]
    fn a_session_does_not_last_for_ever() {
        let sessions = Sessions::new(100, LIFETIME);
        let ada = account("ada");
        let token = sessions.start(&ada, Duration::ZERO);
        for half_hours in 1..6 {
            assert!(sessions.find(&token, HOUR / 2 * half_hours).is_some());
        }
        assert!(sessions.find(&token, HOUR * 3).is_none());
        assert_eq!(sessions.count(), 0);
        assert!(ada.take_sessions().is_empty());
    }

    #[test]
    fn sessions_end() {
        let sessions = Sessions::new(100, LIFETIME);
        let ada = account("ada");
        let (one, two) = (sessions.start(&ada, HOUR), sessions.start(&ada, HOUR));
        let eve = sessions.start(&account("eve"), HOUR);
        sessions.end(&one);
        sessions.end(&one);
        assert!(sessions.find(&one, HOUR).is_none());
        assert!(sessions.find(&two, HOUR).is_some());
        sessions.end_all(&ada);
        assert!(sessions.find(&two, HOUR).is_none());
        assert!(sessions.find(&eve, HOUR).is_some());
        assert_eq!(sessions.count(), 1);
    }

    #[test]
    fn a_user_sees_and_ends_sessions_one_by_one() {
        let sessions = Sessions::new(100, LIFETIME);
        let (ada, eve) = (account("ada"), account("eve"));
        let one = sessions.start(&ada, Duration::ZERO);
        let two = sessions.start(&ada, HOUR / 2);
        let other = sessions.start(&eve, HOUR / 2);
        let lines = sessions.of(&ada, Some(&two), HOUR * 3 / 4);
        let told: Vec<_> = lines
            .iter()
            .map(|line| (line.age, line.idle, line.is_own))
            .collect();
        let (old, new) = (HOUR * 3 / 4, HOUR / 4);
        assert_eq!(told, [(old, old, false), (new, new, true)]);
        assert!(
            !sessions.end_one(&eve, &lines[0].id),
            "it is another user's"
        );
        assert!(sessions.end_one(&ada, &lines[0].id));
        assert!(!sessions.end_one(&ada, &lines[0].id));
        assert!(sessions.find(&one, HOUR).is_none());
        let three = sessions.start(&ada, HOUR / 2);
        sessions.end_others(&ada, &two);
        assert!(sessions.find(&three, HOUR).is_none());
        assert!(sessions.find(&two, HOUR).is_some() && sessions.find(&other, HOUR).is_some());
        assert_eq!(
            (sessions.count(), sessions.of(&ada, None, HOUR).len()),
            (2, 1)
        );
        assert!(sessions.of(&ada, None, HOUR * 9).is_empty());
    }

    #[test]
    fn the_bound_holds_and_the_newest_stay() {
        let sessions = Sessions::new(SHARDS * 8, LIFETIME);
        let mut last = String::new();
        for number in 0..5000_u32 {
            let user = account(&format!("user{}", number % 500));
            last = sessions.start(&user, Duration::from_millis(number.into()));
        }
        assert!(sessions.count() <= SHARDS * 8, "{}", sessions.count());
        let held: usize = sessions
            .shards
            .iter()
            .map(|shard| shard.lock().unwrap().len())
            .sum();
        assert_eq!(held, sessions.count());
        assert!(sessions.find(&last, HOUR / 2).is_some());
    }
}
