//! Reliable delivery over a transport that loses, repeats, and reorders packets. The sender keeps numbered packets
//! until acknowledged; the receiver takes each once, in order. Pure: the caller decides when to resend.

use std::collections::{BTreeMap, VecDeque};

/// The maximum distance of a kept early packet from the next one; later ones are sent again anyway.
const AHEAD: u64 = 1024;

/// The sender's side: packets not yet acknowledged.
#[derive(Debug)]
pub struct Unacknowledged {
    /// The number of the first kept packet.
    first: u64,
    packets: VecDeque<Vec<u8>>,
    bytes: usize,
    most_packets: usize,
    most_bytes: usize,
}

/// Too many packets wait for acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{packets} packets ({bytes} bytes) wait for an acknowledgement that does not come")]
pub struct Full {
    /// The number of waiting packets.
    pub packets: usize,
    /// Their total size in bytes.
    pub bytes: usize,
}

impl Unacknowledged {
    /// Returns a buffer for this maximum of packets, and of bytes.
    #[must_use]
    pub fn new(most_packets: usize, most_bytes: usize) -> Self {
        Self {
            first: 0,
            packets: VecDeque::new(),
            bytes: 0,
            most_packets,
            most_bytes,
        }
    }

    /// Numbers a packet and keeps it; the first has number 0. Returns the number.
    ///
    /// # Errors
    /// When there is no room; the buffer is unchanged then.
    pub fn push(&mut self, packet: Vec<u8>) -> Result<u64, Full> {
        let bytes = self.bytes + packet.len();
        if self.packets.len() >= self.most_packets || bytes > self.most_bytes {
            return Err(Full {
                packets: self.packets.len(),
                bytes: self.bytes,
            });
        }
        self.bytes = bytes;
        self.packets.push_back(packet);
        Ok(self.first + self.packets.len() as u64 - 1)
    }

    /// Returns true if there is room for a packet of this length.
    #[must_use]
    pub fn has_room(&self, bytes: usize) -> bool {
        self.packets.len() < self.most_packets && self.bytes + bytes <= self.most_bytes
    }

    /// Returns the bytes of the waiting packets.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Drops all packets below this number, which the peer has received. An old acknowledgement changes nothing; one
    /// for packets that were never sent is invalid and ignored.
    pub fn acknowledge(&mut self, below: u64) {
        if below > self.first + self.packets.len() as u64 {
            return;
        }
        while self.first < below {
            let packet = self.packets.pop_front();
            self.bytes -= packet.map_or(0, |packet| packet.len());
            self.first += 1;
        }
    }

    /// Returns the waiting packets, by number: to be sent again without an acknowledgement.
    pub fn waiting(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let numbers = self.first..;
        numbers.zip(self.packets.iter().map(Vec::as_slice))
    }

    /// Returns true if all packets are acknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

/// The receiver's side: the received packets, and those received too early.
#[derive(Debug, Default)]
pub struct Arrivals {
    next: u64,
    early: BTreeMap<u64, Vec<u8>>,
}

impl Arrivals {
    /// Takes a packet. Returns the packets that are next now, in order; none for a repeated packet, or while earlier
    /// ones are missing.
    pub fn take(&mut self, number: u64, packet: Vec<u8>) -> Vec<Vec<u8>> {
        if (self.next..self.next + AHEAD).contains(&number) {
            self.early.entry(number).or_insert(packet);
        }
        let mut ready = Vec::new();
        while let Some(packet) = self.early.remove(&self.next) {
            self.next += 1;
            ready.push(packet);
        }
        ready
    }

    /// Returns the number to acknowledge: all packets below it were received.
    #[must_use]
    pub fn below(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_in_number_and_bytes() {
        let mut sent = Unacknowledged::new(2, 10);
        assert_eq!(sent.push(vec![0; 4]), Ok(0));
        let full = Full {
            packets: 1,
            bytes: 4,
        };
        assert!(!sent.has_room(7));
        assert_eq!(sent.push(vec![0; 7]), Err(full));
        assert_eq!(sent.push(vec![0; 6]), Ok(1));
        assert!(sent.push(vec![]).is_err());
        sent.acknowledge(1);
        assert_eq!(sent.push(vec![1; 4]), Ok(2));
        let waiting: Vec<_> = sent.waiting().map(|(n, p)| (n, p.len())).collect();
        assert_eq!(waiting, [(1, 6), (2, 4)]);
    }

    #[test]
    fn an_old_or_impossible_acknowledgement_changes_nothing() {
        let mut sent = Unacknowledged::new(9, 99);
        for _ in 0..3 {
            sent.push(vec![7]).unwrap();
        }
        sent.acknowledge(2);
        sent.acknowledge(1);
        sent.acknowledge(4);
        assert_eq!(sent.waiting().count(), 1);
        sent.acknowledge(3);
        assert!(sent.is_empty());
    }

    #[test]
    fn packets_come_out_once_and_in_order() {
        let mut came = Arrivals::default();
        assert!(came.take(1, vec![1]).is_empty());
        assert_eq!(came.below(), 0);
        assert_eq!(came.take(0, vec![0]), [[0], [1]]);
        assert!(came.take(0, vec![9]).is_empty() && came.take(1, vec![9]).is_empty());
        assert!(came.take(2 + AHEAD, vec![9]).is_empty());
        assert_eq!(came.take(2, vec![2]), [[2]]);
        assert_eq!(came.below(), 3);
    }
}
