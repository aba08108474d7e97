//! The threads that serve sessions: one, or several where a session waits for a database.

use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::JoinHandle;

use groupware_net::{ACCEPT_PAUSE, Connection, ConnectionPermit, LineConnection, NotLetIn, arrive};
use groupware_runtime::{Caller, Forwarding};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::session::{Next, Session};
use crate::shared::{Role, Smtp};
use crate::stop::stopped;

/// Threads if records are in a database. A session that reads one blocks its thread, and the other
/// sessions on the thread.
pub const THREADS: usize = 16;

/// Serves the listeners on threads of their own until the server stops.
///
/// # Errors
/// When the system can't create a thread or descriptor.
pub fn start(
    listeners: Vec<(TcpListener, Role)>,
    shared: Smtp,
    stop: watch::Receiver<bool>,
) -> io::Result<JoinHandle<io::Result<()>>> {
    let shared = Arc::new(shared);
    let count = match shared.service.is_shared() {
        true => THREADS,
        false => 1,
    };
    let mut others = Vec::with_capacity(count - 1);
    for _ in 1..count {
        let listeners = listeners
            .iter()
            .map(|(listener, role)| Ok((listener.try_clone()?, *role)));
        let listeners = listeners.collect::<io::Result<Vec<_>>>()?;
        others.push(spawn(
            listeners,
            Arc::clone(&shared),
            stop.clone(),
            Vec::new(),
        )?);
    }
    spawn(listeners, shared, stop, others)
}

/// Serves the listeners on a thread, which ends after the others.
fn spawn(
    listeners: Vec<(TcpListener, Role)>,
    shared: Arc<Smtp>,
    stop: watch::Receiver<bool>,
    others: Vec<JoinHandle<io::Result<()>>>,
) -> io::Result<JoinHandle<io::Result<()>>> {
    std::thread::Builder::new()
        .name("smtp".into())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_io()
                .enable_time()
                .build();
            let served = runtime.and_then(|it| it.block_on(serve(listeners, shared, stop)));
            // A thread that panicked has reported it.
            let join = |other: JoinHandle<_>| other.join().unwrap_or(Ok(()));
            let others = others.into_iter();
            others.fold(served, |served, other| served.and(join(other)))
        })
}

async fn serve(
    listeners: Vec<(TcpListener, Role)>,
    shared: Arc<Smtp>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let (stop_here, stopping) = watch::channel(false);
    let mut accepting = JoinSet::new();
    for (listener, role) in listeners {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (shared, stopping) = (Arc::clone(&shared), stopping.clone());
        accepting.spawn(accept_all(listener, role, shared, stopping));
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
    shared: Arc<Smtp>,
    stopping: watch::Receiver<bool>,
) {
    let mut stop = stopping.clone();
    let is_local = shared.allow_plain_exposed
        || listener
            .local_addr()
            .is_ok_and(|address| address.ip().is_loopback());
    let proxies_say = shared.limits.proxies_say.contains(&role);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let slot = shared.admission.enter(peer.ip(), proxies_say);
                    let (shared, stopping) = (Arc::clone(&shared), stopping.clone());
                    connections.spawn(async move {
                        // Replies are sent at once; a socket that refuses this option is about to fail.
                        let _ = stream.set_nodelay(true);
                        match slot {
                            Some(slot) => {
                                let arrived = (stream, peer.ip(), slot);
                                receive(arrived, &shared, (role, is_local), stopping).await;
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

/// Serves a connection once its client is known.
async fn receive(
    (mut stream, peer, slot): (TcpStream, IpAddr, ConnectionPermit),
    shared: &Smtp,
    (role, is_local): (Role, bool),
    stopping: watch::Receiver<bool>,
) {
    let (origin, slot) = match arrive(&mut stream, slot).await {
        Ok(arrived) => arrived,
        Err(NotLetIn::Full) => return turn_away(stream).await,
        Err(_) => return,
    };
    // The thread serves several sessions: it never waits for a commit.
    let connection = Arc::new(Connection {
        peer,
        origin,
        slot,
        on_thread: Arc::new(AtomicUsize::new(usize::MAX)),
    });
    let caller = Caller::of(Arc::clone(&connection), Forwarding::of(origin));
    let session = Session::new(shared, role, caller, is_local);
    tokio::select! {
        () = converse(stream, session, shared, stopping) => {}
        () = connection.slot.ticket().displaced() => {}
    }
}

async fn turn_away(stream: TcpStream) {
    let mut line = LineConnection::new(Box::new(stream));
    line.reply("421 4.7.0 Too many connections: try again later");
    let _ = line.flush().await;
}

/// Serves a client, first in plain text and then, on request, within TLS.
async fn converse(
    stream: TcpStream,
    mut session: Session<'_>,
    shared: &Smtp,
    mut stopping: watch::Receiver<bool>,
) {
    let talk = async {
        let mut line = LineConnection::new(Box::new(stream));
        line.reply(&format!("220 {} ESMTP Plimsoll", shared.domain()));
        if let Next::End = session.talk(&mut line, &mut stopping).await {
            return;
        }
        let Some(tls) = &shared.tls else { return };
        let handshake = tls.accept(line.into_stream());
        let timeout = shared.limits.command_timeout;
        if let Ok(Ok(stream)) = tokio::time::timeout(timeout, handshake).await {
            let mut line = LineConnection::new(Box::new(stream));
            session.in_tls().talk(&mut line, &mut stopping).await;
        }
    };
    // A client whose message was not acknowledged sends it again.
    let _ = tokio::time::timeout(shared.limits.connection_timeout, talk).await;
}
