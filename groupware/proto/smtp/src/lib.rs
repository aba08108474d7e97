//! The server side of SMTP: parses commands, receives a text, and writes the trace field. Bytes in,
//! values out: no sockets, no clock, no users, no mailboxes.

mod command;
mod data;
mod trace;

pub use command::{Command, Mechanism, POSTMASTER, command};
pub use data::{Flaw, Text};
pub use trace::Trace;
