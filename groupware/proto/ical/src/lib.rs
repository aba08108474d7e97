//! Splits iCalendar files (RFC 5545) into calendar objects, byte for byte.
//!
//! An object is what a calendar stores as one: all components of one UID, with the time zones that they
//! name. Only the properties that identify objects are parsed, so that all other content stays as it is.
//! *Absent: dates, recurrence, a calendar's meaning of an object, I/O.*

mod edit;
mod line;
pub mod message;
mod object;
mod split;

pub use edit::{Edit, edited, escaped, fold, with_zones};
pub use line::{Line, Lines, Property};
pub use object::Object;
pub use split::{Damage, Fault, LEVELS, split};

/// Longest identifier, in bytes: RFC 7986 §5.3 advises no more than 255 octets.
pub const UID_BYTES: usize = 255;
/// Most bytes of a calendar's own properties: each of its objects is stored with them.
pub const HEAD_BYTES: usize = 16 * 1024;
