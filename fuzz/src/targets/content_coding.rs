//! Any bytes as an encoded body: decoded within the limit, or rejected.

use lab_client::http::Codings;

const LIMIT: u64 = 1 << 20;

pub(crate) fn run(body: &[u8]) {
    let mut out = Vec::new();
    for codings in ["gzip", "deflate", "br", "zstd", "gzip, zstd", "br, gzip"] {
        if Codings::of(codings.as_bytes())
            .decode(body, LIMIT, &mut out)
            .is_ok()
        {
            assert!(out.len() as u64 <= LIMIT);
        }
    }
    let _codings = Codings::of(body);
}
