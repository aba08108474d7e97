//! `plimsoll store`: the records of a groupware server, moved between engines.

use std::time::Duration;

use groupware_server::{CopyError, DatabaseError, Stage, TransferError};
use indicatif::{ProgressBar, ProgressStyle};

use crate::commands::print;
use crate::database::records;
use crate::exit::{Exit, Failure};
use crate::operating::{CopyArgs, RestoredArgs, StoreArgs, StoreCommand};
use crate::size::size;

pub(crate) fn run(args: &StoreArgs) -> Result<Exit, Failure> {
    match &args.command {
        StoreCommand::Copy(args) => copy(args),
        StoreCommand::Restored(args) => restored(args),
    }
}

fn restored(args: &RestoredArgs) -> Result<Exit, Failure> {
    let records = records(&args.records)?;
    groupware_server::note_restored(&records).map_err(|error| failure(&error))?;
    print(&format!(
        "{records}: the next server that starts gives each mailbox new numbers\n"
    ))
}

fn copy(args: &CopyArgs) -> Result<Exit, Failure> {
    let (from, to) = (records(&args.from)?, records(&args.to)?);
    let bar = ProgressBar::new_spinner();
    // The template is a constant; a fault in it shows as the default style.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    let copied = groupware_server::copy(&from, &to, &mut |stage| {
        bar.set_message(match stage {
            Stage::Copying(records) => format!("copying: {records} records"),
            Stage::Comparing(records) => format!("comparing both sides: {records} records"),
        });
    });
    bar.finish_and_clear();
    let copied = copied.map_err(|error| failure(&error))?;
    let hash = hex::encode(copied.hash);
    print(&format!(
        "{} records with {} are in {to}, the same on both sides\nBLAKE3 {hash}\n",
        copied.records,
        size(copied.bytes),
    ))
}

fn failure(error: &CopyError) -> Failure {
    let exit = match error {
        CopyError::Same(_)
        | CopyError::NoFolder(_)
        | CopyError::NoRecords(_)
        | CopyError::Open(_)
        | CopyError::Database(_)
        | CopyError::Transfer(TransferError::NotEmpty | TransferError::HalfFrom) => Exit::BadInput,
        _ => Exit::Internal,
    };
    let failure = Failure::new(exit, error);
    match error {
        CopyError::Database(DatabaseError::InUse { .. }) => failure.hint("stop the server first"),
        CopyError::Transfer(TransferError::NotEmpty) => {
            failure.hint("name an empty one; nothing is overwritten")
        }
        CopyError::Transfer(TransferError::Differs { .. }) => {
            failure.hint("stop the servers of both, and copy into an empty one")
        }
        CopyError::Transfer(_) => {
            failure.hint("the same command goes on where this one has stopped")
        }
        _ => failure,
    }
}
