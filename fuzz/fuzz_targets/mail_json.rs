//! Any bytes as a message in JSON: read, or refused; never a panic.
//!
//! `cargo +nightly fuzz run mail_json -- -max_len=65536`
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(message) = groupware_mail::parse_outgoing(data) {
        let _ = message.recipients().count();
    }
});
