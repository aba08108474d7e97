//! A calendar object that is kept as the bytes that came, and what is known of it: its stored form.
//!
//! ```text
//! c/e/{uid}                  the object: what is known of it, and its bytes
//! c/i/{start}/{name}         derived: a line of the event list for each instance up to a horizon
//! c/l/{end}/{name}           derived, of an instance that lasts long
//! c/o/{uid}                  derived, of what is no event
//! ```
//! It lies where an event made here would, so that whoever looks for one of its UID finds it. An instance of
//! what recurs has a name of its own: the UID, a byte that no UID has, and the moment that it stands for.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use groupware_store::ReadError;
use serde::{Deserialize, Serialize};

use crate::{CalendarError, event::is_default, keys, limits, time};

/// Version of the stored form, beside those of entries.
const FORMAT: u8 = b'i';
/// Between what is known of an object and its bytes, in the first of which it can't be.
const BORDER: u8 = 0;

/// How objects are read: raised when the same object is listed at other times than before. 1: time zones by their
/// descriptions.
const READING: u8 = 1;

/// What an object is of.
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
    /// A component that this calendar has no name for.
    #[serde(rename = "o")]
    Other,
}

impl Kind {
    /// What it is, in a word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Task => "task",
            Self::Journal => "journal",
            Self::Other => "other",
        }
    }
}

/// An instance: when it begins and ends, and the moment that it stands for, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) id: i64,
}

/// Spans as they are stored: three numbers each, which are small.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<i64>", into = "Vec<i64>")]
pub(crate) struct Spans(pub(crate) Vec<Span>);

impl From<Spans> for Vec<i64> {
    fn from(spans: Spans) -> Self {
        let mut last = 0_i64;
        let mut numbers = Self::with_capacity(spans.0.len() * 3);
        for Span { start, end, id } in spans.0 {
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

impl From<Vec<i64>> for Spans {
    fn from(numbers: Vec<i64>) -> Self {
        let mut last = 0_i64;
        let spans = numbers.chunks_exact(3).map(|parts| {
            let start = last.wrapping_add(parts[0]);
            last = start;
            Span {
                start,
                end: start.wrapping_add(parts[1]),
                id: start.wrapping_add(parts[2]),
            }
        });
        Self(spans.collect())
    }
}

/// An object as it came, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    #[serde(skip)]
    pub(crate) original: Arc<str>,
    /// Which instance the entry shows; none: what all have in common.
    #[serde(skip)]
    pub(crate) shows: Option<i64>,
    /// Nothing of it could be read to be shown: the entry has its name, and when it is, as far as that is known.
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
    /// The address of who owns the calendar.
    #[serde(rename = "ow")]
    pub(crate) owner: String,
    #[serde(rename = "re", default, skip_serializing_if = "is_default")]
    pub(crate) recurs: bool,
    /// Instances that begin later have no line.
    #[serde(rename = "to")]
    pub(crate) horizon: i64,
    /// Whether instances before the horizon have no line.
    #[serde(rename = "cu", default, skip_serializing_if = "is_default")]
    pub(crate) is_cut: bool,
    /// How it was read when its lists were made.
    #[serde(rename = "rd", default, skip_serializing_if = "is_default")]
    pub(crate) reading: u8,
    #[serde(rename = "sp", default, skip_serializing_if = "is_default")]
    pub(crate) spans: Spans,
}

impl Imported {
    /// An object that nothing is known of yet.
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
            spans: Spans::default(),
        }
    }

    /// The object, byte for byte as it came.
    pub fn original(&self) -> &str {
        &self.original
    }

    /// Tells its versions apart, for whoever changes what they saw of one.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.original.hash(&mut hasher);
        hasher.finish()
    }

    /// Whether it is an event, rather than a task or a journal.
    pub fn is_event(&self) -> bool {
        self.kind == Kind::Event
    }

    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        self.kind.word()
    }

    /// Whether what is shown of it is what it says; else that couldn't be read, and it is there all the same.
    pub fn is_shown(&self) -> bool {
        !self.lacks_view
    }

    /// Whether it may have several instances.
    pub fn recurs(&self) -> bool {
        self.recurs
    }

    /// Whether instances before the horizon are in no list.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Which of two versions is newer: that with the higher number, or else the later one.
    pub(crate) fn version(&self) -> (i64, i64) {
        (self.sequence, self.stamp)
    }

    /// Whether lists were made for a time that is nearly over, or by an earlier version that read objects otherwise.
    pub(crate) fn is_to_be_listed_anew(&self, now: i64) -> bool {
        let ahead = match self.is_cut {
            true => limits::CUT_AHEAD_S,
            false => limits::AHEAD_S / 2,
        };
        self.reading < READING || self.recurs && self.horizon < now.saturating_add(ahead)
    }

    /// The stored form: a version byte, what is known of the object as JSON, and its bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.original.len() + 256);
        bytes.push(FORMAT);
        serde_json::to_writer(&mut bytes, self).expect("numbers and texts always serialise");
        bytes.push(BORDER);
        bytes.extend_from_slice(self.original.as_bytes());
        bytes
    }

    /// Reads the stored form; `None` if this is an event that was made here.
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

    /// The keys of its lines in the lists, and whose they are.
    pub(crate) fn keys(&self, uid: &str) -> Vec<(Vec<u8>, Option<Span>)> {
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

    /// The keys of all that is derived from it.
    pub(crate) fn derived_keys(&self, uid: &str) -> impl Iterator<Item = Vec<u8>> {
        self.keys(uid).into_iter().map(|(key, _)| key)
    }

    /// What names each instance, the earliest first.
    pub(crate) fn recurrence_ids(&self) -> impl Iterator<Item = String> {
        self.spans.0.iter().map(|span| time::compact(span.id))
    }
}
