//! The calendar over a store: decisions, lists, stored forms, laws, and hostile files.
//! One program, because each test program would be linked separately.

mod brought;
mod changed;
mod foreign;
mod hostile;
mod icalendar;
mod imported;
mod invitation;
mod itip;
mod lists;
mod properties;
mod scheduling;
mod stored;
mod successor;
mod support;
