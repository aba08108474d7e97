//! Any bytes as a calendar document in iCalendar: parsed, or refused; never a panic.
//!
//! `cargo +nightly fuzz run calendar_icalendar -- -max_len=65536`
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(event) = groupware_calendar::parse_icalendar(data) {
        let _ = format!("{event:?}");
    }
});
