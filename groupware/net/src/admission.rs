//! Decides which connections are accepted, and which are closed to free room for others.
//!
//! A connection is unauthenticated until a user signs in on it. Unauthenticated connections have half of
//! all permits, at most as many as are cheap to hold. When all of these are taken, the client with the most
//! closes its oldest connection for a client with fewer. Where all have equally few, the oldest of all is
//! closed for a client with none: else many addresses with one connection each would lock out all others. A
//! client with a few then replaces its own oldest: it may reconnect before the end of its last connection
//! is seen. Users' connections are bounded by user; a trusted address' only by the total.
//!
//! This module doesn't know what connections are for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;

use crate::network::client_of;
use crate::trusted::TrustedNetworks;

/// Most unauthenticated connections: each may have sent a whole head, for which it has a buffer.
const STRANGERS: usize = 2048;
/// Most connections of one user that don't count as unauthenticated.
const OF_USER: usize = 256;

/// A client with at most so many replaces its own oldest where no other frees one: as many as a browser opens.
/// A client with more must close some first; else users behind one address would close each other's for ever.
const FEW: usize = 6;

/// The connections that are open.
#[derive(Debug)]
pub struct Admission {
    most: usize,
    most_strangers: usize,
    most_of_client: usize,
    known: TrustedNetworks,
    open: Mutex<Open>,
}

/// The open connections now, and the totals since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdmissionStats {
    /// The maximum number of connections.
    pub most: usize,
    /// Open unauthenticated connections.
    pub strangers: usize,
    /// Open connections that count for users.
    pub users: usize,
    /// Open connections of trusted addresses, and of proxies that have yet to name the client.
    pub trusted: usize,
    /// Rejected connections.
    pub refused: Refused,
    /// Unauthenticated connections that were closed to free room for others.
    pub displaced: u64,
}

/// Rejected connections, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refused {
    /// All permits were taken, or all of unauthenticated clients.
    pub full: u64,
    /// The address had its maximum number of connections.
    pub share: u64,
    /// A proxy didn't name its client.
    pub header: u64,
}

#[derive(Debug, Default)]
struct Open {
    count: usize,
    refused: Refused,
    displaced: u64,
    next: u64,
    strangers: usize,
    /// Unauthenticated connections by client, the oldest first.
    by_client: HashMap<IpAddr, BTreeMap<u64, Arc<ConnectionIdentity>>>,
    /// The clients of these connections, the oldest connection first.
    by_age: BTreeMap<u64, IpAddr>,
    /// Clients by the number of these connections.
    ranks: BTreeSet<(usize, IpAddr)>,
    /// All connections by client, where their number is bounded.
    of_client: HashMap<IpAddr, usize>,
    of_user: HashMap<Arc<str>, usize>,
}

/// How a connection is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Unauthenticated, until a user signs in on it.
    Stranger,
    /// From a trusted address.
    Trusted,
    /// From a proxy that has yet to name the client.
    Proxy,
}

/// The identity of an open connection.
#[derive(Debug)]
pub struct ConnectionIdentity {
    number: u64,
    client: IpAddr,
    standing: Standing,
    displaced: Notify,
}

/// The permit of an open connection; dropping it releases the permit.
#[derive(Debug)]
pub struct ConnectionPermit {
    of: Arc<Admission>,
    ticket: Arc<ConnectionIdentity>,
    /// The user that the connection counts for, if any.
    user: OnceLock<Arc<str>>,
}

impl Admission {
    /// Permits so many open connections.
    pub fn new(most: usize, known: TrustedNetworks) -> Self {
        Self {
            most,
            most_strangers: (most / 2).clamp(1, STRANGERS),
            most_of_client: usize::MAX,
            known,
            open: Mutex::default(),
        }
    }

    /// Bounds the connections from any one address too, trusted or not.
    #[must_use]
    pub fn with_most_of_client(self, most_of_client: usize) -> Self {
        Self {
            most_of_client,
            ..self
        }
    }

    /// Counts a new connection; `None` if no permit is free. If `proxies_say`, a proxy's connection
    /// must begin with a header that names the client, see [`arrive`](crate::arrive).
    pub fn enter(self: &Arc<Self>, peer: IpAddr, proxies_say: bool) -> Option<ConnectionPermit> {
        let standing = match peer {
            _ if proxies_say && self.known.is_proxy(peer) => Standing::Proxy,
            _ if self.known.is_trusted(peer) => Standing::Trusted,
            _ => Standing::Stranger,
        };
        self.enter_as(peer, standing)
    }

    fn enter_as(self: &Arc<Self>, peer: IpAddr, standing: Standing) -> Option<ConnectionPermit> {
        let client = client_of(peer);
        let is_stranger = standing == Standing::Stranger;
        let mut open = self.lock();
        let is_bounded = self.is_bounded(standing);
        let own = open.of_client.get(&client).copied().unwrap_or_default();
        if is_bounded && own >= self.most_of_client {
            open.refused.share += 1;
            return None;
        }
        let is_full = open.count >= self.most;
        if (is_full || is_stranger && open.strangers >= self.most_strangers)
            && !open.displace_for(client, is_stranger)
        {
            open.refused.full += 1;
            return None;
        }
        open.count += 1;
        open.next += 1;
        let ticket = Arc::new(ConnectionIdentity {
            number: open.next,
            client,
            standing,
            displaced: Notify::new(),
        });
        if is_bounded {
            open.of_client.insert(client, own + 1);
        }
        if is_stranger {
            open.insert(&ticket);
        }
        drop(open);
        Some(ConnectionPermit {
            of: Arc::clone(self),
            ticket,
            user: OnceLock::new(),
        })
    }

    /// Returns true if the number of connections per address is bounded. A proxy's is not.
    fn is_bounded(&self, standing: Standing) -> bool {
        self.most_of_client != usize::MAX && standing != Standing::Proxy
    }

    /// Returns the current counts.
    pub fn stats(&self) -> AdmissionStats {
        let open = self.lock();
        let users = open.of_user.values().sum();
        AdmissionStats {
            most: self.most,
            strangers: open.strangers,
            users,
            trusted: open.count.saturating_sub(open.strangers + users),
            refused: open.refused,
            displaced: open.displaced,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Closes an unauthenticated connection, if another client has more of them than this client
    /// would, or this client has at most [`FEW`].
    fn displace_for(&mut self, newcomer: IpAddr, is_stranger: bool) -> bool {
        let own = self.by_client.get(&newcomer).map_or(0, BTreeMap::len);
        let Some((most, heaviest)) = self.ranks.last().copied() else {
            return false;
        };
        let has_fewer = !is_stranger || most > own + 1;
        let client = match (has_fewer, own) {
            (true, _) => Some(heaviest),
            (false, 0) => self.by_age.values().next().copied(),
            (false, 1..=FEW) => Some(newcomer),
            (false, _) => None,
        };
        let of_client = client.and_then(|client| self.by_client.get(&client));
        let oldest = of_client.and_then(BTreeMap::first_key_value);
        let Some(ticket) = oldest.map(|(_, ticket)| Arc::clone(ticket)) else {
            return false;
        };
        self.remove(&ticket);
        // The closing connection no longer counts, though it takes a moment to end.
        self.count = self.count.saturating_sub(1);
        self.displaced += 1;
        ticket.displaced.notify_one();
        true
    }

    fn insert(&mut self, ticket: &Arc<ConnectionIdentity>) {
        let of_client = self.by_client.entry(ticket.client).or_default();
        self.ranks.remove(&(of_client.len(), ticket.client));
        of_client.insert(ticket.number, Arc::clone(ticket));
        self.by_age.insert(ticket.number, ticket.client);
        self.ranks.insert((of_client.len(), ticket.client));
        self.strangers += 1;
    }

    /// Removes an unauthenticated connection; returns true if it was present.
    fn remove(&mut self, ticket: &ConnectionIdentity) -> bool {
        let Some(of_client) = self.by_client.get_mut(&ticket.client) else {
            return false;
        };
        let before = of_client.len();
        if of_client.remove(&ticket.number).is_none() {
            return false;
        }
        self.by_age.remove(&ticket.number);
        self.ranks.remove(&(before, ticket.client));
        match of_client.len() {
            0 => drop(self.by_client.remove(&ticket.client)),
            left => drop(self.ranks.insert((left, ticket.client))),
        }
        self.strangers -= 1;
        true
    }
}

impl ConnectionIdentity {
    /// Returns true if the address is trusted.
    pub fn is_trusted(&self) -> bool {
        self.standing == Standing::Trusted
    }

    /// Returns true if a proxy has yet to name the client.
    pub fn awaits_proxy_header(&self) -> bool {
        self.standing == Standing::Proxy
    }

    /// The client that the connection counts for.
    pub fn client(&self) -> IpAddr {
        self.client
    }

    /// Closes the connection, to free its resources for others.
    pub fn displace(&self) {
        self.displaced.notify_one();
    }

    /// Waits until the connection must close.
    pub async fn displaced(&self) {
        self.displaced.notified().await;
    }
}

impl ConnectionPermit {
    /// The identity of the connection.
    pub fn ticket(&self) -> &Arc<ConnectionIdentity> {
        &self.ticket
    }

    /// Rejects the connection: its proxy doesn't name the client.
    pub(crate) fn refuse(self) {
        self.of.lock().refused.header += 1;
    }

    /// Counts the connection for this unauthenticated client; `None` if no permit is free.
    pub(crate) fn of_client(self, client: IpAddr) -> Option<Self> {
        let of = Arc::clone(&self.of);
        drop(self);
        of.enter_as(client, Standing::Stranger)
    }

    /// Counts the connection for this user, unless it counts for a user already, or the user has
    /// too many.
    pub fn belongs_to(&self, user: &Arc<str>) {
        if self.ticket.standing != Standing::Stranger || self.user.get().is_some() {
            return;
        }
        let mut open = self.of.lock();
        let count = open.of_user.get(user).copied().unwrap_or_default();
        // A connection that is being closed is no longer in the set, nor is one that became a
        // user's meanwhile.
        if count < OF_USER && open.remove(&self.ticket) {
            open.of_user.insert(Arc::clone(user), count + 1);
            // No other thread sets the user: only this one removed the ticket.
            let _ = self.user.set(Arc::clone(user));
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let user = self.user.take();
        let standing = self.ticket.standing;
        let mut open = self.of.lock();
        if self.of.is_bounded(standing) {
            leave(&mut open.of_client, &self.ticket.client);
        }
        let was_counted = match &user {
            Some(user) => {
                leave(&mut open.of_user, user);
                true
            }
            None => standing != Standing::Stranger || open.remove(&self.ticket),
        };
        if was_counted {
            open.count = open.count.saturating_sub(1);
        }
    }
}

/// Decrements a counter, and removes it at zero.
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
    use crate::Networks;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn many(admission: &Arc<Admission>, last: u8, count: usize) -> Vec<ConnectionPermit> {
        (0..count)
            .map_while(|_| admission.enter(address(last), false))
            .collect()
    }

    async fn is_displaced(slot: &ConnectionPermit) -> bool {
        tokio::select! {
            biased;
            () = slot.ticket().displaced() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn who_has_most_makes_room_for_who_has_fewer() {
        let admission = Arc::new(Admission::new(40, TrustedNetworks::default()));
        let greedy = many(&admission, 1, 29);
        assert_eq!(greedy.len(), 20, "half of all are for strangers");
        let others = many(&admission, 2, 29);
        assert_eq!(others.len(), 10, "until both have as many");
        assert!(is_displaced(&greedy[0]).await && is_displaced(&greedy[9]).await);
        assert!(!is_displaced(&greedy[10]).await && !is_displaced(&others[0]).await);
        let third = many(&admission, 3, 1);
        assert_eq!(third.len(), 1);
        let stats = admission.stats();
        assert_eq!((stats.most, stats.strangers, stats.displaced), (40, 20, 11));
        assert_eq!(stats.refused.full, 2);
        drop((greedy, others, third));
        let open = admission.lock();
        assert_eq!((open.count, open.strangers), (0, 0));
        assert!(open.ranks.is_empty() && open.by_client.is_empty() && open.by_age.is_empty());
    }

    #[tokio::test]
    async fn many_addresses_with_a_connection_each_keep_nobody_out() {
        let admission = Arc::new(Admission::new(8, TrustedNetworks::default()));
        let each: Vec<_> = (1..5).flat_map(|last| many(&admission, last, 1)).collect();
        assert_eq!(each.len(), 4);
        let newcomer = many(&admission, 5, 1);
        assert_eq!(newcomer.len(), 1);
        assert!(is_displaced(&each[0]).await && !is_displaced(&each[1]).await);
        // The client reconnects repeatedly, before the end of its previous connections is seen.
        let again = many(&admission, 5, 9);
        assert_eq!(again.len(), 9);
        assert!(is_displaced(&newcomer[0]).await && is_displaced(&again[7]).await);
        assert!(!is_displaced(&again[8]).await);
        assert!(
            !is_displaced(&each[1]).await,
            "who has one displaces nobody who has one"
        );
        let next = many(&admission, 6, 1);
        assert!(next.len() == 1 && is_displaced(&each[1]).await);
        assert_eq!(admission.stats().strangers, 4);
        drop((each, newcomer, again, next));
        assert_eq!(admission.lock().count, 0);
    }

    #[tokio::test]
    async fn who_alone_has_many_is_to_end_some_first() {
        let admission = Arc::new(Admission::new(4 * FEW, TrustedNetworks::default()));
        let many = many(&admission, 1, 4 * FEW);
        assert_eq!(many.len(), 2 * FEW);
        for slot in &many {
            assert!(!is_displaced(slot).await);
        }
    }

    #[tokio::test]
    async fn users_keep_their_connections() {
        let admission = Arc::new(Admission::new(8, TrustedNetworks::default()));
        let (ada, bob): (Arc<str>, Arc<str>) = ("ada".into(), "bob".into());
        let users = many(&admission, 1, 4);
        for slot in &users {
            slot.belongs_to(&ada);
            slot.belongs_to(&bob);
        }
        let strangers = many(&admission, 1, 4);
        assert_eq!(strangers.len(), 4);
        // All are taken now: an unauthenticated connection is closed, never a user's.
        let more = many(&admission, 2, 2);
        assert_eq!(more.len(), 2);
        for slot in &users {
            assert!(!is_displaced(slot).await);
        }
        assert_eq!(admission.lock().of_user.get(&ada), Some(&4));
        let stats = admission.stats();
        assert_eq!((stats.strangers, stats.users, stats.trusted), (4, 4, 0));
        drop((users, strangers, more));
        assert!(admission.lock().of_user.is_empty());
        assert_eq!(admission.lock().count, 0);
    }

    #[test]
    fn a_trusted_address_has_all_there_are() {
        let admission = Arc::new(Admission::new(
            8,
            TrustedNetworks::new(Networks::loopback(), Networks::default()),
        ));
        let strangers = many(&admission, 1, 4);
        let enter = || admission.enter([127, 0, 0, 1].into(), false);
        let trusted: Vec<_> = std::iter::from_fn(enter).collect();
        assert_eq!((strangers.len(), trusted.len()), (4, 8));
        assert!(many(&admission, 2, 1).is_empty());
        drop((strangers, trusted));
        assert_eq!(admission.lock().count, 0);
    }

    #[test]
    fn one_address_has_so_many() {
        let admission = Admission::new(100, TrustedNetworks::default()).with_most_of_client(2);
        let admission = Arc::new(admission);
        let mut first = many(&admission, 1, 9);
        assert_eq!(first.len(), 2);
        assert_eq!(many(&admission, 2, 9).len(), 2);
        first.pop();
        assert_eq!(many(&admission, 1, 9).len(), 1);
        assert_eq!(admission.stats().refused.share, 3);
        drop(first);
        assert!(admission.lock().of_client.is_empty());
    }

    #[test]
    fn who_comes_by_a_proxy_is_a_stranger_with_a_share_of_its_own() {
        let known = TrustedNetworks::new(Networks::loopback(), Networks::loopback());
        let admission = Arc::new(Admission::new(100, known).with_most_of_client(2));
        let proxy = [127, 0, 0, 1].into();
        // The proxy's connections are unbounded until it names their clients.
        let slots: Vec<_> = (0..9).map_while(|_| admission.enter(proxy, true)).collect();
        assert!(slots.len() == 9 && slots.iter().all(|slot| slot.ticket().awaits_proxy_header()));
        let told: Vec<_> = slots
            .into_iter()
            .map_while(|slot| slot.of_client(address(1)))
            .collect();
        assert_eq!(told.len(), 2);
        assert!(!told[0].ticket().is_trusted() && !told[0].ticket().awaits_proxy_header());
        assert_eq!(admission.lock().strangers, 2);
        // On a listener without proxy headers, the proxy counts as itself.
        let own = admission.enter(proxy, false).unwrap();
        assert!(own.ticket().is_trusted());
        drop((told, own));
        let open = admission.lock();
        assert!(open.count == 0 && open.of_client.is_empty());
    }
}
