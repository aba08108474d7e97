//! Imported objects, stored unchanged, as entries of a calendar: their properties on import, and their view.

mod notes;
mod occurrences;
pub(crate) mod view;

use std::ops::Range;
use std::sync::Arc;

use self::view::{About, Series};
use crate::icalendar::refuse_method;
use crate::object::{Imported, Kind, Occurrence, Occurrences};
use crate::{Entry, State, limits};

/// The assumed maximum move of an instance.
const MOVED_S: i64 = 31 * 86_400;

impl Imported {
    /// Parses an object for the calendar of the owner with this address.
    ///
    /// # Errors
    /// A description of the problem and its remedy.
    pub(crate) fn read(original: &str, owner: &str, now: i64) -> Result<Self, String> {
        let calendar = view::parse(original)?;
        refuse_method(&calendar).map_err(|error| error.to_string())?;
        let series = Series::of(&calendar);
        if let Some(fault) = series.fault() {
            return Err(fault);
        }
        let (sequence, stamp) = series.version();
        let recurs = series.recurs();
        let range = Range {
            start: now.saturating_sub(limits::PAST_S),
            end: now.saturating_add(limits::AHEAD_S),
        };
        let (spans, is_cut) = match (series.kind, recurs) {
            (Kind::Event, true) => series.spans(&range, limits::instances(original.len())),
            (Kind::Event, false) => {
                let times = series.main().and_then(|main| series.times(main));
                let span = times.map(|(start, end)| Occurrence {
                    start: start.instant(),
                    end: end.instant(),
                    id: start.instant(),
                });
                (span.into_iter().collect(), false)
            }
            _ => (Vec::new(), false),
        };
        // The lists of a truncated expansion end at its last occurrence.
        let last = spans.last().filter(|_| is_cut).map(|span| span.start);
        Ok(Self {
            sequence,
            stamp,
            owner: owner.to_owned(),
            recurs,
            horizon: last.unwrap_or(range.end),
            is_cut,
            spans: Occurrences(spans),
            ..Self::new(original, series.kind)
        })
    }

    /// Returns true if it has single instances without their series.
    pub(crate) fn is_part(&self) -> bool {
        // A single event is complete.
        self.recurs
            && view::parse(&self.original).is_ok_and(|calendar| Series::of(&calendar).is_part())
    }

    /// Returns true if it has a start or due date.
    pub fn is_dated(&self) -> bool {
        let calendar = view::parse(&self.original);
        calendar.is_ok_and(|calendar| {
            let series = Series::of(&calendar);
            series
                .main()
                .is_some_and(|main| series.times(main).is_some())
        })
    }

    /// Returns true if it can be changed here: it is an event, readable, and complete.
    pub fn can_change(&self) -> bool {
        self.is_event() && self.is_shown() && !self.is_part()
    }

    /// A note on content that is shown differently from the object, if any.
    pub(crate) fn note(&self) -> Option<String> {
        let calendar = view::parse(&self.original).ok()?;
        let notes = Series::of(&calendar).notes(self.is_cut());
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    /// Its renewed expansion, if the current lists are nearly over and the new ones differ.
    pub(crate) fn listed_anew(&self, uid: &str, owner: &str, now: i64) -> Option<Entry> {
        if !self.is_to_be_listed_anew(now) {
            return None;
        }
        let anew = Self::read(&self.original, owner, now).ok()?;
        let of = |it: &Self| (it.horizon, it.is_cut, it.reading);
        if anew.spans == self.spans && of(&anew) == of(self) {
            return None;
        }
        anew.entry(uid, None)
    }

    /// The entry of an instance or, without an ID, of the properties common to all; `None` if there is no such
    /// instance. An unreadable object still has an entry, so that it can be exported and deleted.
    pub(crate) fn entry(self, uid: &str, id: Option<i64>) -> Option<Entry> {
        let span = self
            .spans
            .0
            .iter()
            .copied()
            .find(|span| Some(span.id) == id);
        if id.is_some() && (span.is_none() || !self.recurs) {
            return None;
        }
        let calendar = view::parse(&self.original).ok();
        let of = self.about(uid);
        let read = calendar.and_then(|calendar| Series::of(&calendar).event(of, span));
        let lacks_view = read.is_none();
        let first = || span.or_else(|| self.spans.0.first().copied());
        let event = read.unwrap_or_else(|| view::name_alone(of, first()));
        let imported = Self {
            shows: span.map(|span| span.id),
            lacks_view,
            ..self
        };
        let state = State::Imported(Box::new(imported));
        let event = Arc::new(event);
        Some(Entry { state, event })
    }

    /// The approximate range of its time; for a recurring object, from the first instance to some years ahead.
    pub(crate) fn reach(&self) -> Range<i64> {
        let calendar = view::parse(&self.original).ok();
        let times = calendar.and_then(|calendar| {
            let series = Series::of(&calendar);
            let (start, end) = series.times(series.main()?)?;
            Some((start.instant(), end.instant()))
        });
        let (start, end) = times.unwrap_or((self.stamp, self.stamp));
        let (start, end) = match self.recurs {
            true => (start, end.max(self.horizon.saturating_add(limits::AHEAD_S))),
            false => (start, end),
        };
        // Instances may have been moved.
        start.saturating_sub(MOVED_S)..end.saturating_add(MOVED_S)
    }

    fn about<'a>(&'a self, uid: &'a str) -> About<'a> {
        About {
            uid,
            owner: &self.owner,
            stamp: self.stamp,
        }
    }

    /// Visits all derived records: their keys, and the entry to render if the record is a line. Parses the object once
    /// and holds one entry at a time in memory.
    pub(crate) fn derived(&self, uid: &str, visit: &mut dyn FnMut(Vec<u8>, Option<&Entry>)) {
        let calendar = view::parse(&self.original).ok();
        let series = calendar.as_ref().map(Series::of);
        let lean = Self {
            original: Arc::clone(&self.original),
            owner: self.owner.clone(),
            spans: Occurrences::default(),
            ..*self
        };
        for (key, span) in self.keys(uid) {
            let entry = span.map(|span| {
                let of = self.about(uid);
                let read = series.as_ref().and_then(|it| it.event(of, Some(span)));
                let event = read.unwrap_or_else(|| view::name_alone(of, Some(span)));
                let shows = self.recurs.then_some(span.id);
                let lean = lean.clone();
                let state = State::Imported(Box::new(Self { shows, ..lean }));
                let event = Arc::new(event);
                Entry { state, event }
            });
            visit(key, entry.as_ref());
        }
    }
}
