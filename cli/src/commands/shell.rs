//! `plimsoll completions` and `plimsoll man`: the command line in the forms of shells and `man`.

use std::fs;

use clap::CommandFactory;

use crate::args::Cli;
use crate::beginning::{CompletionsArgs, ManArgs};
use crate::commands::{print, written};
use crate::exit::{Exit, Failure};
use lab_terminal::stderr::say;

pub(crate) fn completions(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "plimsoll", &mut out);
    print(&out)
}

/// A page for each command: `plimsoll-import-har.1`.
pub(crate) fn man(args: &ManArgs) -> Result<Exit, Failure> {
    let failure = |error| written::failure(&args.dir, &error);
    fs::create_dir_all(&args.dir).map_err(failure)?;
    clap_mangen::generate_to(Cli::command(), &args.dir).map_err(failure)?;
    say(format_args!(
        "man pages: {}/plimsoll.1 and more",
        args.dir.display()
    ));
    Ok(Exit::Success)
}
