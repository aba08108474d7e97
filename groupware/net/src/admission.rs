//! Which connections are let in, and which make room for others.
//!
//! A connection is a stranger's until somebody has signed in on it. Strangers have half of all
//! connections, and of these no more than are cheap to hold; when they are all taken, whoever has most
//! of them makes room for whoever has fewer, and where all have as few, the oldest for who has none: else
//! many addresses with a connection each would keep all others out. Who has a few makes room for itself then: it may come
//! back before its last connection is seen to have ended. Users' connections are bounded by user; a trusted address' only
//! by the number of all.
//!
//! It doesn't know what connections are for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;

use crate::known::Known;
use crate::network::client_of;

/// Most connections of strangers: each may have sent a whole head, for which it has a buffer.
const STRANGERS: usize = 2048;
/// Most connections of one user that don't count among the strangers'.
const OF_USER: usize = 256;

/// Who has so few that each new one takes the place of its oldest, where nobody else makes room: as many as a browser has.
/// Who has more is to end some first, or those of many users behind an address would end each other's for ever.
const FEW: usize = 6;

/// The connections that are open.
#[derive(Debug)]
pub struct Admission {
    most: usize,
    most_strangers: usize,
    most_of_client: usize,
    known: Known,
    open: Mutex<Open>,
}

/// What an admission holds now, and what it has done since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdmissionStats {
    /// Most connections.
    pub most: usize,
    /// Open connections of strangers.
    pub strangers: usize,
    /// Open connections that count as users'.
    pub users: usize,
    /// Open connections of trusted addresses, and of proxies that have yet to say for whom they come.
    pub trusted: usize,
    /// What was not let in.
    pub refused: Refused,
    /// Strangers' connections that were ended to make room for others.
    pub displaced: u64,
}

/// Connections that were not let in, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refused {
    /// All that there may be were taken, or all of strangers.
    pub full: u64,
    /// The address had as many as one may have.
    pub share: u64,
    /// A proxy didn't say for whom it came.
    pub header: u64,
}

#[derive(Debug, Default)]
struct Open {
    count: usize,
    refused: Refused,
    displaced: u64,
    next: u64,
    strangers: usize,
    /// Strangers' connections by client, the oldest first.
    by_client: HashMap<IpAddr, BTreeMap<u64, Arc<Ticket>>>,
    /// Whose these are, the oldest first.
    by_age: BTreeMap<u64, IpAddr>,
    /// Clients by the number of these.
    ranks: BTreeSet<(usize, IpAddr)>,
    /// All connections by client, where these are bounded.
    of_client: HashMap<IpAddr, usize>,
    of_user: HashMap<Arc<str>, usize>,
}

/// Whose a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// A stranger's, until somebody signs in on it.
    Stranger,
    /// A trusted address'.
    Trusted,
    /// A proxy's, which has yet to say for whom it comes.
    Proxy,
}

/// What is known of a connection.
#[derive(Debug)]
pub struct Ticket {
    number: u64,
    client: IpAddr,
    standing: Standing,
    displaced: Notify,
}

/// One of the connections that may be open; dropping it leaves it to another.
#[derive(Debug)]
pub struct Slot {
    of: Arc<Admission>,
    ticket: Arc<Ticket>,
    /// Who has signed in on it, if it counts as a user's.
    user: OnceLock<Arc<str>>,
}

impl Admission {
    /// Lets so many connections be open.
    pub fn new(most: usize, known: Known) -> Self {
        Self {
            most,
            most_strangers: (most / 2).clamp(1, STRANGERS),
            most_of_client: usize::MAX,
            known,
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

    /// Counts a new connection; `None` if there is no room for it. Where proxies say for whom they come,
    /// one of theirs owes that, see [`arrive`](crate::arrive).
    pub fn enter(self: &Arc<Self>, peer: IpAddr, proxies_say: bool) -> Option<Slot> {
        let standing = match peer {
            _ if proxies_say && self.known.is_proxy(peer) => Standing::Proxy,
            _ if self.known.is_trusted(peer) => Standing::Trusted,
            _ => Standing::Stranger,
        };
        self.enter_as(peer, standing)
    }

    fn enter_as(self: &Arc<Self>, peer: IpAddr, standing: Standing) -> Option<Slot> {
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
        let ticket = Arc::new(Ticket {
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
        Some(Slot {
            of: Arc::clone(self),
            ticket,
            user: OnceLock::new(),
        })
    }

    /// Whether an address has only so many of these. A proxy has as many as it comes for.
    fn is_bounded(&self, standing: Standing) -> bool {
        self.most_of_client != usize::MAX && standing != Standing::Proxy
    }

    /// What it holds and has done.
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
    /// Has a stranger's connection end, if one has more of them than this client would, or this client has
    /// none or a few.
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
        // It is not counted from here on, though it takes a moment to end.
        self.count = self.count.saturating_sub(1);
        self.displaced += 1;
        ticket.displaced.notify_one();
        true
    }

    fn insert(&mut self, ticket: &Arc<Ticket>) {
        let of_client = self.by_client.entry(ticket.client).or_default();
        self.ranks.remove(&(of_client.len(), ticket.client));
        of_client.insert(ticket.number, Arc::clone(ticket));
        self.by_age.insert(ticket.number, ticket.client);
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

impl Ticket {
    /// Whether the address is trusted.
    pub fn is_trusted(&self) -> bool {
        self.standing == Standing::Trusted
    }

    /// Whether it is a proxy's, which has yet to say for whom it comes.
    pub fn owes_header(&self) -> bool {
        self.standing == Standing::Proxy
    }

    /// Whose it is, as clients are counted.
    pub fn client(&self) -> IpAddr {
        self.client
    }

    /// Has the connection end, so that others get what it holds.
    pub fn displace(&self) {
        self.displaced.notify_one();
    }

    /// Waits until the connection has to make room.
    pub async fn displaced(&self) {
        self.displaced.notified().await;
    }
}

impl Slot {
    /// What is known of the connection.
    pub fn ticket(&self) -> &Arc<Ticket> {
        &self.ticket
    }

    /// The connection is not let in: its proxy doesn't say for whom it comes.
    pub(crate) fn refuse(self) {
        self.of.lock().refused.header += 1;
    }

    /// The same connection as this client's, who is a stranger; `None` if there is no room for that.
    pub(crate) fn of_client(self, client: IpAddr) -> Option<Self> {
        let of = Arc::clone(&self.of);
        drop(self);
        of.enter_as(client, Standing::Stranger)
    }

    /// Somebody has signed in on the connection: it counts as this user's, unless it counts as
    /// somebody's already, or the user has many.
    pub fn belongs_to(&self, user: &Arc<str>) {
        if self.ticket.standing != Standing::Stranger || self.user.get().is_some() {
            return;
        }
        let mut open = self.of.lock();
        let count = open.of_user.get(user).copied().unwrap_or_default();
        // One that makes room already isn't there any more, and one that became a user's meanwhile isn't
        // among the strangers'.
        if count < OF_USER && open.remove(&self.ticket) {
            open.of_user.insert(Arc::clone(user), count + 1);
            // Nobody else sets it: who does has removed the ticket.
            let _ = self.user.set(Arc::clone(user));
        }
    }
}

impl Drop for Slot {
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
    use crate::Networks;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn many(admission: &Arc<Admission>, last: u8, count: usize) -> Vec<Slot> {
        (0..count)
            .map_while(|_| admission.enter(address(last), false))
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
        let admission = Arc::new(Admission::new(40, Known::default()));
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
        let admission = Arc::new(Admission::new(8, Known::default()));
        let each: Vec<_> = (1..5).flat_map(|last| many(&admission, last, 1)).collect();
        assert_eq!(each.len(), 4);
        let newcomer = many(&admission, 5, 1);
        assert_eq!(newcomer.len(), 1);
        assert!(is_displaced(&each[0]).await && !is_displaced(&each[1]).await);
        // It comes back, again and again, and what it had has not been seen to end.
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
        let admission = Arc::new(Admission::new(4 * FEW, Known::default()));
        let many = many(&admission, 1, 4 * FEW);
        assert_eq!(many.len(), 2 * FEW);
        for slot in &many {
            assert!(!is_displaced(slot).await);
        }
    }

    #[tokio::test]
    async fn users_keep_their_connections() {
        let admission = Arc::new(Admission::new(8, Known::default()));
        let (ada, bob): (Arc<str>, Arc<str>) = ("ada".into(), "bob".into());
        let users = many(&admission, 1, 4);
        for slot in &users {
            slot.belongs_to(&ada);
            slot.belongs_to(&bob);
        }
        let strangers = many(&admission, 1, 4);
        assert_eq!(strangers.len(), 4);
        // All are taken now: a stranger makes room, never a user.
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
            Known::new(Networks::loopback(), Networks::default()),
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
        let admission = Admission::new(100, Known::default()).with_most_of_client(2);
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
        let known = Known::new(Networks::loopback(), Networks::loopback());
        let admission = Arc::new(Admission::new(100, known).with_most_of_client(2));
        let proxy = [127, 0, 0, 1].into();
        // As many as it comes for, until it says for whom.
        let slots: Vec<_> = (0..9).map_while(|_| admission.enter(proxy, true)).collect();
        assert!(slots.len() == 9 && slots.iter().all(|slot| slot.ticket().owes_header()));
        let told: Vec<_> = slots
            .into_iter()
            .map_while(|slot| slot.of_client(address(1)))
            .collect();
        assert_eq!(told.len(), 2);
        assert!(!told[0].ticket().is_trusted() && !told[0].ticket().owes_header());
        assert_eq!(admission.lock().strangers, 2);
        // On a listener where proxies say nothing, it is who it is.
        let own = admission.enter(proxy, false).unwrap();
        assert!(own.ticket().is_trusted());
        drop((told, own));
        let open = admission.lock();
        assert!(open.count == 0 && open.of_client.is_empty());
    }
}
