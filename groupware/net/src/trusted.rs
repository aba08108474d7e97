//! Trusted networks and proxies. The lists can be replaced while connections are open.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use crate::network::Networks;

/// Trusted networks and proxies. Clones are handles of the same lists.
#[derive(Debug, Clone, Default)]
pub struct TrustedNetworks(Arc<RwLock<Lists>>);

#[derive(Debug, Default)]
struct Lists {
    trusted: Networks,
    proxies: Networks,
}

impl TrustedNetworks {
    /// Takes the networks without a share of their own, and the proxies whose client headers are accepted.
    pub fn new(trusted: Networks, proxies: Networks) -> Self {
        let known = Self::default();
        known.set(trusted, proxies);
        known
    }

    /// Replaces the lists. Open connections stay as they were accepted.
    pub fn set(&self, trusted: Networks, proxies: Networks) {
        let mut lists = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *lists = Lists { trusted, proxies };
    }

    /// Returns true if an address needs no share.
    pub fn is_trusted(&self, address: IpAddr) -> bool {
        self.ask(|lists| lists.trusted.contains(address))
    }

    /// Returns true if a proxy has this address.
    pub fn is_proxy(&self, address: IpAddr) -> bool {
        self.ask(|lists| lists.proxies.contains(address))
    }

    fn ask(&self, question: impl FnOnce(&Lists) -> bool) -> bool {
        question(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}
