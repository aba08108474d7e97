//! iCalendar files (RFC 5545) taken apart into calendar objects, byte for byte.
//!
//! An object is what a calendar keeps as one: all components of one UID, with the time zones that they name.
//! Nothing is understood but what tells objects apart, so that whatever else a file says stays as it is.
//! *Absent: dates, recurrence, what a calendar makes of an object, I/O.*

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
/// Most bytes that a calendar may say of itself: each of its objects is kept with them.
pub const HEAD_BYTES: usize = 16 * 1024;
