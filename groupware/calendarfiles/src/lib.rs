//! Converts iCalendar files to requests of bounded size to a server's admin interface, and its responses to text.
//! *Absent: the server, the terminal.*

mod files;
mod requests;
mod tally;
mod text;

pub use files::{files, read};
pub use requests::{Request, Step, each_step};
pub use tally::Tally;
