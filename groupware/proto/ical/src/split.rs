//! Splits a file into its objects, in one pass over its lines.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use groupware_ids::ContentHash;

use crate::line::{Line, Lines, Property};
use crate::object::{Calendar, Component, Object, slice};
use crate::{HEAD_BYTES, UID_BYTES};

/// Deepest nesting of components. RFC 5545 needs four, of which the calendar is one.
pub const LEVELS: usize = 16;

/// A damaged file: no part of it can be trusted to be complete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {cause}")]
pub struct Damage {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and how to fix it.
    pub cause: String,
}

/// A component that belongs to no valid object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {cause}")]
pub struct Fault {
    /// The line on which it begins, from 1.
    pub line: usize,
    /// What is wrong, and how to fix it.
    pub cause: String,
}

/// Splits a file into objects, in the order of their first lines, and components that belong to
/// none. All components of one UID are one object, wherever they are in the file; exact duplicates
/// count once. An event, a task, or a journal without a UID gets one from its content.
///
/// # Errors
/// [`Damage`] if components aren't nested properly: the file may be truncated.
pub fn split(file: &[u8]) -> Result<(Vec<Object<'_>>, Vec<Fault>), Damage> {
    let mut reader = Reader {
        file,
        calendars: Vec::new(),
        open: Vec::new(),
        part: Part::default(),
        parts: Vec::new(),
    };
    for line in Lines::new(file) {
        let text = line.unfolded();
        reader.line(line, Property::read(&text))?;
    }
    reader.finish()
}

/// A component whose end is not yet read.
struct Open {
    name: Vec<u8>,
    at: usize,
    line: usize,
}

/// A component of a calendar.
#[derive(Default)]
struct Part<'a> {
    bytes: Cow<'a, [u8]>,
    line: usize,
    calendar: usize,
    uid: Option<Vec<u8>>,
    /// Zones that it names; for a zone, its own name.
    zones: BTreeSet<Vec<u8>>,
}

impl Part<'_> {
    /// Derives a UID from the content, which is the same in every export.
    fn name_by_content(&mut self) {
        const CHANGING: [&str; 3] = ["DTSTAMP", "LAST-MODIFIED", "CREATED"];
        const DIGITS: usize = 32;
        let mut content = Vec::with_capacity(self.bytes.len());
        for line in Lines::new(&self.bytes) {
            let text = line.unfolded();
            let property = Property::read(&text);
            if !CHANGING.iter().any(|name| property.is(name)) {
                content.extend_from_slice(&text);
                content.push(b'\n');
            }
        }
        let mut uid = ContentHash::of(&content).to_string();
        uid.truncate(DIGITS);
        let begin = Lines::new(&self.bytes).next();
        let begin = begin.map_or(0, |line| line.bytes.len());
        let (begin, rest) = self.bytes.split_at(begin);
        let end: &[u8] = match begin.ends_with(b"\r\n") {
            true => b"\r\n",
            false => b"\n",
        };
        self.bytes = Cow::Owned([begin, b"UID:", uid.as_bytes(), end, rest].concat());
        self.uid = Some(uid.into_bytes());
    }
}

/// Returns true if components of this name have a UID.
fn is_named(name: &[u8]) -> bool {
    const NAMED: [&[u8]; 3] = [b"VEVENT", b"VTODO", b"VJOURNAL"];
    NAMED.contains(&name)
}

struct Reader<'a> {
    file: &'a [u8],
    calendars: Vec<Calendar<'a>>,
    open: Vec<Open>,
    part: Part<'a>,
    parts: Vec<Part<'a>>,
}

fn damage(line: usize, cause: impl Into<String>) -> Damage {
    let cause = cause.into();
    Damage { line, cause }
}

fn shown(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(&name[..name.len().min(40)]).into_owned();
    name.escape_debug().to_string()
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: Line<'a>, property: Property<'_>) -> Result<(), Damage> {
        if property.is("BEGIN") {
            return self.begin(line, property.value.trim_ascii());
        }
        if property.is("END") {
            return self.end(line, property.value.trim_ascii());
        }
        match self.open.len() {
            0 if line.bytes.trim_ascii().is_empty() => Ok(()),
            0 => Err(damage(
                line.number,
                "BEGIN:VCALENDAR is missing: this is no iCalendar file, or its beginning is lost",
            )),
            1 => self.head(line),
            levels => {
                if levels == 2 && property.is("UID") {
                    self.part
                        .uid
                        .get_or_insert(property.value.trim_ascii().into());
                }
                if levels == 2 && property.is("TZID") && self.is_zone() {
                    self.part.zones.insert(property.value.trim_ascii().into());
                }
                let zone = property.zone().filter(|_| !self.is_zone());
                self.part.zones.extend(zone.map(<[u8]>::to_vec));
                Ok(())
            }
        }
    }

    /// Returns true if the component within the calendar is a time zone.
    fn is_zone(&self) -> bool {
        let part = self.open.get(1);
        part.is_some_and(|part| part.name == b"VTIMEZONE")
    }

    fn head(&mut self, line: Line<'a>) -> Result<(), Damage> {
        if let Some(calendar) = self.calendars.last_mut() {
            calendar.head_bytes += line.bytes.len();
            if calendar.head_bytes > HEAD_BYTES {
                let most = HEAD_BYTES / 1024;
                let cause = format!(
                    "the calendar says more than {most} KiB of itself before and between its \
                     events: take properties out of it"
                );
                return Err(damage(line.number, cause));
            }
            calendar.head.push(line.bytes);
        }
        Ok(())
    }

    fn begin(&mut self, line: Line<'a>, name: &[u8]) -> Result<(), Damage> {
        let name = name.to_ascii_uppercase();
        match (self.open.len(), &*name) {
            (0, b"VCALENDAR") => self.calendars.push(Calendar {
                begin: line.bytes,
                ..Calendar::default()
            }),
            (0, _) => {
                let cause = format!("{} begins outside of a VCALENDAR", shown(&name));
                return Err(damage(line.number, cause));
            }
            (_, b"VCALENDAR") => {
                let cause = "a VCALENDAR begins within another: an END:VCALENDAR is missing \
                             before it";
                return Err(damage(line.number, cause));
            }
            (LEVELS.., _) => {
                let cause = format!("components lie within each other {LEVELS} times and more");
                return Err(damage(line.number, cause));
            }
            (1, _) => {
                self.part = Part {
                    line: line.number,
                    calendar: self.calendars.len() - 1,
                    ..Part::default()
                };
            }
            _ => {}
        }
        let (at, line) = (line.at, line.number);
        self.open.push(Open { name, at, line });
        Ok(())
    }

    fn end(&mut self, line: Line<'a>, name: &[u8]) -> Result<(), Damage> {
        let open = match self.open.pop() {
            Some(open) if open.name.eq_ignore_ascii_case(name) => open,
            Some(open) => {
                let cause = format!(
                    "END:{} where {}, begun on line {}, should end",
                    shown(name),
                    shown(&open.name),
                    open.line
                );
                return Err(damage(line.number, cause));
            }
            None => {
                let cause = format!("END:{} of nothing that has begun", shown(name));
                return Err(damage(line.number, cause));
            }
        };
        let bytes = slice(self.file, open.at..line.at + line.bytes.len());
        let Some(calendar) = self.calendars.last_mut() else {
            return Ok(());
        };
        match self.open.len() {
            0 => (calendar.whole, calendar.end) = (bytes, line.bytes),
            1 if open.name == b"VTIMEZONE" => {
                for name in std::mem::take(&mut self.part.zones) {
                    calendar.zones.entry(name).or_insert(bytes);
                }
            }
            1 => {
                calendar.components += 1;
                let mut part = std::mem::take(&mut self.part);
                part.bytes = Cow::Borrowed(bytes);
                if part.uid.as_ref().is_none_or(Vec::is_empty) && is_named(&open.name) {
                    part.name_by_content();
                }
                self.parts.push(part);
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<(Vec<Object<'a>>, Vec<Fault>), Damage> {
        if let Some(open) = self.open.last() {
            let cause = format!(
                "{} has no end: the file may be cut off; get it once more",
                shown(&open.name)
            );
            return Err(damage(open.line, cause));
        }
        if self.calendars.is_empty() {
            return Err(damage(1, "there is no VCALENDAR in it"));
        }
        Ok(grouped(self.parts, Rc::new(self.calendars)))
    }
}

/// Groups the components by their UID.
fn grouped<'a>(
    parts: Vec<Part<'a>>,
    calendars: Rc<Vec<Calendar<'a>>>,
) -> (Vec<Object<'a>>, Vec<Fault>) {
    let (mut objects, mut faults) = (Vec::<Object<'a>>::new(), Vec::new());
    let (mut known, mut seen) = (HashMap::<String, usize>::new(), BTreeSet::new());
    for part in parts {
        let line = part.line;
        let uid = match checked(part.uid) {
            Ok(uid) => uid,
            Err(cause) => {
                faults.push(Fault { line, cause });
                continue;
            }
        };
        let at = *known.entry(uid).or_insert_with_key(|uid| {
            objects.push(Object {
                uid: uid.clone(),
                line,
                components: Vec::new(),
                zones: BTreeSet::new(),
                calendars: Rc::clone(&calendars),
            });
            objects.len() - 1
        });
        if seen.insert((at, part.bytes.clone())) {
            let object = &mut objects[at];
            let zones = part.zones.into_iter().map(|name| (name, part.calendar));
            object.zones.extend(zones);
            object.components.push(Component {
                bytes: part.bytes,
                calendar: part.calendar,
            });
        }
    }
    without_torn(&mut objects, &mut faults);
    (objects, faults)
}

/// Removes objects whose parts define one zone name differently: in its own calendar, an object has
/// one definition of it.
fn without_torn(objects: &mut Vec<Object<'_>>, faults: &mut Vec<Fault>) {
    objects.retain(|object| {
        let torn = object.torn_zone().map(|zone| Fault {
            line: object.line,
            cause: format!(
                "its parts are in several calendars, which describe the time zone {} each in its own \
                 way: put all of them into one VCALENDAR",
                shown(zone)
            ),
        });
        let is_whole = torn.is_none();
        faults.extend(torn);
        is_whole
    });
    faults.sort_by_key(|fault| fault.line);
}

fn checked(uid: Option<Vec<u8>>) -> Result<String, String> {
    let uid = uid.filter(|uid| !uid.is_empty()).ok_or(
        "it has no UID, by which a calendar knows it: add a line such as UID:1@example.org",
    )?;
    let uid = String::from_utf8(uid)
        .map_err(|_| "its UID is not UTF-8: convert the file, as iconv does".to_owned())?;
    let uid = unescaped(uid);
    if uid.len() > UID_BYTES {
        return Err(format!("its UID has more than {UID_BYTES} bytes"));
    }
    match uid.contains(char::is_control) {
        true => Err("its UID has a control character".to_owned()),
        false => Ok(uid),
    }
}

/// Unescapes a UID: as a text, it has a backslash before a comma, a semicolon, and a backslash (RFC
/// 5545 §3.3.11). Many programs write it unescaped, so any other backslash stands for itself.
fn unescaped(written: String) -> String {
    if !written.contains('\\') {
        return written;
    }
    let mut uid = String::with_capacity(written.len());
    let mut letters = written.chars().peekable();
    while let Some(letter) = letters.next() {
        let escaped = match letter {
            '\\' => letters.next_if(|next| matches!(next, '\\' | ',' | ';')),
            _ => None,
        };
        uid.push(escaped.unwrap_or(letter));
    }
    uid
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(parts: &[&str]) -> String {
        format!(
            "BEGIN:VCALENDAR\nVERSION:2.0\n{}END:VCALENDAR\n",
            parts.concat()
        )
    }

    fn event(uid: &str, rest: &str) -> String {
        format!("BEGIN:VEVENT\r\nUID:{uid}\r\n{rest}END:VEVENT\r\n")
    }

    fn zone(name: &str) -> String {
        format!(
            "BEGIN:VTIMEZONE\nTZID:{name}\nBEGIN:STANDARD\nTZOFFSETTO:+0100\nEND:STANDARD\n\
             END:VTIMEZONE\n"
        )
    }

    fn written(object: &Object<'_>) -> String {
        let mut bytes = Vec::new();
        object.write(&mut bytes);
        assert_eq!(object.written_bytes(), bytes.len());
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn an_object_has_its_overrides_and_its_zones() {
        let (master, over, other) = (
            event("a", "DTSTART;TZID=X:20260105T090000\r\n"),
            event("a", "RECURRENCE-ID;TZID=\"Y\r\n \":20260106T090000\r\n"),
            event("b", ""),
        );
        let (x, y, z) = (zone("X"), zone("Y"), zone("Z"));
        let file = whole(&[&x, &master, &other, &y, &z, &over]);
        let (objects, faults) = split(file.as_bytes()).unwrap();
        assert!(faults.is_empty());
        let found: Vec<_> = objects.iter().map(|it| (&*it.uid, it.line)).collect();
        assert_eq!(found, [("a", 9), ("b", 13)]);
        assert_eq!(written(&objects[0]), whole(&[&x, &y, &master, &over]));
        assert_eq!(written(&objects[1]), whole(&[&other]));
    }

    #[test]
    fn an_object_of_its_own_is_the_file() {
        let file = whole(&[&event("a", ""), &zone("unused"), "X-BETWEEN:1\n"]);
        let (objects, _) = split(file.as_bytes()).unwrap();
        assert_eq!(written(&objects[0]), file);
    }

    #[test]
    fn what_is_there_twice_counts_once() {
        let (one, other) = (event("a", ""), event("a", "SUMMARY:x\r\n"));
        let file = [whole(&[&one]), whole(&[&one, &other])].concat();
        let (objects, _) = split(file.as_bytes()).unwrap();
        assert_eq!(objects.len(), 1);
        assert_eq!(objects[0].components().count(), 2);
    }

    #[test]
    fn damage_has_its_line_and_a_cure() {
        let cut = whole(&[&event("a", "")]).replace("END:VCALENDAR\n", "");
        let deep = "BEGIN:X\n".repeat(LEVELS + 1);
        let cases = [
            ("", "line 1: there is no VCALENDAR in it"),
            ("{}", "line 1: BEGIN:VCALENDAR is missing"),
            (
                &cut,
                "line 1: VCALENDAR has no end: the file may be cut off",
            ),
            (
                "BEGIN:VEVENT\n",
                "line 1: VEVENT begins outside of a VCALENDAR",
            ),
            ("\nEND:X\n", "line 2: END:X of nothing that has begun"),
            (
                &whole(&["BEGIN:A\nEND:B\n"]),
                "line 4: END:B where A, begun on line 3",
            ),
            (
                &whole(&["BEGIN:VCALENDAR\n"]),
                "line 3: a VCALENDAR begins within another",
            ),
            (
                &whole(&[&deep]),
                "line 18: components lie within each other",
            ),
            (
                &whole(&["X:", &"x".repeat(HEAD_BYTES)]),
                "line 3: the calendar says more",
            ),
        ];
        for (file, expected) in cases {
            let error = split(file.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_component_without_an_identifier_is_a_fault() {
        let file = whole(&[
            "BEGIN:X-OTHER\r\nUID:\r\nEND:X-OTHER\r\n",
            &event(&"u".repeat(256), ""),
            &event("a\x07", ""),
        ]);
        let (objects, faults) = split(file.as_bytes()).unwrap();
        assert!(objects.is_empty());
        let lines: Vec<_> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [3, 6, 9]);
        assert!(faults[0].cause.contains("UID:1@example.org"));
    }

    #[test]
    fn names_an_event_without_uid_by_its_content() {
        let named = |file: &str| {
            let (objects, faults) = split(file.as_bytes()).unwrap();
            assert!(faults.is_empty());
            let uids: Vec<_> = objects.iter().map(|object| object.uid.clone()).collect();
            (uids, objects.iter().map(written).collect::<Vec<_>>())
        };
        let one = "BEGIN:VEVENT\r\nDTSTAMP:1\r\nSUMMARY:a\r\nEND:VEVENT\r\n";
        let other = one
            .replace(":a", ":b")
            .replace("SUMMARY", "UID:\r\nSUMMARY");
        let (uids, texts) = named(&whole(&[one, &other, one]));
        assert_eq!((uids.len(), uids[0].len()), (2, 32));
        let expected = one.replace("VEVENT\r\nDT", &format!("VEVENT\r\nUID:{}\r\nDT", uids[0]));
        assert_eq!(texts[0], whole(&[&expected]));
        // The written text is read as the same object, as is the next export of the file.
        assert_eq!(named(&texts[1]).0, uids[1..]);
        assert_eq!(named(&whole(&[&one.replace("MP:1", "MP:2")])).0, uids[..1]);
    }

    #[test]
    fn a_uid_is_a_text() {
        for (as_written, uid) in [
            (r"a\,b\;c\\d", r"a,b;c\d"),
            ("a,b;c", "a,b;c"),
            (r"C:\new\x", r"C:\new\x"),
            (r"a\", r"a\"),
            (r"a\\,b", r"a\,b"),
        ] {
            let file = whole(&[&event(as_written, "")]);
            let (objects, faults) = split(file.as_bytes()).unwrap();
            assert!(faults.is_empty());
            assert_eq!(objects[0].uid, uid);
            assert_eq!(written(&objects[0]), file);
        }
    }

    #[test]
    fn two_zones_of_one_name_are_a_fault_where_an_object_has_both() {
        let zoned = |uid: &str, rest: &str| event(uid, &format!("DTSTART;TZID=X:1\r\n{rest}"));
        let (x, other) = (zone("X"), zone("X").replace("+0100", "+0200"));
        let folded = x.replace("TZID:X\n", "TZ\r\n ID:X\r\n");
        let file = |zone: &str| {
            let first = whole(&[&x, &zoned("a", ""), &zoned("b", "")]);
            let second = whole(&[zone, &zoned("a", "SUMMARY:2\r\n"), &zoned("c", "")]);
            format!("{first}{second}")
        };
        let (torn, alike) = (file(&other), file(&folded));
        let (objects, faults) = split(torn.as_bytes()).unwrap();
        let uids: Vec<_> = objects.iter().map(|object| &*object.uid).collect();
        assert_eq!((uids, faults.len()), (vec!["b", "c"], 1));
        assert!(faults[0].cause.contains("time zone X"), "{}", faults[0]);
        assert!(written(&objects[1]).contains("+0200"));
        let (objects, faults) = split(alike.as_bytes()).unwrap();
        assert_eq!((objects.len(), faults.len()), (3, 0));
    }

    proptest! {
        #[test]
        fn every_component_is_in_one_object(
            parts in proptest::collection::vec(("[a-d]", "[A-Z;:\"= \\n]{0,30}"), 1..12)
        ) {
            let inside = |text: &str| {
                let plain = |line: &str| !line.contains("BEGIN") && !line.contains("END");
                let lines = text.lines().filter(|line| plain(line));
                lines.map(|line| format!("X-{line}\n")).collect::<String>()
            };
            let events: Vec<_> = parts.iter().map(|(uid, text)| event(uid, &inside(text))).collect();
            let refs: Vec<&str> = events.iter().map(String::as_str).collect();
            let file = whole(&refs);
            let (objects, faults) = split(file.as_bytes()).unwrap();
            prop_assert!(faults.is_empty());
            let mut found: Vec<_> = objects
                .iter()
                .flat_map(|object| object.components())
                .map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
                .collect();
            let mut expected = events.clone();
            expected.sort();
            expected.dedup();
            found.sort();
            prop_assert_eq!(found, expected);
            for object in &objects {
                let written = written(object);
                let (again, _) = split(written.as_bytes()).unwrap();
                prop_assert_eq!(again.len(), 1);
                prop_assert!(again[0].components().eq(object.components()));
            }
        }

        #[test]
        fn nothing_panics(file in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = split(&file);
        }
    }
}
