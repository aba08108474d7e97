//! Events, invitations, notices (iTIP messages in the scheduling inbox), scheduling: pure decisions over a snapshot.
//!
//! The interface is Domino's calendar service. A decision reads a [`Snapshot`] and returns a response and, for a
//! change, a [`Batch`] whose asserts prevent lost updates: on a conflict, the caller decides again on a new snapshot.
//! There is no clock, randomness, or I/O here: [`Context`] provides the time and new identifiers.
//!
//! **Scheduling is implicit.** No client writes a notice. Creating a meeting puts it on the organizer's calendar and an
//! invitation into each local attendee's, in one batch. A reply moves the attendee's entry and updates the organizer's
//! copy, in one batch. See [`create`], [`answer`], [`update`], [`delete`] for the effects on each user.
//!
//! **Imported objects are stored unchanged** ([`import`]). Events are views of them; a recurring object has one for
//! each instance in an expansion window, which [`extend`] moves on. An object can be viewed, exported, and deleted; a
//! change here edits only the lines concerned.
//!
//! All other inputs reject recurring events instead of flattening them. Attendees that are not local users stay on the
//! event and get no invitation.
//!
//! [`Snapshot`]: groupware_store::Snapshot
//! [`Batch`]: groupware_store::Batch

mod answer;
mod bounded;
mod cancellation;
mod context;
mod create;
mod delete;
mod domino;
mod entry;
mod error;
mod event;
mod export;
mod extend;
mod icalendar;
mod import;
mod imported;
mod instances;
mod invitation;
mod itip;
mod json;
mod keys;
pub mod limits;
mod line_edits;
mod list;
mod mail_message;
mod mailbox;
mod meaning;
mod object;
mod query;
mod read;
mod reply;
mod scan;
mod source;
mod update;
mod version;
mod written;
mod zones;

use groupware_recurrence::{time, values};

pub use answer::{Action, ActionBody, Target, answer};
pub use cancellation::{Cancellation, CancellationChoices, CancelledCopy, apply_cancellation};
pub use context::{Context, Decision};
pub use create::create;
pub use delete::delete;
pub use domino::{event_document, notice_document};
pub use entry::{Entry, State};
pub use error::{CalendarError, Reason};
pub use event::{
    Answer, Attendee, Class, Details, Event, Organizer, Role, Status, Transparency, UserType,
};
pub use export::{ICalendarParts, write_icalendar};
pub use extend::{Extension, extend};
pub use groupware_ids::Ids;
pub use groupware_recurrence::Moment;
pub use icalendar::parse_icalendar;
pub use import::{Outcome, Ready, import, ready};
pub use instances::instances;
pub use invitation::{MailInvitation, answer_mail};
pub use json::{NewAttendee, NewEvent, parse_json_events};
pub use keys::{ALL, PREFIX, event_path, instance_name, notice_path};
pub use list::{EventPage, Invitations, event_notices, events, invitations};
pub use mail_message::MailMessage;
pub use object::Imported;
pub use query::{EventQuery, Format, InvitationQuery};
pub use read::{event, notice};
pub use reply::{Reply, record_reply};
pub use scan::{
    ScanBudget, count_invitations, entries, entries_after, entry, has_others, invitation,
    open_invitations, others,
};
pub use update::{UpdateOptions, update};
pub use version::{Version, require_seen};
