//! The parsers of documents: fields, names, ranges, dates, the headers of tus, and forms, whose result must not depend
//! on how they are split.

use groupware_documents::{DatabaseName, Fields, FileName, ItemName, ListQuery, Unid, UploadId};
use groupware_proto_http::{Event, Multipart, Ranged, boundary, parse_http_date, tus};

/// Returns the content of each part, and whether the form was complete.
fn read(form: &[u8], piece: usize) -> (Vec<Vec<u8>>, bool) {
    let mut multipart = Multipart::new("B");
    let (mut buffer, mut at, mut parts) = (Vec::new(), 0, Vec::new());
    loop {
        let taken = match multipart.next(&buffer) {
            Err(_) => return (parts, false),
            Ok(Event::More) if at == form.len() => return (parts, false),
            Ok(Event::More) => {
                let end = form.len().min(at + piece);
                buffer.extend_from_slice(&form[at..end]);
                at = end;
                continue;
            }
            Ok(Event::End) => return (parts, true),
            Ok(Event::Part { taken, .. }) => {
                parts.push(Vec::new());
                taken
            }
            Ok(Event::Content { taken }) => {
                let part = parts.last_mut().expect("content is of a part");
                part.extend_from_slice(&buffer[..taken]);
                taken
            }
            Ok(Event::Skip { taken } | Event::PartEnd { taken }) => taken,
        };
        assert!(taken > 0 && taken <= buffer.len(), "no event takes nothing");
        buffer.drain(..taken);
    }
}

pub(crate) fn run(data: &[u8]) {
    let _ = Fields::parse(data);
    let whole = read(data, usize::MAX / 2);
    if whole.1 {
        assert_eq!(read(data, 1), whole);
    }
    let _ = groupware_content::decode_slot(data);
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let _ = (
        DatabaseName::parse(text),
        ItemName::parse(text),
        Unid::parse(text),
    );
    let _ = (UploadId::parse(text), parse_http_date(text), boundary(text));
    if let Ok(name) = FileName::parse(text) {
        assert!(!name.as_str().contains(['/', '\\', '\0']));
    }
    let _ = (
        tus::number("x", text),
        tus::metadata(text),
        tus::checksum(text),
    );
    let _ = ListQuery::parse([("start", text), ("count", text), ("since", text)]);
    for bytes in [0, 1, 1000, u64::MAX] {
        if let Ranged::Part(part) = Ranged::parse(text, bytes) {
            assert!(part.first <= part.last && part.last < bytes);
        }
    }
}
