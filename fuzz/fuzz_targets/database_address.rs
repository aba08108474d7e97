//! Any text as the address of a database and as a file of passwords: understood or refused, and no password in
//! what is shown.
//!
//! `cargo +nightly fuzz run database_address -- -max_len=8192`
#![no_main]

use groupware_postgres::{Database, password_in, without_password};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &str| {
    let _ = without_password(data);
    let _ = password_in(data, ["db", "5432", "mail", "me"]);
    let address = format!("postgres://me:pa55word@{data}");
    if let Ok(database) = Database::parse(&address) {
        assert!(!database.to_string().contains("pa55word") || data.contains("pa55word"));
    }
});
