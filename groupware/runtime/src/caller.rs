//! The caller of an operation: the other end of a connection, the signed-in user, and the permit of a request in
//! progress. Callers are passed as arguments.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use groupware_net::{
    Connection, ConnectionIdentity, FairSemaphore, Gauge, Origin, Permit, Principal, client_of,
};
use groupware_people::{Account, UserName};

/// How a request reached the other end of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forwarding {
    /// The other end is its origin.
    Direct,
    /// A trusted proxy has forwarded it, for a client at this address.
    Proxy(IpAddr),
    /// A proxy, or a client that acts like one, has forwarded it: its origin is unknown.
    Unknown,
}

impl Forwarding {
    /// Returns how requests on a connection were forwarded, unless the request has more information.
    pub fn of(origin: Origin) -> Self {
        match origin {
            Origin::Peer => Self::Direct,
            Origin::Behind(client) => Self::Proxy(client),
            Origin::Unknown => Self::Unknown,
        }
    }
}

/// The caller of an operation.
#[derive(Debug, Clone)]
pub struct Caller(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    peer: IpAddr,
    /// The connection, if it is one of the counted ones.
    connection: Option<Arc<Connection>>,
    is_trusted: bool,
    forwarding: Forwarding,
    /// The authenticated user.
    user: OnceLock<UserName>,
    permit: Mutex<Option<Permit>>,
    /// The memory permit for the response.
    memory: Mutex<Option<Permit>>,
}

impl Caller {
    /// Creates the caller at the other end of a connection, or the client that a proxy there forwards for.
    pub fn of(connection: Arc<Connection>, via: Forwarding) -> Self {
        let is_trusted = connection.slot.ticket().is_trusted() && via == Forwarding::Direct;
        let peer = match via {
            Forwarding::Proxy(client) => client,
            Forwarding::Direct | Forwarding::Unknown => connection.peer,
        };
        Self::new((peer, via), is_trusted, Some(connection))
    }

    /// Creates a caller at this address, on a connection that isn't counted.
    pub fn at(peer: IpAddr) -> Self {
        Self::new((peer, Forwarding::Direct), false, None)
    }

    /// Creates the caller for the server's own work.
    pub fn internal() -> Self {
        Self::new(
            (Ipv4Addr::UNSPECIFIED.into(), Forwarding::Direct),
            true,
            None,
        )
    }

    fn new(
        (peer, via): (IpAddr, Forwarding),
        is_trusted: bool,
        connection: Option<Arc<Connection>>,
    ) -> Self {
        Self(Arc::new(Inner {
            peer,
            connection,
            is_trusted,
            forwarding: via,
            user: OnceLock::new(),
            permit: Mutex::default(),
            memory: Mutex::default(),
        }))
    }

    /// Returns the address of the other end of the connection, or of the client that a proxy there forwards for.
    pub fn peer(&self) -> IpAddr {
        self.0.peer
    }

    /// Returns how the request reached the other end of the connection.
    pub fn via(&self) -> Forwarding {
        self.0.forwarding
    }

    /// Returns true for a trusted program on this machine that calls for itself. Behind a proxy for connections, a
    /// local address proves nothing, and no caller is trusted because of it.
    pub fn is_of_this_machine(&self) -> bool {
        self.0.is_trusted
            && self.0.forwarding == Forwarding::Direct
            && self.0.peer.to_canonical().is_loopback()
    }

    /// Returns the principal whose fair share the caller uses.
    pub fn source(&self) -> Principal {
        match (self.0.is_trusted, self.0.user.get()) {
            (true, _) => Principal::Trusted,
            (false, Some(user)) => Principal::User(Arc::clone(user.key())),
            (false, None) => Principal::Client(client_of(self.0.peer)),
        }
    }

    /// Returns the connection permit, which can close the connection, if the connection is a counted one.
    pub fn ticket(&self) -> Option<Arc<ConnectionIdentity>> {
        let connection = self.0.connection.as_ref()?;
        Some(Arc::clone(connection.slot.ticket()))
    }

    /// Returns true if the share depends on the user, and the user isn't known yet.
    pub fn is_nobody_yet(&self) -> bool {
        !self.0.is_trusted && self.0.user.get().is_none()
    }

    /// Sets the authenticated user, to whom later use of resources is charged. The first user set remains.
    pub fn signed_in(&self, account: &Account) {
        if self.0.user.get().is_some() {
            return;
        }
        let user = self.0.user.get_or_init(|| account.name.clone());
        if let Some(connection) = self.0.connection.as_ref().filter(|_| !self.0.is_trusted) {
            connection.slot.belongs_to(user.key());
        }
    }

    /// Returns the authenticated user, if known.
    pub fn user(&self) -> Option<&str> {
        self.0.user.get().map(|name| &**name.spelling())
    }

    /// Returns true if the thread serves no other connection, so that it may wait for the disk. New connections wait
    /// too, until another thread takes over.
    pub fn may_block(&self) -> bool {
        let connection = self.0.connection.as_ref();
        connection.is_some_and(|connection| connection.on_thread.load(Relaxed) == 1)
    }

    /// Releases the permit until an operation with its own limit is done.
    pub async fn yield_until<T>(&self, until: impl Future<Output = T>) -> T {
        let Some(mut permit) = self.hold(None) else {
            return until.await;
        };
        let done = permit.yield_until(until).await;
        self.hold(Some(permit));
        done
    }

    /// Runs a change to its end, even if the caller stops waiting; `None` if the server stops meanwhile. Other requests
    /// don't wait for it.
    ///
    /// # Panics
    /// When the change does.
    pub async fn to_the_end<T: Send + 'static>(
        &self,
        change: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        match self.yield_until(tokio::spawn(change)).await {
            Ok(done) => Some(done),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => None,
        }
    }

    /// Holds memory until the response is sent, in place of the memory held before.
    pub fn keep(&self, memory: Option<Permit>) {
        let mut kept = self.0.memory.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = memory;
    }

    /// Replaces the held permit.
    fn hold(&self, permit: Option<Permit>) -> Option<Permit> {
        let mut held = self.0.permit.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *held, permit)
    }
}

/// Limits the number of requests in progress.
#[derive(Debug)]
pub struct Permits(FairSemaphore);

impl Permits {
    /// Creates permits for `at_once` requests.
    pub fn new(at_once: usize) -> Self {
        Self(FairSemaphore::new(at_once))
    }

    /// Returns the current use of the permits.
    pub fn gauge(&self) -> Gauge {
        self.0.gauge()
    }

    /// Runs a request once it has a permit from the caller's share.
    pub async fn work<T>(&self, caller: &Caller, work: impl Future<Output = T>) -> T {
        let permit = self.0.take(&caller.source(), 1).await;
        let _returned = Return(caller);
        caller.hold(Some(permit));
        work.await
    }
}

/// Returns the permit when the work is done or dropped: the caller may be shared and live on.
struct Return<'a>(&'a Caller);

impl Drop for Return<'_> {
    fn drop(&mut self) {
        self.0.hold(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_gives_way_lets_others_work() {
        let permits = Permits::new(1);
        let (one, other) = (Caller::internal(), Caller::internal());
        let free = || permits.0.free();
        let second = permits.work(&other, async {
            assert_eq!(free(), 0);
            other.yield_until(async { assert_eq!(free(), 1) }).await;
            assert_eq!(free(), 0);
        });
        let first = permits.work(&one, async {
            assert_eq!(free(), 0);
            one.yield_until(second).await;
            assert_eq!(free(), 0);
        });
        assert_eq!(free(), 1);
        first.await;
        assert_eq!(free(), 1);
        one.yield_until(async {}).await;
    }

    #[tokio::test]
    async fn work_that_is_given_up_returns_its_permit() {
        let permits = Permits::new(1);
        let caller = Caller::internal();
        {
            let mut work = std::pin::pin!(permits.work(&caller, std::future::pending::<()>()));
            tokio::select! {
                biased;
                () = work.as_mut() => panic!("it never ends"),
                () = std::future::ready(()) => {}
            }
            assert_eq!(permits.0.free(), 0);
        }
        assert_eq!(permits.0.free(), 1);
    }

    #[test]
    fn a_thread_of_one_connection_may_wait_for_the_disk() {
        use groupware_net::{Admission, Networks, TrustedNetworks};
        use std::sync::atomic::AtomicUsize;

        let peer = Ipv4Addr::LOCALHOST.into();
        let known = TrustedNetworks::new(Networks::loopback(), Networks::default());
        let admission = Arc::new(Admission::new(1, known));
        let connection = Arc::new(Connection {
            peer,
            origin: Origin::Peer,
            slot: admission.enter(peer, false).unwrap(),
            on_thread: Arc::new(AtomicUsize::new(1)),
        });
        let caller = Caller::of(Arc::clone(&connection), Forwarding::Direct);
        assert!(caller.may_block() && caller.source() == Principal::Trusted);
        assert!(caller.is_of_this_machine());
        connection.on_thread.store(2, Relaxed);
        assert!(!caller.may_block());
        // The client behind a trusted proxy is not trusted.
        let client = IpAddr::from([192, 0, 2, 1]);
        let caller = Caller::of(Arc::clone(&connection), Forwarding::Proxy(client));
        assert_eq!(caller.source(), Principal::Client(client));
        assert!(!caller.is_of_this_machine());
        let caller = Caller::of(connection, Forwarding::Unknown);
        assert_eq!(caller.source(), Principal::Client(peer));
        assert!(!caller.is_of_this_machine());
        assert!(!Caller::at(peer).may_block());
        // Without trusted networks, this machine's programs aren't trusted either.
        let nobody = TrustedNetworks::new(Networks::default(), Networks::default());
        let connection = Arc::new(Connection {
            peer,
            origin: Origin::Peer,
            slot: Arc::new(Admission::new(1, nobody))
                .enter(peer, false)
                .unwrap(),
            on_thread: Arc::default(),
        });
        assert!(!Caller::of(connection, Forwarding::Direct).is_of_this_machine());
    }
}
