//! On whose behalf something is done: the other end of a connection, and the permit of a request that
//! is worked on. Both are handed along as arguments.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Who waits for something to be done.
#[derive(Debug, Clone)]
pub struct Caller(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    peer: IpAddr,
    /// Connections that are served by the thread that serves this one, if threads serve connections.
    connections: Option<Arc<AtomicUsize>>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    /// Who was found to ask.
    user: OnceLock<Arc<str>>,
}

impl Caller {
    /// The other end of a connection. `connections` counts those that the same thread serves.
    pub fn new(peer: IpAddr, connections: Option<Arc<AtomicUsize>>) -> Self {
        Self(Arc::new(Inner {
            peer,
            connections,
            permit: Mutex::default(),
            user: OnceLock::new(),
        }))
    }

    /// The server itself.
    pub fn internal() -> Self {
        Self::new(Ipv4Addr::UNSPECIFIED.into(), None)
    }

    /// The other end of the connection.
    pub fn peer(&self) -> IpAddr {
        self.0.peer
    }

    /// Notes who was found to ask, for the log. Who is found first counts.
    pub fn is_of(&self, user: &Arc<str>) {
        self.0.user.get_or_init(|| Arc::clone(user));
    }

    /// Who was found to ask, so far.
    pub fn user(&self) -> Option<&str> {
        self.0.user.get().map(|name| &**name)
    }

    /// Whether the thread serves no other connection, so that it may wait for the disk itself. Who
    /// connects meanwhile waits for the disk once.
    pub fn may_block(&self) -> bool {
        let connections = self.0.connections.as_ref();
        connections.is_some_and(|count| count.load(Relaxed) == 1)
    }

    /// Gives the permit to others until something is done that has a bound of its own.
    pub async fn give_way<T>(&self, until: impl Future<Output = T>) -> T {
        let Some(permit) = self.hold(None) else {
            return until.await;
        };
        let permits = Arc::clone(permit.semaphore());
        drop(permit);
        let done = until.await;
        self.hold(permits.acquire_owned().await.ok());
        done
    }

    /// Puts a permit in the place of the one that is held.
    fn hold(&self, permit: Option<OwnedSemaphorePermit>) -> Option<OwnedSemaphorePermit> {
        let mut held = self.0.permit.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *held, permit)
    }
}

/// Lets so many requests be worked on at once.
#[derive(Debug)]
pub struct Permits(Arc<Semaphore>);

impl Permits {
    /// Permits for so many requests.
    pub fn new(at_once: usize) -> Self {
        let at_once = at_once.min(Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(at_once)))
    }

    /// Works on a request when there is a permit for it; `None` if the server stops.
    pub async fn work<T>(&self, caller: &Caller, work: impl Future<Output = T>) -> Option<T> {
        let permit = Arc::clone(&self.0).acquire_owned().await.ok()?;
        let _returned = Return(caller);
        caller.hold(Some(permit));
        Some(work.await)
    }
}

/// Returns the permit when the work is done or given up: others may hold on to the caller.
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
        let free = || permits.0.available_permits();
        let second = permits.work(&other, async {
            assert_eq!(free(), 0);
            other.give_way(async { assert_eq!(free(), 1) }).await;
            assert_eq!(free(), 0);
        });
        let first = permits.work(&one, async {
            assert_eq!(free(), 0);
            one.give_way(second).await.unwrap();
            assert_eq!(free(), 0);
        });
        assert_eq!(free(), 1);
        first.await.unwrap();
        assert_eq!(free(), 1);
        one.give_way(async {}).await;
    }

    #[tokio::test]
    async fn work_that_is_given_up_returns_its_permit() {
        let permits = Permits::new(1);
        let caller = Caller::internal();
        {
            let mut work = std::pin::pin!(permits.work(&caller, std::future::pending::<()>()));
            tokio::select! {
                biased;
                _ = work.as_mut() => panic!("it never ends"),
                () = std::future::ready(()) => {}
            }
            assert_eq!(permits.0.available_permits(), 0);
        }
        assert_eq!(permits.0.available_permits(), 1);
    }

    #[test]
    fn a_thread_of_one_connection_may_wait_for_the_disk() {
        let connections = Arc::new(AtomicUsize::new(1));
        let peer = Ipv4Addr::LOCALHOST.into();
        let caller = Caller::new(peer, Some(Arc::clone(&connections)));
        assert!(caller.may_block());
        connections.store(2, Relaxed);
        assert!(!caller.may_block());
        assert!(!Caller::new(peer, None).may_block());
    }
}
