//! HTTP versions: the requested one, and the one in use.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The version in use on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.1: one request after the other on a connection.
    One,
    /// HTTP/2: many requests at once.
    Two,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One => "HTTP/1.1",
            Self::Two => "HTTP/2",
        })
    }
}

/// The HTTP version that users request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offer {
    /// HTTP/1.1.
    #[default]
    One,
    /// HTTP/2: by ALPN over TLS, and without TLS by prior knowledge (RFC 9113, section 3.3).
    Two,
    /// Over TLS the server's choice, HTTP/2 before HTTP/1.1; HTTP/1.1 without TLS.
    Auto,
}

impl Offer {
    /// Returns the protocol names for ALPN (RFC 7301), in order of preference.
    #[must_use]
    pub fn alpn(self) -> &'static [&'static [u8]] {
        match self {
            Self::One => &[b"http/1.1"],
            Self::Two => &[b"h2"],
            Self::Auto => &[b"h2", b"http/1.1"],
        }
    }
}

/// The HTTP settings of users.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protocol {
    /// Which version.
    pub offer: Offer,
    /// The number of connections that all users share; `None` if each user has its own. [`Offer::Auto`] shares none.
    #[serde(default)]
    pub shared: Option<u32>,
}

impl Protocol {
    /// Returns the settings for one worker of several, with its part of the shared connections, at least one.
    #[must_use]
    pub fn of_worker(self, number: u32, workers: u32) -> Self {
        let workers = workers.max(1);
        let part = |all: u32| (all / workers + u32::from(number < all % workers)).max(1);
        Self {
            shared: self.shared.map(part),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_out_connections_and_each_has_one() {
        let of = |all, number, workers| {
            let protocol = Protocol {
                offer: Offer::Two,
                shared: Some(all),
            };
            protocol.of_worker(number, workers).shared.unwrap()
        };
        assert_eq!([0, 1, 2].map(|number| of(8, number, 3)), [3, 3, 2]);
        assert_eq!([0, 1].map(|number| of(1, number, 2)), [1, 1]);
        assert_eq!(of(4, 0, 0), 4);
        assert_eq!(Protocol::default().of_worker(0, 4).shared, None);
    }
}
