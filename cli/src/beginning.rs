//! Arguments of commands that read or write files without a run: first files, imports, validation, schemas,
//! completions, manual pages. Text only.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::Shell;
use lab_import::har::Noise;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll init                                 asks for the server
  plimsoll init --url http://127.0.0.1:8080/    asks for the rest
  plimsoll init --url http://127.0.0.1:8080/items --users 50 --limit 200ms --yes
  plimsoll init --from shop.js                  a script in the form of k6

Writes NAME.study.yaml and NAME.workload.yaml, which run as they are, with
comments on what to add next. Existing files are not changed.")]
pub(crate) struct InitArgs {
    /// URL of a page on your running server
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Write the files for this script in the form of k6, beside it
    #[arg(long, value_name = "SCRIPT", conflicts_with_all = ["users", "limit", "dir"])]
    pub(crate) from: Option<PathBuf>,
    /// Number of concurrent users
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) users: Option<u32>,
    /// Limit for the p95 response time, such as 500ms
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub(crate) limit: Option<String>,
    /// Name of the files (default: after the server)
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Folder of the files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Don't ask; use the defaults for missing options (10 users, 500ms)
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,
}

fn limit(text: &str) -> Result<String, String> {
    const LONGEST: std::time::Duration = std::time::Duration::from_secs(3600);
    let text = text.trim();
    lab_study::duration(text, LONGEST)
        .map(|_| text.to_owned())
        .map_err(|error| format!("{error}; write 500ms or 2s"))
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    pub(crate) from: ImportFrom,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportFrom {
    /// Import a session that a browser recorded (HAR)
    Har(HarArgs),
    /// Import an API description (OpenAPI 3 or Swagger 2, JSON or YAML)
    Openapi(OpenApiArgs),
    /// Import a server's access log, or a GoReplay recording, as load
    Log(LogArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll import log access.log
  plimsoll import log access.log.gz --host shop.example --methods GET,HEAD
  zcat access.log.*.gz | plimsoll import log - --out monday
  plimsoll import log access.log --format '$remote_addr [$time_local] \"$request\" $status $request_time'
  plimsoll import log access.log --format '%h %l %u %t \\\"%r\\\" %>s %D'
  plimsoll import log app.jsonl --fields time=at,path=req.url,method=req.method
  zcat E2EXAMPLE.*.gz | LC_ALL=C sort | plimsoll import log - --host shop.example
  plimsoll import log haproxy.log --sessions --exact-status

Writes NAME.jsonl, NAME.workload.yaml, and NAME.study.yaml. A run of the study
sends the requests at the times of the log. Formats are common, combined,
vhost_combined (Apache, nginx), json, caddy, traefik, envoy, alb (Amazon),
haproxy (option httplog), w3c (Amazon CloudFront, IIS), gor (GoReplay), and
nginx's log_format or Apache's LogFormat as configured. Lines may have syslog's
prefix. Query values under names such as `token` are dropped, and client
addresses are hashed.")]
pub(crate) struct LogArgs {
    /// The log, plain or compressed by gzip; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Name of a format, or a format as in the server's configuration (default: detected)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Map fields to members of JSON lines: time, method, path, host, status, bytes, client, agent, took (seconds)
    #[arg(long, value_name = "FIELD=MEMBER,...", value_delimiter = ',', value_parser = field)]
    pub(crate) fields: Vec<(String, String)>,
    /// Import only the requests to this host; may be given several times (default: all)
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Import only requests with these methods
    #[arg(
        long,
        value_name = "METHOD,...",
        value_delimiter = ',',
        default_value = "GET,HEAD,OPTIONS"
    )]
    pub(crate) methods: Vec<String>,
    /// Expect the exact status in the log (404) instead of its class (4xx)
    #[arg(long)]
    pub(crate) exact_status: bool,
    /// Group each client's requests into sessions, with pauses below half an hour (default: one session per request)
    #[arg(long)]
    pub(crate) sessions: bool,
    /// Server that receives the load
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub(crate) url: String,
    /// Seed for spreading requests over the second, if the log has whole seconds
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Path of the files without extensions (default: after the log, in the current folder)
    #[arg(short, long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,
}

fn field(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((field, member)) => Ok((field.to_owned(), member.to_owned())),
        None => Err("write FIELD=MEMBER, such as time=ts".to_owned()),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
To record a session: open the browser's developer tools (F12), the tab
\"Network\", tick \"Preserve log\", do what a user does, and save all as HAR (with
content, and with sensitive data if the browser asks).

Examples:
  plimsoll import har session.har
  plimsoll import har session.har --host shop.example --host api.shop.example
  plimsoll import har session.har --without images,fonts,styles,scripts

Pauses in the recording become waits. Response values that later requests carry
are captured: ids, tokens, hidden form fields, redirect targets. Values under
names such as `password` become secret('PASSWORD'): a run takes them from its
environment. Cookies are handled as in browsers. Skipped requests, and values
that are in a response but not captured, are reported.")]
pub(crate) struct HarArgs {
    /// The recording
    pub(crate) file: PathBuf,
    /// Import only the requests to this host; may be given several times (default: the server of the first page)
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Skip these kinds of requests: images, fonts, media, styles, scripts, analytics; or `none`
    #[arg(
        long,
        value_name = "KIND,...",
        value_delimiter = ',',
        default_value = "images,fonts,media,analytics",
        value_parser = noise
    )]
    pub(crate) without: Vec<Option<Noise>>,
    #[command(flatten)]
    pub(crate) to: ToArgs,
}

fn noise(text: &str) -> Result<Option<Noise>, String> {
    match text {
        "none" => Ok(None),
        text => text.parse().map(Some).map_err(|()| {
            let names = Noise::ALL.map(|(name, _)| name).join(", ");
            format!("the kinds are {names}, or none")
        }),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll import openapi openapi.yaml
  plimsoll import openapi http://127.0.0.1:8080/openapi.json

The session calls each operation once, with the examples of the description:
first operations that create something, last those that remove it. It changes
and removes only what it created itself. Tokens and passwords are taken from the
environment of a run. Files that the description refers to are read from its
folder and below. Skipped operations are reported.")]
pub(crate) struct OpenApiArgs {
    /// The description: a file, or a URL
    pub(crate) from: String,
    #[command(flatten)]
    pub(crate) to: ToArgs,
}

/// The destination of an imported workload.
#[derive(Debug, Args)]
pub(crate) struct ToArgs {
    /// Workload file; `-` prints it (default: NAME.workload.yaml, after the source)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll completions bash > /etc/bash_completion.d/plimsoll
  plimsoll completions zsh > \"${fpath[1]}/_plimsoll\"
  plimsoll completions fish > ~/.config/fish/completions/plimsoll.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll man ~/.local/share/man/man1
  plimsoll man man1 && man ./man1/plimsoll-run.1")]
pub(crate) struct ManArgs {
    /// Folder for the pages, one per command; created if it is missing
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll check studies/calendar.study.yaml workloads/calendar.workload.yaml")]
pub(crate) struct CheckArgs {
    /// Study or workload files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll schema study > study.schema.json    for completion in an editor
  plimsoll schema result                       each key of result.json")]
pub(crate) struct SchemaArgs {
    /// What to print
    #[arg(value_enum)]
    pub(crate) kind: SchemaKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaKind {
    /// JSON Schema of study files
    Study,
    /// JSON Schema of workload files
    Workload,
    /// JSON Schema of `result.json`
    Result,
    /// Checks of a measurement, with the limits that a study may set under `checks:`
    Checks,
}
