//! Any bytes as a stream of events, whole and split in two: the split does not change the events.

use lab_client::http::EventParser;

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

pub(crate) fn run(input: &[u8]) {
    let Some((cut, bytes)) = input.split_first_chunk() else {
        return;
    };
    let cut = usize::from(u16::from_le_bytes(*cut)).min(bytes.len());
    assert_eq!(events(&[bytes]), events(&[&bytes[..cut], &bytes[cut..]]));
}
