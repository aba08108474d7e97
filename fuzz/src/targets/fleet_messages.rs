//! Any bytes as messages between agents and conductors, and as a token. Also with the version byte prepended, so that
//! not every input ends at its first one.

use lab_fleet::{Token, check};

pub(crate) fn run(bytes: &[u8]) {
    let _ = check(bytes);
    let mut versioned = vec![lab_fleet::VERSION];
    versioned.extend(bytes);
    let _ = check(&versioned);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = text.parse::<Token>();
        let _ = format!("plimsoll-join-1.{text}").parse::<Token>();
    }
}
