//! Shares the agent of a remote host that has both systems of a duet: each of the two trials reaches its own over the
//! only connection. It knows no message.

use std::sync::{Arc, Mutex, PoisonError};

use lab_driver::DriverError;
use lab_driver::remote::{Peer, RemoteGenerators, Seen};
use lab_machine::Slot;

use crate::remote_host::{Machines, SystemMachine};

/// The hosts of both trials of a duet, as seen by each.
pub(crate) fn of_both(machines: &Machines) -> [Machines; 2] {
    let mut both = [Machines::new(), Machines::new()];
    for (on, agent) in machines {
        let shared = Arc::new(Shared {
            agent: agent.clone(),
            ways: Mutex::default(),
        });
        for (slot, of) in Slot::BOTH.into_iter().zip(&mut both) {
            let shared = Arc::clone(&shared);
            of.insert(
                on.clone(),
                SystemMachine::new(Arc::new(Half { shared, slot })),
            );
        }
    }
    both
}

/// An agent shared by both trials.
#[derive(Debug)]
struct Shared {
    agent: SystemMachine,
    /// Opened for both by the first trial.
    ways: Mutex<[Option<Peer>; 2]>,
}

/// The agent, as seen by one trial.
#[derive(Debug)]
struct Half {
    shared: Arc<Shared>,
    slot: Slot,
}

impl RemoteGenerators for Half {
    fn open(&self) -> Result<Vec<Peer>, DriverError> {
        let ways = self.shared.ways.lock();
        let mut ways = ways.unwrap_or_else(PoisonError::into_inner);
        if ways[self.slot.at()].is_none() {
            let peers = self.shared.agent.open()?.into_iter();
            if let Some(peer) = peers.take(1).next() {
                let both = lab_machine::both(peer).map_err(DriverError::Runtime)?;
                *ways = both.map(Some);
            }
        }
        Ok(ways[self.slot.at()].take().into_iter().collect())
    }

    fn seen(&self) -> Vec<Seen> {
        self.shared.agent.seen()
    }
}
