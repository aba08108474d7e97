//! Any bytes as what is said about a system on another machine, and as the file in which its owner says what is
//! allowed. Also behind the byte of JSON, so that not every input ends at its first one.

use lab_machine::{Allowed, check};

pub(crate) fn run(bytes: &[u8]) {
    let _ = check(bytes);
    let _ = check(&[&[0], bytes].concat());
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Allowed::parse(text);
    }
}
