//! Any bytes at the start of a connection: a header or none, independent of the split, and never long.

use groupware_proto_proxy::{Header, MAX_BYTES, header};

pub(crate) fn run(data: &[u8]) {
    let whole = header(data);
    assert!(data.len() < MAX_BYTES || whole != Ok(Header::Partial));
    if let Ok(Header::Whole { bytes, .. }) = whole {
        assert!(bytes <= data.len().min(MAX_BYTES));
    }
    for cut in 0..data.len().min(64) {
        let decided = header(&data[..cut]);
        assert!(decided == Ok(Header::Partial) || decided == whole);
    }
}
