//! Arguments of the commands for operators of a groupware server. Text only: their code is in `commands`.

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
    /// Mark records as restored to an earlier state by a snapshot or dump
    Restored(RestoredArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll store restored /var/lib/plimsoll
  plimsoll store restored postgres://plimsoll@db.example.org/plimsoll

`data restore` and `store copy` mark what they write themselves. After any other
way to restore earlier records, such as a snapshot of the disk, pg_restore, or a
recovery to a point in time, run this command once, before a server starts. The
next server that starts gives each mailbox new numbers (UIDVALIDITY, MODSEQ), so
that clients with a copy take no new message for a lost one. No server may use
the records meanwhile.")]
pub(crate) struct RestoredArgs {
    /// Data folder, or URL of the database
    #[arg(value_name = "RECORDS")]
    pub(crate) records: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll store copy plimsoll-data postgres://plimsoll@db.example.org/plimsoll
  plimsoll store copy postgres://plimsoll@localhost/plimsoll new-data

No server may use either side meanwhile. Records are counted on both sides and
compared by a hash. The same command resumes an interrupted copy; no server
starts on an unfinished one. Attachments stay in their folder: take `content`
along if a server gets another folder.

The password of a database is taken from PGPASSWORD or ~/.pgpass. It needn't be
in the URL, which other users of this machine can see while the command runs.")]
pub(crate) struct CopyArgs {
    /// Data folder, or URL of the database, to copy from
    #[arg(value_name = "FROM")]
    pub(crate) from: String,
    /// Data folder, or URL of the database, to copy to; created if it is missing
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
    /// Back up the data of a server, which may be running
    Backup(BackupArgs),
    /// List the backups in a folder
    List(ListArgs),
    /// Read backups to the last byte, and verify that they are complete and intact
    Check(CheckDataArgs),
    /// Create a data folder from a backup
    Restore(RestoreDataArgs),
    /// Show the moments that the kept changes lead to
    Changes(ChangesArgs),
    /// Return the space that deletions left in the records' file to the disk
    Compact(CompactArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll data backup /backup/plimsoll        of the data in ./plimsoll-data
  plimsoll data backup /backup/plimsoll --data /var/lib/plimsoll --keep 14

All records are of one moment, with all attachments that they refer to.
Attachments that an earlier backup has are not copied again. A backup gets its
name once it is complete and verified; the next backup removes an interrupted
one. Run the command as the user of the server. Not included: the admin token,
and uploads in progress, which their clients resume.")]
pub(crate) struct BackupArgs {
    /// Folder of backups: new, empty, or with backups in it
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) server: DataFolder,
    /// Object store of the attachments, as in `plimsoll serve`; in the backup they are files
    #[arg(long, env = "PLIMSOLL_CONTENT", value_name = "URL")]
    pub(crate) content: Option<String>,
    /// Afterwards, remove all backups but the newest N, and the attachments that only those had
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keep: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Folder of backups
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll data check /backup/plimsoll
  plimsoll data check /backup/plimsoll --backup 20261122T084500Z")]
pub(crate) struct CheckDataArgs {
    /// Folder of backups
    pub(crate) folder: PathBuf,
    /// Check only the backup of this name
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

Restores the newest backup, or with --at the last one started by then. If a
server keeps its changes (`serve --keep-changes 7d`), --changes brings the
backup forward to exactly that moment, whether or not the server runs.

The data folder gets its name once it is complete; nothing is ever overwritten.
Kernel settings that a killed run left are restored by `plimsoll restore`.")]
pub(crate) struct RestoreDataArgs {
    /// Folder of backups
    pub(crate) folder: PathBuf,
    /// Data folder to create; must be missing or empty
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// Restore the last backup started by this moment, as in 2026-11-22T08:45:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "backup")]
    pub(crate) at: Option<jiff::Timestamp>,
    /// With --at: bring the backup forward by the changes that this data folder has kept
    #[arg(long, value_name = "DIR", requires = "at")]
    pub(crate) changes: Option<PathBuf>,
    /// Restore the backup of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) backup: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll data changes --data /var/lib/plimsoll

Each line is a log without a gap. A backup made while the log was kept can be
brought forward to any moment of it. `plimsoll serve --keep-changes 7d` keeps
one.")]
pub(crate) struct ChangesArgs {
    #[command(flatten)]
    pub(crate) server: DataFolder,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll data compact --data /var/lib/plimsoll

A server returns space by itself while there are no writes. Files of an older
version can shrink that way only after this command ran once, while no server
runs on them. It writes a second file, which replaces the first once it is
complete; an interruption loses nothing.")]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) server: DataFolder,
}

/// The data folder of a server.
#[derive(Debug, Args)]
pub(crate) struct DataFolder {
    /// Data folder of the server
    #[arg(
        long,
        env = "PLIMSOLL_DATA",
        default_value = "plimsoll-data",
        value_name = "DIR"
    )]
    pub(crate) data: PathBuf,
}

/// The URL of a server, and the credentials of its administrator.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// URL of the server
    #[arg(
        long,
        env = "PLIMSOLL_SERVER",
        default_value = "http://127.0.0.1:8340",
        value_name = "URL",
        global = true
    )]
    pub(crate) server: String,
    /// File with the admin token (default: $PLIMSOLL_ADMIN_TOKEN, or else plimsoll-data/admin-token)
    #[arg(
        long,
        env = "PLIMSOLL_ADMIN_TOKEN_FILE",
        value_name = "FILE",
        global = true
    )]
    pub(crate) admin_token_file: Option<PathBuf>,
    /// Certificates (PEM) to trust instead of those that browsers trust
    #[arg(long, env = "PLIMSOLL_CA", value_name = "FILE", global = true)]
    pub(crate) ca: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll users add ada           asks for a password; if stdin is no terminal,
                                   reads a line of it
  plimsoll users list --json
  plimsoll users admin ada on      ada manages users in the browser
  plimsoll users disable ada       ada can't sign in; mail is still received
  plimsoll users remove ada --yes  with all mail, meetings, and documents

The admin token is read from a file or the environment, never from the command
line.")]
pub(crate) struct UsersArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(subcommand)]
    pub(crate) command: UsersCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UsersCommand {
    /// Register a user with a password
    Add(UserName),
    /// List all users
    List {
        /// Print JSON, one user per line
        #[arg(long)]
        json: bool,
    },
    /// Show a user's sessions, application passwords, and disk usage
    Show {
        /// The user
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Set a user's password, and end the user's sessions
    Passwd(UserName),
    /// Disable a user's sign-in; mail is still received
    Disable(UserName),
    /// Enable a user's sign-in again
    Enable(UserName),
    /// Allow or forbid a user to manage users in the browser
    Admin {
        /// The user
        name: String,
        /// Whether to allow it
        #[arg(value_enum)]
        may: OnOff,
    },
    /// Remove a user with all mail, meetings, and documents
    Remove {
        /// The user
        name: String,
        /// Don't ask for confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Export all mail, meetings, and documents of a user to a zip archive
    Export {
        /// The user
        name: String,
        /// Archive to create; must not exist
        file: PathBuf,
    },
    /// Show the disk usage of users
    Usage {
        /// Show only these users
        names: Vec<String>,
        /// Print JSON, one user per line
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    /// The user has the page “Users”
    On,
    /// The user doesn't have it
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
  plimsoll sessions list                    of all users
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
    /// List the sessions of signed-in browsers
    List {
        /// List only the sessions of this user
        name: Option<String>,
        /// Print JSON, one session per line
        #[arg(long)]
        json: bool,
    },
    /// End a user's sessions
    End {
        /// The user
        name: String,
        /// End only the session of this name
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
  plimsoll mail export ada ada-mail --format mbox        one mbox per folder")]
pub(crate) struct MailArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(subcommand)]
    pub(crate) command: MailCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MailCommand {
    /// Import a user's mail from a Maildir or an mbox, with dates and flags
    Import(ImportArgs),
    /// Export a user's mail to a Maildir, or to one mbox per folder
    Export(ExportArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Messages are stored byte for byte. A message that was imported into a folder
before, and is still there, is not imported again, so that an interrupted import
can simply be repeated. Folders of a Maildir become folders of the same names;
messages marked as deleted go to the trash. Keywords are kept.")]
pub(crate) struct ImportArgs {
    /// The user; must be registered
    pub(crate) name: String,
    /// A Maildir, or an mbox
    pub(crate) source: PathBuf,
    /// Folder for the messages in the inbox of the Maildir, or in the mbox
    #[arg(long, default_value = "Inbox", value_name = "NAME")]
    pub(crate) folder: String,
    /// Import the messages of a folder of the Maildir into another folder
    #[arg(long, value_name = "FROM=TO", value_parser = mapping)]
    pub(crate) map: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The user
    pub(crate) name: String,
    /// Folder to write into; existing files are kept
    pub(crate) to: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = MailFormat::Maildir)]
    pub(crate) format: MailFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MailFormat {
    /// One file per message, with folders as in Dovecot
    Maildir,
    /// One file per folder
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
    /// Import a user's calendar from iCalendar files
    Import(CalendarImportArgs),
    /// Export a user's calendar as one iCalendar file
    Export(CalendarExportArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Events and tasks are stored byte for byte, with recurrences, foreign organizers,
time zones, alarms, and all other content. No invitations or notifications are
sent. Of an existing event, the version with the higher SEQUENCE is kept, or
else the later DTSTAMP, so that an import can simply be repeated. An event that
was created on this server is not changed.

Imported events are in all lists, recurring ones from a year ago to three years
ahead: repeat the import now and then to extend that. They can be deleted here;
their title, place, and notes can be changed, and the times of events that don't
recur.")]
pub(crate) struct CalendarImportArgs {
    /// The user; must be registered
    pub(crate) name: String,
    /// iCalendar files, or folders with such files, as in Radicale
    #[arg(required = true, value_name = "FILE")]
    pub(crate) sources: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Imported events are written byte for byte, and each time zone once.")]
pub(crate) struct CalendarExportArgs {
    /// The user
    pub(crate) name: String,
    /// File to create; must not exist (default: stdout)
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
