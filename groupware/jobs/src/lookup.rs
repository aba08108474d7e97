//! Removes registrations whose leases have ended, and remains of removed ones: in batches so small that no request
//! waits for more than one of them.

use std::time::Duration;

use groupware_lookup::Layout;
use groupware_runtime::clock;
use groupware_store::Store;

use crate::runner::{Job, Stop};

/// The pause between two batches, in which others can use the writer.
const BREATH: Duration = Duration::from_millis(10);
/// The pause for other writers.
const GIVE_WAY: Duration = Duration::from_millis(100);
/// The maximum number of such pauses in a row. Then the sweep runs anyway: a server that is never idle must be swept,
/// too.
const COURTESY: u32 = 50;

/// The sweep of registrations.
#[derive(Debug)]
pub struct LookupSweep {
    store: Store,
    layout: Layout,
    /// The number of transactions that the store had written at the last run.
    seen: u64,
    given_way: u32,
}

impl LookupSweep {
    /// Creates a sweep of the registrations in a store with this layout.
    pub fn new(store: Store, layout: Layout) -> Self {
        Self {
            seen: store.stats().groups,
            store,
            layout,
            given_way: 0,
        }
    }
}

impl Job for LookupSweep {
    const NAME: &'static str = "lookup-sweep";

    fn first_pause(&self) -> Duration {
        every(self.layout)
    }

    fn run(&mut self, _: &Stop) -> Duration {
        let written = self.store.stats().groups;
        if written != self.seen && self.given_way < COURTESY {
            self.seen = written;
            self.given_way += 1;
            return GIVE_WAY;
        }
        // A batch that conflicts with a change of the same registrations, or that the store rejects, is decided again
        // at the next run.
        let now = clock::unix_seconds();
        let batch = self.store.read(|snapshot| self.layout.sweep(snapshot, now));
        let batch = batch.ok().flatten();
        let pause = match batch.map(|batch| self.store.commit_blocking(batch)) {
            Some(Ok(_)) => BREATH,
            _ => {
                self.given_way = 0;
                every(self.layout)
            }
        };
        self.seen = self.store.stats().groups;
        pause
    }
}

/// The interval of the sweep: layouts without an index must read all registrations.
fn every(layout: Layout) -> Duration {
    Duration::from_secs(match layout {
        Layout::Indexed => 1,
        Layout::SingleDocument | Layout::DocumentPerRegistration => 60,
    })
}
