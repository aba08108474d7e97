//! The arguments of the commands for operators of a groupware server. Text only; there is no code of commands here.

use std::convert::Infallible;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Copy all records into an empty data folder or database
    Copy(CopyArgs),
    /// Say of records that they were put back as they were earlier, by a snapshot or
    /// a dump
    Restored(RestoredArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll store restored /var/lib/plimsoll
  plimsoll store restored postgres://plimsoll@db.example.org/plimsoll

What `data restore` and `store copy` make says so itself. After anything else
that brings records back as they were, such as a snapshot of the disk,
pg_restore, or a recovery to a point in time, say it by this, once, before a
server starts: the next one that starts gives each mailbox new numbers
(UIDVALIDITY, MODSEQ), so that no program that keeps a copy takes a message of
now for one that was lost. No server may use the records meanwhile.")]
pub(crate) struct RestoredArgs {
    /// The data folder or the URL of the database
    #[arg(value_name = "RECORDS")]
    pub(crate) records: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll store copy plimsoll-data postgres://plimsoll@db.example.org/plimsoll
  plimsoll store copy postgres://plimsoll@localhost/plimsoll new-data

No server may use either meanwhile. Records are counted on both sides and
compared by a hash; a copy that was cut off goes on when the same command is
given again, and no server starts on one that isn't finished. Attachments stay
in their folder: take `content` along where a server gets another one.

The password of a database is taken from PGPASSWORD or ~/.pgpass; it needn't be
in the address, which others on this machine can see while the command runs.")]
pub(crate) struct CopyArgs {
    /// The data folder or the URL of the database to copy from
    #[arg(value_name = "FROM")]
    pub(crate) from: String,
    /// The data folder or the URL of the database to copy to; it is made if it isn't
    /// there
    #[arg(value_name = "TO")]
    pub(crate) to: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll data backup /backup/plimsoll    of the data in ./plimsoll-data
  plimsoll data list /backup/plimsoll      all backups in the folder
  plimsoll data restore /backup/plimsoll --to plimsoll-data")]
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
    /// Say to which moments the kept changes lead
    Changes(ChangesArgs),
    /// Give the room back to the disk that deletions have left in the records' file
    Compact(CompactArgs),
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
    #[command(flatten)]
    pub(crate) server: DataFolder,
    /// The object store that the attachments are in, as `plimsoll serve` has it; in the backup they are files
    #[arg(long, env = "PLIMSOLL_CONTENT", value_name = "URL")]
    pub(crate) content: Option<String>,
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
  plimsoll data restore /backup/plimsoll --to then --at 2026-11-22T08:45:00Z \\
    --changes /var/lib/plimsoll
  plimsoll serve --data restored --check

The newest backup is taken, or with --at the last one that was begun by then. A
server that keeps its changes (`serve --keep-changes 7d`) leads further: with
--changes, the backup is brought forward to that very moment, whether or not the
server runs.

The data folder has its name when it is whole; nothing is ever overwritten.
Kernel settings that a killed run left are put back by `plimsoll restore`.")]
pub(crate) struct RestoreDataArgs {
    /// The folder of backups
    pub(crate) folder: PathBuf,
    /// The data folder to make, which must not be there, or be empty
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// The last backup that was begun by this moment, as in 2026-11-22T08:45:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "backup")]
    pub(crate) at: Option<jiff::Timestamp>,
    /// With --at: bring the backup forward by the changes that this data folder has kept
    #[arg(long, value_name = "DIR", requires = "at")]
    pub(crate) changes: Option<PathBuf>,
    /// The backup of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) backup: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll data changes --data /var/lib/plimsoll

Each line is a log without a gap: a backup that was made while it was kept can be
brought to any moment of it. `plimsoll serve --keep-changes 7d` keeps one.")]
pub(crate) struct ChangesArgs {
    #[command(flatten)]
    pub(crate) server: DataFolder,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll data compact --data /var/lib/plimsoll

A server gives room back by itself while nobody writes. Files that an older
version made can't be made shorter that way until this was done once, while no
server runs on them. A second file is written meanwhile, and takes the place of
the first when it is whole: whatever ends this before loses nothing.")]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) server: DataFolder,
}

/// Where the server keeps its data.
#[derive(Debug, Args)]
pub(crate) struct DataFolder {
    /// The data folder of the server
    #[arg(
        long,
        env = "PLIMSOLL_DATA",
        default_value = "plimsoll-data",
        value_name = "DIR"
    )]
    pub(crate) data: PathBuf,
}

/// Where the server is, and how it is told that an administrator asks.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// The server's address
    #[arg(
        long,
        env = "PLIMSOLL_SERVER",
        default_value = "http://127.0.0.1:8340",
        value_name = "URL",
        global = true
    )]
    pub(crate) server: String,
    /// File with the admin token; $PLIMSOLL_ADMIN_TOKEN, or else plimsoll-data/admin-token, unless given
    #[arg(
        long,
        env = "PLIMSOLL_ADMIN_TOKEN_FILE",
        value_name = "FILE",
        global = true
    )]
    pub(crate) admin_token_file: Option<PathBuf>,
    /// Certificates (PEM) to trust instead of those that browsers do
    #[arg(long, env = "PLIMSOLL_CA", value_name = "FILE", global = true)]
    pub(crate) ca: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll users add ada                    asks for a password; reads a line of stdin if that is no
                                            terminal
  plimsoll users list --json
  plimsoll users admin ada on               ada manages users in the browser
  plimsoll users disable ada                ada can't sign in; mail still comes in
  plimsoll users remove ada --yes           with all mail, meetings, and documents

The admin token is never given on the command line: it comes from a file or the environment.")]
pub(crate) struct UsersArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(subcommand)]
    pub(crate) command: UsersCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UsersCommand {
    /// Register a user, with a password
    Add(UserName),
    /// List all users
    List {
        /// Print JSON, a user per line
        #[arg(long)]
        json: bool,
    },
    /// Show a user: sessions, application passwords, what the user takes
    Show {
        /// The user
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Set a user's password, and end the user's sessions
    Passwd(UserName),
    /// Let a user not sign in any more; mail still comes in
    Disable(UserName),
    /// Let a user sign in again
    Enable(UserName),
    /// Let a user manage users in the browser, or not any more
    Admin {
        /// The user
        name: String,
        /// Whether the user may
        #[arg(value_enum)]
        may: OnOff,
    },
    /// Remove a user with all mail, meetings, and documents
    Remove {
        /// The user
        name: String,
        /// Don't ask
        #[arg(long)]
        yes: bool,
    },
    /// Write all mail, meetings, and documents of a user into one zip archive
    Export {
        /// The user
        name: String,
        /// The archive to make, which must not be there
        file: PathBuf,
    },
    /// Show what users take on the disk
    Usage {
        /// Only these users
        names: Vec<String>,
        /// Print JSON, a user per line
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    /// The page “Users” is there
    On,
    /// It is not
    Off,
}

#[derive(Debug, Args)]
pub(crate) struct UserName {
    /// The user
    pub(crate) name: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll sessions list                    everybody's
  plimsoll sessions end ada                 all of ada's; ada signs in again
  plimsoll sessions end ada 1f0c9a7b6e5d4c3b")]
pub(crate) struct SessionsArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions of browsers that are signed in
    List {
        /// Only those of this user
        name: Option<String>,
        /// Print JSON, a session per line
        #[arg(long)]
        json: bool,
    },
    /// End a user's sessions
    End {
        /// The user
        name: String,
        /// Only the one of this name
        id: Option<String>,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll mail import ada /var/vmail/ada/Maildir
  plimsoll mail import ada old.mbox --folder Archive
  plimsoll mail import ada Maildir --map 'Sent Items=Sent' --map 'Deleted Items=Trash'
  plimsoll mail export ada ada-mail                      a Maildir
  plimsoll mail export ada ada-mail --format mbox        an mbox for each folder")]
pub(crate) struct MailArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(subcommand)]
    pub(crate) command: MailCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MailCommand {
    /// Bring a user's mail from a Maildir or an mbox, with its dates and flags
    Import(ImportArgs),
    /// Write a user's mail into a Maildir, or an mbox for each folder
    Export(ExportArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Messages are kept byte for byte. One that was imported into a folder before, and
still is there, is not imported again, so that an import that was cut off can
simply be done once more. Maildir's folders become folders of the same names;
what is marked as deleted goes to the trash. Keywords come along.")]
pub(crate) struct ImportArgs {
    /// The user, who must be registered
    pub(crate) name: String,
    /// A Maildir, or an mbox
    pub(crate) source: PathBuf,
    /// The folder for what lies in the inbox of the Maildir, or in the mbox
    #[arg(long, default_value = "Inbox", value_name = "NAME")]
    pub(crate) folder: String,
    /// Put what lies in a folder of the Maildir into another one
    #[arg(long, value_name = "FROM=TO", value_parser = mapping)]
    pub(crate) map: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The user
    pub(crate) name: String,
    /// The folder to write into; what is there already stays
    pub(crate) to: PathBuf,
    /// What to write
    #[arg(long, value_enum, default_value_t = MailFormat::Maildir)]
    pub(crate) format: MailFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MailFormat {
    /// A file for each message, folders as Dovecot has them
    Maildir,
    /// A file for each folder
    Mbox,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll calendar import ada ada.ics work.ics
  plimsoll calendar import ada /var/lib/radicale/collections/collection-root/ada
  plimsoll calendar export ada > ada.ics
  plimsoll calendar export ada ada.ics")]
pub(crate) struct CalendarArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(subcommand)]
    pub(crate) command: CalendarCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CalendarCommand {
    /// Bring a user's calendar from iCalendar files
    Import(CalendarImportArgs),
    /// Write a user's calendar as one iCalendar file
    Export(CalendarExportArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each event is kept byte for byte, with all that recurs, foreign organizers, time
zones, alarms, and whatever else is in it; so is each task. Nobody is invited or
told. Of an event that is there already, the version with the higher SEQUENCE
stays, or else the later DTSTAMP, so that the same import can simply be done once
more. An event that was made on this server stays as it is.

Imported events are in all lists, recurring ones from a year ago to three years
ahead: import them again now and then to go on. They can be deleted here; their
title, place, and notes can be changed, and the times of what doesn't recur.")]
pub(crate) struct CalendarImportArgs {
    /// The user, who must be registered
    pub(crate) name: String,
    /// iCalendar files, or folders with such files, as Radicale has them
    #[arg(required = true, value_name = "FILE")]
    pub(crate) sources: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Imported events are written byte for byte as they came, and each time zone once.")]
pub(crate) struct CalendarExportArgs {
    /// The user
    pub(crate) name: String,
    /// The file to make, which must not be there; without it, stdout
    pub(crate) file: Option<PathBuf>,
}

fn mapping(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => {
            Ok((from.to_owned(), to.to_owned()))
        }
        _ => Err("FROM=TO, such as 'Sent Items=Sent'".to_owned()),
    }
}

/// Reports the removed setting to a server that still has it.
pub(crate) fn no_reached_at(_: &str) -> Result<Infallible, String> {
    Err("servers pass no requests on to each other any more: with --store and --content, any of them goes on with any \
         upload. Leave this setting out"
        .to_owned())
}
