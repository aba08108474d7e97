//! `plimsoll generate`: one of several generators of a run, started by it. Not for users.

use std::io::{stdin, stdout};

use lab_driver::remote::{Piped, generate};

use crate::exit::{Exit, Failure};

pub(crate) fn run() -> Result<Exit, Failure> {
    generate(Piped(stdin()), Piped(stdout()))
        .map(|()| Exit::Success)
        .map_err(|error| Failure::new(Exit::Internal, &error))
}
