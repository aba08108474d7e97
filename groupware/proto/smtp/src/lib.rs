//! SMTP as a server hears it: a line as a command, a text out of its dots, and the field that says how
//! a message came. Bytes in, values out: no sockets, no clock, no users, no mailboxes.

mod command;
mod data;
mod trace;

pub use command::{Command, Mechanism, POSTMASTER, command};
pub use data::{Flaw, Text};
pub use trace::Trace;
