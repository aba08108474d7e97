//! Any bytes as messages about a system on another machine, and as its owner's allow file. Also with the byte of JSON
//! prepended, so that not every input ends at its first one.

use lab_machine::{Allowed, check};

pub(crate) fn run(bytes: &[u8]) {
    let _ = check(bytes);
    let _ = check(&[&[0], bytes].concat());
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Allowed::parse(text);
    }
}
