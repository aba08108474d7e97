//! An object: where it lies in its file, and its bytes on their own.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

/// What a calendar in a file has besides objects.
#[derive(Debug, Default)]
pub(crate) struct Calendar<'a> {
    /// From the line that begins it to the one that ends it.
    pub(crate) whole: &'a [u8],
    /// The line that begins it.
    pub(crate) begin: &'a [u8],
    /// The line that ends it.
    pub(crate) end: &'a [u8],
    /// What it says of itself, such as who wrote it.
    pub(crate) head: Vec<&'a [u8]>,
    pub(crate) head_bytes: usize,
    /// The time zones that it describes.
    pub(crate) zones: BTreeMap<Vec<u8>, &'a [u8]>,
    /// How many components it has besides zones.
    pub(crate) components: usize,
}

/// A component besides zones.
#[derive(Debug)]
pub(crate) struct Component<'a> {
    pub(crate) bytes: &'a [u8],
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
    /// The zones that it names, each with the calendar in which it does.
    pub(crate) zones: BTreeSet<(Vec<u8>, usize)>,
    /// All calendars of the file.
    pub(crate) calendars: Rc<Vec<Calendar<'a>>>,
}

impl<'a> Object<'a> {
    /// Adds the object as a calendar of its own: a calendar of the file which has no other object as it is,
    /// byte for byte; else its head, the zones that the object names, and its components, byte for byte each.
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

    /// How many bytes it is written as.
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
        calendar.components == self.components.len() && self.is_in_one()
    }

    fn parts<'b>(&'b self, calendar: &'b Calendar<'a>) -> impl Iterator<Item = &'a [u8]> + 'b {
        std::iter::once(calendar.begin)
            .chain(calendar.head.iter().copied())
            .chain(self.zones().map(|(_, bytes)| bytes))
            .chain(self.components())
            .chain([calendar.end])
    }

    /// The time zones that it names, where its file describes them, each once: name, and the component.
    pub fn zones(&self) -> impl Iterator<Item = (&[u8], &'a [u8])> {
        let mut last: Option<&[u8]> = None;
        self.zones.iter().filter_map(move |(name, calendar)| {
            let bytes = self.calendars.get(*calendar)?.zones.get(name)?;
            let is_new = last != Some(name.as_slice());
            last = Some(name);
            is_new.then_some((name.as_slice(), *bytes))
        })
    }

    /// Its components in the order of the file.
    pub fn components(&self) -> impl Iterator<Item = &'a [u8]> {
        self.components.iter().map(|component| component.bytes)
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

/// What ends the last line of a part: that of a file may have no end.
fn line_end(part: &[u8]) -> &'static [u8] {
    match part.ends_with(b"\n") {
        true => b"",
        false => b"\r\n",
    }
}

/// The bytes of a file in a range, which is one of it.
pub(crate) fn slice(file: &[u8], range: Range<usize>) -> &[u8] {
    file.get(range).unwrap_or_default()
}
