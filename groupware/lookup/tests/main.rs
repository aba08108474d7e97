//! Registrations over a store: messages, records, and the stored form.
//! One program, since each would be linked by itself.

mod messages;
mod records;
mod stored;
mod support;
