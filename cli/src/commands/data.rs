//! `plimsoll data`: backups of a groupware server's data, and their way back.

use std::path::Path;

use groupware_backup::{BackupError, Manifest, Restored, Taken};
use jiff::Timestamp;

use crate::commands::print;
use crate::exit::{Exit, Failure};
use crate::operating::{
    BackupArgs, CheckDataArgs, DataArgs, DataCommand, ListArgs, RestoreDataArgs,
};
use crate::size::size;
use crate::talk::say;

pub(crate) fn run(args: &DataArgs) -> Result<Exit, Failure> {
    match &args.command {
        DataCommand::Backup(args) => backup(args),
        DataCommand::List(args) => list(args),
        DataCommand::Check(args) => check(args),
        DataCommand::Restore(args) => restore(args),
    }
}

fn failure(error: &BackupError) -> Failure {
    let exit = match error {
        BackupError::NoData(_)
        | BackupError::Foreign(_)
        | BackupError::NoBackup(_)
        | BackupError::Busy(_)
        | BackupError::NotEmpty(_)
        | BackupError::Open(_) => Exit::BadInput,
        _ => Exit::Internal,
    };
    let failure = Failure::new(exit, error);
    match error {
        BackupError::NoData(_) => failure.hint("name the server's data folder by --data"),
        BackupError::Foreign(_) => failure.hint("name a new folder"),
        BackupError::NoBackup(_) => failure.hint("`plimsoll data list` shows which there are"),
        BackupError::NotEmpty(_) => {
            failure.hint("name another folder, or move this one away; nothing is overwritten")
        }
        BackupError::Records(_) | BackupError::Content { .. } => {
            failure.hint("try an earlier backup; `plimsoll data check` tells which are right")
        }
        _ => failure,
    }
}

fn backup(args: &BackupArgs) -> Result<Exit, Failure> {
    let now = Timestamp::now();
    let name = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let version = env!("CARGO_PKG_VERSION");
    let as_of = (&*name, now.as_second(), version);
    let Taken {
        manifest,
        new_contents,
        new_bytes,
    } = groupware_backup::take(&args.data, &args.folder, as_of).map_err(|e| failure(&e))?;
    print(&format!(
        "{}: {} users, {} of records, {} ({} new, {})\n",
        manifest.name,
        manifest.users,
        size(manifest.records.bytes),
        pieces(manifest.contents),
        new_contents,
        size(new_bytes),
    ))?;
    if let Some(keep) = args.keep {
        let gone = groupware_backup::prune(&args.folder, keep as usize);
        let gone = gone.map_err(|error| failure(&error))?;
        if gone > 0 {
            say(format_args!("{gone} older backups are removed"));
        }
    }
    Ok(Exit::Success)
}

fn list(args: &ListArgs) -> Result<Exit, Failure> {
    let found = groupware_backup::list(&args.folder).map_err(|error| failure(&error))?;
    let mut text = String::new();
    for manifest in &found.whole {
        text += &format!(
            "{}  {} users, {} of records, {} of {}\n",
            manifest.name,
            manifest.users,
            size(manifest.records.bytes),
            pieces(manifest.contents),
            size(manifest.content_bytes),
        );
    }
    for name in &found.incomplete {
        text += &format!("{name}  incomplete: being made just now, or cut off\n");
    }
    if text.is_empty() {
        return Err(failure(&BackupError::NoBackup(args.folder.clone())));
    }
    print(&text)
}

fn check(args: &CheckDataArgs) -> Result<Exit, Failure> {
    let mut wrong = 0;
    for manifest in chosen(&args.folder, args.backup.as_deref())? {
        let look = groupware_backup::check(&args.folder, &manifest);
        let look = look.map_err(|error| failure(&error))?;
        match look.wrong.is_empty() {
            true => print(&format!("{}: right to the last byte\n", manifest.name))?,
            false => print(&format!("{}: damaged\n", manifest.name))?,
        };
        for sentence in &look.wrong {
            print(&format!("  wrong: {sentence}\n"))?;
        }
        wrong += usize::from(!look.wrong.is_empty());
    }
    match wrong {
        0 => Ok(Exit::Success),
        _ => Err(
            Failure::text(Exit::Internal, format!("{wrong} backups are damaged"))
                .hint("make a new one now, and look at the disk"),
        ),
    }
}

/// All backups, or the one of this name.
fn chosen(folder: &Path, name: Option<&str>) -> Result<Vec<Manifest>, Failure> {
    let mut found = groupware_backup::list(folder)
        .map_err(|error| failure(&error))?
        .whole;
    found.retain(|manifest| name.is_none_or(|name| manifest.name == name));
    match found.is_empty() {
        true => Err(failure(&BackupError::NoBackup(folder.to_path_buf()))),
        false => Ok(found),
    }
}

fn restore(args: &RestoreDataArgs) -> Result<Exit, Failure> {
    let mut found = chosen(&args.folder, args.backup.as_deref())?;
    if let Some(at) = args.at {
        found.retain(|manifest| manifest.taken_s <= at.as_second());
    }
    let none = || failure(&BackupError::NoBackup(args.folder.clone()));
    let manifest = found.pop().ok_or_else(none)?;
    let restored = groupware_backup::restore(&args.folder, &manifest, &args.to);
    let Restored {
        manifest,
        contents,
        content_bytes,
    } = restored.map_err(|error| failure(&error))?;
    print(&format!(
        "{} holds {}: {} users, {} of records, {} of {}\n",
        args.to.display(),
        manifest.name,
        manifest.users,
        size(manifest.records.bytes),
        pieces(contents),
        size(content_bytes),
    ))
}

fn pieces(count: u64) -> String {
    match count {
        1 => "1 attachment".to_owned(),
        count => format!("{count} attachments"),
    }
}
