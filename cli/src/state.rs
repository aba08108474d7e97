//! The folder for data of this user's runs that must survive them: the journal of kernel settings.

use std::path::{Path, PathBuf};

use lab_host::machine::is_root;

use crate::exit::{Exit, Failure};

/// The given folder, or else the user's own: `/var/lib/plimsoll` for root, and `$XDG_STATE_HOME/plimsoll` or
/// `~/.local/state/plimsoll` for other users. Root's does not depend on the environment, which `sudo` changes.
pub(crate) fn folder(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return Ok(named.to_path_buf());
    }
    if is_root() {
        return Ok(PathBuf::from("/var/lib/plimsoll"));
    }
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .map(|state| state.join("plimsoll"))
        .ok_or_else(|| {
            Failure::text(
                Exit::BadInput,
                "there is no folder for the state of this user's runs: HOME is not set",
            )
            .hint("name one with --state")
        })
}
