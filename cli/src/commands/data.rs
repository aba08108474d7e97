//! `plimsoll data`: backups of a groupware server's data, and their restoration.

use std::path::Path;

use groupware_backup::{
    BackupError, Compacted, Forward, LogRange, Manifest, OpenError, ReplayError, Restored, Taken,
};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;

use crate::commands::print;
use crate::exit::{Exit, Failure};
use crate::object_store::object_place;
use crate::operating::{
    BackupArgs, ChangesArgs, CheckDataArgs, CompactArgs, DataArgs, DataCommand, ListArgs,
    RestoreDataArgs,
};
use crate::size::size;
use lab_terminal::stderr::say;

pub(crate) fn run(args: &DataArgs) -> Result<Exit, Failure> {
    match &args.command {
        DataCommand::Backup(args) => backup(args),
        DataCommand::List(args) => list(args),
        DataCommand::Check(args) => check(args),
        DataCommand::Restore(args) => restore(args),
        DataCommand::Changes(args) => changes(args),
        DataCommand::Compact(args) => compact(args),
    }
}

fn failure(error: &BackupError) -> Failure {
    let exit = match error {
        BackupError::NoData(_)
        | BackupError::Foreign(_)
        | BackupError::NoBackup(_)
        | BackupError::Busy(_)
        | BackupError::NotEmpty(_)
        | BackupError::Elsewhere(_)
        | BackupError::Replay(ReplayError::Foreign(_) | ReplayError::Gap(_))
        | BackupError::Open(_) => Exit::BadInput,
        _ => Exit::Internal,
    };
    let failure = Failure::new(exit, error);
    match error {
        BackupError::NoData(_) => failure.hint("name the server's data folder by --data"),
        BackupError::Foreign(_) => failure.hint("name a new folder"),
        BackupError::Elsewhere(_) => {
            failure.hint("give the --content that the server has: s3://…")
        }
        BackupError::NoBackup(_) => failure.hint("`plimsoll data list` shows which there are"),
        BackupError::Open(OpenError::NoRoom { .. }) => {
            failure.hint("make room on that disk, or move the data folder to a larger one")
        }
        BackupError::NotEmpty(_) => {
            failure.hint("name another folder, or move this one away; nothing is overwritten")
        }
        BackupError::Replay(ReplayError::Foreign(_) | ReplayError::Gap(_)) => failure.hint(
            "`plimsoll data changes` shows what is kept: a backup must have been made while it was, and \
             not before what is left of it",
        ),
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
    let place = args.content.as_deref().map(object_place).transpose()?;
    let place = place.as_ref();
    let place = place.map(|place| (&place.address, &place.credentials));
    let Taken {
        manifest,
        new_contents,
        new_bytes,
    } = groupware_backup::take_from((&args.server.data, place), &args.folder, as_of)
        .map_err(|error| failure(&error))?;
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

/// Returns all backups, or the one of this name.
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
    if let (Some(data), Some(at)) = (&args.changes, args.at) {
        return restore_at(args, &found, (data, at));
    }
    let none = || failure(&BackupError::NoBackup(args.folder.clone()));
    let manifest = found.pop().ok_or_else(none)?;
    let restored = groupware_backup::restore(&args.folder, &manifest, &args.to);
    print(&said(&args.to, &restored.map_err(|error| failure(&error))?))
}

fn said(to: &Path, restored: &Restored) -> String {
    let Restored {
        manifest,
        contents,
        content_bytes,
    } = restored;
    format!(
        "{} holds {}: {} users, {} of records, {} of {}\n",
        to.display(),
        manifest.name,
        manifest.users,
        size(manifest.records.bytes),
        pieces(*contents),
        size(*content_bytes),
    )
}

/// Restores a backup and replays a data folder's kept changes up to a moment.
fn restore_at(
    args: &RestoreDataArgs,
    backups: &[Manifest],
    (data, at): (&Path, Timestamp),
) -> Result<Exit, Failure> {
    if !data.is_dir() {
        return Err(failure(&BackupError::NoData(data.to_path_buf())));
    }
    let forward = Forward {
        data,
        until_us: at.as_microsecond(),
    };
    let style = ProgressStyle::with_template("{spinner} {bytes} of changes in {elapsed}");
    let bar = ProgressBar::no_length().with_style(style.expect("the template is right"));
    let mut told = |bytes| bar.set_position(bytes);
    let restored =
        groupware_backup::restore_at(&args.folder, backups, &args.to, forward, &mut told);
    bar.finish_and_clear();
    let (restored, replayed) = restored.map_err(|error| failure(&error))?;
    let until = replayed
        .last_us
        .and_then(|last| Timestamp::from_microsecond(last).ok());
    let changes = match until {
        Some(last) => format!(
            "brought forward by {} changes, to {}\n",
            replayed.batches,
            last.strftime("%F %T%.6f UTC"),
        ),
        None => "nothing was changed between that backup and this moment\n".to_owned(),
    };
    print(&format!("{}{changes}", said(&args.to, &restored)))?;
    if !replayed.is_cut {
        say(format_args!(
            "the kept changes end there: none is of a later moment"
        ));
    }
    Ok(Exit::Success)
}

/// Lists each log without gaps: its times and its size.
fn changes(args: &ChangesArgs) -> Result<Exit, Failure> {
    let kept = groupware_backup::change_logs(&args.server.data).map_err(|error| failure(&error))?;
    if kept.is_empty() {
        let text = format!("{} has no changes kept", args.server.data.display());
        return Err(Failure::text(Exit::BadInput, text)
            .hint("`plimsoll serve --keep-changes 7d` keeps them from its start on"));
    }
    let line = |log: &LogRange| {
        let (from, to) = (moment(log.from_us), moment(log.to_us));
        format!("{from}  to  {to}  {}\n", size(log.bytes))
    };
    print(&kept.iter().map(line).collect::<String>())
}

fn compact(args: &CompactArgs) -> Result<Exit, Failure> {
    let style = ProgressStyle::with_template("{bar:30} {bytes} of {total_bytes} in {elapsed}");
    let bar = ProgressBar::new(0).with_style(style.expect("the template is right"));
    let compacted = groupware_backup::compact(&args.server.data, |written, all| {
        bar.set_length(all);
        bar.set_position(written.min(all));
    });
    bar.finish_and_clear();
    let compacted = compacted.map_err(|error| {
        let failure = failure(&error);
        match error {
            BackupError::Open(OpenError::InUse { .. }) => failure.hint("stop the server first"),
            _ => failure,
        }
    })?;
    let Compacted {
        before_bytes,
        after_bytes,
    } = compacted;
    print(&format!(
        "{}: {} of records before, {} now\n",
        args.server.data.display(),
        size(before_bytes),
        size(after_bytes),
    ))
}

fn moment(us: i64) -> String {
    let moment = Timestamp::from_microsecond(us);
    moment.map_or_else(
        |_| "?".to_owned(),
        |at| at.strftime("%FT%T%.6fZ").to_string(),
    )
}

fn pieces(count: u64) -> String {
    match count {
        1 => "1 attachment".to_owned(),
        count => format!("{count} attachments"),
    }
}
