//! Any bytes as a message: its entry, its parts, its view, and what recipients get of it; never a
//! panic, and never a `Bcc` for them.
//!
//! `cargo +nightly fuzz run mail_message -- -max_len=65536`
#![no_main]

use groupware_mail::{Entry, View, parts, without_blind_copies};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let entry = Entry::of(data, 0);
    let view = View::of(data, &entry);
    let _ = (view.text(), view.html(), view.attachments().count());
    for part in parts(data) {
        let _ = part.data();
    }
    let seen = without_blind_copies(data);
    assert!(!groupware_mail::has_field(&seen, "bcc"));
});
