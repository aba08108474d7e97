//! Local addresses of connections, for more connections than one address has ports.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Local addresses of connections, used in turn; if empty, the system chooses. Cheap to clone: all clones share one
/// rotation.
#[derive(Debug, Clone, Default)]
pub struct Sources(Option<Arc<Turns>>);

#[derive(Debug)]
struct Turns {
    addresses: Box<[IpAddr]>,
    next: AtomicUsize,
}

impl Sources {
    /// Returns these addresses, which must be of this machine.
    #[must_use]
    pub fn new(addresses: &[IpAddr]) -> Self {
        let turns = || {
            Arc::new(Turns {
                addresses: addresses.into(),
                next: AtomicUsize::new(0),
            })
        };
        Self((!addresses.is_empty()).then(turns))
    }

    /// Returns the local address of the next connection to a server. `None` if the system chooses, as it does if no
    /// address is of the server's family.
    #[must_use]
    pub fn next(&self, server: IpAddr) -> Option<IpAddr> {
        let turns = self.0.as_ref()?;
        let addresses = &turns.addresses;
        let first = turns.next.fetch_add(1, Ordering::Relaxed);
        let each =
            (0..addresses.len()).map(|more| addresses[first.wrapping_add(more) % addresses.len()]);
        let mut fitting = each.filter(|address| address.is_ipv4() == server.is_ipv4());
        fitting.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_take_turns_within_their_family() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let all = ["127.0.0.1", "::1", "127.0.0.2"].map(address);
        let sources = Sources::new(&all);
        let again = sources.clone();
        let four = address("10.0.0.1");
        let turns: Vec<_> = (0..6).map(|_| again.next(four).unwrap()).collect();
        let (one, two) = (all[0], all[2]);
        assert_eq!(turns, [one, two, two, one, two, two]);
        assert_eq!(sources.next(address("::2")), Some(all[1]));
        assert_eq!(Sources::new(&all[1..2]).next(four), None);
        assert_eq!(Sources::default().next(four), None);
    }
}
