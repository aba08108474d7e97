//! The tasks of a worker, up to a million: beside its future, and the runtime's own state, each costs a pointer. It
//! knows nothing of their work.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle, spawn_local, yield_now};

/// The number of tasks spawned before others run: about as many as the runtime polls before it checks sockets and
/// timers again (61).
const AT_ONCE: usize = 64;

/// Tasks that end with this at the latest.
pub(crate) struct Tasks {
    handles: RefCell<Vec<JoinHandle<()>>>,
    /// Notified at each end of a task, by a value that the task holds: polling a million handles is too slow.
    ended: Rc<Notify>,
}

impl Tasks {
    /// Returns an empty set. Every spawned task notifies `ended` of its end, also after a panic.
    pub(crate) fn new(ended: &Rc<Notify>) -> Self {
        Self {
            handles: RefCell::default(),
            ended: Rc::clone(ended),
        }
    }

    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.handles.borrow_mut().push(spawn_local(future));
    }

    /// Spawns all of them, a few at a time. A million take a second, in which the running ones would wait for their
    /// responses, and windows for their end.
    pub(crate) async fn spawn_all<F>(&self, futures: impl Iterator<Item = F>)
    where
        F: Future<Output = ()> + 'static,
    {
        for (number, future) in (1..).zip(futures) {
            self.spawn(future);
            if number % AT_ONCE == 0 {
                yield_now().await;
            }
        }
    }

    /// Returns how the next task ends; waits forever if none does.
    pub(crate) async fn join_next(&self) -> Result<(), JoinError> {
        loop {
            self.ended.notified().await;
            if let Some(ended) = self.take_ended() {
                return ended.await;
            }
        }
    }

    fn take_ended(&self) -> Option<JoinHandle<()>> {
        let mut handles = self.handles.borrow_mut();
        let at = handles.iter().position(JoinHandle::is_finished)?;
        Some(handles.swap_remove(at))
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.handles.get_mut().iter().for_each(JoinHandle::abort);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::task::LocalSet;

    use super::*;

    #[test]
    fn who_is_there_has_turns_while_others_come() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let (tasks, turns, there) = (
            Tasks::new(&Rc::default()),
            Cell::new(0),
            Rc::new(Cell::new(0)),
        );
        let one = || {
            let there = Rc::clone(&there);
            async move { there.set(there.get() + 1) }
        };
        let first = async {
            loop {
                turns.set(turns.get() + 1);
                yield_now().await;
            }
        };
        let all = async {
            tokio::select! {
                biased;
                () = tasks.spawn_all((0..100 * AT_ONCE).map(|_| one())) => {}
                () = first => {}
            }
        };
        LocalSet::new().block_on(&runtime.unwrap(), all);
        assert!(turns.get() >= 99, "{} turns", turns.get());
        assert!(
            there.get() >= 50 * AT_ONCE,
            "{} of them have had one, too",
            there.get()
        );
    }
}
