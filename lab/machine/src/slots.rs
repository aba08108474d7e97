//! Two systems of a duet on one agent's machine: one connection serves both, and each message names its system. A
//! single system is the left one. It knows no message.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lab_driver::remote::{End, FrameSink, FrameSource, MessageError, Peer, Place};
use serde::{Deserialize, Serialize};

/// Reports of one system that may be queued while the other's arrive: minutes of counters.
const QUEUE: usize = 1024;

/// The system that a message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The single system, or the left one of two.
    Left,
    /// The right one.
    Right,
}

/// How a system shares cores with another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoreSharing {
    /// On the same cores.
    #[serde(rename = "together")]
    Shared,
    /// On its half of them.
    #[serde(rename = "apart")]
    Split,
}

impl Slot {
    /// The left one first.
    pub const BOTH: [Self; 2] = [Self::Left, Self::Right];

    /// Its index among two.
    #[must_use]
    pub fn at(self) -> usize {
        match self {
            Self::Left => 0,
            Self::Right => 1,
        }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }

    /// Prefixes a frame with its system.
    pub(crate) fn mark(self, frame: &[u8]) -> Vec<u8> {
        [&[self.at() as u8], frame].concat()
    }

    /// Removes the system's prefix from a frame; `None` if the frame has none.
    pub(crate) fn take(frame: &mut Vec<u8>) -> Option<Self> {
        let slot = match frame.first()? {
            0 => Self::Left,
            1 => Self::Right,
            _ => return None,
        };
        frame.remove(0);
        Some(slot)
    }
}

/// Splits the connection to an agent into one for each system of a duet. Closing one of them by force closes both.
///
/// # Errors
/// When the receiving thread can't be started.
pub fn both(peer: Peer) -> io::Result<[Peer; 2]> {
    let Peer {
        orders,
        mut reports,
        place,
        cores,
        own_cores,
        weight,
    } = peer;
    let (orders, place) = (Arc::new(Mutex::new(orders)), Arc::<dyn Place>::from(place));
    let ([to_left, to_right], heard) = two_ways();
    let thread = std::thread::Builder::new().name("machines".to_owned());
    thread.spawn(move || forward(&mut *reports, &[to_left, to_right]))?;
    Ok(heard.map(|heard| Peer {
        orders: Box::new(SharedSink(Arc::clone(&orders))),
        reports: Box::new(QueueSource(heard)),
        place: Box::new(Shared(Arc::clone(&place))),
        cores: cores.clone(),
        own_cores,
        weight,
    }))
}

type Ways = ([SyncSender<Vec<u8>>; 2], [Receiver<Vec<u8>>; 2]);

fn two_ways() -> Ways {
    let (left, from_left) = sync_channel(QUEUE);
    let (right, from_right) = sync_channel(QUEUE);
    ([left, right], [from_left, from_right])
}

/// Forwards reports unchanged to their systems.
fn forward(reports: &mut dyn FrameSource, to: &[SyncSender<Vec<u8>>; 2]) {
    while let Ok(Some(mut frame)) = reports.receive() {
        let whose = Slot::take(&mut frame);
        // A report without a valid system goes to the first one that listens.
        let slot = whose.unwrap_or(Slot::Left);
        let frame = whose.map_or_else(Vec::new, |slot| slot.mark(&frame));
        // A system that has ended receives nothing more.
        let _ended = to[slot.at()].send(frame);
    }
}

struct SharedSink(Arc<Mutex<Box<dyn FrameSink + Send>>>);

impl FrameSink for SharedSink {
    fn send(&mut self, frame: &[u8]) -> Result<(), MessageError> {
        let mut orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        orders.send(frame)
    }
}

struct QueueSource(Receiver<Vec<u8>>);

impl FrameSource for QueueSource {
    fn receive(&mut self) -> Result<Option<Vec<u8>>, MessageError> {
        Ok(self.0.recv().ok())
    }
}

struct Shared(Arc<dyn Place>);

impl Place for Shared {
    fn name(&self) -> String {
        self.0.name()
    }

    fn process(&self) -> Option<u32> {
        self.0.process()
    }

    fn moment(&self, here: u64) -> u64 {
        self.0.moment(here)
    }

    fn notice(&self) -> Duration {
        self.0.notice()
    }

    fn must_arm(&self) -> bool {
        self.0.must_arm()
    }

    fn end(&self, at_once: bool) -> End {
        self.0.end(at_once)
    }

    fn kill(&self) {
        self.0.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_whose_they_are() {
        for slot in Slot::BOTH {
            let mut frame = slot.mark(b"stop");
            assert_eq!(Slot::take(&mut frame), Some(slot));
            assert_eq!(frame, b"stop");
            assert_eq!(slot.other().other(), slot);
        }
        for none in [&b""[..], b"\x02stop"] {
            let mut frame = none.to_vec();
            assert_eq!((Slot::take(&mut frame), &frame[..]), (None, none));
        }
    }
}
