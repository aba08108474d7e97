//! The command line: its options, with help and examples. Text only; there is no code of commands here.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use groupware_server::{LookupAccess, Networks};
use lab_conduct::Patience;
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
use crate::trying::{BenchArgs, QuickArgs, ReachArgs, patience};

/// Finds the load line of a server: how many users it carries, and whether a setting helped.
#[derive(Debug, Parser)]
#[command(
    name = "plimsoll",
    version,
    propagate_version = true,
    max_term_width = 100
)]
#[command(after_help = "\
Examples:
  plimsoll init                                         a first study of your server
  plimsoll run studies/calendar.study.yaml --speed 60   run a study, 60 times faster
  plimsoll plan studies/calendar.study.yaml             what it will do, and for how long
  plimsoll try studies/calendar.study.yaml              one user: every request and answer
  plimsoll bench http://127.0.0.1:8080/                 one request under load, without a file
  plimsoll report runs/calendar-load-…                  the report again, from the archive
  plimsoll serve                                        the groupware server on loopback

Exit codes: 0 success, 1 internal error, 99 a threshold failed, 104 bad file or flag,
105 interrupted (go on with --resume), 110 the system under test failed,
120 could not tell: too few valid trials, or noise leaves the answer open,
121 a regression: a run or a variant is shown to be worse.
If several hold, the first of 105, 110, 120, 121, 99 counts. Where an answer is
asked for, 0 means shown: better, or equal within what matters.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a first study and workload for a server of yours, which run as they are
    Init(InitArgs),
    /// Make a workload of a browser's recording, or of a description of a service
    Import(ImportArgs),
    /// Run a study: start the system, drive the users, report
    Run(RunArgs),
    /// Let one user go through a session, and show every request and answer
    Try(TryArgs),
    /// Put one request under load, without any file, and say what came out
    Bench(BenchArgs),
    /// Show what a study will do: trials, order, time, disk, and what differences it can show
    Plan(PlanArgs),
    /// Validate study and workload files
    Check(CheckArgs),
    /// Report a finished run again, from its archive alone
    Report(ReportArgs),
    /// Show where the CPU time of the system went, or write it for other tools: pprof, speedscope, Firefox
    Profile(ProfileArgs),
    /// Send the figures of a finished run to Prometheus, OpenTelemetry, or InfluxDB
    Export(ExportArgs),
    /// Watch a run go on, in a browser
    Watch(WatchArgs),
    /// List the runs in a folder, and tell when their figures changed
    Runs(RunsArgs),
    /// Serve the list of the runs in a folder, with trends and the report of each, to a browser
    ServeReports(ServeReportsArgs),
    /// Compare two runs of one workload: did anything get better or worse?
    Compare(CompareArgs),
    /// Measure what this machine's generator can be trusted with
    Calibrate(CalibrateArgs),
    /// Put back what a killed run left changed or mounted
    Restore(RestoreArgs),
    /// Serve the groupware: calendar with invitations, and mail
    Serve(Box<ServeArgs>),
    /// Back up the data of a groupware server, and put it back
    Data(DataArgs),
    /// Move the records of a groupware server between a data folder and a database
    Store(StoreArgs),
    /// Run the hub where load generators on other machines and runs meet
    Hub(HubArgs),
    /// Invite, list, and end load generators on other machines
    Agents(AgentsArgs),
    /// Be a load generator for runs on other machines
    Agent(AgentArgs),
    /// Register, show, disable, and remove users of a running groupware server
    Users(UsersArgs),
    /// List and end the sessions of a running groupware server
    Sessions(SessionsArgs),
    /// Bring a user's mail from Maildir or mbox, and write it out
    Mail(MailArgs),
    /// Bring a user's calendar from iCalendar files, and write it out
    Calendar(CalendarArgs),
    /// Print the JSON Schema of study, workload, or result files, or the list of checks
    Schema(SchemaArgs),
    /// Print what a shell needs to complete this command line
    Completions(CompletionsArgs),
    /// Write the manual pages
    Man(ManArgs),
    /// Drive a part of a load for another process, which speaks on stdin and listens on stdout
    #[command(hide = true)]
    Generate,
    /// Be the processes of a system that a file names, for another process
    #[command(hide = true)]
    Together {
        /// The file
        file: PathBuf,
    },
}

/// What changes a study without editing its file.
#[derive(Debug, Args)]
pub(crate) struct StudyArgs {
    /// The study file (`*.study.yaml`)
    pub(crate) study: PathBuf,
    /// Divide waits, pace, ramp, and hold by this, and so multiply the load per user by it
    #[arg(long, env = "PLIMSOLL_SPEED", default_value_t = 1.0, value_parser = speed)]
    pub(crate) speed: f64,
    /// Override a value of the study file, such as `matrix.users=[100]` or `trials=6`
    #[arg(long, value_name = "KEY=VALUE", value_parser = override_pair)]
    pub(crate) set: Vec<(String, String)>,
    /// Seed of all randomness; the study's own unless given
    #[arg(long, env = "PLIMSOLL_SEED")]
    pub(crate) seed: Option<u64>,
    /// Folder that remembers kernel settings while they are changed; /var/lib/plimsoll for root,
    /// $XDG_STATE_HOME/plimsoll or ~/.local/state/plimsoll for others, unless given
    #[arg(long, env = "PLIMSOLL_STATE", value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll run studies/calendar.study.yaml --speed 60
  plimsoll run studies/calendar.study.yaml --speed 60 --set matrix.users=[500]
  plimsoll run studies/calendar.study.yaml --live=127.0.0.1:8081
  plimsoll run studies/calendar.study.yaml --resume      go on with the newest unfinished run, and
                                                         repeat what was disturbed

By load generators on other machines (see `plimsoll hub`):
  plimsoll run shop.study.yaml --agents 3

A server that runs already, without a study:
  plimsoll run --url http://127.0.0.1:8080 shop.workload.yaml -c 50 --for 1m

A study with variants and six blocks or more asks for an answer. Exit code 0:
each variant is shown to be better than the first, or equal within the smallest
relevant difference. 121: one is shown to be worse. 120: could not tell. It is
decided by p95 response and throughput. Other studies describe, and need no
verdict to end with 0.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) study: StudyArgs,
    /// Folder of the archive; `runs/STUDY-TIME` unless given
    #[arg(long, env = "PLIMSOLL_OUT", value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with an interrupted run, or repeat trials that were disturbed: the run in --out, or the
    /// newest of this study
    #[arg(long)]
    pub(crate) resume: bool,
    /// How long to wait for a quiet machine before a trial, at most, and over the whole run; 0 looks
    /// at nothing and waits for nothing
    #[arg(
        long,
        env = "PLIMSOLL_PATIENCE",
        value_name = "TRIAL[,RUN]",
        default_value = "2m,15m",
        value_parser = patience
    )]
    pub(crate) patience: Patience,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// Plan and check everything, start nothing
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
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll watch runs/calendar-load-20261121-081500
  plimsoll watch runs/calendar-load-20261121-081500 --listen 127.0.0.1:8081

The page is the report as it grows: where in the plan the run stands, rates,
response times, errors, counters, what complete trials came to. It is read from
the archive, so that a run is watched from any terminal, and after its end. Only
the page of `plimsoll run` itself can pause, skip, and stop. The address of the
page followed by `metrics` has the same for Prometheus (OpenMetrics).")]
pub(crate) struct WatchArgs {
    /// The archive of a run, finished or not
    pub(crate) run: PathBuf,
    /// Where to serve the page; port 0 is any free one
    #[arg(long, env = "PLIMSOLL_LIVE", value_name = "ADDR", default_value = ANY_PORT, value_parser = watched)]
    pub(crate) listen: SocketAddr,
}

/// What an open answer is worth.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct GateArgs {
    /// Take noise for success, not missing trials: exit code 0, and not 120
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
    /// An earlier run of this study or one like it, whose spread tells how many blocks a difference
    /// needs
    #[arg(long, value_name = "RUN")]
    pub(crate) from: Option<PathBuf>,
    /// Where earlier runs of the study are, which tell how far runs spread; `runs` unless said
    #[arg(long, value_name = "DIR")]
    pub(crate) history: Option<PathBuf>,
    /// Don't look for earlier runs
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
    /// What to print; `terminal` also writes the report files into the archive again
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub(crate) format: Format,
    /// End with the run's exit code. The terminal's format always does; all others end with 0 once they are
    /// written
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// Decide by this measure alone, in place of the one that the study names
    #[arg(long, value_name = "MEASURE")]
    pub(crate) decides: Option<Decides>,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll compare runs/load-20261121-081500 runs/load-20261122-081500
  plimsoll compare baseline new --format junit > junit.xml      exit 121 on a regression
  plimsoll compare base base2 base3 -- new new2 new3            several runs of each
  plimsoll compare baseline new --decides response_time.p95     by this alone
  plimsoll compare baseline new --decides 'response_time{step:Log in}.p50'

Exit codes: 0 the second run is shown to be better, equal within the smallest
relevant difference, or not worse by as much; 104 the runs can't be compared;
120 could not tell, or too few valid trials; 121 a regression is shown. It is
decided by the measure that --decides or the study names, else by p95 response
and throughput; all others are exploratory, and turn nothing.")]
pub(crate) struct CompareArgs {
    /// Archives of the baseline, one or several runs of it, and last the one that is compared with it
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Archives that are compared with the baseline, where there are several
    #[arg(last = true, value_name = "NEW")]
    pub(crate) new: Vec<PathBuf>,
    /// Where earlier runs of the study are, which tell how far runs spread; the folder of the first run
    /// unless said
    #[arg(long, value_name = "DIR")]
    pub(crate) history: Option<PathBuf>,
    /// Don't look for earlier runs
    #[arg(long, conflicts_with = "history")]
    pub(crate) no_history: bool,
    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub(crate) format: Format,
    /// Decide by this measure alone, in place of the one that the studies name
    #[arg(long, value_name = "MEASURE")]
    pub(crate) decides: Option<Decides>,
    /// Compare although the machines or loads differ in what matters
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) gate: GateArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll restore

A run puts its kernel settings back itself and takes away the file systems that
it made, also on Ctrl-C. One that was killed can't; the next run does it, or
this command.")]
pub(crate) struct RestoreArgs {
    /// Folder that remembers kernel settings while they are changed; as in `plimsoll run`
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
    /// A job summary for GitHub Actions: what came out, the whole report folded under it
    Github,
    /// For GitLab's merge requests: what is wrong, as a code-quality report
    Gitlab,
    /// The summary that `k6 run --summary-export` writes, of the cell under the most load; not of comparisons
    K6,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll serve                                   on 127.0.0.1:8340, data in ./plimsoll-data
  plimsoll serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem
  plimsoll serve --print-config > plimsoll.toml    a configuration file to begin with
  plimsoll serve --config plimsoll.toml --log      with it, and a line per request
  plimsoll serve --check --data plimsoll-data      verify the store of a server that is stopped

On SIGHUP it reads its configuration file and certificates again.")]
pub(crate) struct ServeArgs {
    /// Start with a few users, mails, and meetings, in memory, and print how to sign in
    #[arg(long, conflicts_with_all = ["data", "store", "content", "engine", "mailbox_pad", "expose_without_tls"])]
    pub(crate) demo: bool,
    /// Look through the data folder instead: do the records fit each other, is all content right
    #[arg(long, conflicts_with = "demo")]
    pub(crate) check: bool,
    /// With --check: say what was found in JSON
    #[arg(long, requires = "check")]
    pub(crate) json: bool,
    /// File with settings, by the names of these options; what is given here or in the environment
    /// counts before it
    #[arg(long, env = "PLIMSOLL_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print all settings as they hold, as a configuration file, and end
    #[arg(long, conflicts_with_all = ["demo", "check"])]
    pub(crate) print_config: bool,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, env = "PLIMSOLL_LISTEN", default_value = "127.0.0.1:8340")]
    pub(crate) listen: SocketAddr,
    /// Folder of the store, whose files nobody else may read
    #[arg(
        long,
        env = "PLIMSOLL_DATA",
        default_value = "plimsoll-data",
        value_name = "DIR"
    )]
    pub(crate) data: PathBuf,
    /// PostgreSQL database that the records are kept in, as in postgres://user@host/database; attachments
    /// stay in the data folder. Its password is taken from PGPASSWORD or ~/.pgpass
    #[arg(
        long,
        env = "PLIMSOLL_STORE",
        hide_env_values = true,
        value_name = "URL",
        conflicts_with = "engine"
    )]
    pub(crate) store: Option<String>,
    /// Object store that speaks S3 for the content of attachments, as in
    /// `s3://bucket/prefix?endpoint=https://s3.example.org&region=garage`; with --store, for uploads under way, too.
    /// Its credentials are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or ~/.aws/credentials
    #[arg(long, env = "PLIMSOLL_CONTENT", value_name = "URL")]
    pub(crate) content: Option<String>,
    /// Replaced by --store with --content, where any server continues any upload; refused
    #[arg(long, env = "PLIMSOLL_REACHED_AT", hide = true, value_parser = no_reached_at)]
    pub(crate) reached_at: Option<Infallible>,
    /// Store engine
    #[arg(long, env = "PLIMSOLL_ENGINE", value_enum, default_value_t = Engine::Sqlite)]
    pub(crate) engine: Engine,
    /// Threads, and unless requests-at-once says otherwise at most so many requests worked on at once; one
    /// thread per core unless given, or eight where records are in a database
    #[arg(long, env = "PLIMSOLL_HTTP_THREADS", value_name = "N")]
    pub(crate) http_threads: Option<u32>,
    /// At most so many requests worked on at once, over all threads; as many as http-threads where that
    /// is given, and 1,024 where not, unless given
    #[arg(long, env = "PLIMSOLL_REQUESTS_AT_ONCE", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) requests_at_once: Option<u32>,
    /// File that receives the bound address once the server is ready
    #[arg(long, env = "PLIMSOLL_PORT_FILE", value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
    /// File with the admin token; made, and the token printed once, if it is missing
    #[arg(long, env = "PLIMSOLL_ADMIN_TOKEN_FILE", value_name = "FILE")]
    pub(crate) admin_token_file: Option<PathBuf>,
    /// Register this user where there is no user at all, as an administrator with a password that is
    /// printed once; it is in the file first-password of the data folder where nobody sits at a terminal
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
    /// Who may register with the lookup service: everybody who can reach the server (open), users,
    /// or nobody (off); users unless given
    #[arg(long, env = "PLIMSOLL_LOOKUP", value_name = "open|users|off")]
    pub(crate) lookup: Option<LookupAccess>,
    /// How the lookup service keeps registrations
    #[arg(long, env = "PLIMSOLL_LOOKUP_LAYOUT", value_enum, default_value_t = LookupLayout::Indexed)]
    pub(crate) lookup_layout: LookupLayout,
    /// Address to take in mail for local users on (SMTP); none unless given
    #[arg(long, env = "PLIMSOLL_SMTP_LISTEN", value_name = "ADDRESS")]
    pub(crate) smtp_listen: Option<SocketAddr>,
    /// Address where local users hand in mail (SMTP with sign-in); none unless given
    #[arg(long, env = "PLIMSOLL_SUBMISSION_LISTEN", value_name = "ADDRESS")]
    pub(crate) submission_listen: Option<SocketAddr>,
    /// Find out of mail from elsewhere whether it comes from whom it says (SPF, DKIM, DMARC), by the DNS; on
    /// unless only this machine can reach smtp-listen
    #[arg(long, env = "PLIMSOLL_MAIL_AUTH", value_name = "true|false", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) mail_auth: Option<bool>,
    /// DNS resolver to ask for that, as in 192.0.2.53:53; repeatable; those of the system unless given
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
    /// Fill each new mailbox to this many bytes
    #[arg(
        long,
        env = "PLIMSOLL_MAILBOX_PAD",
        default_value_t = 0,
        value_name = "BYTES"
    )]
    pub(crate) mailbox_pad: u64,
    /// Most bytes that a user stores: messages, meetings, documents, attachments, and uploads under way
    /// together; "none" for no bound
    #[arg(
        long,
        env = "PLIMSOLL_QUOTA",
        default_value_t = 2 << 30,
        value_parser = quota,
        value_name = "BYTES"
    )]
    pub(crate) quota: u64,
    /// Keep all changes for so long, so that a backup can be brought to any later moment: each commit
    /// waits for the disk once more. None are kept unless given
    #[arg(long, env = "PLIMSOLL_KEEP_CHANGES", value_parser = age, value_name = "TIME")]
    pub(crate) keep_changes: Option<Duration>,
    /// Most bytes of kept changes, deleted attachments that they lead to included; the oldest go
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
    /// Listen beyond loopback without TLS, behind a proxy that has it
    #[arg(long, env = "PLIMSOLL_EXPOSE_WITHOUT_TLS")]
    pub(crate) expose_without_tls: bool,
    /// With that, and no proxy: sessions of clients that come without TLS, in a network that nobody else
    /// is on, such as that of a measurement
    #[arg(long, env = "PLIMSOLL_PLAIN_COOKIES")]
    pub(crate) plain_cookies: bool,
    /// A name by which clients reach the server, such as mail.example.org; its domain, localhost, and
    /// addresses always count. A server that listens on loopback refuses requests for other names
    #[arg(
        long,
        env = "PLIMSOLL_HOST",
        value_delimiter = ',',
        value_name = "NAME,..."
    )]
    pub(crate) host: Vec<String>,
    /// Write a line per request to stderr, as text or JSON; faults and slow requests are always written
    #[arg(
        long,
        env = "PLIMSOLL_LOG",
        value_enum,
        num_args = 0..=1,
        default_missing_value = "text",
        value_name = "FORMAT"
    )]
    pub(crate) log: Option<LogFormat>,
    /// A request that takes so long is in the log in any case
    #[arg(long, env = "PLIMSOLL_SLOW_REQUEST", default_value = "1s", value_parser = duration, value_name = "TIME")]
    pub(crate) slow_request: Duration,
    /// A transaction of the store that takes so long is in the log
    #[arg(long, env = "PLIMSOLL_SLOW_COMMIT", default_value = "250ms", value_parser = duration, value_name = "TIME")]
    pub(crate) slow_commit: Duration,
    /// Addresses, or networks as in 10.0.0.0/8, whose programs may use all that the server has; others
    /// have a share each; "none" for nobody. Unless given, this machine's own, or nobody with `--host` or
    /// `--expose-without-tls`: a proxy may be in front then
    #[arg(long, env = "PLIMSOLL_TRUST_CLIENT", value_name = "ADDRESS,...")]
    pub(crate) trust_client: Option<Networks>,
    /// Addresses, or networks, of proxies that are believed when they say for whom they ask
    /// (X-Forwarded-For); none unless given
    #[arg(long, env = "PLIMSOLL_PROXY", value_name = "ADDRESS,...")]
    pub(crate) proxy: Option<Networks>,
    /// Listeners on which each connection of a proxy begins with a header of the PROXY protocol
    /// (version 1 or 2), which says for whom it comes; none unless given
    #[arg(
        long,
        env = "PLIMSOLL_PROXY_PROTOCOL",
        value_enum,
        value_delimiter = ',',
        value_name = "LISTENER,..."
    )]
    pub(crate) proxy_protocol: Vec<Listener>,
    /// End when this process ends
    #[arg(long, hide = true)]
    pub(crate) parent_pid: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LookupLayout {
    /// All registrations in one document, which every change rewrites
    SingleDocument,
    /// A document each; a query reads them all
    DocumentPerRegistration,
    /// A document each, and an index
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
    /// For people
    Text,
    /// An object a line
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// Durable, in the data folder
    Sqlite,
    /// Gone at the end
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
  plimsoll try studies/calendar.study.yaml              starts the system, too
  plimsoll try shop.workload.yaml --url http://127.0.0.1:8080
  plimsoll try shop.study.yaml --user 7 --har shop.har  also for a browser

One user goes through the setup and one session, without waits, by the rules
of a run. Each request and answer is shown as it goes over the wire, with what
was captured, and what came instead of what is expected. Of a study, the system
is started afresh for it, and ended; --set chooses other levels than the first.
Passwords, tokens, and cookies are shown as ***.

Exit codes: 0 all that was sent went as expected; 99 something did not, or
nothing was sent; 104 a bad file or flag; 105 interrupted; 110 the system failed.")]
pub(crate) struct TryArgs {
    #[command(flatten)]
    pub(crate) study: StudyArgs,
    /// Which of the users, from 0
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) user: u32,
    /// Try a WORKLOAD, named in place of a study, on this server, which runs already
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    /// How long an answer may take; as the study says unless given
    #[arg(long, value_name = "TIME", value_parser = crate::trying::time)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// Also write what happened to this file, as a recording (HAR) that browsers open
    #[arg(long, value_name = "FILE")]
    pub(crate) har: Option<PathBuf>,
    /// Show headers and bodies in full, however long
    #[arg(long)]
    pub(crate) full: bool,
    /// Show passwords, tokens, and cookies as they are, also in the recording
    #[arg(long)]
    pub(crate) show_secrets: bool,
}
