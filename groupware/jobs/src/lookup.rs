//! Clears away registrations whose leases have ended, and what removed ones have left: in batches
//! so small that no request waits for more than one of them.

use std::time::Duration;

use groupware_lookup::Layout;
use groupware_runtime::clock;
use groupware_store::Store;

use crate::runner::{Job, Stop};

/// How long the sweep leaves the writer to others between two batches.
const BREATH: Duration = Duration::from_millis(10);
/// How long it gives way to somebody who writes.
const GIVE_WAY: Duration = Duration::from_millis(100);
/// How often it does so in a row. Then it sweeps all the same: a server that is never idle has to be
/// swept, too.
const COURTESY: u32 = 50;

/// The sweep of registrations.
#[derive(Debug)]
pub struct LookupSweep {
    store: Store,
    layout: Layout,
    /// Transactions that the store had written when it was looked at last.
    seen: u64,
    given_way: u32,
}

impl LookupSweep {
    /// A sweep of the registrations in a store, which lie in this layout.
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
        // A batch that meets a change of the same registrations is decided anew at the next look,
        // as is one that the store could not take.
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

/// How often it looks: the layouts without an index have to look at everything.
fn every(layout: Layout) -> Duration {
    Duration::from_secs(match layout {
        Layout::Indexed => 1,
        Layout::SingleDocument | Layout::DocumentPerRegistration => 60,
    })
}
