//! `plimsoll generate`: one of several generators of a run, started by it. Not for people.

use std::io::{stdin, stdout};

use lab_driver::remote::generate;

use crate::exit::{Exit, Failure};

pub(crate) fn run() -> Result<Exit, Failure> {
    generate(stdin(), stdout().lock())
        .map(|()| Exit::Success)
        .map_err(|error| Failure::new(Exit::Internal, &error))
}
