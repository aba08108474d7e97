//! Any bytes as a file of calendar objects: each object is extracted unchanged, or something is rejected. What a
//! calendar or an iTIP mail derives from one has a bound, whatever its recurrences and time zones; and a changed object
//! is still an object.

use groupware_calendar::{MailMessage, ready};
use groupware_proto_ical::{Edit, edited, escaped, split};

/// 2026-01-01T00:00:00Z.
const NOW: i64 = 1_767_225_600;
/// The number of objects that are read: the time of each does not depend on its length.
const READ: usize = 2;

pub(crate) fn run(data: &[u8]) {
    let Ok((objects, _)) = split(data) else {
        return;
    };
    if let ([_], Ok(text)) = (&objects[..], std::str::from_utf8(data)) {
        let _ = MailMessage::read(text, "ann@localhost", NOW);
    }
    let mut written = Vec::new();
    for (place, object) in objects.iter().enumerate() {
        written.clear();
        object.write(&mut written);
        let (again, faults) = split(&written).expect("what was taken out of a file can be read");
        assert!(faults.is_empty() && again.len() == 1);
        assert_eq!(again[0].uid, object.uid);
        assert!(again[0].components().eq(object.components()));
        let summary = Edit {
            property: "SUMMARY",
            value: Some(escaped("a;\n\u{e9}")),
            parameters: vec![("ALTREP", None), ("TZID", Some("A: B".to_owned()))],
        };
        let edits = [(0, vec![summary])];
        let changed = edited(&written, &edits).expect("what is one line is written");
        assert_eq!(edited(&changed, &edits).as_ref(), Some(&changed));
        let (changed, faults) = split(&changed).expect("what is changed can be read");
        assert!(faults.is_empty() && changed.len() == 1);
        assert_eq!(changed[0].uid, object.uid);
        if place < READ {
            let _ = ready(object, "ann@localhost", NOW);
        }
    }
}
