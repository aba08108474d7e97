//! Lines of an iCalendar event without a member in this calendar: alarms, attachments, properties, and parameters. They
//! are stored with the event and written with it.

use groupware_proto_ical::{Line, Lines, Property, fold};
use serde_json::Value;

/// The properties that the server itself computes, whatever a client sends.
const COMPUTED: [&str; 4] = [
    "x-lotus-appttype",
    "x-lotus-noticetype",
    "x-lotus-organizer",
    "x-lotus-summarydataonly",
];

/// The properties with members in an event, each with the supported parameters.
const KNOWN: [(&str, &[&str]); 17] = [
    ("UID", &[]),
    ("DTSTAMP", &[]),
    ("LAST-MODIFIED", &[]),
    ("SEQUENCE", &[]),
    ("DTSTART", &["TZID", "VALUE"]),
    ("DTEND", &["TZID", "VALUE"]),
    ("DURATION", &[]),
    ("SUMMARY", &[]),
    ("LOCATION", &[]),
    ("DESCRIPTION", &[]),
    ("CLASS", &[]),
    ("TRANSP", &[]),
    ("STATUS", &[]),
    ("PRIORITY", &[]),
    ("CATEGORIES", &[]),
    ("URL", &["VALUE"]),
    ("ORGANIZER", &["CN"]),
];
/// The attendee parameters with members.
const ATTENDEE: [&str; 10] = [
    "CN",
    "ROLE",
    "CUTYPE",
    "RSVP",
    "PARTSTAT",
    "MEMBER",
    "SENT-BY",
    "DIR",
    "DELEGATED-TO",
    "DELEGATED-FROM",
];

/// Returns true if the server itself computes this property.
pub(crate) fn is_computed(name: &str) -> bool {
    COMPUTED.contains(&name)
}

/// The parameters with members; `None` if the property itself has no member.
fn known(name: &str) -> Option<&'static [&'static str]> {
    match name {
        "ATTENDEE" => Some(&ATTENDEE),
        name => {
            let mut all = KNOWN.iter();
            all.find(|(known, _)| *known == name).map(|(_, of)| *of)
        }
    }
}

/// The lines without members of each event of a calendar, in the order of the events.
pub(crate) fn unknown_lines(calendar: &str) -> Vec<Vec<String>> {
    let (mut events, mut open) = (Vec::<Vec<String>>::new(), Vec::<String>::new());
    for line in Lines::new(calendar.as_bytes()) {
        let text = line.unfolded();
        let property = Property::read(&text);
        let mut text = String::from_utf8_lossy(&text).into_owned();
        // Control characters that some programs take for the end of a line are removed.
        text.retain(|letter| !letter.is_control() || letter == '\t');
        let name = || {
            let name = String::from_utf8_lossy(property.value.trim_ascii());
            name.to_ascii_uppercase()
        };
        let is_in_event = open.get(1).is_some_and(|it| it == "VEVENT");
        if property.is("BEGIN") {
            open.push(name());
            match (&open[..], events.last_mut()) {
                ([_, event], _) if event == "VEVENT" => events.push(Vec::new()),
                (_, Some(lines)) if is_in_event => lines.push(text),
                _ => {}
            }
            continue;
        }
        if property.is("END") {
            if open.pop().is_none_or(|begun| begun != name()) {
                // The structure is broken: no line can be assigned.
                return Vec::new();
            }
            if let (true, Some(lines)) = (is_in_event && open.len() > 1, events.last_mut()) {
                lines.push(text);
            }
            continue;
        }
        if let (true, Some(lines)) = (is_in_event, events.last_mut())
            && (open.len() > 2 || is_unknown(&property))
        {
            lines.push(text);
        }
    }
    events.into_iter().map(without_plain).collect()
}

fn name_of(property: &Property<'_>) -> String {
    String::from_utf8_lossy(property.name).to_ascii_uppercase()
}

/// Returns true if a part of a property has no member.
fn is_unknown(property: &Property<'_>) -> bool {
    let name = name_of(property);
    if name.is_empty() || is_computed(&name.to_ascii_lowercase()) {
        return false;
    }
    let Some(parameters) = known(&name) else {
        return true;
    };
    let is_known = |of: &[u8]| {
        parameters
            .iter()
            .any(|it| of.eq_ignore_ascii_case(it.as_bytes()))
    };
    property.parameters().any(|(of, _)| !is_known(of))
}

/// Removes properties of other vendors that their member fully covers: a single text.
fn without_plain(lines: Vec<String>) -> Vec<String> {
    let names: Vec<String> = lines
        .iter()
        .map(|line| name_of(&Property::read(line.as_bytes())))
        .collect();
    let mut depth = 0;
    let stays = |(line, name): (&String, &String)| {
        match &**name {
            "BEGIN" => depth += 1,
            "END" => depth -= 1,
            _ => {}
        }
        let property = Property::read(line.as_bytes());
        let is_plain = name.starts_with("X-")
            && depth == 0
            && property.parameters().next().is_none()
            && !property.value.iter().any(|it| b",;\\".contains(it))
            && names.iter().filter(|other| *other == name).count() == 1;
        (!is_plain).then(|| line.clone())
    };
    lines.iter().zip(&names).filter_map(stays).collect()
}

/// The lines without alarms, which belong to one owner.
pub(crate) fn without_alarms(lines: &[String]) -> Vec<String> {
    let (mut left, mut alarm) = (Vec::new(), 0);
    for line in lines {
        let property = Property::read(line.as_bytes());
        let (begins, ends) = (property.is("BEGIN"), property.is("END"));
        let is_alarm = property.value.trim_ascii().eq_ignore_ascii_case(b"VALARM");
        if begins && (alarm > 0 || is_alarm) {
            alarm += 1;
        }
        if alarm == 0 {
            left.push(line.clone());
        }
        if ends && alarm > 0 {
            alarm -= 1;
        }
    }
    left
}

/// The lines without other vendors' properties that were changed in their members.
pub(crate) fn unchanged(
    lines: &[String],
    was: &[(String, Value)],
    is: &[(String, Value)],
) -> Vec<String> {
    // Of several with the same name, JSON has one.
    let is_changed = |name: &str| {
        let had = was.iter().any(|(known, _)| known == name);
        had && !is.iter().any(|it| it.0 == name && was.contains(it))
    };
    let stays = |line: &&String| {
        let property = Property::read(line.as_bytes());
        let name = String::from_utf8_lossy(property.name).to_ascii_lowercase();
        !name.starts_with("x-") || !is_changed(&name)
    };
    lines.iter().filter(stays).cloned().collect()
}

/// Returns true if there are new lines of properties without members.
pub(crate) fn adds(was: &[String], is: &[String]) -> bool {
    let is_of_none = |line: &&String| known(&name_of(&Property::read(line.as_bytes()))).is_none();
    is.iter().filter(is_of_none).any(|line| !was.contains(line))
}

/// A component with its lines without members.
pub(crate) fn merged(component: &str, unknown: &[String]) -> String {
    let mut written = Vec::with_capacity(component.len() + 256);
    for line in Lines::new(component.as_bytes()) {
        let text = line.unfolded();
        let property = Property::read(&text);
        if property.is("END") {
            for line in unknown {
                let property = Property::read(line.as_bytes());
                if known(&name_of(&property)).is_none() {
                    fold(line.as_bytes(), b"\r\n", &mut written);
                }
            }
        }
        write_line(&line, &property, unknown, &mut written);
    }
    String::from_utf8_lossy(&written).into_owned()
}

/// Writes a line with its parameters without members, if the value is unchanged.
fn write_line(line: &Line<'_>, property: &Property<'_>, unknown: &[String], to: &mut Vec<u8>) {
    let name = name_of(property);
    let mut same = unknown.iter().filter_map(|line| {
        let was = Property::read(line.as_bytes());
        was.is(&name).then_some(was)
    });
    if known(&name).is_none() && !matches!(&*name, "BEGIN" | "END") {
        // The line itself is written unchanged.
        if same.next().is_none() {
            to.extend_from_slice(line.bytes);
        }
        return;
    }
    let Some(was) = same.find(|was| meant(was.value) == meant(property.value)) else {
        to.extend_from_slice(line.bytes);
        return;
    };
    let known = known(&name).unwrap_or_default();
    let is_known = |of: &[u8]| {
        known
            .iter()
            .any(|it| of.eq_ignore_ascii_case(it.as_bytes()))
    };
    let mut whole = property.name.to_vec();
    let others = was.parameters().filter(|(of, _)| !is_known(of));
    for (_, parameter) in property.parameters().chain(others) {
        whole.push(b';');
        whole.extend_from_slice(parameter);
    }
    whole.push(b':');
    whole.extend_from_slice(property.value);
    fold(&whole, b"\r\n", to);
}

/// A value without equivalent spellings: escapes, and the case of addresses.
fn meant(value: &[u8]) -> Vec<u8> {
    let mut bytes = value.iter();
    let mut meant = Vec::with_capacity(value.len());
    while let Some(byte) = bytes.next() {
        meant.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n' | b'N') => b'\n',
                Some(escaped) => *escaped,
                None => b'\\',
            },
            byte => *byte,
        });
    }
    if meant
        .get(..7)
        .is_some_and(|it| it.eq_ignore_ascii_case(b"mailto:"))
    {
        meant.make_ascii_lowercase();
    }
    meant
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn calendar(events: &[&str]) -> String {
        let event = |lines: &&str| format!("BEGIN:VEVENT\r\n{lines}END:VEVENT\r\n");
        let events: String = events.iter().map(event).collect();
        format!("BEGIN:VCALENDAR\r\nX-OF:calendar\r\n{events}END:VCALENDAR\r\n")
    }

    #[test]
    fn lines_without_members_are_found() {
        let alarm = "BEGIN:VALARM\r\nTRIGGER:-PT5M\r\nX-A:1\r\nEND:VALARM\r\n";
        let one = format!(
            "UID:1\r\nSUMMARY:plain\r\nLOCATION;LANGUAGE=de:Ra\r\n um\r\nATTACH:cid:x\r\nX-PLAIN:text\r\n\
             X-P;X-Q=1:a\r\nX-TWICE:1\r\nX-TWICE:2\r\nDTSTART;TZID=a:1\r\nDTEND;TZID=a;X-Z=1:2\r\n\
             ATTENDEE;CN=a:mailto:a@b\r\nATTENDEE;X-E=1:mailto:c@d\r\n{alarm}GEO:1;2\r\nX-LOTUS-APPTTYPE:3\r\n"
        );
        let found = unknown_lines(&calendar(&[&one, "UID:2\r\nCOMMENT:b\u{7}\r\n"]));
        let expected = [
            "LOCATION;LANGUAGE=de:Raum",
            "ATTACH:cid:x",
            "X-P;X-Q=1:a",
            "X-TWICE:1",
            "X-TWICE:2",
            "DTEND;TZID=a;X-Z=1:2",
            "ATTENDEE;X-E=1:mailto:c@d",
            "BEGIN:VALARM",
            "TRIGGER:-PT5M",
            "X-A:1",
            "END:VALARM",
            "GEO:1;2",
        ];
        assert_eq!(found[0], expected);
        assert_eq!(found[1], ["COMMENT:b"]);
        let quiet = without_alarms(&found[0]);
        assert_eq!(quiet, [&expected[..7], &expected[11..]].concat());
        assert_eq!(
            unknown_lines(&calendar(&["BEGIN:VALARM\r\n"])),
            [[""; 0]; 0]
        );
    }

    #[test]
    fn lines_are_merged_where_they_say_the_same() {
        let known = "BEGIN:VEVENT\r\nSUMMARY:new\r\nLOCATION:a\\,b\r\nATTENDEE;PARTSTAT=ACCEPTED:mailto:a@b\r\n\
            X-A:1\r\nX-B:2\r\nEND:VEVENT\r\n";
        let unknown = [
            "SUMMARY;LANGUAGE=de:old",
            "LOCATION;ALTREP=\"x:y\":a\\,b",
            "ATTENDEE;PARTSTAT=DECLINED;X-E=1:MAILTO:A@B",
            "X-A;X-Q=1:1",
            "ATTACH:cid:x",
            "BEGIN:VALARM",
            "END:VALARM",
        ];
        let expected = "BEGIN:VEVENT\r\nSUMMARY:new\r\nLOCATION;ALTREP=\"x:y\":a\\,b\r\n\
            ATTENDEE;PARTSTAT=ACCEPTED;X-E=1:mailto:a@b\r\nX-B:2\r\nX-A;X-Q=1:1\r\nATTACH:cid:x\r\n\
            BEGIN:VALARM\r\nEND:VALARM\r\nEND:VEVENT\r\n";
        assert_eq!(merged(known, &unknown.map(str::to_owned)), expected);
    }

    proptest! {
        #[test]
        fn nothing_panics_and_lines_come_back(
            lines in proptest::collection::vec("(X-[A-C]|ATTACH|BEGIN|END|SUMMARY)[;:=A-Z\"é\\\\,]{0,12}", 0..8)
        ) {
            let text = lines.iter().map(|line| format!("{line}\r\n")).collect::<String>();
            for unknown in unknown_lines(&calendar(&[&text])) {
                let component = "BEGIN:VEVENT\r\nSUMMARY:x\r\nEND:VEVENT\r\n";
                let merged = merged(component, &unknown);
                let whole = format!("BEGIN:VCALENDAR\r\n{merged}END:VCALENDAR\r\n");
                let again = unknown_lines(&whole);
                let is_other = |line: &&String| known(&name_of(&Property::read(line.as_bytes()))).is_none();
                let of = |lines: &[String]| lines.iter().filter(is_other).cloned().collect::<Vec<_>>();
                prop_assert_eq!(of(&again[0]), of(&unknown));
            }
        }
    }
}
