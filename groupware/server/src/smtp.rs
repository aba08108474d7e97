//! Mail over SMTP: one listener takes in mail for local users, the other takes mail from local
//! users who sign in. Neither passes mail on to other servers.
//!
//! All conversations share one thread: most of their time is waiting, and what they store goes
//! through the same writer as everything else.

pub(crate) mod command;
pub(crate) mod data;
mod session;
mod trace;
mod wire;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use self::session::{Next, Session};
use self::wire::Wire;
use crate::AppState;
use crate::client::Client;
use crate::config::SmtpLimits;

/// How long the thread stays away from a listener after an error, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Most clients whose messages are counted.
const COUNTED: usize = 16_384;
/// What room is counted in.
const UNIT_BYTES: usize = 1 << 10;

/// What a listener is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Mail from anywhere for local users.
    Receive,
    /// Mail from local users.
    Submission,
}

/// What all conversations share.
pub(crate) struct Shared {
    state: AppState,
    tls: Option<TlsAcceptor>,
    limits: SmtpLimits,
    /// Plain text may carry passwords beyond this machine: a proxy in front speaks TLS.
    allow_plain_exposed: bool,
    room: Semaphore,
    clients: Mutex<HashMap<IpAddr, Usage>>,
}

/// What one client uses.
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    connections: usize,
    /// Messages since the minute began.
    messages: u32,
    minute: u64,
}

impl Shared {
    pub(crate) fn new(
        state: AppState,
        tls: Option<TlsAcceptor>,
        limits: SmtpLimits,
        allow_plain_exposed: bool,
    ) -> Self {
        let room = Semaphore::new(limits.memory_bytes / UNIT_BYTES);
        Self {
            state,
            tls,
            limits,
            allow_plain_exposed,
            room,
            clients: Mutex::default(),
        }
    }

    fn domain(&self) -> &str {
        self.state.directory().domain()
    }

    /// The name in an address of this server's domain; whether there is such a user is not said.
    fn local_name<'a>(&self, address: &'a str) -> Option<&'a str> {
        let (name, domain) = address.rsplit_once('@')?;
        domain.eq_ignore_ascii_case(self.domain()).then_some(name)
    }

    /// Room for a part of a message, if there is some.
    fn room(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).ok()?;
        self.room.try_acquire_many(units).ok()
    }

    /// Counts a message of a client; whether it may send it. This machine's own programs may send
    /// as much as they like.
    fn may_send(&self, peer: IpAddr) -> bool {
        if peer.to_canonical().is_loopback() && !self.limits.limits_this_machine {
            return true;
        }
        let minute = self.state.clock.now().as_secs() / 60;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let usage = clients.entry(Client::at(peer).address).or_default();
        if usage.minute != minute {
            (usage.minute, usage.messages) = (minute, 0);
        }
        usage.messages += 1;
        usage.messages <= self.limits.messages_per_minute
    }

    /// Counts a new connection of a client; `None` if it has too many.
    fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let address = Client::at(peer).address;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= COUNTED {
            let minute = self.state.clock.now().as_secs() / 60;
            clients.retain(|_, usage| usage.connections > 0 || usage.minute == minute);
        }
        if clients.len() >= 2 * COUNTED && !clients.contains_key(&address) {
            return None;
        }
        let usage = clients.entry(address).or_default();
        if usage.connections >= self.limits.connections_per_client {
            return None;
        }
        usage.connections += 1;
        Some(Place {
            shared: Arc::clone(self),
            address,
        })
    }
}

/// One of a client's connections.
struct Place {
    shared: Arc<Shared>,
    address: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let clients = &self.shared.clients;
        let mut clients = clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(usage) = clients.get_mut(&self.address) {
            usage.connections = usage.connections.saturating_sub(1);
        }
    }
}

/// Serves the listeners on a thread of their own until told to stop.
pub(crate) fn start(
    listeners: Vec<(TcpListener, Role)>,
    shared: Shared,
    stop: watch::Receiver<bool>,
) -> io::Result<JoinHandle<io::Result<()>>> {
    std::thread::Builder::new()
        .name("smtp".into())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_io()
                .enable_time()
                .build()?;
            runtime.block_on(serve(listeners, Arc::new(shared), stop))
        })
}

async fn serve(
    listeners: Vec<(TcpListener, Role)>,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let (stop_here, stopping) = watch::channel(false);
    let places = Arc::new(Semaphore::new(shared.limits.connections));
    let mut accepting = JoinSet::new();
    for (listener, role) in listeners {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (shared, stopping) = (Arc::clone(&shared), stopping.clone());
        let places = Arc::clone(&places);
        accepting.spawn(accept_all(listener, role, shared, places, stopping));
    }
    stopped(&mut stop).await;
    stop_here.send_replace(true);
    let drained = async { while accepting.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(shared.limits.shutdown_timeout, drained).await;
    Ok(())
}

async fn accept_all(
    listener: tokio::net::TcpListener,
    role: Role,
    shared: Arc<Shared>,
    places: Arc<Semaphore>,
    stopping: watch::Receiver<bool>,
) {
    let mut stop = stopping.clone();
    let is_local = shared.allow_plain_exposed
        || listener
            .local_addr()
            .is_ok_and(|address| address.ip().is_loopback());
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let place = Arc::clone(&places).try_acquire_owned().ok();
                    let place = place.zip(shared.enter(peer.ip()));
                    let (shared, stopping) = (Arc::clone(&shared), stopping.clone());
                    connections.spawn(async move {
                        // Answers go out at once; a socket that refuses this is about to fail.
                        let _ = stream.set_nodelay(true);
                        match place {
                            Some(_place) => {
                                let session = Session::new(&shared, role, peer.ip(), is_local);
                                converse(stream, session, &shared, stopping).await;
                            }
                            None => turn_away(stream).await,
                        }
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
            () = stopped(&mut stop) => break,
        }
    }
    while connections.join_next().await.is_some() {}
}

/// Waits until the server is told to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn turn_away(stream: TcpStream) {
    let mut wire = Wire::new(Box::new(stream));
    wire.reply("421 4.7.0 Too many connections: try again later");
    let _ = wire.flush().await;
}

/// Talks with a client, first in plain text and then, if it wants, within TLS.
async fn converse(
    stream: TcpStream,
    mut session: Session<'_>,
    shared: &Shared,
    mut stopping: watch::Receiver<bool>,
) {
    let talk = async {
        let mut wire = Wire::new(Box::new(stream));
        wire.reply(&format!("220 {} ESMTP Plimsoll", shared.domain()));
        if let Next::End = session.talk(&mut wire, &mut stopping).await {
            return;
        }
        let Some(tls) = &shared.tls else { return };
        let handshake = tls.accept(wire.into_stream());
        let timeout = shared.limits.command_timeout;
        if let Ok(Ok(stream)) = tokio::time::timeout(timeout, handshake).await {
            let mut wire = Wire::new(Box::new(stream));
            session.in_tls().talk(&mut wire, &mut stopping).await;
        }
    };
    // A client whose message was not acknowledged sends it again.
    let _ = tokio::time::timeout(shared.limits.connection_timeout, talk).await;
}
