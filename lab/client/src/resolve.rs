//! Addresses of servers: from the resolver, or from the study.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use lab_units::BaseUrl;

/// Addresses of hosts that the study sets, in place of the resolver's. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Resolve(Arc<[(String, IpAddr)]>);

impl Resolve {
    /// Returns these hosts, in lower case, with their addresses. All addresses of a host are used.
    #[must_use]
    pub fn new(hosts: &[(String, IpAddr)]) -> Self {
        Self(hosts.into())
    }

    /// Returns the addresses of `server`. Blocks until the resolver responds.
    ///
    /// # Errors
    /// The resolver's error for a name without addresses.
    pub fn addresses(&self, server: &BaseUrl) -> io::Result<Arc<[SocketAddr]>> {
        if let Some(said) = self.said(server) {
            return Ok(said);
        }
        let found = (server.host.as_str(), server.port).to_socket_addrs()?;
        let found: Arc<[SocketAddr]> = found.collect();
        if found.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(found)
    }

    /// As [`Self::addresses`], without blocking the runtime.
    pub(crate) async fn look_up(&self, server: &BaseUrl) -> io::Result<Arc<[SocketAddr]>> {
        if let Some(said) = self.said(server) {
            return Ok(said);
        }
        let found = tokio::net::lookup_host((server.host.as_str(), server.port)).await?;
        Ok(found.collect())
    }

    fn said(&self, server: &BaseUrl) -> Option<Arc<[SocketAddr]>> {
        let its = self.0.iter().filter(|(host, _)| *host == server.host);
        let found: Arc<[SocketAddr]> = its
            .map(|(_, address)| SocketAddr::new(*address, server.port))
            .collect();
        (!found.is_empty()).then_some(found)
    }
}
