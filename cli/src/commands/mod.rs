//! One file per command.

pub(crate) mod attempt;
pub(crate) mod bench;
pub(crate) mod calendar;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod data;
mod earlier;
pub(crate) mod export;
pub(crate) mod fleet;
mod folder;
pub(crate) mod generate;
pub(crate) mod import;
mod import_log;
pub(crate) mod init;
pub(crate) mod load;
pub(crate) mod mail;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod quick;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod script;
pub(crate) mod script_end;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod store;
pub(crate) mod together;
pub(crate) mod users;
pub(crate) mod watch;
mod written;

use std::io::{self, Write};

use crate::exit::{Exit, Failure};

/// The default folder of archives.
pub(crate) const RUNS: &str = "runs";

/// Writes data to stdout. A closed stdout (`| head`) is no failure.
pub(crate) fn print(data: &(impl AsRef<[u8]> + ?Sized)) -> Result<Exit, Failure> {
    match io::stdout().lock().write_all(data.as_ref()) {
        Ok(()) => Ok(Exit::Success),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Success),
        Err(error) => Err(Failure::new(Exit::Internal, &error)),
    }
}
