//! The tasks of a worker, a million of them: beside its future, and what the runtime keeps of it, each costs a
//! pointer. It knows nothing of what they do.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle, spawn_local, yield_now};

/// As many are spawned before others have their turn: about as many as the runtime polls before it looks at sockets
/// and timers again (61).
const AT_ONCE: usize = 64;

/// Tasks that end with this at the latest.
pub(crate) struct Tasks {
    handles: RefCell<Vec<JoinHandle<()>>>,
    /// Told whenever one of them ends, by what it holds: nobody polls a million handles.
    ended: Rc<Notify>,
}

impl Tasks {
    /// None yet. Whatever is spawned tells `ended` of its end, also where that is a panic.
    pub(crate) fn new(ended: &Rc<Notify>) -> Self {
        Self {
            handles: RefCell::default(),
            ended: Rc::clone(ended),
        }
    }

    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.handles.borrow_mut().push(spawn_local(future));
    }

    /// Spawns all of them, a few at a time: a million take a second, in which those that are there would wait for
    /// their answers, and windows for their end.
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

    /// How the next one ends; waits for ever where none does.
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
