//! How many requests a client elsewhere may send to the lookup service. This machine's own may send
//! what they like: a load generator is one of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;

use crate::client::Client;

/// Most clients on record.
const CLIENTS: usize = 16_384;
/// A client may save up so many seconds' worth of requests, for bulk registrations.
const BURST_S: f64 = 20.0;

/// Requests and registrations, by client.
#[derive(Debug)]
pub(crate) struct Rate {
    per_s: f64,
    clients: Mutex<HashMap<IpAddr, Bucket>>,
}

/// What a client may still send, as of when it last sent something.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Duration,
}

impl Rate {
    pub(crate) fn new(per_s: u32) -> Self {
        Self {
            per_s: f64::from(per_s.max(1)),
            clients: Mutex::default(),
        }
    }

    /// Takes so many from what the sender of a request may send.
    ///
    /// # Errors
    /// The seconds after which there is enough, if there isn't.
    pub(crate) fn admit(&self, headers: &HeaderMap, many: u32, now: Duration) -> Result<(), u32> {
        let client = Client::of(headers);
        match client.address.is_loopback() {
            true => Ok(()),
            false => self.take(client.address, f64::from(many), now),
        }
    }

    fn take(&self, address: IpAddr, many: f64, now: Duration) -> Result<(), u32> {
        let most = self.per_s * BURST_S;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= CLIENTS && !clients.contains_key(&address) {
            clients.retain(|_, bucket| bucket.at(now, self.per_s) < most);
            if clients.len() >= CLIENTS {
                return Err(1);
            }
        }
        let bucket = clients.entry(address).or_insert(Bucket {
            left: most,
            at: now,
        });
        let left = bucket.at(now, self.per_s).min(most);
        *bucket = Bucket { left, at: now };
        // What is larger than anybody can save up takes all that can be.
        let many = many.min(most);
        if left >= many {
            bucket.left -= many;
            return Ok(());
        }
        Err(((many - left) / self.per_s).ceil() as u32)
    }
}

impl Bucket {
    fn at(&self, now: Duration, per_s: f64) -> f64 {
        self.left + now.saturating_sub(self.at).as_secs_f64() * per_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_too_much_waits() {
        let rate = Rate::new(10);
        let (one, other): (IpAddr, IpAddr) =
            ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let s = Duration::from_secs;
        assert_eq!(rate.take(one, 200.0, s(0)), Ok(()));
        assert_eq!(rate.take(one, 11.0, s(0)), Err(2));
        assert_eq!(rate.take(other, 1.0, s(0)), Ok(()));
        assert_eq!(rate.take(one, 10.0, s(1)), Ok(()));
        assert_eq!(rate.take(one, 1000.0, s(1000)), Ok(()));
        assert_eq!(rate.take(one, 1.0, s(1000)), Err(1));
    }

    #[test]
    fn the_record_is_bounded() {
        let rate = Rate::new(10);
        for number in 0..CLIENTS as u32 + 100 {
            let _ = rate.take(IpAddr::from(number.to_be_bytes()), 1.0, Duration::ZERO);
        }
        assert_eq!(rate.clients.lock().unwrap().len(), CLIENTS);
        let late = Duration::from_secs(1000);
        assert_eq!(rate.take("192.0.2.1".parse().unwrap(), 1.0, late), Ok(()));
        assert_eq!(rate.clients.lock().unwrap().len(), 1);
    }
}
