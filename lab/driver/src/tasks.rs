//! The tasks of a worker, a million of them: beside its future, and what the runtime keeps of it, each costs a
//! pointer. It knows nothing of what they do.

use std::future::Future;
use std::rc::Rc;

use tokio::sync::Notify;
use tokio::task::{JoinError, JoinHandle, spawn_local};

/// Tasks that end with this at the latest.
pub(crate) struct Tasks {
    handles: Vec<JoinHandle<()>>,
    /// Told whenever one of them ends, by what it holds: nobody polls a million handles.
    ended: Rc<Notify>,
}

impl Tasks {
    /// None yet. Whatever is spawned tells `ended` of its end, also where that is a panic.
    pub(crate) fn new(ended: &Rc<Notify>) -> Self {
        Self {
            handles: Vec::new(),
            ended: Rc::clone(ended),
        }
    }

    pub(crate) fn spawn(&mut self, future: impl Future<Output = ()> + 'static) {
        self.handles.push(spawn_local(future));
    }

    /// How the next one ends; waits for ever where none does.
    pub(crate) async fn join_next(&mut self) -> Result<(), JoinError> {
        loop {
            self.ended.notified().await;
            if let Some(at) = self.handles.iter().position(JoinHandle::is_finished) {
                return self.handles.swap_remove(at).await;
            }
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.handles.iter().for_each(JoinHandle::abort);
    }
}
