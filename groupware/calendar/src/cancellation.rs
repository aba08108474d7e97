//! Cancellations received by mail (RFC 5546 §3.2.5), and their effect on the recipient's copy of the event.

use calcard::icalendar::{
    ICalendarComponent, ICalendarComponentType as Component, ICalendarProperty as Property,
};
use groupware_proto_ical::message::joined;
use groupware_proto_ical::{Edit, edited};

use crate::imported::view::{self, Series};
use crate::invitation::check_organizer;
use crate::itip::{absent, announced, apart, entry_of, is_own, refused, with_answer};
use crate::mailbox::{self, Changes};
use crate::object::Imported;
use crate::{CalendarError, Context, Decision, Entry, Moment, State, limits, time};
use groupware_recurrence::values::text;

/// A cancellation of an event, or of some of its instances.
#[derive(Debug, Clone)]
pub struct Cancellation {
    text: String,
    entry: Entry,
    sequence: i64,
    stamp: i64,
    /// The cancelled instances. Empty if the whole event is cancelled.
    instances: Vec<Moment>,
}

/// The recipient's choices for the copy of a cancelled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CancellationChoices {
    /// True if the copy is marked as cancelled; otherwise it can be.
    pub is_marked: bool,
    /// True if the copy can be removed.
    pub can_remove: bool,
}

/// What to do with the copy of a cancelled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelledCopy {
    /// Keep it, marked as cancelled.
    Mark,
    /// Remove it.
    Remove,
}

impl Cancellation {
    /// Parses an object with the method CANCEL.
    pub(crate) fn read(uid: &str, object: &str, owner: &str, now: i64) -> Option<Self> {
        let calendar = view::parse(object).ok()?;
        let series = Series::of(&calendar);
        let entry = announced((uid, object), &series, (owner, now))?;
        let (sequence, stamp) = series.version();
        let is_whole = !series.is_part();
        let instances = series.components.iter().filter(|_| !is_whole);
        let instances = instances.map(|it| series.moment(it, &Property::RecurrenceId));
        Some(Self {
            instances: instances.collect::<Option<_>>()?,
            text: object.to_owned(),
            entry,
            sequence,
            stamp,
        })
    }

    /// The event as the message describes it.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Returns true if the whole event is cancelled, not only some instances.
    pub fn is_whole(&self) -> bool {
        self.instances.is_empty()
    }

    /// The choices for the copy that the recipient holds.
    ///
    /// # Errors
    /// 400 with the reason if there is no choice.
    pub fn choices(&self, held: Option<&Entry>) -> Result<CancellationChoices, CalendarError> {
        let held = held.ok_or_else(absent)?;
        if is_own(held) {
            return Err(refused(
                "This is your own event: nobody else can cancel it.",
            ));
        }
        check_organizer(held, &self.entry)?;
        match &held.state {
            State::Imported(there) => self.choices_of(there),
            State::Cancelled => Ok(CancellationChoices {
                is_marked: true,
                can_remove: true,
            }),
            State::Own | State::Accepted | State::Tentative | State::Invited { .. } => {
                Err(refused(
                    "The organizer is a user of this server, and has not cancelled this meeting here.",
                ))
            }
        }
    }

    fn choices_of(&self, there: &Imported) -> Result<CancellationChoices, CalendarError> {
        let calendar = view::parse(there.original()).map_err(|_| apart())?;
        let series = Series::of(&calendar);
        let components = self.cancelled_in(&series, there)?;
        let is_newer = |it: &&ICalendarComponent| series.version_of(it).0 > self.sequence;
        if components.iter().any(is_newer) {
            return Err(refused(
                "Your calendar has a newer version of this event than the one that was cancelled.",
            ));
        }
        let is_marked = components.iter().all(|it| is_cancelled(it));
        Ok(CancellationChoices {
            is_marked,
            can_remove: self.is_whole() || series.is_part(),
        })
    }

    /// The components of the recipient's copy that describe the cancelled instances, or the whole event.
    fn cancelled_in<'c>(
        &self,
        series: &Series<'c>,
        there: &Imported,
    ) -> Result<Vec<&'c ICalendarComponent>, CalendarError> {
        if self.is_whole() {
            return Ok(series.main().into_iter().collect());
        }
        let mut components = Vec::new();
        for instance in &self.instances {
            let id = series.as_in_series(instance.clone()).instant();
            // Instances after the expansion window are not listed.
            let is_there = id > there.horizon || there.spans.0.iter().any(|span| span.id == id);
            let component = series.component_of(id).filter(|_| is_there);
            components.push(component.ok_or_else(absent)?);
        }
        Ok(components)
    }

    /// The copy, marked as cancelled.
    fn marked(&self, there: &Imported, now: i64) -> Result<Entry, CalendarError> {
        let text = match self.is_whole() {
            true => self.with_status(there.original()),
            false => {
                let cancelled = self.with_status(&self.text);
                cancelled.and_then(|text| joined(there.original(), &text, limits::OBJECT_BYTES))
            }
        };
        let text = with_answer(&text.ok_or_else(apart)?, None);
        let entry = entry_of(&text, &self.entry.event.uid, (&there.owner, now))?;
        let there = entry.imported();
        let is_marked = there.is_some_and(|it| self.choices_of(it).is_ok_and(|it| it.is_marked));
        is_marked.then_some(entry).ok_or_else(apart)
    }

    /// Marks all components of an object as cancelled, with the version of the message, so that an earlier invitation
    /// is older.
    fn with_status(&self, object: &str) -> Option<String> {
        let calendar = view::parse(object).ok()?;
        let series = Series::of(&calendar);
        let mut edits = Vec::new();
        let events = view::numbered(&calendar);
        for (number, component) in events.filter(|(_, it)| it.component_type == Component::VEvent) {
            let (sequence, stamp) = series.version_of(component);
            let plain = |property, value: String| Edit {
                property,
                value: Some(value),
                parameters: Vec::new(),
            };
            let mut of_one = vec![plain("STATUS", "CANCELLED".to_owned())];
            if sequence < self.sequence {
                of_one.push(plain("SEQUENCE", self.sequence.to_string()));
            }
            if stamp < self.stamp {
                of_one.push(plain("DTSTAMP", time::compact(self.stamp)));
            }
            edits.push((number, of_one));
        }
        String::from_utf8(edited(object.as_bytes(), &edits)?).ok()
    }
}

fn is_cancelled(component: &ICalendarComponent) -> bool {
    text(component, &Property::Status).is_some_and(|it| it.eq_ignore_ascii_case("CANCELLED"))
}

/// Marks or removes the owner's copy of an event that was cancelled by a mail.
///
/// # Errors
/// 400 if the copy can't be changed this way; the store's errors.
pub fn apply_cancellation(
    context: &Context<'_>,
    cancellation: &Cancellation,
    copy: CancelledCopy,
) -> Result<Decision, CalendarError> {
    let uid = &*cancellation.entry.event.uid;
    let held = mailbox::load(context.snapshot, context.mailbox, uid)?.ok_or_else(absent)?;
    let choices = cancellation.choices(Some(&held.entry))?;
    let entry = match (copy, held.entry.imported()) {
        (CancelledCopy::Remove, _) if choices.can_remove => None,
        (CancelledCopy::Mark, Some(there)) if !choices.is_marked => {
            Some(cancellation.marked(there, context.now)?)
        }
        (CancelledCopy::Mark, _) => Some(held.entry.clone()),
        (CancelledCopy::Remove, _) => {
            return Err(refused(
                "One event of a series can't be removed here: it can be marked as cancelled.",
            ));
        }
    };
    let mut changes = Changes::default();
    changes.replace(context.mailbox, uid, Some(&held), entry.as_ref());
    Ok(Decision {
        batch: changes.into_batch(),
        entry,
    })
}
