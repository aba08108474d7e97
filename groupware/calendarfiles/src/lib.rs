//! iCalendar files as requests of a server's admin interface, of a bounded size each, and what its answers say in
//! words. *Absent: the server, the terminal.*

mod files;
mod requests;
mod tally;
mod text;

pub use files::{files, read};
pub use requests::{Request, Step, each_step};
pub use tally::Tally;
