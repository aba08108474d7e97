//! An object: its place in its file, and its own bytes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use crate::line::{Line, Lines};

/// A calendar in a file, apart from its objects.
#[derive(Debug, Default)]
pub(crate) struct Calendar<'a> {
    /// From its first line to its last.
    pub(crate) whole: &'a [u8],
    /// The line that begins it.
    pub(crate) begin: &'a [u8],
    /// The line that ends it.
    pub(crate) end: &'a [u8],
    /// Its own properties, such as its author.
    pub(crate) head: Vec<&'a [u8]>,
    pub(crate) head_bytes: usize,
    /// The time zones that it defines.
    pub(crate) zones: BTreeMap<Vec<u8>, &'a [u8]>,
    /// How many components it has besides zones.
    pub(crate) components: usize,
}

/// A component other than a zone.
#[derive(Debug)]
pub(crate) struct Component<'a> {
    /// Its bytes in the file, with a UID added if it has none.
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Its calendar's number in the file.
    pub(crate) calendar: usize,
}

/// All components of one UID.
#[derive(Debug)]
pub struct Object<'a> {
    /// What names it.
    pub uid: String,
    /// The line of the file on which the first of its components begins, from 1.
    pub line: usize,
    pub(crate) components: Vec<Component<'a>>,
    /// The zones that it names, each with the calendar that names it.
    pub(crate) zones: BTreeSet<(Vec<u8>, usize)>,
    /// All calendars of the file.
    pub(crate) calendars: Rc<Vec<Calendar<'a>>>,
}

impl<'a> Object<'a> {
    /// Appends the object as a calendar of its own: a calendar of the file with no other object unchanged, byte
    /// for byte; else its head, the zones that the object names, and its components, each byte for byte.
    pub fn write(&self, to: &mut Vec<u8>) {
        let Some(calendar) = self.first_calendar() else {
            return;
        };
        if self.is_alone_in(calendar) {
            to.extend_from_slice(calendar.whole);
            return;
        }
        for part in self.parts(calendar) {
            to.extend_from_slice(part);
            to.extend_from_slice(line_end(part));
        }
    }

    /// The number of bytes that [`write`](Self::write) appends.
    pub fn written_bytes(&self) -> usize {
        match self.first_calendar() {
            None => 0,
            Some(calendar) if self.is_alone_in(calendar) => calendar.whole.len(),
            Some(calendar) => self
                .parts(calendar)
                .map(|part| part.len() + line_end(part).len())
                .sum(),
        }
    }

    fn is_alone_in(&self, calendar: &Calendar<'_>) -> bool {
        let mut components = self.components.iter();
        calendar.components == self.components.len()
            && self.is_in_one()
            && components.all(|component| matches!(component.bytes, Cow::Borrowed(_)))
    }

    fn parts<'b>(&'b self, calendar: &'b Calendar<'a>) -> impl Iterator<Item = &'b [u8]> {
        std::iter::once(calendar.begin)
            .chain(calendar.head.iter().copied())
            .chain(self.zones().map(|(_, bytes)| bytes))
            .chain(self.components())
            .chain([calendar.end])
    }

    /// The time zones that it names and its file defines, each once: name, and component.
    pub fn zones(&self) -> impl Iterator<Item = (&[u8], &'a [u8])> {
        let all = self.named_zones();
        all.filter_map(|(name, described)| Some((name, described?)))
    }

    /// The time zones that it names, each once, and the component that defines it if its file has one.
    pub fn named_zones(&self) -> impl Iterator<Item = (&[u8], Option<&'a [u8]>)> {
        let mut all: BTreeMap<&[u8], Option<&'a [u8]>> = BTreeMap::new();
        for (name, calendar) in &self.zones {
            let described = all.entry(name.as_slice()).or_default();
            *described = described.or_else(|| self.described(name, *calendar));
        }
        all.into_iter()
    }

    /// Returns a time zone as defined by a calendar of the file.
    fn described(&self, name: &[u8], calendar: usize) -> Option<&'a [u8]> {
        self.calendars.get(calendar)?.zones.get(name).copied()
    }

    /// A time zone that it names in several calendars of the file, whose definitions differ.
    pub(crate) fn torn_zone(&self) -> Option<&[u8]> {
        let mut last: Option<(&[u8], &[u8])> = None;
        for (name, calendar) in &self.zones {
            let Some(described) = self.described(name, *calendar) else {
                continue;
            };
            if last.is_some_and(|(of, other)| of == name && !has_lines_of(described, other)) {
                return Some(name);
            }
            last = Some((name.as_slice(), described));
        }
        None
    }

    /// Keeps those components, numbered in order, for which `stays` returns true.
    pub fn retain(&mut self, mut stays: impl FnMut(usize) -> bool) {
        let mut number = 0;
        self.components.retain(|_| {
            number += 1;
            stays(number - 1)
        });
    }

    /// Returns its components in the order of the file.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.components.iter().map(|component| &*component.bytes)
    }

    fn first_calendar(&self) -> Option<&Calendar<'a>> {
        self.calendars.get(self.components.first()?.calendar)
    }

    fn is_in_one(&self) -> bool {
        let mut calendars = self.components.iter().map(|component| component.calendar);
        let first = calendars.next();
        calendars.all(|other| Some(other) == first)
    }
}

/// Returns true if both have the same content lines, regardless of folds and line ends.
fn has_lines_of(one: &[u8], other: &[u8]) -> bool {
    let lines = |part| Lines::new(part).map(|line: Line<'_>| line.unfolded().into_owned());
    one == other || lines(one).eq(lines(other))
}

/// The line end to add to a part: the last line of a file may have none.
fn line_end(part: &[u8]) -> &'static [u8] {
    match part.ends_with(b"\n") {
        true => b"",
        false => b"\r\n",
    }
}

/// Returns the bytes of a file in a range; empty if out of bounds.
pub(crate) fn slice(file: &[u8], range: Range<usize>) -> &[u8] {
    file.get(range).unwrap_or_default()
}
