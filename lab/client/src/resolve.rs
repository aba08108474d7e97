//! Addresses of servers: as the resolver has them, or as the study says.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use lab_units::BaseUrl;

/// Hosts whose addresses the study says, whatever the resolver has for them. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Resolve(Arc<[(String, IpAddr)]>);

impl Resolve {
    /// These hosts, in lower case, and their addresses; of a host's several all count.
    #[must_use]
    pub fn new(hosts: &[(String, IpAddr)]) -> Self {
        Self(hosts.into())
    }

    /// The addresses of `server`, asked for once and waited for.
    ///
    /// # Errors
    /// What the resolver says of a name without any.
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

    /// The same within a runtime, which goes on meanwhile.
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
