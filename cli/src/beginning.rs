//! Arguments of commands that read or write files without a run: first files, imports, validation, schemas,
//! completions, manual pages. Text only.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use clap_complete::Shell;
use lab_import::har::Noise;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll init                                 asks where the server is
  plimsoll init --url http://127.0.0.1:8080/    asks what is left
  plimsoll init --url http://127.0.0.1:8080/items --users 50 --limit 200ms --yes

It writes NAME.study.yaml and NAME.workload.yaml, which run as they are, with
comments on what to write next. Files that are there already stay as they are.")]
pub(crate) struct InitArgs {
    /// The server, which runs already, with the path of a page
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Users at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) users: Option<u32>,
    /// How long 95 of 100 answers may take, such as 500ms
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub(crate) limit: Option<String>,
    /// What the files are called; after the server unless given
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Folder of the files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Ask nothing: what isn't given is as usual (10 users, 500ms)
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Write over files that are there
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
    /// A session that a browser recorded (HAR)
    Har(HarArgs),
    /// A description of a service (OpenAPI 3 or Swagger 2, JSON or YAML)
    Openapi(OpenApiArgs),
    /// The access log of a server, or a recording of GoReplay, as load
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

Writes NAME.jsonl, NAME.workload.yaml, and NAME.study.yaml, by which a run sends
the requests at the moments of the log. Formats are common, combined,
vhost_combined (Apache, nginx), json, caddy, traefik, envoy, alb (Amazon), haproxy
(option httplog), w3c (Amazon CloudFront, IIS), gor (GoReplay); nginx's log_format
and Apache's LogFormat are taken as they are. Lines may have syslog's prefix.
Values of queries under names such as `token` are dropped, and addresses of
clients become hashes.")]
pub(crate) struct LogArgs {
    /// The log, compressed by gzip or not; `-` reads standard input
    pub(crate) file: PathBuf,
    /// A name, or the format as the server's configuration has it; found out unless given
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Which member of a line of JSON is what: time, method, path, host, status, bytes, client, agent, took (seconds)
    #[arg(long, value_name = "FIELD=MEMBER,...", value_delimiter = ',', value_parser = field)]
    pub(crate) fields: Vec<(String, String)>,
    /// Take the requests to this host, and to no other; may be given several times. All unless given
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Methods that are taken
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
    /// Group each client's requests into sessions, with pauses below half an hour; without this, each request is a session
    #[arg(long)]
    pub(crate) sessions: bool,
    /// The server that gets the load
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub(crate) url: String,
    /// Spreads requests over the second, where the log has whole seconds
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Path of the files without their ends; after the log, in this folder, unless given
    #[arg(short, long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,
    /// Write over files that are there
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
content, and with sensitive data where the browser asks).

Examples:
  plimsoll import har session.har
  plimsoll import har session.har --host shop.example --host api.shop.example
  plimsoll import har session.har --without images,fonts,styles,scripts

Pauses of the recording become waits. What an answer gave and a later request
carries is captured: ids, tokens, hidden fields of forms, where a redirect
leads. Values under names such as `password` become secret('PASSWORD'): a run
takes them from its environment. Cookies are kept as browsers keep them. What is
left out, and values that an answer held but nothing captures, are reported.")]
pub(crate) struct HarArgs {
    /// The recording
    pub(crate) file: PathBuf,
    /// Take the requests to this host, and to no other; may be given several times. The server of the
    /// first page unless given
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// Leave out these kinds of requests: images, fonts, media, styles, scripts, analytics; or `none`
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

Each operation is called once, with the examples of the description: what makes
something first, what removes it last. Nothing is changed or removed that the
session didn't make itself. Tokens and passwords are taken from the environment
of a run. Files that the description refers to are read from its folder and
below. What is left out is reported.")]
pub(crate) struct OpenApiArgs {
    /// The description: a file, or an address
    pub(crate) from: String,
    #[command(flatten)]
    pub(crate) to: ToArgs,
}

/// Where an imported workload goes.
#[derive(Debug, Args)]
pub(crate) struct ToArgs {
    /// The workload file; NAME.workload.yaml after what is imported, unless given; `-` prints it
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write over a file that is there
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
    /// Folder that a page for each command is written to; made if it is missing
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
  plimsoll schema study > study.schema.json    for an editor that completes keys
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
    /// The checks on a measurement, with the limits that a study may set under `checks:`
    Checks,
}
