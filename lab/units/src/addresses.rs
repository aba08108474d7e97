//! Source addresses of a load's connections: one, or a range of them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text_error::TextError;

/// Most addresses of a range.
const MOST: u128 = 4096;

/// Consecutive addresses, both ends included: `10.0.0.7`, `127.0.0.1-127.0.0.16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AddressRange {
    first: IpAddr,
    last: IpAddr,
}

impl AddressRange {
    /// All addresses of the range.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let (v4, first, last) = match (self.first, self.last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => (
                true,
                u128::from(first.to_bits()),
                u128::from(last.to_bits()),
            ),
            (first, last) => (false, bits(first), bits(last)),
        };
        (first..=last).map(move |bits| match u32::try_from(bits) {
            Ok(bits) if v4 => IpAddr::V4(Ipv4Addr::from_bits(bits)),
            _ => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        })
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl FromStr for AddressRange {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let parsed = |text: &str| text.trim().parse::<IpAddr>().ok();
        let wrong = |message: String| {
            let error = TextError::new(message, 0..text.len());
            error.help(
                "write an address, or the first and the last of a range: `10.0.0.7-10.0.0.22`",
            )
        };
        let (Some(first), Some(last)) = (parsed(first), parsed(last)) else {
            return Err(wrong(format!("`{}` is no address", text.trim())));
        };
        if first.is_ipv4() != last.is_ipv4() || bits(first) > bits(last) {
            return Err(wrong(format!("from {first} to {last} is no range")));
        }
        if bits(last) - bits(first) >= MOST {
            return Err(wrong(format!("a range has {MOST} addresses at most")));
        }
        Ok(Self { first, last })
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

impl From<AddressRange> for String {
    fn from(range: AddressRange) -> Self {
        range.to_string()
    }
}

impl TryFrom<String> for AddressRange {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|error: TextError| error.to_string())
    }
}

#[cfg(test)]
mod tests;
