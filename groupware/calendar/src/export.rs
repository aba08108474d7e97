//! Writes entries as one iCalendar file, in parts.
//!
//! Imported objects are written unchanged. A calendar in a file describes a time zone once. An entry that means another
//! zone by the same name, as from another program, goes into a further calendar: RFC 5545 §3.4 allows any number of
//! them in a file.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;

use calcard::icalendar::ICalendar;
use groupware_proto_ical::split;

use crate::Entry;
use crate::icalendar::{event_lines, root, write};
use crate::meaning::{Budget, ZoneDefinition, Zones};

/// The end of a calendar.
const END: &str = "END:VCALENDAR\r\n";
/// The maximum number of calendars per part to sort entries into by their zones. Beyond that, entries keep their order.
const SORTED: usize = 4;

/// Writes entries as an iCalendar file, with the time zones that they name. A single imported object is written byte
/// for byte; of several, the components are written unchanged.
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

/// Writes a file in parts of some entries each, which bounds the memory. A time zone is described once, by the first
/// entry that names it, as long as all entries mean the same zone.
#[derive(Debug, Default)]
pub struct ICalendarParts {
    has_begun: bool,
    zones: Zones,
}

impl ICalendarParts {
    /// Writes the next part.
    pub fn next<'a>(&mut self, entries: impl IntoIterator<Item = &'a Entry>) -> String {
        let (kept, own): (Vec<&Entry>, Vec<&Entry>) = entries
            .into_iter()
            .partition(|entry| entry.imported().is_some());
        let mut written = BTreeSet::new();
        // Instances of one event belong to one object.
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

    /// Returns the text after the last part; at least one part is required.
    pub fn end(self) -> &'static str {
        END
    }

    /// Starts a calendar.
    fn begin(&mut self, text: &mut String) {
        self.zones = Zones::default();
        let calendar = ICalendar {
            components: vec![root(None)],
        };
        let whole = calendar.to_string();
        text.push_str(whole.strip_suffix(END).unwrap_or(&whole));
    }

    /// Adds the entries whose time zones agree with the current calendar, and returns the rest if it may be deferred.
    /// Otherwise the rest goes into further calendars.
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

/// The output of an entry.
struct Piece<'e> {
    entry: &'e Entry,
    /// The time zones that it names, with their definitions.
    zones: Vec<(String, ZoneDefinition)>,
    lines: String,
    /// The range in which its zones matter, computed on demand because that parses the whole object.
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
                .map(|name| (name.to_owned(), ZoneDefinition::Known))
                .collect(),
            lines: event_lines(entry),
            reach: OnceCell::new(),
        }
    }

    /// The output of an imported entry; several pieces if its text has several objects.
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
                let told = described.map_or(ZoneDefinition::ByName, |described| {
                    let mut lines = String::new();
                    push_lines(&mut lines, described);
                    ZoneDefinition::Lines(lines)
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

    /// The range of time in which its time zones must agree.
    fn reach(&self) -> Range<i64> {
        let details = &self.entry.event.details;
        let find_out = || match self.entry.imported() {
            Some(imported) => imported.reach(),
            None => details.start.instant()..details.end.instant(),
        };
        self.reach.get_or_init(find_out).clone()
    }
}

/// Appends whole lines.
fn push_lines(to: &mut String, lines: &[u8]) {
    to.push_str(&String::from_utf8_lossy(lines));
    if !lines.ends_with(b"\n") {
        to.push_str("\r\n");
    }
}
