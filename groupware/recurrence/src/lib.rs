//! The times of iCalendar objects (RFC 5545): moments, the time zones that files describe, and the expansion of
//! recurrence rules. *Absent: events, people, the calendar's storage; the clock.*

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
