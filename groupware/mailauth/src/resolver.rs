//! The DNS resolver: its servers, timeouts, and cache.

use std::net::SocketAddr;
use std::time::Duration;

use mail_auth::MessageAuthenticator;
use mail_auth::hickory_resolver::config::{
    NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use mail_auth::hickory_resolver::system_conf::read_system_conf;

use crate::ResolverError;

/// The time to wait for an answer before the query is repeated.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// The number of cached answers. One has 64 KiB at most, so all of them 32 MiB.
const REMEMBERED: u64 = 512;
/// The maximum time for which an answer is cached, whatever its TTL.
const REMEMBERED_FOR: Duration = Duration::from_secs(3600);
/// The same for a negative answer.
const NOTHING_REMEMBERED_FOR: Duration = Duration::from_secs(300);

pub(crate) fn authenticator(servers: &[SocketAddr]) -> Result<MessageAuthenticator, ResolverError> {
    let failed = |error: &dyn std::fmt::Display| ResolverError::System(error.to_string());
    let (config, mut options) = match servers.is_empty() {
        true => read_system_conf().map_err(|error| failed(&error))?,
        false => (at(servers), ResolverOpts::default()),
    };
    options.timeout = ANSWER_WITHIN;
    options.attempts = 1;
    options.cache_size = REMEMBERED;
    options.positive_max_ttl = Some(REMEMBERED_FOR);
    options.negative_max_ttl = Some(NOTHING_REMEMBERED_FOR);
    // A hosts file of this machine is no statement of a domain.
    options.use_hosts_file = ResolveHosts::Never;
    MessageAuthenticator::new(config, options).map_err(|error| failed(&error))
}

fn at(servers: &[SocketAddr]) -> ResolverConfig {
    let servers = servers.iter().map(|server| {
        let mut config = NameServerConfig::udp_and_tcp(server.ip());
        for connection in &mut config.connections {
            connection.port = server.port();
        }
        config
    });
    ResolverConfig::from_parts(None, Vec::new(), servers.collect())
}
