//! `plimsoll restore`: restores kernel settings that a killed run left changed, and unmounts file systems that it left
//! mounted.

use lab_host::journal::{Gone, Restoration, restore};

use crate::args::RestoreArgs;
use crate::commands::print;
use crate::exit::{Exit, Failure, failure};
use crate::state;
use lab_terminal::stderr::say;
use lab_terminal::words;

pub(crate) fn run(args: &RestoreArgs) -> Result<Exit, Failure> {
    let folder = state::folder(args.state.as_deref())?;
    let Restoration {
        restored,
        cleared,
        held,
        gone,
    } = restore(&folder, Gone::Forget).map_err(|error| failure(&error.into()))?;
    for (path, pid) in held {
        say(format_args!(
            "{path} belongs to a run that is under way (process {pid}) and stays"
        ));
    }
    for (path, value) in gone {
        say(format_args!(
            "{path} is gone: its old value `{value}` can't be put back, and is forgotten"
        ));
    }
    let settings = restored.iter().map(words::restored);
    let disks = cleared.iter().map(|(path, pid)| words::cleared(path, *pid));
    let lines: Vec<String> = settings.chain(disks).collect();
    if lines.is_empty() {
        return print("nothing to put back\n");
    }
    print(&format!("{}\n", lines.join("\n")))
}
