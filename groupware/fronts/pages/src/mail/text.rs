//! Paths and texts of mails.

use std::borrow::Cow;

use groupware_mail::{Folder, Person, Unid};
use groupware_text::{is_bidi_override, push_encoded};
use jiff::civil::Date;
use maud::{Markup, html};

use crate::zone::{self, Zone};

/// The path of the routes that receive written mails with their files.
pub(crate) const WRITE: &str = "/write";

/// The path of a folder's list.
pub(crate) fn path(folder: Folder) -> String {
    format!("/box/{folder}")
}

pub(crate) fn message_path(unid: Unid) -> String {
    format!("/message/{unid}")
}

pub(crate) fn file_path(unid: Unid, name: &str) -> String {
    let mut path = format!("/message/{unid}/file/");
    push_encoded(&mut path, name, b"");
    path
}

/// Isolates others' text within a line, so that it can't reorder adjacent text.
pub(crate) fn foreign(text: &str) -> Markup {
    html! { bdi { (text) } }
}

/// Removes controls that reorder the surrounding text.
pub(crate) fn ordered(text: &str) -> Cow<'_, str> {
    match text.contains(is_bidi_override) {
        true => Cow::Owned(text.replace(is_bidi_override, "")),
        false => Cow::Borrowed(text),
    }
}

/// Formats a size as `1.2 MB`.
pub(crate) fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 3] = ["kB", "MB", "GB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let (mut tenths, mut unit) = (bytes / 100, 0);
    // 999.95 of a unit are shown as one of the next.
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    match tenths < 100 {
        true => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
        false => format!("{} {}", tenths / 10, UNITS[unit]),
    }
}

/// Formats a time: today's time, or the day.
pub(crate) fn when(zone: &Zone, today: Date, second: i64) -> String {
    let clock = zone.clock(second);
    match clock.date() == today {
        true => zone::time(clock),
        false => zone::short_day(clock.date(), today),
    }
}

/// Formats a person for a field.
pub(crate) fn written(person: &Person) -> String {
    let name = person.name.trim();
    match name.is_empty() || name.contains([',', ';', '<', '>', '"']) {
        true => person.email.clone(),
        false => format!("{name} <{}>", person.email),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (1250, "1.2 kB"),
            (99_999, "99 kB"),
            (1_500_000, "1.5 MB"),
            (16 << 20, "16 MB"),
            (5_000_000_000, "5.0 GB"),
            (u64::MAX, "18446744073 GB"),
        ] {
            assert_eq!(size_text(bytes), text, "{bytes}");
        }
    }
}
