//! Entries as one file of the format iCalendar, written in parts.
//!
//! What was brought is written as it came. A calendar of a file describes a time zone once; what means something else
//! by the same name, as where two programs describe it, is in a calendar of its own behind: RFC 5545 §3.4 has any
//! number of them in a file.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;

use calcard::icalendar::ICalendar;
use groupware_proto_ical::split;

use crate::Entry;
use crate::icalendar::{event_lines, root, write};
use crate::meaning::{Budget, Told, Zones};

/// How a calendar ends.
const END: &str = "END:VCALENDAR\r\n";
/// Most calendars among which entries that come together are sorted by what they mean. Beyond that, they keep their
/// order.
const SORTED: usize = 4;

/// Writes entries as an iCalendar file, with the time zones that they name. What is kept as it came is written as it
/// came: alone byte for byte, with others its components.
pub fn write_icalendar<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    let entries: Vec<&Entry> = entries.into_iter().collect();
    if let [entry] = entries[..] {
        return match entry.imported() {
            Some(imported) => imported.original().to_owned(),
            None => write([entry], None),
        };
    }
    let mut parts = ICalendarParts::default();
    let mut whole = parts.next(entries);
    whole.push_str(parts.end());
    whole
}

/// A file, written in parts of some entries each: no more than those are in memory. A time zone is described once, by
/// whichever entry names it first, as long as all mean the same by it.
#[derive(Debug, Default)]
pub struct ICalendarParts {
    has_begun: bool,
    zones: Zones,
}

impl ICalendarParts {
    /// The next part.
    pub fn next<'a>(&mut self, entries: impl IntoIterator<Item = &'a Entry>) -> String {
        let (kept, own): (Vec<&Entry>, Vec<&Entry>) = entries
            .into_iter()
            .partition(|entry| entry.imported().is_some());
        let mut written = BTreeSet::new();
        // Instances of one event are one object.
        let kept = kept
            .into_iter()
            .filter(|entry| written.insert(&*entry.event.uid))
            .flat_map(Piece::kept);
        let mut left: Vec<Piece<'_>> = own.into_iter().map(Piece::own).chain(kept).collect();
        let (mut text, budget) = (String::new(), Budget::of_a_part());
        if !std::mem::replace(&mut self.has_begun, true) {
            self.begin(&mut text);
        }
        for round in 1.. {
            left = self.add(&mut text, left, &budget, round < SORTED);
            if left.is_empty() {
                break;
            }
            text.push_str(END);
            self.begin(&mut text);
        }
        text
    }

    /// What follows the last part, of which there must be one.
    pub fn end(self) -> &'static str {
        END
    }

    /// Begins a calendar.
    fn begin(&mut self, text: &mut String) {
        self.zones = Zones::default();
        let calendar = ICalendar {
            components: vec![root(None)],
        };
        let whole = calendar.to_string();
        text.push_str(whole.strip_suffix(END).unwrap_or(&whole));
    }

    /// Adds to the calendar that has begun what means the same as it by its time zones, and gives the rest, if that
    /// may wait; else the rest is in calendars behind, too.
    fn add<'e>(
        &mut self,
        text: &mut String,
        pieces: Vec<Piece<'e>>,
        budget: &Budget,
        may_wait: bool,
    ) -> Vec<Piece<'e>> {
        let (mut zones, mut lines, mut left) = (String::new(), String::new(), Vec::new());
        for piece in pieces {
            let mut taken = self.zones.take(&piece.zones, &|| piece.reach(), budget);
            if taken.is_none() && may_wait {
                left.push(piece);
                continue;
            }
            if taken.is_none() {
                text.push_str(&std::mem::take(&mut zones));
                text.push_str(&std::mem::take(&mut lines));
                text.push_str(END);
                self.begin(text);
                taken = self.zones.take(&piece.zones, &|| piece.reach(), budget);
            }
            zones.push_str(&taken.unwrap_or_default());
            lines.push_str(&piece.lines);
        }
        text.push_str(&zones);
        text.push_str(&lines);
        left
    }
}

/// What is written of an entry.
struct Piece<'e> {
    entry: &'e Entry,
    /// The time zones that it names, and what it means by them.
    zones: Vec<(String, Told)>,
    lines: String,
    /// To find it out, the whole object is read.
    reach: OnceCell<Range<i64>>,
}

impl<'e> Piece<'e> {
    fn own(entry: &'e Entry) -> Self {
        let details = &entry.event.details;
        let named = [&details.start, &details.end].map(|moment| moment.tzid());
        let named: BTreeSet<&str> = named.into_iter().flatten().collect();
        Self {
            entry,
            zones: named
                .into_iter()
                .map(|name| (name.to_owned(), Told::Known))
                .collect(),
            lines: event_lines(entry),
            reach: OnceCell::new(),
        }
    }

    /// The same of what was brought; several, if that came as several objects.
    fn kept(entry: &'e Entry) -> Vec<Self> {
        let original = entry.imported().map_or("", |imported| imported.original());
        let Ok((objects, _)) = split(original.as_bytes()) else {
            return Vec::new();
        };
        let piece = |object: &groupware_proto_ical::Object<'_>| {
            let mut lines = String::with_capacity(original.len());
            for component in object.components() {
                push_lines(&mut lines, component);
            }
            let zones = object.named_zones().map(|(name, described)| {
                let told = described.map_or(Told::ByName, |described| {
                    let mut lines = String::new();
                    push_lines(&mut lines, described);
                    Told::Lines(lines)
                });
                (String::from_utf8_lossy(name).into_owned(), told)
            });
            Self {
                entry,
                zones: zones.collect(),
                lines,
                reach: OnceCell::new(),
            }
        };
        objects.iter().map(piece).collect()
    }

    /// From when to when its time zones have to mean what they mean.
    fn reach(&self) -> Range<i64> {
        let details = &self.entry.event.details;
        let find_out = || match self.entry.imported() {
            Some(imported) => imported.reach(),
            None => details.start.instant()..details.end.instant(),
        };
        self.reach.get_or_init(find_out).clone()
    }
}

/// Adds whole lines.
fn push_lines(to: &mut String, lines: &[u8]) {
    to.push_str(&String::from_utf8_lossy(lines));
    if !lines.ends_with(b"\n") {
        to.push_str("\r\n");
    }
}
