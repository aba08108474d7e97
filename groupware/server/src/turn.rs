//! A request's turn: one of those that are worked on at once, on whose behalf, and by which route.
//!
//! All belong to the task that works on the request, so that nothing has to be handed through
//! the routes, which costs an allocation each.

use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::MatchedPath;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

tokio::task_local! {
    static TURN: Turn;
}

struct Turn {
    permit: RefCell<Option<OwnedSemaphorePermit>>,
    peer: IpAddr,
    route: RefCell<Option<MatchedPath>>,
}

/// Lets so many requests be worked on at once.
#[derive(Debug)]
pub(crate) struct Turns(Arc<Semaphore>);

impl Turns {
    pub(crate) fn new(at_once: usize) -> Self {
        let at_once = at_once.min(Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(at_once)))
    }

    /// Works on a request, inside of [`on_behalf_of`], when there is a turn.
    pub(crate) async fn work<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let permit = Arc::clone(&self.0).acquire_owned().await.ok()?;
        TURN.with(|turn| turn.permit.replace(Some(permit)));
        let done = work.await;
        TURN.with(|turn| turn.permit.take());
        Some(done)
    }
}

/// Answers a request; `peer` is the other end of its connection.
pub(crate) async fn on_behalf_of<T>(peer: IpAddr, answer: impl Future<Output = T>) -> T {
    let turn = Turn {
        permit: RefCell::new(None),
        peer,
        route: RefCell::new(None),
    };
    TURN.scope(turn, answer).await
}

/// The other end of the connection of the request that is answered; `None` if none is.
pub(crate) fn peer() -> Option<IpAddr> {
    TURN.try_with(|turn| turn.peer).ok()
}

/// Notes the pattern that the request's path matched.
pub(crate) fn note_route(route: MatchedPath) {
    // Outside of a turn there is nobody to ask for it.
    let _ = TURN.try_with(|turn| turn.route.replace(Some(route)));
}

/// The pattern that the request's path matched, if it did.
pub(crate) fn take_route() -> Option<MatchedPath> {
    TURN.try_with(|turn| turn.route.take()).ok().flatten()
}

/// Lets others have this request's turn until something is done that has a bound of its own.
pub(crate) async fn step_aside<T>(until: impl Future<Output = T>) -> T {
    let Ok(Some(permit)) = TURN.try_with(|turn| turn.permit.take()) else {
        return until.await;
    };
    let turns = Arc::clone(permit.semaphore());
    drop(permit);
    let done = until.await;
    let permit = turns.acquire_owned().await.ok();
    TURN.with(|turn| turn.permit.replace(permit));
    done
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn who_steps_aside_lets_others_work() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let turns = Turns::new(1);
            let here = IpAddr::from(Ipv4Addr::LOCALHOST);
            let there = IpAddr::from(Ipv4Addr::new(192, 0, 2, 1));
            let free = || turns.0.available_permits();
            let other = async {
                assert_eq!((peer(), free()), (Some(there), 0));
                step_aside(async { assert_eq!(free(), 1) }).await;
                assert_eq!(free(), 0);
            };
            let other = on_behalf_of(there, turns.work(other));
            let first = turns.work(async {
                assert_eq!((peer(), free()), (Some(here), 0));
                step_aside(other).await.unwrap();
                assert_eq!((peer(), free()), (Some(here), 0));
            });
            on_behalf_of(here, async {
                assert_eq!((peer(), free()), (Some(here), 1));
                first.await.unwrap();
                assert_eq!(free(), 1);
            })
            .await;
            assert_eq!((peer(), free()), (None, 1));
            step_aside(async {}).await;
        });
    }
}
