//! Which connections are let in, and which make room for others.
//!
//! A connection is a stranger's until somebody has signed in on it. Strangers have half of all
//! connections, and of these no more than are cheap to hold; when they are all taken, whoever has most
//! of them makes room for whoever has fewer. Users' connections are bounded by user; a trusted address'
//! only by the number of all.
//!
//! It doesn't know what connections are for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::network::{Networks, client_of};

/// Most connections of strangers: each may have sent a whole head, for which it has a buffer.
const STRANGERS: usize = 2048;
/// Most connections of one user that don't count among the strangers'.
const OF_USER: usize = 256;

/// The connections that are open.
#[derive(Debug)]
pub struct Admission {
    most: usize,
    most_strangers: usize,
    most_of_client: usize,
    trusted: Networks,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    count: usize,
    next: u64,
    strangers: usize,
    /// Strangers' connections by client, the oldest first.
    by_client: HashMap<IpAddr, BTreeMap<u64, Arc<Ticket>>>,
    /// Clients by the number of these.
    ranks: BTreeSet<(usize, IpAddr)>,
    /// All connections by client, where these are bounded.
    of_client: HashMap<IpAddr, usize>,
    of_user: HashMap<Arc<str>, usize>,
}

/// What is known of a connection.
#[derive(Debug)]
pub struct Ticket {
    number: u64,
    client: IpAddr,
    is_trusted: bool,
    is_users: AtomicBool,
    displaced: Notify,
}

/// One of the connections that may be open; dropping it leaves it to another.
#[derive(Debug)]
pub struct Slot {
    of: Arc<Admission>,
    ticket: Arc<Ticket>,
    user: Mutex<Option<Arc<str>>>,
}

impl Admission {
    /// Lets so many connections be open.
    pub fn new(most: usize, trusted: Networks) -> Self {
        Self {
            most,
            most_strangers: (most / 2).clamp(1, STRANGERS),
            most_of_client: usize::MAX,
            trusted,
            open: Mutex::default(),
        }
    }

    /// The same, and so many from any one address, trusted or not.
    #[must_use]
    pub fn with_most_of_client(self, most_of_client: usize) -> Self {
        Self {
            most_of_client,
            ..self
        }
    }

    /// Counts a new connection; `None` if there is no room for it.
    pub fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Slot> {
        let (client, is_trusted) = (client_of(peer), self.trusted.contains(peer));
        let mut open = self.lock();
        let is_bounded = self.most_of_client != usize::MAX;
        if is_bounded
            && open
                .of_client
                .get(&client)
                .is_some_and(|count| *count >= self.most_of_client)
        {
            return None;
        }
        let is_full = open.count >= self.most;
        if (is_full || !is_trusted && open.strangers >= self.most_strangers)
            && !open.displace_for(client, is_trusted)
        {
            return None;
        }
        open.count += 1;
        open.next += 1;
        let ticket = Arc::new(Ticket {
            number: open.next,
            client,
            is_trusted,
            is_users: AtomicBool::new(false),
            displaced: Notify::new(),
        });
        if is_bounded {
            *open.of_client.entry(client).or_default() += 1;
        }
        if !is_trusted {
            open.insert(&ticket);
        }
        drop(open);
        Some(Slot {
            of: Arc::clone(self),
            ticket,
            user: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Has a stranger's connection end, if one has more of them than this client would.
    fn displace_for(&mut self, client: IpAddr, is_trusted: bool) -> bool {
        let own = self.by_client.get(&client).map_or(0, BTreeMap::len);
        let Some((most, heaviest)) = self.ranks.last().copied() else {
            return false;
        };
        if !is_trusted && most <= own + 1 {
            return false;
        }
        let oldest = self
            .by_client
            .get(&heaviest)
            .and_then(BTreeMap::first_key_value);
        let Some(ticket) = oldest.map(|(_, ticket)| Arc::clone(ticket)) else {
            return false;
        };
        self.remove(&ticket);
        // It is not counted from here on, though it takes a moment to end.
        self.count = self.count.saturating_sub(1);
        ticket.displaced.notify_one();
        true
    }

    fn insert(&mut self, ticket: &Arc<Ticket>) {
        let of_client = self.by_client.entry(ticket.client).or_default();
        self.ranks.remove(&(of_client.len(), ticket.client));
        of_client.insert(ticket.number, Arc::clone(ticket));
        self.ranks.insert((of_client.len(), ticket.client));
        self.strangers += 1;
    }

    /// Whether it was there.
    fn remove(&mut self, ticket: &Ticket) -> bool {
        let Some(of_client) = self.by_client.get_mut(&ticket.client) else {
            return false;
        };
        let before = of_client.len();
        if of_client.remove(&ticket.number).is_none() {
            return false;
        }
        self.ranks.remove(&(before, ticket.client));
        match of_client.len() {
            0 => drop(self.by_client.remove(&ticket.client)),
            left => drop(self.ranks.insert((left, ticket.client))),
        }
        self.strangers -= 1;
        true
    }
}

impl Ticket {
    /// Whether the address is trusted.
    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// Waits until the connection has to make room.
    pub async fn displaced(&self) {
        self.displaced.notified().await;
    }
}

impl Slot {
    /// What is known of the connection.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Somebody has signed in on the connection: it counts as this user's, unless it counts as
    /// somebody's already, or the user has many.
    pub fn belongs_to(&self, user: &Arc<str>) {
        if self.ticket.is_trusted || self.ticket.is_users.load(Relaxed) {
            return;
        }
        let mut own = self.user.lock().unwrap_or_else(PoisonError::into_inner);
        let mut open = self.of.lock();
        let count = open.of_user.get(user).copied().unwrap_or_default();
        // One that makes room already isn't there any more.
        if own.is_none() && count < OF_USER && open.remove(&self.ticket) {
            open.of_user.insert(Arc::clone(user), count + 1);
            *own = Some(Arc::clone(user));
            self.ticket.is_users.store(true, Relaxed);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let user = self
            .user
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let mut open = self.of.lock();
        leave(&mut open.of_client, &self.ticket.client);
        let was_counted = match &user {
            Some(user) => {
                leave(&mut open.of_user, user);
                true
            }
            None => self.ticket.is_trusted || open.remove(&self.ticket),
        };
        if was_counted {
            open.count = open.count.saturating_sub(1);
        }
    }
}

/// One less of those that are counted.
fn leave<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn many(admission: &Arc<Admission>, last: u8, count: usize) -> Vec<Slot> {
        (0..count)
            .map_while(|_| admission.enter(address(last)))
            .collect()
    }

    async fn is_displaced(slot: &Slot) -> bool {
        tokio::select! {
            biased;
            () = slot.ticket().displaced() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn who_has_most_makes_room_for_who_has_fewer() {
        let admission = Arc::new(Admission::new(8, Networks::default()));
        let greedy = many(&admission, 1, 9);
        assert_eq!(greedy.len(), 4, "half of all are for strangers");
        let others = many(&admission, 2, 9);
        assert_eq!(others.len(), 2, "until both have as many");
        assert!(is_displaced(&greedy[0]).await && is_displaced(&greedy[1]).await);
        assert!(!is_displaced(&greedy[2]).await);
        let third = many(&admission, 3, 1);
        assert_eq!(third.len(), 1);
        drop((greedy, others, third));
        let open = admission.lock();
        assert_eq!((open.count, open.strangers), (0, 0));
        assert!(open.ranks.is_empty() && open.by_client.is_empty());
    }

    #[tokio::test]
    async fn users_keep_their_connections() {
        let admission = Arc::new(Admission::new(8, Networks::default()));
        let (ada, bob): (Arc<str>, Arc<str>) = ("ada".into(), "bob".into());
        let users = many(&admission, 1, 4);
        for slot in &users {
            slot.belongs_to(&ada);
            slot.belongs_to(&bob);
        }
        let strangers = many(&admission, 1, 9);
        assert_eq!(strangers.len(), 4);
        // All are taken now: a stranger makes room, never a user.
        let more = many(&admission, 2, 9);
        assert_eq!(more.len(), 2);
        for slot in &users {
            assert!(!is_displaced(slot).await);
        }
        assert_eq!(admission.lock().of_user.get(&ada), Some(&4));
        drop((users, strangers, more));
        assert!(admission.lock().of_user.is_empty());
        assert_eq!(admission.lock().count, 0);
    }

    #[test]
    fn a_trusted_address_has_all_there_are() {
        let admission = Arc::new(Admission::new(8, Networks::loopback()));
        let strangers = many(&admission, 1, 9);
        let enter = || admission.enter([127, 0, 0, 1].into());
        let trusted: Vec<_> = std::iter::from_fn(enter).collect();
        assert_eq!((strangers.len(), trusted.len()), (4, 8));
        assert!(many(&admission, 2, 1).is_empty());
        drop((strangers, trusted));
        assert_eq!(admission.lock().count, 0);
    }

    #[test]
    fn one_address_has_so_many() {
        let admission = Admission::new(100, Networks::default()).with_most_of_client(2);
        let admission = Arc::new(admission);
        let mut first = many(&admission, 1, 9);
        assert_eq!(first.len(), 2);
        assert_eq!(many(&admission, 2, 9).len(), 2);
        first.pop();
        assert_eq!(many(&admission, 1, 9).len(), 1);
        drop(first);
        assert!(admission.lock().of_client.is_empty());
    }
}
