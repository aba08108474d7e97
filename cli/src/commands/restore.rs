//! `plimsoll restore`: puts back kernel settings that a killed run left changed.

use lab_conduct::{Gone, Restoration, Restored};

use crate::args::RestoreArgs;
use crate::commands::print;
use crate::commands::run::failure;
use crate::exit::{Exit, Failure};
use crate::state;

pub(crate) fn run(args: &RestoreArgs) -> Result<Exit, Failure> {
    let folder = state::folder(args.state.as_deref())?;
    let Restoration {
        restored,
        held,
        gone,
    } = lab_conduct::restore(&folder, Gone::Forget).map_err(|error| failure(&error))?;
    for (path, pid) in held {
        eprintln!("{path} is set by a run that is under way (process {pid}) and stays");
    }
    for (path, value) in gone {
        eprintln!("{path} is gone: its old value `{value}` can't be put back, and is forgotten");
    }
    if restored.is_empty() {
        return print("nothing to put back\n");
    }
    let lines: Vec<String> = restored.iter().map(words).collect();
    print(&format!("{}\n", lines.join("\n")))
}

/// What was put back, in a sentence.
pub(crate) fn words(restored: &Restored) -> String {
    let Restored {
        path,
        found,
        value,
        pid,
    } = restored;
    format!("put {path} back to `{value}`: a killed run (process {pid}) had left it at `{found}`")
}
