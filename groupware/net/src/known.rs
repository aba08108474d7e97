//! Whose word counts before it signs in, as it holds now: it may change while connections come.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};

use crate::network::Networks;

/// Addresses that are known. Clones are handles of the same ones.
#[derive(Debug, Clone, Default)]
pub struct Known(Arc<RwLock<Lists>>);

#[derive(Debug, Default)]
struct Lists {
    trusted: Networks,
    proxies: Networks,
}

impl Known {
    /// Whoever needs no share of its own, and proxies, who are believed when they say for whom they ask.
    pub fn new(trusted: Networks, proxies: Networks) -> Self {
        let known = Self::default();
        known.set(trusted, proxies);
        known
    }

    /// Has others be known from now on. Connections that are open stay as they were let in.
    pub fn set(&self, trusted: Networks, proxies: Networks) {
        let mut lists = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *lists = Lists { trusted, proxies };
    }

    /// Whether an address needs no share.
    pub fn is_trusted(&self, address: IpAddr) -> bool {
        self.ask(|lists| lists.trusted.contains(address))
    }

    /// Whether a proxy is at an address.
    pub fn is_proxy(&self, address: IpAddr) -> bool {
        self.ask(|lists| lists.proxies.contains(address))
    }

    fn ask(&self, question: impl FnOnce(&Lists) -> bool) -> bool {
        question(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}
