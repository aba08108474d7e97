//! Changes properties of a component in the lines of an object: all other lines stay as they are, byte for byte.

use crate::line::{Line, Lines, Property};

/// Most bytes of a line before it is folded: RFC 5545 §3.1.
const LINE_BYTES: usize = 75;

/// A change to a property of a component. The first property of this name is changed in place, a
/// missing one is appended, and further ones of the name are removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Its name.
    pub property: &'static str,
    /// Its new value, as iCalendar writes it; `None` removes the property.
    pub value: Option<String>,
    /// New values of parameters; `None` removes a parameter. Other parameters stay as they are.
    pub parameters: Vec<(&'static str, Option<String>)>,
}

/// Escapes a text for iCalendar: RFC 5545 §3.3.11.
pub fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            '\n' => written.push_str("\\n"),
            '\\' | ';' | ',' => written.extend(['\\', letter]),
            _ => written.push(letter),
        }
    }
    written
}

impl Edit {
    /// Returns true if the result is one line, and each parameter ends where intended: RFC 5545 §3.1.
    fn is_one_line(&self) -> bool {
        const ENDS: [char; 2] = ['\r', '\n'];
        let parameters = self.parameters.iter();
        let mut parameters = parameters.filter_map(|(_, value)| value.as_deref());
        let value = self.value.as_deref().unwrap_or_default();
        !value.contains(ENDS)
            && parameters.all(|value| !value.contains(ENDS) && !value.contains('"'))
    }
}

/// Applies changes to components of an object, which are numbered in order without time zones.
/// `None` if a value can't be written, since it has line ends, or quotation marks in a parameter.
pub fn edited(object: &[u8], edits: &[(usize, Vec<Edit>)]) -> Option<Vec<u8>> {
    let mut all = edits.iter().flat_map(|(_, edits)| edits);
    if !all.all(Edit::is_one_line) {
        return None;
    }
    let mut written = Vec::with_capacity(object.len() + 512);
    let (mut level, mut components) = (0_usize, 0);
    let mut open: Option<Open<'_>> = None;
    for line in Lines::new(object) {
        if written.is_empty() {
            // The byte order mark of the file is no part of its first line.
            written.extend_from_slice(&object[..line.at]);
        }
        let text = line.unfolded();
        let property = Property::read(&text);
        if property.is("BEGIN") {
            let value = property.value.trim_ascii();
            if level == 1 && !value.eq_ignore_ascii_case(b"VTIMEZONE") {
                let of = edits.iter().find(|(number, _)| *number == components);
                open = of.map(|(_, edits)| Open::new(edits, &line));
                components += 1;
            } else if let Some(open) = &mut open {
                open.finish(&mut written);
            }
            level += 1;
        } else if property.is("END") {
            level = level.saturating_sub(1);
            if level == 1
                && let Some(mut open) = open.take()
            {
                open.finish(&mut written);
            }
        } else if level == 2
            && let Some(open) = &mut open
            && open.change(&property, &mut written)
        {
            continue;
        }
        written.extend_from_slice(line.bytes);
    }
    Some(written)
}

/// Inserts the lines of more time zones before all components of the object.
pub fn with_zones(object: &[u8], zones: &[u8]) -> Vec<u8> {
    let first = Lines::new(object).skip(1).find(|line| {
        let text = line.unfolded();
        Property::read(&text).is("BEGIN")
    });
    let at = first.map_or(object.len(), |line| line.at);
    [&object[..at], zones, &object[at..]].concat()
}

/// A component that is being changed.
struct Open<'e> {
    edits: &'e [Edit],
    is_done: Vec<bool>,
    /// Their line end.
    end: &'static [u8],
}

impl<'e> Open<'e> {
    fn new(edits: &'e [Edit], begin: &Line<'_>) -> Self {
        Self {
            edits,
            is_done: vec![false; edits.len()],
            end: match begin.bytes.ends_with(b"\r\n") {
                true => b"\r\n",
                false => b"\n",
            },
        }
    }

    /// Writes the changed line, if any; returns false if no edit applies to it.
    fn change(&mut self, was: &Property<'_>, to: &mut Vec<u8>) -> bool {
        let Some(at) = self.edits.iter().position(|edit| was.is(edit.property)) else {
            return false;
        };
        if !std::mem::replace(&mut self.is_done[at], true) {
            self.write(&self.edits[at], Some(was), to);
        }
        true
    }

    /// Writes the properties that were missing.
    fn finish(&mut self, to: &mut Vec<u8>) {
        for (at, edit) in self.edits.iter().enumerate() {
            if !std::mem::replace(&mut self.is_done[at], true) {
                self.write(edit, None, to);
            }
        }
    }

    fn write(&self, edit: &Edit, was: Option<&Property<'_>>, to: &mut Vec<u8>) {
        let Some(value) = &edit.value else {
            return;
        };
        let mut line = Vec::with_capacity(value.len() + LINE_BYTES);
        line.extend_from_slice(was.map_or(edit.property.as_bytes(), |was| was.name));
        let kept = was.into_iter().flat_map(Property::parameters);
        for (name, parameter) in kept {
            let is_other = |of: &str| !name.eq_ignore_ascii_case(of.as_bytes());
            if edit.parameters.iter().all(|(of, _)| is_other(of)) {
                line.push(b';');
                line.extend_from_slice(parameter);
            }
        }
        for (name, value) in &edit.parameters {
            if let Some(value) = value {
                line.extend_from_slice(format!(";{name}={}", quoted(value)).as_bytes());
            }
        }
        line.push(b':');
        line.extend_from_slice(value.as_bytes());
        fold(&line, self.end, to);
    }
}

/// Quotes a parameter's value if necessary: RFC 5545 §3.1.
fn quoted(value: &str) -> String {
    match value.contains([':', ';', ',']) {
        true => format!("\"{value}\""),
        false => value.to_owned(),
    }
}

/// Writes a line folded at the maximum length, without splitting a character.
pub fn fold(line: &[u8], end: &[u8], to: &mut Vec<u8>) {
    let (mut rest, mut room) = (line, LINE_BYTES);
    while rest.len() > room {
        let is_border = |at: &usize| rest[*at] & 0xC0 != 0x80;
        let at = (1..=room).rev().find(is_border).unwrap_or(room);
        to.extend_from_slice(&rest[..at]);
        to.extend_from_slice(end);
        to.push(b' ');
        rest = &rest[at..];
        room = LINE_BYTES - 1;
    }
    to.extend_from_slice(rest);
    to.extend_from_slice(end);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OBJECT: &str = "BEGIN:VCALENDAR\nSUMMARY:of the calendar\nBEGIN:VTIMEZONE\nTZID:X\n\
        SUMMARY:of the zone\nEND:VTIMEZONE\nBEGIN:VEVENT\nUID:a\nsummary;X-P=\"a;b:c\";ALTREP=\"x\":o\n\
        \x20ld\nX-ODD\nSUMMARY:second\nBEGIN:VALARM\nSUMMARY:of the alarm\nEND:VALARM\nX-LAST:1\nEND:VEVENT\n\
        BEGIN:VEVENT\r\nUID:a\r\nSUMMARY:other\r\nEND:VEVENT\r\nEND:VCALENDAR";

    fn edit(property: &'static str, value: Option<&str>) -> Edit {
        Edit {
            property,
            value: value.map(str::to_owned),
            parameters: vec![("ALTREP", None)],
        }
    }

    fn changed(edits: &[(usize, Vec<Edit>)]) -> String {
        String::from_utf8(edited(OBJECT.as_bytes(), edits).unwrap()).unwrap()
    }

    #[test]
    fn a_property_changes_where_it_lies_and_nothing_else_does() {
        let old = "summary;X-P=\"a;b:c\";ALTREP=\"x\":o\n ld\n";
        let without = OBJECT.replace("SUMMARY:second\n", "");
        let found = changed(&[(0, vec![edit("SUMMARY", Some("new"))])]);
        assert_eq!(found, without.replace(old, "summary;X-P=\"a;b:c\":new\n"));
        let found = changed(&[(0, vec![edit("SUMMARY", None)])]);
        assert_eq!(found, without.replace(old, ""));
        let found = changed(&[(1, vec![edit("SUMMARY", Some("new"))])]);
        assert_eq!(found, OBJECT.replace("SUMMARY:other", "SUMMARY:new"));
        assert_eq!(changed(&[]), OBJECT);
        assert_eq!(changed(&[(2, vec![edit("SUMMARY", None)])]), OBJECT);
    }

    #[test]
    fn what_is_not_there_comes_behind_the_others_and_before_alarms() {
        let zoned = Edit {
            property: "DTEND",
            value: Some("20260105T090000".to_owned()),
            parameters: vec![("VALUE", None), ("TZID", Some("A: B".to_owned()))],
        };
        let line = "DTEND;TZID=\"A: B\":20260105T090000";
        let edits = [
            (0, vec![zoned.clone(), edit("LOCATION", None)]),
            (1, vec![zoned]),
        ];
        let expected = OBJECT
            .replace("BEGIN:VALARM", &format!("{line}\nBEGIN:VALARM"))
            .replace("other\r\n", &format!("other\r\n{line}\r\n"));
        assert_eq!(changed(&edits), expected);
    }

    #[test]
    fn what_would_be_more_than_a_line_is_not_written() {
        let with = |value: &str, parameter: &str| Edit {
            property: "DTEND",
            value: Some(value.to_owned()),
            parameters: vec![("VALUE", None), ("TZID", Some(parameter.to_owned()))],
        };
        let is_written = |edit| edited(OBJECT.as_bytes(), &[(0, vec![edit])]).is_some();
        assert!(is_written(with("a\"b", "A: B")));
        for (value, parameter) in [
            ("a\nX:b", "A"),
            ("a\rX:b", "A"),
            ("a", "A\nX:b"),
            ("a", "A\r"),
            ("a", "A\":b"),
        ] {
            assert!(
                !is_written(with(value, parameter)),
                "{value:?} {parameter:?}"
            );
        }
    }

    #[test]
    fn a_zone_comes_before_all_others() {
        let zone = "BEGIN:VTIMEZONE\r\nTZID:Y\r\nEND:VTIMEZONE\r\n";
        let found = with_zones(OBJECT.as_bytes(), zone.as_bytes());
        let first = "BEGIN:VTIMEZONE\nTZID:X";
        let expected = OBJECT.replace(first, &format!("{zone}{first}"));
        assert_eq!(String::from_utf8(found).unwrap(), expected);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(text in "\\PC{0,200}", mark in any::<bool>()) {
            let mark = if mark { "\u{feff}" } else { "" };
            let object = format!("{mark}BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n");
            let edits = [(0, vec![edit("SUMMARY", Some(&escaped(&text)))])];
            let found = edited(object.as_bytes(), &edits).unwrap();
            let lines: Vec<_> = Lines::new(&found).collect();
            prop_assert_eq!(lines.len(), 5);
            let (line, value) = (lines[2].unfolded(), escaped(&text));
            prop_assert_eq!(Property::read(&line).value, value.as_bytes());
            for physical in lines[2].bytes.split(|byte| *byte == b'\n') {
                prop_assert!(physical.len() <= LINE_BYTES + 1);
                prop_assert!(std::str::from_utf8(physical).is_ok());
            }
            let without = edited(&found, &[(0, vec![edit("SUMMARY", None)])]).unwrap();
            prop_assert_eq!(without, object.as_bytes());
        }

        #[test]
        fn nothing_panics(file in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = edited(&file, &[(0, vec![edit("A", Some("1"))])]);
            let _ = with_zones(&file, b"");
        }
    }
}
