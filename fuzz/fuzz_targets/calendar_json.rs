//! Any bytes as a calendar document in JSON: parsed, or refused; never a panic.
//!
//! `cargo +nightly fuzz run calendar_json -- -max_len=65536`
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(event) = groupware_calendar::parse_json_events(data) {
        // What was taken can be told again.
        let _ = format!("{event:?}");
    }
});
