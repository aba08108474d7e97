//! How many connections one client may have open.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The connections of each client. Those who have none are on no record: it is as large as the
/// number of connections at most.
#[derive(Debug)]
pub struct Clients {
    most: usize,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// One of a client's connections; dropping it lets the client have another.
#[derive(Debug)]
pub struct ClientSlot {
    of: Arc<Clients>,
    address: IpAddr,
}

impl Clients {
    /// Lets each client have so many.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            open: Mutex::default(),
        }
    }

    /// Counts a new connection of a client; `None` if it has too many.
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Option<ClientSlot> {
        let mut open = self.lock();
        let count = open.get(&address).copied().unwrap_or_default();
        if count >= self.most {
            return None;
        }
        open.insert(address, count + 1);
        Some(ClientSlot {
            of: Arc::clone(self),
            address,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.of.lock().entry(self.address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_leaves_connections_to_others_and_no_trace() {
        let clients = Arc::new(Clients::new(2));
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let (first, second) = (clients.enter(one), clients.enter(one));
        assert!(first.is_some() && second.is_some());
        assert!(clients.enter(one).is_none());
        let third = clients.enter(other);
        assert!(third.is_some());
        drop(first);
        let again = clients.enter(one);
        assert!(again.is_some());
        drop((second, third, again));
        assert!(clients.lock().is_empty());
    }
}
