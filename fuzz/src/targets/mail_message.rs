//! Any bytes as a message: its entry, its parts, its view, and the recipients' copy; never a panic. That copy has no
//! `Bcc`, and no field reserved for this server. The parsed parts have a bound, whatever the message's size.

use groupware_mail::{Entry, View};
use groupware_proto_mime::{Findings, as_delivered, date, has_field, limits, names_domain, parts};

pub(crate) fn run(data: &[u8]) {
    let entry = Entry::of(data, 0);
    let view = View::of(data, &entry);
    let reading = view.reading();
    let read = reading.preferred().chain(reading.plain());
    let _ = (read.count(), reading.files().count());
    let parts = parts(data);
    assert!(parts.len() <= limits::PARTS + 1);
    for part in &parts {
        assert!(part.data().len() <= data.len());
        let texts = part.kind.len() + part.content_type.len() + part.disposition.len();
        assert!(texts + part.name.len() <= 4 * limits::SUBJECT_BYTES);
        let _ = (part.text(), part.picture());
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = date::seconds(text);
    }
    let _ = names_domain(data, "From", "localhost");
    let seen = as_delivered(data, "localhost");
    assert!(!has_field(&seen, "bcc"));
    let _ = Findings::of(data, "localhost").and_then(|findings| findings.origin());
    assert_eq!(Findings::of(&seen, "localhost"), None);
}
