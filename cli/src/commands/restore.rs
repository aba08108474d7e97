//! `plimsoll restore`: puts back kernel settings that a killed run left changed.

use lab_host::journal::{Gone, Restoration, restore};

use crate::args::RestoreArgs;
use crate::commands::print;
use crate::exit::{Exit, Failure, failure};
use crate::state;
use crate::talk::say;
use crate::words;

pub(crate) fn run(args: &RestoreArgs) -> Result<Exit, Failure> {
    let folder = state::folder(args.state.as_deref())?;
    let Restoration {
        restored,
        held,
        gone,
    } = restore(&folder, Gone::Forget).map_err(|error| failure(&error.into()))?;
    for (path, pid) in held {
        say(format_args!(
            "{path} is set by a run that is under way (process {pid}) and stays"
        ));
    }
    for (path, value) in gone {
        say(format_args!(
            "{path} is gone: its old value `{value}` can't be put back, and is forgotten"
        ));
    }
    if restored.is_empty() {
        return print("nothing to put back\n");
    }
    let lines: Vec<String> = restored.iter().map(words::restored).collect();
    print(&format!("{}\n", lines.join("\n")))
}
