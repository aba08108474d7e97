//! Any bytes as a stream of events, whole and cut in two: the cut changes no event.
//!
//! `cargo +nightly fuzz run http_events -- -max_len=4096`
#![no_main]

use lab_client::http::EventParser;
use libfuzzer_sys::fuzz_target;

fn events(pieces: &[&[u8]]) -> Vec<(String, String)> {
    let mut parser = EventParser::default();
    let mut found = Vec::new();
    for piece in pieces {
        let fed = parser.feed(piece, &mut |event| {
            found.push((event.name.to_owned(), event.data.to_owned()));
            true
        });
        assert!(fed.is_ok(), "the input is shorter than any limit");
    }
    found
}

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    let cut = usize::from(cut).min(bytes.len());
    assert_eq!(events(&[bytes]), events(&[&bytes[..cut], &bytes[cut..]]));
});
