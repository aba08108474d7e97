//! The command line: options, help, and examples. Text only: the code of the commands is in `commands`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use groupware_server::{LookupAccess, Networks};
use lab_conduct::IdleWait;
use lab_plan::Decides;

use crate::beginning::{CheckArgs, CompletionsArgs, ImportArgs, InitArgs, ManArgs, SchemaArgs};
use crate::calibrating::CalibrateArgs;
use crate::fleeting::{AgentArgs, AgentsArgs, HubArgs, RunAgentsArgs};
use crate::history::{ANY_PORT, RunsArgs, ServeReportsArgs};
use crate::live::{LiveArgs, watched};
use crate::operating::{
    CalendarArgs, DataArgs, MailArgs, SessionsArgs, StoreArgs, UsersArgs, no_reached_at,
};
use crate::outlets::{ExportArgs, ProfileArgs, SendArgs};
use crate::trying::{BenchArgs, QuickArgs, ReachArgs, ScriptArgs, VariableArgs, patience};

/// Find the load line of a server: how many users it sustains, and whether a setting helped.
#[derive(Debug, Parser)]
#[command(
    name = "plimsoll",
    version,
    propagate_version = true,
    max_term_width = 100
)]
#[command(after_help = "\
Examples:
  plimsoll init                                         write a first study
  plimsoll run studies/calendar.study.yaml --speed 60   run it 60 times faster
  plimsoll plan studies/calendar.study.yaml             show trials and duration
  plimsoll try studies/calendar.study.yaml              trace one user's session
  plimsoll bench http://127.0.0.1:8080/                 one request under load
  plimsoll report runs/calendar-load-…                  report from the archive
  plimsoll serve                                        groupware, on loopback

Exit codes: 0 success, 1 internal error, 99 a threshold failed, 104 bad file or
flag, 105 interrupted (continue with --resume), 110 the system under test
failed, 120 could not tell: too few valid trials, or noise leaves the answer
open, 121 a regression: a run or a variant is shown to be worse.
If several apply, the first of 105, 110, 120, 121, 99 counts. If a study asks
for an answer, 0 means shown: better, or equal within what matters.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a first study and workload for your server, ready to run
    Init(InitArgs),
    /// Create a workload from a recording, an API description, or a log
    Import(ImportArgs),
    /// Run a study: start the system, drive the load, write a report
    Run(Box<RunArgs>),
    /// Run one user's session, and show every request and response
    Try(TryArgs),
    /// Put one request under load without a file, and print the result
    Bench(BenchArgs),
    /// Show a study's trials, order, time, disk, and detectable differences
    Plan(PlanArgs),
    /// Validate study and workload files
    Check(CheckArgs),
    /// Recreate the report of a finished run from its archive alone
    Report(ReportArgs),
    /// Show the system's CPU profile, or export it: pprof, speedscope, Firefox
    Profile(ProfileArgs),
    /// Send a finished run's figures to Prometheus, OpenTelemetry, or InfluxDB
    Export(ExportArgs),
    /// Watch the progress of a run in a browser
    Watch(WatchArgs),
    /// List the runs in a folder, and where their figures changed
    Runs(RunsArgs),
    /// Serve a folder's runs, trends, and reports to a browser
    ServeReports(ServeReportsArgs),
    /// Compare two runs of one workload: what got better or worse
    Compare(CompareArgs),
    /// Measure how much load this machine can generate reliably
    Calibrate(CalibrateArgs),
    /// Undo what a killed run left changed or mounted
    Restore(RestoreArgs),
    /// Run the groupware server: calendar with invitations, and mail
    Serve(Box<ServeArgs>),
    /// Back up and restore the data of a groupware server
    Data(DataArgs),
    /// Copy groupware records between a data folder and a database
    Store(StoreArgs),
    /// Run the hub that connects runs to remote load generators
    Hub(HubArgs),
    /// Invite, list, stop, and remove remote load generators
    Agents(AgentsArgs),
    /// Run a load generator for runs on other machines
    Agent(AgentArgs),
    /// Register, show, disable, and remove users of a running groupware server
    Users(UsersArgs),
    /// List and end the sessions of a running groupware server
    Sessions(SessionsArgs),
    /// Import a user's mail from Maildir or mbox, and export it
    Mail(MailArgs),
    /// Import a user's calendar from iCalendar files, and export it
    Calendar(CalendarArgs),
    /// Print the JSON Schema of study, workload, or result files, or the checks
    Schema(SchemaArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Write the manual pages
    Man(ManArgs),
    /// Drive a part of a load for another process, over stdin and stdout
    #[command(hide = true)]
    Generate,
    /// Run the processes of a system that a file names, for another process
    #[command(hide = true)]
    Together {
        /// The file
        file: PathBuf,
    },
}

/// A study, and overrides that leave its file unchanged.
#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    /// The study file (`*.study.yaml`)
    pub(crate) study: PathBuf,
    /// Divide waits, pace, ramp, and hold by this factor, which multiplies the load per user
    #[arg(long, env = "PLIMSOLL_SPEED", default_value_t = 1.0, value_parser = speed)]
    pub(crate) speed: f64,
    /// Override a value of the study file, such as `matrix.users=[100]` or `trials=6`
    #[arg(long, value_name = "KEY=VALUE", value_parser = override_pair)]
    pub(crate) set: Vec<(String, String)>,
    /// Seed of all randomness (default: the study's own)
    #[arg(long, env = "PLIMSOLL_SEED")]
    pub(crate) seed: Option<u64>,
    /// Folder for the journal of changed kernel settings (default: /var/lib/plimsoll for root,
    /// $XDG_STATE_HOME/plimsoll or ~/.local/state/plimsoll for others)
    #[arg(long, env = "PLIMSOLL_STATE", value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll run studies/calendar.study.yaml --speed 60
  plimsoll run studies/calendar.study.yaml --speed 60 --set matrix.users=[500]
  plimsoll run studies/calendar.study.yaml --live=127.0.0.1:8081
  plimsoll run studies/calendar.study.yaml --resume      newest unfinished run

With load generators on other machines (see `plimsoll hub`):
  plimsoll run shop.study.yaml --agents 3

Against a running server, without a study:
  plimsoll run --url http://127.0.0.1:8080 shop.workload.yaml -c 50 --for 1m

A study with variants and at least six blocks asks for an answer, decided by p95
response and throughput. Exit codes: 0 each variant is shown to be better than
the first, or equal within the smallest relevant difference; 121 a variant is
shown to be worse; 120 could not tell. Other studies are descriptive, and exit
with 0 without a verdict.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) study: StudyArgs,
    /// Folder of the archive (default: `runs/STUDY-TIME`)
    #[arg(long, env = "PLIMSOLL_OUT", value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Resume an interrupted run, or repeat its disturbed trials: the run in --out, or the newest
    /// unfinished run of this study
    #[arg(long)]
    pub(crate) resume: bool,
    /// Maximum wait for an idle machine before a trial, and over the whole run; 0 skips the check and the wait
    #[arg(
        long,
        env = "PLIMSOLL_PATIENCE",
        value_name = "TRIAL[,RUN]",
        default_value = "2m,15m",
        value_parser = patience
    )]
    pub(crate) patience: IdleWait,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// Plan and check everything, but start nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) send: SendArgs,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
    #[command(flatten)]
    pub(crate) agents: RunAgentsArgs,
    #[command(flatten)]
    pub(crate) quick: QuickArgs,
    #[command(flatten)]
    pub(crate) script: ScriptArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll watch runs/calendar-load-20261121-081500
  plimsoll watch runs/calendar-load-20261121-081500 --listen 127.0.0.1:8081

The page is the report as it grows: progress through the plan, rates, response
times, errors, counters, results of complete trials. It is read from the
archive, so that any terminal can watch a run, also after its end. Only the page
of `plimsoll run` itself can pause, skip, and stop. The address of the page
followed by `metrics` has the same for Prometheus (OpenMetrics).")]
pub(crate) struct WatchArgs {
    /// The archive of a run, finished or not
    pub(crate) run: PathBuf,
    /// Address to serve the page on; port 0 selects a free port
    #[arg(long, env = "PLIMSOLL_LIVE", value_name = "ADDR", default_value = ANY_PORT, value_parser = watched)]
    pub(crate) listen: SocketAddr,
}

/// The exit code of an inconclusive answer.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct GateArgs {
    /// Exit with 0 instead of 120 if noise leaves the answer open, but not if trials are missing
    #[arg(long, env = "PLIMSOLL_LENIENT")]
    pub(crate) lenient: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll plan studies/calendar.study.yaml
  plimsoll plan studies/calendar.study.yaml --set trials=6 --from runs/calendar-load-…")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) study: StudyArgs,
    #[command(flatten)]
    pub(crate) quick: QuickArgs,
    #[command(flatten)]
    pub(crate) script: ScriptArgs,
    /// Earlier run of this study or a similar one; its spread determines how many blocks a difference needs
    #[arg(long, value_name = "RUN")]
    pub(crate) from: Option<PathBuf>,
    /// Folder of earlier runs of the study, which show how far runs spread (default: `runs`)
    #[arg(long, value_name = "DIR")]
    pub(crate) history: Option<PathBuf>,
    /// Ignore earlier runs
    #[arg(long, conflicts_with = "history")]
    pub(crate) no_history: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll report runs/calendar-load-20261121-081500
  plimsoll report runs/calendar-load-20261121-081500 --format csv > steps.csv
  plimsoll report runs/calendar-load-20261121-081500 --format github >> \"$GITHUB_STEP_SUMMARY\"
  plimsoll report runs/calendar-load-20261121-081500 --decides 'response_time{step:Log in}.p50'")]
pub(crate) struct ReportArgs {
    /// The archive of a run
    pub(crate) run: PathBuf,
    /// Output format; `terminal` also rewrites the report files in the archive
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub(crate) format: Format,
    /// Exit with the run's exit code, as the terminal format always does; the other formats exit with 0
    /// once they are written
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// Decide by this measure alone, instead of the one that the study names
    #[arg(long, value_name = "MEASURE")]
    pub(crate) decides: Option<Decides>,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll compare runs/load-20261121-081500 runs/load-20261122-081500
  plimsoll compare baseline new --format junit > junit.xml   121 on a regression
  plimsoll compare base base2 base3 -- new new2 new3         several runs each
  plimsoll compare baseline new --decides response_time.p95  by this alone
  plimsoll compare baseline new --decides 'response_time{step:Log in}.p50'

Exit codes: 0 the second run is shown to be better, equal within the smallest
relevant difference, or not worse by as much; 104 the runs can't be compared;
120 could not tell, or too few valid trials; 121 a regression is shown. The
measure that --decides or the study names decides, else p95 response and
throughput. All other measures are exploratory, and change no exit code.")]
pub(crate) struct CompareArgs {
    /// Archives of one or several baseline runs, followed by the run to compare with them
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Archives of the runs to compare with the baseline, if there are several
    #[arg(last = true, value_name = "NEW")]
    pub(crate) new: Vec<PathBuf>,
    /// Folder of earlier runs of the study, which show how far runs spread (default: the folder that has the first run)
    #[arg(long, value_name = "DIR")]
    pub(crate) history: Option<PathBuf>,
    /// Ignore earlier runs
    #[arg(long, conflicts_with = "history")]
    pub(crate) no_history: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub(crate) format: Format,
    /// Decide by this measure alone, instead of the one that the studies name
    #[arg(long, value_name = "MEASURE")]
    pub(crate) decides: Option<Decides>,
    /// Compare even if the machines or loads differ in a relevant way
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll restore

A run restores its kernel settings and removes the file systems it made, also on
Ctrl-C. After a killed run, the next run does that, or this command.")]
pub(crate) struct RestoreArgs {
    /// Folder for the journal of changed kernel settings; as in `plimsoll run`
    #[arg(long, env = "PLIMSOLL_STATE", value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Terminal,
    Html,
    Md,
    Json,
    Csv,
    /// For build servers: one case per trial, check, threshold, and comparison
    Junit,
    /// Job summary for GitHub Actions: the result, with the whole report folded under it
    Github,
    /// Code-quality report for GitLab merge requests: the problems found
    Gitlab,
    /// Summary as `k6 run --summary-export` writes it, for the cell under the highest load; not for comparisons
    K6,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll serve                                 127.0.0.1:8340, ./plimsoll-data
  plimsoll serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem
  plimsoll serve --print-config > plimsoll.toml  write a configuration file
  plimsoll serve --config plimsoll.toml --log    use it, and log each request
  plimsoll serve --check --data plimsoll-data    verify a stopped server's store

On SIGHUP, the server reads its configuration file and certificates again.")]
pub(crate) struct ServeArgs {
    /// Start with a few users, mails, and meetings in memory, and print how to sign in
    #[arg(long, conflicts_with_all = ["data", "store", "content", "engine", "mailbox_pad", "expose_without_tls"])]
    pub(crate) demo: bool,
    /// Verify the data folder instead: consistency of the records, integrity of all content
    #[arg(long, conflicts_with = "demo")]
    pub(crate) check: bool,
    /// With --check: print the result as JSON
    #[arg(long, requires = "check")]
    pub(crate) json: bool,
    /// Configuration file; its keys are the names of these options. The command line and the
    /// environment take precedence over it
    #[arg(long, env = "PLIMSOLL_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print the effective settings as a configuration file, and exit
    #[arg(long, conflicts_with_all = ["demo", "check"])]
    pub(crate) print_config: bool,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, env = "PLIMSOLL_LISTEN", default_value = "127.0.0.1:8340")]
    pub(crate) listen: SocketAddr,
    /// Folder of the store; only its owner can read the files
    #[arg(
        long,
        env = "PLIMSOLL_DATA",
        default_value = "plimsoll-data",
        value_name = "DIR"
    )]
    pub(crate) data: PathBuf,
    /// PostgreSQL database for the records, as in postgres://user@host/database; attachments stay in
    /// the data folder. The password is taken from PGPASSWORD or ~/.pgpass
    #[arg(
        long,
        env = "PLIMSOLL_STORE",
        hide_env_values = true,
        value_name = "URL",
        conflicts_with = "engine"
    )]
    pub(crate) store: Option<String>,
    /// S3 object store for the content of attachments, as in
    /// `s3://bucket/prefix?endpoint=https://s3.example.org&region=garage`; with --store, also for
    /// uploads in progress. The credentials are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
    /// or ~/.aws/credentials
    #[arg(long, env = "PLIMSOLL_CONTENT", value_name = "URL")]
    pub(crate) content: Option<String>,
    /// Replaced by --store with --content, where any server continues any upload; rejected
    #[arg(long, env = "PLIMSOLL_REACHED_AT", hide = true, value_parser = no_reached_at)]
    pub(crate) reached_at: Option<Infallible>,
    /// Store engine
    #[arg(long, env = "PLIMSOLL_ENGINE", value_enum, default_value_t = Engine::Sqlite)]
    pub(crate) engine: Engine,
    /// Number of threads; also the maximum requests processed at once, unless --requests-at-once is set
    /// (default: one thread per core, or eight per core with --store)
    #[arg(long, env = "PLIMSOLL_HTTP_THREADS", value_name = "N")]
    pub(crate) http_threads: Option<u32>,
    /// Maximum requests processed at once, over all threads (default: --http-threads if set, otherwise 1,024)
    #[arg(long, env = "PLIMSOLL_REQUESTS_AT_ONCE", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) requests_at_once: Option<u32>,
    /// File to write the bound address to once the server is ready
    #[arg(long, env = "PLIMSOLL_PORT_FILE", value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
    /// File with the admin token; if it is missing, it is created, and the token is printed once
    #[arg(long, env = "PLIMSOLL_ADMIN_TOKEN_FILE", value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
    /// Register this user as an administrator if there are no users. The password is printed once on a
    /// terminal; otherwise it is in the file first-password of the data folder
    #[arg(long, env = "PLIMSOLL_FIRST_ADMIN", value_name = "NAME")]
    pub(crate) first_admin: Option<String>,
    /// Domain of the users' addresses, as in ada@DOMAIN
    #[arg(
        long,
        env = "PLIMSOLL_DOMAIN",
        default_value = "localhost",
        value_name = "DOMAIN"
    )]
    pub(crate) domain: String,
    /// Organization of the users' canonical names, as in CN=ada/O=ORGANIZATION; recipients with another one are unknown
    #[arg(long, env = "PLIMSOLL_ORGANIZATION", value_name = "ORGANIZATION")]
    pub(crate) organization: Option<String>,
    /// Clients that may register with the lookup service: all that can reach the server (open), users,
    /// or none (off). Default: users
    #[arg(long, env = "PLIMSOLL_LOOKUP", value_name = "open|users|off")]
    pub(crate) lookup: Option<LookupAccess>,
    /// Storage layout of the lookup service's registrations
    #[arg(long, env = "PLIMSOLL_LOOKUP_LAYOUT", value_enum, default_value_t = LookupLayout::Indexed)]
    pub(crate) lookup_layout: LookupLayout,
    /// Address to receive mail for local users on, by SMTP (default: none)
    #[arg(long, env = "PLIMSOLL_SMTP_LISTEN", value_name = "ADDRESS")]
    pub(crate) smtp_listen: Option<SocketAddr>,
    /// Address for mail submission by local users, by SMTP with sign-in (default: none)
    #[arg(long, env = "PLIMSOLL_SUBMISSION_LISTEN", value_name = "ADDRESS")]
    pub(crate) submission_listen: Option<SocketAddr>,
    /// Authenticate the senders of remote mail by the DNS (SPF, DKIM, DMARC). Default: on, unless only
    /// this machine can reach --smtp-listen
    #[arg(long, env = "PLIMSOLL_MAIL_AUTH", value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) mail_auth: Option<bool>,
    /// DNS resolver for --mail-auth, as in 192.0.2.53:53; repeatable (default: the system's)
    #[arg(
        long,
        env = "PLIMSOLL_RESOLVER",
        value_name = "ADDRESS",
        value_delimiter = ','
    )]
    pub(crate) resolver: Vec<SocketAddr>,
    /// Maximum bytes of all messages in one mailbox; "none" for no limit
    #[arg(
        long,
        env = "PLIMSOLL_MAIL_QUOTA",
        default_value_t = 2 << 30,
        value_parser = quota,
        value_name = "BYTES"
    )]
    pub(crate) mail_quota: u64,
    /// Pad each new mailbox to this many bytes
    #[arg(
        long,
        env = "PLIMSOLL_MAILBOX_PAD",
        default_value_t = 0,
        value_name = "BYTES"
    )]
    pub(crate) mailbox_pad: u64,
    /// Maximum bytes that a user stores: messages, meetings, documents, attachments, and uploads in
    /// progress together; "none" for no limit
    #[arg(
        long,
        env = "PLIMSOLL_QUOTA",
        default_value_t = 2 << 30,
        value_parser = quota,
        value_name = "BYTES"
    )]
    pub(crate) quota: u64,
    /// Keep all changes for this long, so that a backup can be brought forward to any later moment.
    /// Each commit then waits for the disk once more (default: none are kept)
    #[arg(long, env = "PLIMSOLL_KEEP_CHANGES", value_parser = age, value_name = "TIME")]
    pub(crate) keep_changes: Option<Duration>,
    /// Maximum bytes of kept changes, including the deleted attachments that they refer to; the oldest
    /// are removed first
    #[arg(
        long,
        env = "PLIMSOLL_KEEP_CHANGES_BYTES",
        default_value_t = 10 << 30,
        value_name = "BYTES"
    )]
    pub(crate) keep_changes_bytes: u64,
    /// Certificate chain (PEM) for TLS
    #[arg(long, env = "PLIMSOLL_TLS_CERT", value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key (PEM) for TLS
    #[arg(long, env = "PLIMSOLL_TLS_KEY", value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Listen beyond loopback without TLS, behind a proxy that terminates it
    #[arg(long, env = "PLIMSOLL_EXPOSE_WITHOUT_TLS")]
    pub(crate) expose_without_tls: bool,
    /// With --expose-without-tls, but without a proxy: allow sessions of clients without TLS, in an
    /// isolated network such as that of a measurement
    #[arg(long, env = "PLIMSOLL_PLAIN_COOKIES")]
    pub(crate) plain_cookies: bool,
    /// Name by which clients reach the server, such as mail.example.org; its domain, localhost, and
    /// addresses are always accepted. A server that listens on loopback rejects requests for other
    /// names
    #[arg(
        long,
        env = "PLIMSOLL_HOST",
        value_delimiter = ',',
        value_name = "NAME,..."
    )]
    pub(crate) host: Vec<String>,
    /// Log each request to stderr, as text or JSON; faults and slow requests are always logged
    #[arg(
        long,
        env = "PLIMSOLL_LOG",
        value_enum,
        num_args = 0..=1,
        default_missing_value = "text",
        value_name = "FORMAT"
    )]
    pub(crate) log: Option<LogFormat>,
    /// Always log requests that take at least this long
    #[arg(long, env = "PLIMSOLL_SLOW_REQUEST", default_value = "1s", value_parser = duration, value_name = "TIME")]
    pub(crate) slow_request: Duration,
    /// Log transactions of the store that take at least this long
    #[arg(long, env = "PLIMSOLL_SLOW_COMMIT", default_value = "250ms", value_parser = duration, value_name = "TIME")]
    pub(crate) slow_commit: Duration,
    /// Addresses, or networks as in 10.0.0.0/8, of clients that may use all of the server's resources;
    /// each other client has a share; "none" trusts no client (default: this machine's own addresses,
    /// but none with `--host` or `--expose-without-tls`, since a proxy may be in front)
    #[arg(long, env = "PLIMSOLL_TRUST_CLIENT", value_name = "ADDRESS,...")]
    pub(crate) trust_client: Option<Networks>,
    /// Addresses, or networks, of proxies whose X-Forwarded-For header is trusted (default: none)
    #[arg(long, env = "PLIMSOLL_PROXY", value_name = "ADDRESS,...")]
    pub(crate) proxy: Option<Networks>,
    /// Listeners on which each connection of a proxy starts with a PROXY protocol header (version 1 or
    /// 2) that names the client (default: none)
    #[arg(
        long,
        env = "PLIMSOLL_PROXY_PROTOCOL",
        value_enum,
        value_delimiter = ',',
        value_name = "LISTENER,..."
    )]
    pub(crate) proxy_protocol: Vec<Listener>,
    /// Exit when this process exits
    #[arg(long, hide = true)]
    pub(crate) parent_pid: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LookupLayout {
    /// One document with all registrations, rewritten by every change
    SingleDocument,
    /// One document per registration; a query reads all of them
    DocumentPerRegistration,
    /// One document per registration, and an index
    Indexed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listener {
    /// The address of --listen
    Http,
    /// The address of --smtp-listen
    Smtp,
    /// The address of --submission-listen
    Submission,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Human-readable lines
    Text,
    /// One JSON object per line
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// Durable, in the data folder
    Sqlite,
    /// Lost when the server stops
    Memory,
}

fn duration(text: &str) -> Result<Duration, String> {
    let signed: jiff::SignedDuration = text
        .parse()
        .map_err(|_| "a time, such as 250ms or 2s".to_owned())?;
    Duration::try_from(signed).map_err(|_| "a time that isn't negative".to_owned())
}

/// Parses a number of bytes, or `none`.
fn quota(text: &str) -> Result<u64, String> {
    match text {
        "none" => Ok(u64::MAX),
        number => number
            .parse()
            .map_err(|_| "a number of bytes, or none".to_owned()),
    }
}

/// Parses a time, which may be in days.
fn age(text: &str) -> Result<Duration, String> {
    let days = text
        .strip_suffix('d')
        .and_then(|days| days.parse::<u32>().ok());
    let time = match days {
        Some(days) => Duration::from_secs(u64::from(days) * 24 * 3600),
        None => duration(text).map_err(|_| "a time, such as 7d or 12h".to_owned())?,
    };
    match time.is_zero() {
        true => Err("a time that is longer than none".to_owned()),
        false => Ok(time),
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let value: f64 = text
        .parse()
        .map_err(|_| "a number, such as 60".to_owned())?;
    if value.is_finite() && (0.01..=10_000.0).contains(&value) {
        Ok(value)
    } else {
        Err("between 0.01 and 10000".to_owned())
    }
}

fn override_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        _ => Err("KEY=VALUE, such as trials=6".to_owned()),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll try studies/calendar.study.yaml              also starts the system
  plimsoll try shop.workload.yaml --url http://127.0.0.1:8080
  plimsoll try shop.study.yaml --user 7 --har shop.har  also for a browser

One user runs the setup and one session, without waits, by the rules of a run.
Each request and response is shown as it is on the wire, with the captured
values and any deviation from what is expected. For a study, the system is
started afresh and then stopped; --set chooses other levels than the first.
Passwords, tokens, and cookies are shown as ***.

Exit codes: 0 everything sent went as expected; 99 something did not, or nothing
was sent; 104 bad file or flag; 105 interrupted; 110 the system failed.")]
pub(crate) struct TryArgs {
    #[command(flatten)]
    pub(crate) study: StudyArgs,
    /// Number of the user, from 0
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) user: u32,
    /// Try a WORKLOAD, named in place of a study, on this running server
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    #[command(flatten)]
    pub(crate) variables: VariableArgs,
    /// Timeout of a response (default: the study's)
    #[arg(long, value_name = "TIME", value_parser = crate::trying::time)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// Also write the session to this file, as a recording (HAR) that browsers open
    #[arg(long, value_name = "FILE")]
    pub(crate) har: Option<PathBuf>,
    /// Show headers and bodies in full
    #[arg(long)]
    pub(crate) full: bool,
    /// Show passwords, tokens, and cookies unmasked, also in the recording
    #[arg(long)]
    pub(crate) show_secrets: bool,
}
