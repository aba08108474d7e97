//! What all conversations share, and what one client may use of it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use groupware_mailauth::MailAuth;
use groupware_net::{Admission, Gauge, Known, Permit, Pool};
use groupware_people::{Account, Directory};
use groupware_runtime::{Caller, Client, Limiter};
use groupware_service::Service;
use tokio_rustls::TlsAcceptor;

/// What the memory of messages is counted in.
const UNIT_BYTES: usize = 1 << 10;

/// Most messages that are asked about at once.
const ASKED_AT_ONCE: usize = 64;

/// Names that one client from elsewhere may ask for in vain at once: mail goes round with wrong ones, too.
const WRONG_NAMES: u32 = 100;
/// The time in which one of them is forgiven.
const WRONG_NAME_FORGIVEN: Duration = Duration::from_secs(6);

/// So many times as much as others have those who are trusted.
const TRUSTED_TIMES: usize = 4;

/// What a listener is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Mail from anywhere for local users.
    Receive,
    /// Mail from local users.
    Submission,
}

/// Bounds on what clients of SMTP may use.
#[derive(Debug, Clone)]
pub struct SmtpLimits {
    /// Most open connections; who comes beyond is told to try again later.
    pub connections: usize,
    /// Most open connections of one address.
    pub connections_per_client: usize,
    /// Most messages of one address in a minute: so many at once, and then at that rate.
    pub messages_per_minute: u32,
    /// Whether that also counts for this machine's own programs, which are strangers then: they may not
    /// speak for local users without signing in.
    pub limits_this_machine: bool,
    /// Longest time that a whole command may take to arrive. RFC 5321, 4.5.3.2.7, asks for five
    /// minutes.
    pub command_timeout: Duration,
    /// Longest time that the text of a message may take to arrive.
    pub data_timeout: Duration,
    /// Longest time of a connection.
    pub connection_timeout: Duration,
    /// Most memory for messages under way; who comes beyond is told to try again later.
    pub memory_bytes: usize,
    /// Longest time that a stopping server waits.
    pub shutdown_timeout: Duration,
    /// Listeners on which each connection of a proxy begins with a header that says for whom it comes.
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

/// Finding out where messages come from, in turns.
pub(crate) struct Asking {
    pub(crate) auth: MailAuth,
    pub(crate) turns: Pool,
}

/// What all conversations share.
pub struct Smtp {
    pub(crate) service: Service,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) limits: SmtpLimits,
    /// Plain text may carry passwords beyond this machine: a proxy in front speaks TLS.
    pub(crate) allow_plain_exposed: bool,
    memory: Pool,
    pub(crate) asking: Option<Asking>,
    pub(crate) admission: Arc<Admission>,
    messages: Limiter<IpAddr>,
    wrong_names: Limiter<IpAddr>,
}

impl Smtp {
    /// Speaks SMTP within these limits; plain text may carry passwords beyond this machine where
    /// that is allowed.
    pub fn new(
        service: Service,
        tls: Option<TlsAcceptor>,
        limits: SmtpLimits,
        allow_plain_exposed: bool,
        known: Known,
    ) -> Self {
        let per_minute = limits.messages_per_minute.max(1);
        Self {
            service,
            tls,
            allow_plain_exposed,
            memory: Pool::new(limits.memory_bytes / UNIT_BYTES)
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

    /// The same, and finds out of messages from elsewhere whether they come from whom they say.
    #[must_use]
    pub fn with_mail_auth(self, auth: MailAuth) -> Self {
        let turns = Pool::new(ASKED_AT_ONCE);
        Self {
            asking: Some(Asking { auth, turns }),
            ..self
        }
    }

    /// Looks into the turns of finding out, if that is done.
    pub fn asking_gauge(&self) -> Option<Gauge> {
        self.asking.as_ref().map(|asking| asking.turns.gauge())
    }

    /// Whose connections there are.
    pub fn admission(&self) -> &Arc<Admission> {
        &self.admission
    }

    /// Looks into the memory for messages under way, in KiB.
    pub fn memory_gauge(&self) -> Gauge {
        self.memory.gauge()
    }

    pub(crate) fn domain(&self) -> &str {
        self.service.auth.directory().domain()
    }

    /// The name in an address of this server's domain; whether there is such a user is not said.
    pub(crate) fn local_name<'a>(&self, address: &'a str) -> Option<&'a str> {
        let (name, domain) = address.rsplit_once('@')?;
        domain.eq_ignore_ascii_case(self.domain()).then_some(name)
    }

    /// Memory for a part of a message, if the sender's share has some. If others hold all, the connection of the
    /// source that holds most is closed, and the sender tries again later.
    pub(crate) fn memory(&self, caller: &Caller, bytes: usize) -> Option<Permit> {
        let units = bytes.div_ceil(UNIT_BYTES);
        self.memory
            .try_take_or_yield(&caller.source(), units, caller.ticket())
    }

    /// Whom mail to the postmaster goes to where no user is called so: those who manage users.
    pub(crate) fn postmasters(&self) -> Vec<Arc<Account>> {
        const MOST: usize = 8;
        self.service.auth.directory().administrators(MOST)
    }

    /// Counts a message of a client; whether it may send it. This machine's own programs may send
    /// as much as they like.
    pub(crate) fn may_send(&self, caller: &Caller) -> bool {
        if !self.is_stranger(caller) {
            return true;
        }
        let (client, now) = (Client::at(caller.peer()).address, self.service.uptime());
        self.limits.messages_per_minute > 0 && self.messages.admit(client, 1, now).is_ok()
    }

    /// Counts a name that a client has asked for in vain.
    pub(crate) fn note_wrong_name(&self, caller: &Caller) {
        if self.is_stranger(caller) {
            let (client, now) = (Client::at(caller.peer()).address, self.service.uptime());
            self.wrong_names.note(client, now);
        }
    }

    /// Whether a client has asked for so many names in vain that it seems to look for right ones.
    pub(crate) fn tries_names(&self, caller: &Caller) -> bool {
        let (client, now) = (Client::at(caller.peer()).address, self.service.uptime());
        self.wrong_names.wait(&client, now).is_some()
    }

    /// Others than this machine's own programs, as far as these are trusted, have bounds, and don't speak for local
    /// users without signing in.
    pub(crate) fn is_stranger(&self, caller: &Caller) -> bool {
        self.limits.limits_this_machine || !caller.is_of_this_machine()
    }
}
