//! What the routes of this front use, and nothing else.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use groupware_http::client;
use groupware_lookup::Layout;
use groupware_runtime::{Caller, Limiter};
use groupware_service::Service;

use crate::access::Access;

/// A client may save up so many seconds' worth of requests, for bulk registrations.
const BURST_S: u32 = 20;

/// What these routes use.
#[derive(Debug, Clone)]
pub struct Lookup {
    pub(crate) service: Service,
    pub(crate) access: Access,
    pub(crate) layout: Layout,
    rate: Arc<Limiter<IpAddr>>,
}

impl Lookup {
    /// Lets a client elsewhere send so many requests and registrations per second. This machine's own
    /// may send what they like: a load generator is one of them.
    pub fn new(service: Service, access: Access, layout: Layout, per_s: u32) -> Self {
        let per_s = per_s.max(1);
        let most = per_s.saturating_mul(BURST_S);
        Self {
            service,
            access,
            layout,
            rate: Arc::new(Limiter::new(most, Duration::from_secs(1) / per_s)),
        }
    }

    /// Takes so many from what the sender of a request may send.
    ///
    /// # Errors
    /// The seconds after which there is enough, if there isn't.
    pub(crate) fn admit(&self, caller: &Caller, many: u32) -> Result<(), u32> {
        if caller.is_of_this_machine() {
            return Ok(());
        }
        let client = client(caller);
        let admitted = self.rate.admit(client.address, many, self.service.uptime());
        admitted.map_err(|wait| wait.as_secs_f64().ceil() as u32)
    }
}

impl AsRef<Service> for Lookup {
    fn as_ref(&self) -> &Service {
        &self.service
    }
}
