//! The dependencies of this front's routes.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use groupware_http::client;
use groupware_lookup::Layout;
use groupware_runtime::{Caller, Limiter};
use groupware_service::Service;

use crate::access::Access;

/// A client's burst, in seconds' worth of requests, for bulk registrations.
const BURST_S: u32 = 20;

/// The dependencies of these routes.
#[derive(Debug, Clone)]
pub struct Lookup {
    pub(crate) service: Service,
    pub(crate) access: Access,
    pub(crate) layout: Layout,
    rate: Arc<Limiter<IpAddr>>,
}

impl Lookup {
    /// Permits a remote client `per_s` requests and registrations per second. Clients on this
    /// machine are not limited: a load generator is one of them.
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

    /// Takes this many requests from the sender's rate limit.
    ///
    /// # Errors
    /// The seconds to wait, if the limit is exceeded.
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
