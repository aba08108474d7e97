//! An imported calendar object, stored as its original bytes with derived properties: its stored form.
//!
//! ```text
//! c/e/{uid}                  the object: its derived properties, and its bytes
//! c/i/{start}/{name}         derived: a line of the event list for each instance in the expansion window
//! c/l/{end}/{name}           derived, of a long instance
//! c/o/{uid}                  derived, of an object that is not an event
//! ```
//! Its key is that of an event created here, so that it is found by its UID. An instance of a recurring object has a
//! name of its own: the UID, a byte that no UID has, and its recurrence moment.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use groupware_store::ReadError;
use serde::{Deserialize, Serialize};

use crate::{CalendarError, event::is_default, keys, limits, time};

/// The version of the stored form, distinct from those of entries.
const FORMAT: u8 = b'i';
/// The separator of an object's properties and its bytes; the former contain no such byte.
const BORDER: u8 = 0;

/// The version of the reader, incremented when the same object is listed at other times than before. 1: time zones by
/// their descriptions.
const READING: u8 = 1;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// VEVENT.
    #[serde(rename = "e")]
    Event,
    /// VTODO.
    #[serde(rename = "t")]
    Task,
    /// VJOURNAL.
    #[serde(rename = "j")]
    Journal,
    /// A component unknown to this calendar.
    #[serde(rename = "o")]
    Other,
}

impl Kind {
    /// The kind in a word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Task => "task",
            Self::Journal => "journal",
            Self::Other => "other",
        }
    }
}

/// An occurrence: its start, end, and recurrence moment, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Occurrence {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) id: i64,
}

/// Occurrences in their stored form: three small numbers each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<i64>", into = "Vec<i64>")]
pub(crate) struct Occurrences(pub(crate) Vec<Occurrence>);

impl From<Occurrences> for Vec<i64> {
    fn from(spans: Occurrences) -> Self {
        let mut last = 0_i64;
        let mut numbers = Self::with_capacity(spans.0.len() * 3);
        for Occurrence { start, end, id } in spans.0 {
            let parts = [
                start.wrapping_sub(last),
                end.wrapping_sub(start),
                id.wrapping_sub(start),
            ];
            numbers.extend(parts);
            last = start;
        }
        numbers
    }
}

impl From<Vec<i64>> for Occurrences {
    fn from(numbers: Vec<i64>) -> Self {
        let mut last = 0_i64;
        let spans = numbers.chunks_exact(3).map(|parts| {
            let start = last.wrapping_add(parts[0]);
            last = start;
            Occurrence {
                start,
                end: start.wrapping_add(parts[1]),
                id: start.wrapping_add(parts[2]),
            }
        });
        Self(spans.collect())
    }
}

/// An object with its original bytes and derived properties.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    #[serde(skip)]
    pub(crate) original: Arc<str>,
    /// The instance that the entry shows; none for the properties common to all.
    #[serde(skip)]
    pub(crate) shows: Option<i64>,
    /// True if its content is unreadable: the entry has only its name and, if known, its times.
    #[serde(skip)]
    pub(crate) lacks_view: bool,
    #[serde(rename = "k")]
    pub(crate) kind: Kind,
    /// The highest SEQUENCE.
    #[serde(rename = "sq", default, skip_serializing_if = "is_default")]
    pub(crate) sequence: i64,
    /// The latest DTSTAMP or LAST-MODIFIED.
    #[serde(rename = "ds")]
    pub(crate) stamp: i64,
    /// The address of the calendar's owner.
    #[serde(rename = "ow")]
    pub(crate) owner: String,
    #[serde(rename = "re", default, skip_serializing_if = "is_default")]
    pub(crate) recurs: bool,
    /// The end of the expansion window: later instances have no line.
    #[serde(rename = "to")]
    pub(crate) horizon: i64,
    /// True if some instances in the expansion window have no line.
    #[serde(rename = "cu", default, skip_serializing_if = "is_default")]
    pub(crate) is_cut: bool,
    /// The version of the reader that made its lists.
    #[serde(rename = "rd", default, skip_serializing_if = "is_default")]
    pub(crate) reading: u8,
    #[serde(rename = "sp", default, skip_serializing_if = "is_default")]
    pub(crate) spans: Occurrences,
}

impl Imported {
    /// An object without derived properties.
    pub(crate) fn new(original: &str, kind: Kind) -> Self {
        Self {
            original: original.into(),
            shows: None,
            lacks_view: false,
            kind,
            sequence: 0,
            stamp: 0,
            owner: String::new(),
            recurs: false,
            horizon: i64::MAX,
            is_cut: false,
            reading: READING,
            spans: Occurrences::default(),
        }
    }

    /// The original object, byte for byte.
    pub fn original(&self) -> &str {
        &self.original
    }

    /// Identifies this version of the object, for conditional changes.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.original.hash(&mut hasher);
        hasher.finish()
    }

    /// Returns true if it is an event, rather than a task or a journal.
    pub fn is_event(&self) -> bool {
        self.kind == Kind::Event
    }

    /// The kind in a word.
    pub fn kind(&self) -> &'static str {
        self.kind.word()
    }

    /// Returns true if its content is shown; false if it is unreadable.
    pub fn is_shown(&self) -> bool {
        !self.lacks_view
    }

    /// Returns true if it may have several instances.
    pub fn recurs(&self) -> bool {
        self.recurs
    }

    /// Returns true if some instances in the expansion window are not listed.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The version for comparisons: SEQUENCE, then the stamp.
    pub(crate) fn version(&self) -> (i64, i64) {
        (self.sequence, self.stamp)
    }

    /// Returns true if its lists are nearly over, or were made by an earlier version of the reader.
    pub(crate) fn is_to_be_listed_anew(&self, now: i64) -> bool {
        let ahead = match self.is_cut {
            true => limits::CUT_AHEAD_S,
            false => limits::AHEAD_S / 2,
        };
        self.reading < READING || self.recurs && self.horizon < now.saturating_add(ahead)
    }

    /// Encodes the object: a version byte, the derived properties as JSON, and its bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.original.len() + 256);
        bytes.push(FORMAT);
        serde_json::to_writer(&mut bytes, self).expect("numbers and texts always serialise");
        bytes.push(BORDER);
        bytes.extend_from_slice(self.original.as_bytes());
        bytes
    }

    /// Decodes the stored form; `None` if this is an event created here.
    pub(crate) fn decode(key: &[u8], stored: &[u8]) -> Result<Option<Self>, CalendarError> {
        let Some((&FORMAT, parts)) = stored.split_first() else {
            return Ok(None);
        };
        let corrupt = |cause: String| CalendarError::from(ReadError::corrupt(key, cause));
        let border = parts.iter().position(|byte| *byte == BORDER);
        let border = border.ok_or_else(|| corrupt("an object without bytes".to_owned()))?;
        let (known, original) = (&parts[..border], &parts[border + 1..]);
        let known: Self =
            serde_json::from_slice(known).map_err(|error| corrupt(error.to_string()))?;
        let original = std::str::from_utf8(original).map_err(|error| corrupt(error.to_string()))?;
        Ok(Some(Self {
            original: original.into(),
            ..known
        }))
    }

    /// The keys of its lines in the lists, with their occurrences.
    pub(crate) fn keys(&self, uid: &str) -> Vec<(Vec<u8>, Option<Occurrence>)> {
        let mut keys = Vec::with_capacity(self.spans.0.len());
        for span in &self.spans.0 {
            let name = match self.recurs {
                true => keys::instance_name(uid, &time::compact(span.id)),
                false => uid.to_owned(),
            };
            keys.push((keys::line(span.start, &name), Some(*span)));
            if span.end.saturating_sub(span.start) > keys::LONG_S {
                keys.push((keys::long_line(span.end, &name), None));
            }
        }
        if !self.is_event() {
            keys.push((keys::other(uid), None));
        }
        keys
    }

    /// The keys of all derived records.
    pub(crate) fn derived_keys(&self, uid: &str) -> impl Iterator<Item = Vec<u8>> {
        self.keys(uid).into_iter().map(|(key, _)| key)
    }

    /// The names of the instances, earliest first.
    pub(crate) fn recurrence_ids(&self) -> impl Iterator<Item = String> {
        self.spans.0.iter().map(|span| time::compact(span.id))
    }
}
