//! When iCalendar objects (RFC 5545) take place: moments, the time zones that files describe, and what recurrence
//! rules come to. *Absent: events, people, what a calendar keeps; the clock.*

mod readable;
pub mod rules;
pub mod time;
mod transitions;
pub mod values;
mod zones;

pub use readable::{is_rule, readable};
pub use time::{Moment, UnknownZone};
pub use transitions::{Transitions, YEAR_S};
pub use zones::FileZones;
