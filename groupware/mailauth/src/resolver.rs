//! Who is asked, how long, and what is remembered of the answers.

use std::net::SocketAddr;
use std::time::Duration;

use mail_auth::MessageAuthenticator;
use mail_auth::hickory_resolver::config::{
    NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use mail_auth::hickory_resolver::system_conf::read_system_conf;

use crate::ResolverError;

/// Longest wait for an answer before it is asked once more.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Answers that are remembered. One has 64 KiB at most, so all of them 32 MiB.
const REMEMBERED: u64 = 512;
/// How long an answer is remembered at most, whatever it says.
const REMEMBERED_FOR: Duration = Duration::from_secs(3600);
/// The same of an answer that there is nothing.
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
    // What a file of this machine says is nothing that a domain says.
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
