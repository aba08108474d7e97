//! Clears away registrations whose leases have ended, and what removed ones have left: in batches
//! so small that no request waits for more than one of them.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use groupware_lookup::Layout;
use groupware_store::Store;

use crate::clock;

/// How long the sweeper leaves the writer to others between two batches.
const BREATH: Duration = Duration::from_millis(10);
/// How long it gives way to somebody who writes.
const GIVE_WAY: Duration = Duration::from_millis(100);
/// How often it does so in a row. Then it sweeps all the same: a server that is never idle has to be
/// swept, too.
const COURTESY: u32 = 50;

/// The sweeping thread, which ends with it.
pub(crate) struct Sweeper {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Sweeper {
    pub(crate) fn start(store: Store, layout: Layout) -> io::Result<Self> {
        let (stop, stopped) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("lookup-sweep".into())
            .spawn(move || sweep(&store, layout, &stopped))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How often it looks: the layouts without an index have to look at everything.
fn every(layout: Layout) -> Duration {
    Duration::from_secs(match layout {
        Layout::Indexed => 1,
        Layout::SingleDocument | Layout::DocumentPerRegistration => 60,
    })
}

fn sweep(store: &Store, layout: Layout, stopped: &Receiver<()>) {
    let mut pause = every(layout);
    let mut seen = store.stats().groups;
    let mut given_way = 0;
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let written = store.stats().groups;
        if written != seen && given_way < COURTESY {
            (seen, pause) = (written, GIVE_WAY);
            given_way += 1;
            continue;
        }
        // A batch that meets a change of the same registrations is decided anew at the next look,
        // as is one that the store could not take.
        let batch = store.read(|snapshot| layout.sweep(snapshot, clock::unix_seconds()));
        let batch = batch.ok().flatten();
        pause = match batch.map(|batch| store.commit_blocking(batch)) {
            Some(Ok(_)) => BREATH,
            _ => {
                given_way = 0;
                every(layout)
            }
        };
        seen = store.stats().groups;
    }
}
