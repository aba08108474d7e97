//! Registrations over a store: messages, records, and the stored form. One program, so that linking
//! happens once.

mod messages;
mod records;
mod stored;
mod support;
