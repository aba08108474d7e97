//! Any bytes as an encoded body: decoded within the limit, or refused.
//!
//! `cargo +nightly fuzz run content_coding -- -max_len=8192`
#![no_main]

use lab_client::http::Coding;
use libfuzzer_sys::fuzz_target;

const LIMIT: u64 = 1 << 20;

fuzz_target!(|body: &[u8]| {
    let mut out = Vec::new();
    for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd] {
        if coding.decode(body, LIMIT, &mut out).is_ok() {
            assert!(out.len() as u64 <= LIMIT);
        }
    }
});
