//! The state that all sessions share, and the bounds on one client.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use groupware_mailauth::MailAuth;
use groupware_net::{Admission, FairSemaphore, Gauge, Permit, TrustedNetworks};
use groupware_people::{Account, Directory};
use groupware_runtime::{Caller, Client, Limiter};
use groupware_service::Service;
use tokio_rustls::TlsAcceptor;

/// Bytes of a memory unit.
const UNIT_BYTES: usize = 1 << 10;

/// Most messages that are authenticated at once.
const ASKED_AT_ONCE: usize = 64;

/// Most unknown names that one remote client may use in a burst: normal mail has wrong ones, too.
const WRONG_NAMES: u32 = 100;
/// The time after which one of them is forgiven.
const WRONG_NAME_FORGIVEN: Duration = Duration::from_secs(6);

/// The factor by which trusted programs' limits are larger.
const TRUSTED_TIMES: usize = 4;

/// The purpose of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Mail from anywhere for local users.
    Receive,
    /// Mail from local users.
    Submission,
}

/// Bounds on SMTP clients.
#[derive(Debug, Clone)]
pub struct SmtpLimits {
    /// Most open connections; further clients must try again later.
    pub connections: usize,
    /// Most open connections of one address.
    pub connections_per_client: usize,
    /// Messages of one address per minute: so many in a burst, and then at that rate.
    pub messages_per_minute: u32,
    /// Whether this also applies to programs on this machine, which are then untrusted: they may
    /// not send for local users without signing in.
    pub limits_this_machine: bool,
    /// Longest time until a whole command is received. RFC 5321, 4.5.3.2.7, asks for five minutes.
    pub command_timeout: Duration,
    /// Longest time until the text of a message is received.
    pub data_timeout: Duration,
    /// Longest duration of a connection.
    pub connection_timeout: Duration,
    /// Most memory for messages under way; further clients must try again later.
    pub memory_bytes: usize,
    /// How long a stopping server waits for sessions.
    pub shutdown_timeout: Duration,
    /// Listeners on which each connection of a proxy begins with a header that names its client.
    pub proxies_say: Vec<Role>,
}

impl Default for SmtpLimits {
    fn default() -> Self {
        Self {
            connections: 1000,
            connections_per_client: 100,
            messages_per_minute: 300,
            limits_this_machine: false,
            command_timeout: Duration::from_secs(300),
            data_timeout: Duration::from_secs(600),
            connection_timeout: Duration::from_secs(3600),
            memory_bytes: 64 << 20,
            shutdown_timeout: Duration::from_secs(10),
            proxies_say: Vec::new(),
        }
    }
}

/// Authentication of messages, in turns.
pub(crate) struct MessageChecks {
    pub(crate) auth: MailAuth,
    pub(crate) turns: FairSemaphore,
}

/// The state that all sessions share.
pub struct Smtp {
    pub(crate) service: Service,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) limits: SmtpLimits,
    /// Whether plain text may carry passwords beyond this machine: a proxy in front adds TLS.
    pub(crate) allow_plain_exposed: bool,
    memory: FairSemaphore,
    pub(crate) asking: Option<MessageChecks>,
    pub(crate) admission: Arc<Admission>,
    messages: Limiter<IpAddr>,
    wrong_names: Limiter<IpAddr>,
}

impl Smtp {
    /// Serves SMTP within these limits. `allow_plain_exposed` permits passwords in plain text
    /// beyond this machine.
    pub fn new(
        service: Service,
        tls: Option<TlsAcceptor>,
        limits: SmtpLimits,
        allow_plain_exposed: bool,
        known: TrustedNetworks,
    ) -> Self {
        let per_minute = limits.messages_per_minute.max(1);
        Self {
            service,
            tls,
            allow_plain_exposed,
            memory: FairSemaphore::new(limits.memory_bytes / UNIT_BYTES)
                .with_trusted(limits.memory_bytes / UNIT_BYTES * TRUSTED_TIMES),
            asking: None,
            admission: Arc::new(
                Admission::new(limits.connections, known)
                    .with_most_of_client(limits.connections_per_client),
            ),
            messages: Limiter::new(per_minute, Duration::from_secs(60) / per_minute),
            wrong_names: Limiter::new(WRONG_NAMES, WRONG_NAME_FORGIVEN),
            limits,
        }
    }

    /// Enables authentication of messages from remote clients.
    #[must_use]
    pub fn with_mail_auth(self, auth: MailAuth) -> Self {
        let turns = FairSemaphore::new(ASKED_AT_ONCE);
        Self {
            asking: Some(MessageChecks { auth, turns }),
            ..self
        }
    }

    /// Returns a reader of the authentication turns, if enabled.
    pub fn asking_gauge(&self) -> Option<Gauge> {
        self.asking.as_ref().map(|asking| asking.turns.gauge())
    }

    /// The open connections.
    pub fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// Returns a reader of the memory for messages under way, in KiB.
    pub fn memory_gauge(&self) -> Gauge {
        self.memory.gauge()
    }

    pub(crate) fn domain(&self) -> &str {
        self.service.auth.directory().domain()
    }

    /// Returns the name in an address of this server's domain; the user may not exist.
    pub(crate) fn local_name<'a>(&self, address: &'a str) -> Option<&'a str> {
        let (name, domain) = address.rsplit_once('@')?;
        domain.eq_ignore_ascii_case(self.domain()).then_some(name)
    }

    /// Acquires memory for a part of a message from the sender's share. If others hold all, the
    /// connection of the source that holds most is closed, and the sender must try again later.
    pub(crate) fn memory(&self, caller: &Caller, bytes: usize) -> Option<Permit> {
        let units = bytes.div_ceil(UNIT_BYTES);
        self.memory
            .try_take_or_yield(&caller.source(), units, caller.ticket())
    }

    /// The recipients of mail to the postmaster if no user has this name: the administrators.
    pub(crate) fn postmasters(&self) -> Vec<Arc<Account>> {
        const MOST: usize = 8;
        self.service.auth.directory().administrators(MOST)
    }

    /// Counts a message of a client; returns true if it may be sent. Programs on this machine have
    /// no limit.
    pub(crate) fn may_send(&self, caller: &Caller) -> bool {
        if !self.is_stranger(caller) {
            return true;
        }
        let (client, now) = (Client::at(caller.peer()).address, self.service.uptime());
        self.limits.messages_per_minute > 0 && self.messages.admit(client, 1, now).is_ok()
    }

    /// Counts an unknown name that a client used.
    pub(crate) fn note_wrong_name(&self, caller: &Caller) {
        if self.is_stranger(caller) {
            let (client, now) = (Client::at(caller.peer()).address, self.service.uptime());
            self.wrong_names.note(client, now);
        }
    }

    /// Returns true if a client has used so many unknown names that it seems to search for valid ones.
    pub(crate) fn tries_names(&self, caller: &Caller) -> bool {
        let (client, now) = (Client::at(caller.peer()).address, self.service.uptime());
        self.wrong_names.wait(&client, now).is_some()
    }

    /// Returns true for untrusted clients: they have limits, and may not send for local users without
    /// signing in. Programs on this machine are trusted unless `limits_this_machine` is set.
    pub(crate) fn is_stranger(&self, caller: &Caller) -> bool {
        self.limits.limits_this_machine || !caller.is_of_this_machine()
    }
}
