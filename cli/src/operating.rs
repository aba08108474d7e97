//! The command line of who runs a groupware server: what can be typed. Text only; nothing happens here.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    #[command(subcommand)]
    pub(crate) command: DataCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Back up the data of a server, which may run meanwhile
    Backup(BackupArgs),
    /// List the backups in a folder
    List(ListArgs),
    /// Read backups to the last byte: is all of it there, and right?
    Check(CheckDataArgs),
    /// Make a data folder from a backup
    Restore(RestoreDataArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll data backup /backup/plimsoll                    of the data in ./plimsoll-data
  plimsoll data backup /backup/plimsoll --data /var/lib/plimsoll --keep 14

All records are those of one moment, with all attachments that they refer to; attachments that an
earlier backup has are not copied again. It has its name when it is whole and was checked: one that
was cut off counts for nothing, and the next backup removes it. Run it as the user that the server
runs as. Not in it: the admin token, and uploads under way, which their clients go on with.")]
pub(crate) struct BackupArgs {
    /// The folder of backups; new, empty, or with backups in it
    pub(crate) folder: PathBuf,
    /// The data folder of the server
    #[arg(
        long,
        env = "PLIMSOLL_DATA",
        default_value = "plimsoll-data",
        value_name = "DIR"
    )]
    pub(crate) data: PathBuf,
    /// Remove all backups but the newest N afterwards, and the attachments that only those had
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The folder of backups
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll data check /backup/plimsoll
  plimsoll data check /backup/plimsoll --backup 20261122T084500Z")]
pub(crate) struct CheckDataArgs {
    /// The folder of backups
    pub(crate) folder: PathBuf,
    /// Only the backup of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) backup: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll data restore /backup/plimsoll --to /var/lib/plimsoll
  plimsoll data restore /backup/plimsoll --to restored --at 2026-11-22T08:45:00Z
  plimsoll serve --data restored --check

The newest backup is taken, or with --at the last one that was begun by then. The data folder has its
name when it is whole; nothing is ever overwritten. Kernel settings that a killed run left are put
back by `plimsoll restore`.")]
pub(crate) struct RestoreDataArgs {
    /// The folder of backups
    pub(crate) folder: PathBuf,
    /// The data folder to make, which must not be there, or be empty
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// The last backup that was begun by this moment, as in 2026-11-22T08:45:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "backup")]
    pub(crate) at: Option<jiff::Timestamp>,
    /// The backup of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) backup: Option<String>,
}
