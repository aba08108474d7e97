//! Any bytes as an encoded body: decoded within the limit, or refused.

use lab_client::http::Coding;

const LIMIT: u64 = 1 << 20;

pub(crate) fn run(body: &[u8]) {
    let mut out = Vec::new();
    for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd] {
        if coding.decode(body, LIMIT, &mut out).is_ok() {
            assert!(out.len() as u64 <= LIMIT);
        }
    }
}
