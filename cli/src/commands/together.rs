//! `plimsoll together`: the processes of a system under test, started by a run. Not for users.

use std::path::Path;

use crate::commands::print;
use crate::exit::{Exit, Failure};
use crate::interrupt::interrupt;

pub(crate) fn run(file: &Path) -> Result<Exit, Failure> {
    let interrupt = interrupt()?;
    let mut told = Ok(Exit::Success);
    let mut tell = |what: &str| told = print(&format!("{what}\n"));
    let ended = lab_conduct::together(file, &mut tell, &interrupt);
    ended.map_err(|what| Failure::text(Exit::Internal, what))?;
    told
}
