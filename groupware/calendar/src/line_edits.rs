//! Changes imported objects in their lines: unchanged lines stay byte for byte.
//!
//! An event's summary, location, description, and times can change; of a series, only the texts, and separately
//! described instances with the same text follow. No attendee is notified, because none was invited here.

mod times;

use calcard::icalendar::{
    ICalendar, ICalendarComponent, ICalendarComponentType as Component,
    ICalendarProperty as Property,
};
use groupware_proto_ical::{Edit, edited, escaped, with_zones};

use self::times::{Times, is_same};
use crate::imported::view::{self, Series};
use crate::mailbox::{Changes, HeldEntry};
use crate::object::Imported;
use crate::read::refuse_kept;
use crate::{
    CalendarError, Class, Context, Decision, Details, Event, NewEvent, Reason, Status,
    Transparency, limits, source, time,
};
use groupware_recurrence::values::{integer, text};

/// Changes of components, by their numbers without time zones.
type Edits = Vec<(usize, Vec<Edit>)>;

const IMPOSSIBLE: &str = "This change can't be made in what came.";

const OTHER_LINES: &str = "This event was brought from elsewhere: its alarms, attachments, and other \
                           properties can't be changed here. Its summary, location, and description \
                           can, and when it is.";

/// Changes an imported event; its next version has this number. If the update is literal, a missing description means
/// none.
///
/// # Errors
/// 403 for what can't be changed here; 400 for invalid content.
pub(crate) fn change(
    context: &Context<'_>,
    (held, imported): (&HeldEntry, &Imported),
    new: NewEvent,
    (sequence, is_literal): (u32, bool),
) -> Result<Decision, CalendarError> {
    if held.entry.recurrence_id().is_some() {
        refuse_kept(&held.entry)?;
    }
    let old = &held.entry.event;
    refuse_others(old, &new)?;
    if new.is_icalendar {
        let was = source::unknown_lines(imported.original());
        let was = was.concat();
        if source::adds(&was, &new.details.source) {
            return Err(refused(OTHER_LINES));
        }
    }
    let calendar = view::parse(imported.original());
    let calendar = calendar.map_err(|_| refused("This can't be read to be changed."))?;
    let object = Object::of(&calendar, imported)?;
    let wanted = wanted(old, new.details, is_literal)?;
    let mut edits = object.texts(&wanted);
    let mut zones = String::new();
    let times = (&wanted.start, &wanted.end);
    let are_same = is_same(times.0, &old.details.start) && is_same(times.1, &old.details.end);
    if !are_same {
        if imported.recurs() {
            return Err(refused(
                "When a series that was brought from elsewhere takes place can't be changed here, what \
                 it is called and where it is can.",
            ));
        }
        let mut times = Times::new(&calendar, object.main.1);
        object.edit(&mut edits, object.main.0, times.edits(&wanted));
        zones = times.zones.into_values().collect();
    }
    object.mark(&mut edits, sequence, context.now);
    if edits.is_empty() {
        return Ok(Decision {
            batch: Changes::default().into_batch(),
            entry: Some(held.entry.clone()),
        });
    }
    let written = edited(imported.original().as_bytes(), &edits);
    let written = written.ok_or_else(|| refused(IMPOSSIBLE))?;
    let written = with_zones(&written, zones.as_bytes());
    put(context, (held, imported), written, &wanted)
}

/// Replaces the old object by the changed one, if that has the wanted content.
fn put(
    context: &Context<'_>,
    (held, imported): (&HeldEntry, &Imported),
    written: Vec<u8>,
    wanted: &Details,
) -> Result<Decision, CalendarError> {
    if written.len() > limits::OBJECT_BYTES {
        let most = limits::OBJECT_BYTES / 1024;
        let message = format!("The event is larger than {most} KiB.");
        return Err(CalendarError::bad_request(message));
    }
    let uid = &held.entry.event.uid;
    let anew = String::from_utf8(written).ok();
    let anew = anew.and_then(|text| Imported::read(&text, &imported.owner, context.now).ok());
    let entry = anew.and_then(|anew| anew.entry(uid, None));
    let is_as_wanted = |details: &Details| {
        is_same(&details.start, &wanted.start) && is_same(&details.end, &wanted.end)
    };
    let entry = entry.filter(|entry| is_as_wanted(&entry.event.details));
    let entry = entry.ok_or_else(|| refused(IMPOSSIBLE))?;
    let mut changes = Changes::default();
    changes.replace(context.mailbox, uid, Some(held), Some(&entry));
    Ok(Decision {
        batch: changes.into_batch(),
        entry: Some(entry),
    })
}

fn refused(message: &'static str) -> CalendarError {
    CalendarError::refused(Reason::StoredVerbatim, message)
}

/// Rejects changes of fixed properties. Properties that a client doesn't send stay unchanged.
fn refuse_others(old: &Event, new: &NewEvent) -> Result<(), CalendarError> {
    let (was, is) = (&old.details, &new.details);
    let is_invited = |address: &str| {
        let mut all = old.attendees.iter();
        all.any(|known| known.email.eq_ignore_ascii_case(address))
    };
    let are_invited = new.attendees.iter().all(|it| is_invited(&it.address));
    let are_all = new.attendees.is_empty() || new.attendees.len() == old.attendees.len();
    let organizer = new.organizer.as_ref();
    let is_extra = |extra: &(String, serde_json::Value)| was.extra.contains(extra);
    let changed = [
        (
            "its people",
            !are_invited
                || !are_all
                || organizer.is_some_and(|it| !it.eq_ignore_ascii_case(&old.organizer.email)),
        ),
        (
            "who may see it",
            is.class != Class::default() && is.class != was.class,
        ),
        (
            "whether it takes up its time",
            is.transparency != Transparency::default() && is.transparency != was.transparency,
        ),
        (
            "its status",
            is.status != Status::default() && is.status != was.status,
        ),
        (
            "its priority",
            is.priority.is_some() && is.priority != was.priority,
        ),
        (
            "its labels",
            !is.categories.is_empty() && is.categories != was.categories,
        ),
        ("its link", is.url.is_some() && is.url != was.url),
        ("its alarms", is.alarm.is_some() && is.alarm != was.alarm),
        (
            "what other makers say of it",
            !is.extra.iter().all(is_extra),
        ),
    ];
    match changed.into_iter().find(|(_, is_changed)| *is_changed) {
        Some((what, _)) => Err(CalendarError::refused(
            Reason::StoredVerbatim,
            format!(
                "This event was brought from elsewhere: {what} can't be changed here. Its summary, \
                 location, and description can, and when it is."
            ),
        )),
        None => Ok(()),
    }
}

/// The wanted content of the event.
fn wanted(old: &Event, mut new: Details, is_literal: bool) -> Result<Details, CalendarError> {
    if new.description.is_none() && !is_literal {
        new.description.clone_from(&old.details.description);
    }
    let was = &old.details;
    for (name, text, was) in [
        ("summary", &mut new.summary, &was.summary),
        ("location", &mut new.location, &was.location),
        ("description", &mut new.description, &was.description),
    ] {
        // Imported text may contain what no new text can, and is not rewritten.
        if *text == *was {
            continue;
        }
        let Some(text) = text else { continue };
        *text = text.replace("\r\n", "\n");
        let is_no_text = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
        if text.contains(is_no_text) {
            let message = format!("The {name} has a control character, which no event can have.");
            return Err(CalendarError::bad_request(message));
        }
    }
    Ok(new)
}

/// An object's components, to be changed.
struct Object<'a> {
    /// The component common to all instances.
    main: (usize, &'a ICalendarComponent),
    /// The components of single instances.
    others: Vec<(usize, &'a ICalendarComponent)>,
    /// True if the calendar's owner counts its versions, rather than an external organizer.
    is_own: bool,
}

impl<'a> Object<'a> {
    fn of(calendar: &'a ICalendar, imported: &Imported) -> Result<Self, CalendarError> {
        let events = view::numbered(calendar);
        let events = events.filter(|(_, it)| it.component_type == Component::VEvent);
        let is_master =
            |(_, it): &(usize, &ICalendarComponent)| !it.has_property(&Property::RecurrenceId);
        let (masters, others): (Vec<_>, Vec<_>) = events.partition(is_master);
        let series = Series::of(calendar);
        // Of several versions, the visible one is changed.
        let main = masters.into_iter();
        let main = main.max_by_key(|(_, it)| series.version_of(it));
        let Some(main) = main else {
            return Err(refused(match imported.is_event() {
                true => {
                    "This is one instance of a series whose rest isn't here: it can't be changed here, \
                     and be deleted."
                }
                false => "This is a task or a journal: it can't be changed here, and be deleted.",
            }));
        };
        let organizer = main.1.property(&Property::Organizer);
        let address = organizer.and_then(|entry| entry.calendar_address());
        let address = address.map(crate::json::bare_address);
        let is_own = address.is_none_or(|it| it.eq_ignore_ascii_case(&imported.owner));
        Ok(Self {
            main,
            others,
            is_own,
        })
    }

    /// The changes of texts.
    fn texts(&self, wanted: &Details) -> Edits {
        let mut edits = Edits::new();
        for (name, property, wanted) in [
            ("SUMMARY", Property::Summary, &wanted.summary),
            ("LOCATION", Property::Location, &wanted.location),
            ("DESCRIPTION", Property::Description, &wanted.description),
        ] {
            let said = text(self.main.1, &property).unwrap_or_default();
            let wanted = wanted.as_deref().unwrap_or_default();
            if said == wanted {
                continue;
            }
            let edit = Edit {
                property: name,
                value: (!wanted.is_empty()).then(|| escaped(wanted)),
                // These describe the old text's encoding and its alternative form.
                parameters: ["ALTREP", "ENCODING", "CHARSET"]
                    .map(|name| (name, None))
                    .into(),
            };
            let says_the_same =
                |it: &ICalendarComponent| text(it, &property).unwrap_or_default() == said;
            for (number, component) in std::iter::once(&self.main).chain(&self.others) {
                if says_the_same(component) {
                    self.edit(&mut edits, *number, vec![edit.clone()]);
                }
            }
        }
        edits
    }

    /// Adds changes of a component.
    fn edit(&self, to: &mut Edits, number: usize, edits: Vec<Edit>) {
        match to.iter_mut().find(|(of, _)| *of == number) {
            Some((_, known)) => known.extend(edits),
            None if edits.is_empty() => {}
            None => to.push((number, edits)),
        }
    }

    /// Stamps all changed components with the time of the change: RFC 5545 §3.8.7. Only the organizer increments the
    /// version.
    fn mark(&self, edits: &mut Edits, sequence: u32, now: i64) {
        let now = time::compact(now);
        for (number, edits) in edits.iter_mut() {
            let other = self.others.iter().find(|(of, _)| of == number);
            let sequence = match other {
                None => sequence,
                Some((_, other)) => integer(other, &Property::Sequence)
                    .unwrap_or(0)
                    .saturating_add(1),
            };
            let plain = |property, value: String| Edit {
                property,
                value: Some(value),
                parameters: vec![("VALUE", None), ("TZID", None)],
            };
            edits.push(plain("DTSTAMP", now.clone()));
            edits.push(plain("LAST-MODIFIED", now.clone()));
            if self.is_own {
                edits.push(plain("SEQUENCE", sequence.to_string()));
            }
        }
    }
}
