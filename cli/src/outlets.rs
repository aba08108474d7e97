//! Arguments for exports of figures. Text only: the code of the commands is in `commands`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Further destinations of figures.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// Also send the figures, during the run, to prometheus=URL (remote write; prometheus-native with
    /// native histograms), otlp=URL, influx=URL, or to influx=FILE; may be given several times. See
    /// `plimsoll export --help`
    #[arg(
        long,
        env = "PLIMSOLL_SEND",
        hide_env_values = true,
        value_name = "KIND=URL"
    )]
    pub(crate) send: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll export runs/load-20261121-081500 --send prometheus=http://127.0.0.1:9090
  plimsoll export runs/load-20261121-081500 --send otlp=http://127.0.0.1:4318
  plimsoll export runs/load-20261121-081500 --send 'influx=http://127.0.0.1:8086/write?db=load'
  plimsoll export runs/load-20261121-081500 --send openmetrics=load.om

KIND=URL is one of
  prometheus=URL         Prometheus, Mimir, VictoriaMetrics: remote write,
                         version 1; /api/v1/write unless URL has a path
  prometheus-native=URL  the same with native histograms, where enabled
  otlp=URL               a collector: OTLP metrics, protobuf over HTTP,
                         exponential histograms; /v1/metrics unless URL has a
                         path
  influx=URL|FILE        InfluxDB, Telegraf: line protocol; URL with its path
                         and query
  openmetrics=FILE       for `promtool tsdb create-blocks-from openmetrics`:
                         Prometheus rejects remote writes older than about an
                         hour

Figures have the times at which they were measured. A password in the URL, or a
token in PLIMSOLL_SEND_PROMETHEUS_TOKEN, PLIMSOLL_SEND_OTLP_TOKEN, or
PLIMSOLL_SEND_INFLUX_TOKEN, is sent to its kind only, and over plain HTTP to
this machine only. PLIMSOLL_SEND_PROMETHEUS_HEADERS, and so on, are further
headers, one per line, such as `X-Scope-OrgID: load`.

Exit codes: 0 all figures were accepted; 1 some were not, with a message; 104
bad flag, or no archive.")]
pub(crate) struct ExportArgs {
    /// The archive of a run
    pub(crate) run: PathBuf,
    /// Destination of the figures; may be given several times
    #[arg(
        long,
        env = "PLIMSOLL_SEND",
        hide_env_values = true,
        value_name = "KIND=URL",
        required = true
    )]
    pub(crate) send: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll profile runs/load-20261121-081500                     most CPU time
  plimsoll profile runs/load-… --cell http_threads=8
  plimsoll profile runs/load-… --trial 3 --format pprof --output cpu.pb.gz && go tool pprof -http : cpu.pb.gz
  plimsoll profile runs/load-… --format speedscope -o cpu.json   for speedscope
  plimsoll profile runs/load-… --format firefox -o cpu.json      for Firefox
  plimsoll profile runs/load-… --format folded | flamegraph.pl > cpu.svg

A study with `profile: true` records profiles; docs/profiles.md has the
requirements. Those of the valid trials of a cell are shown together, over the
hold after warm-up.

Exit codes: 0 shown; 104 bad flag, no archive, or no profile in it.")]
pub(crate) struct ProfileArgs {
    /// The archive of a run
    pub(crate) run: PathBuf,
    /// Show only this cell: FACTOR=LEVEL, several of them with commas, or the cell as reports name it
    #[arg(long, value_name = "CELL")]
    pub(crate) cell: Option<String>,
    /// Show only this trial, valid or not
    #[arg(long, value_name = "N", conflicts_with = "cell")]
    pub(crate) trial: Option<u32>,
    /// Show what the threads waited for, instead of the CPU time
    #[arg(long)]
    pub(crate) waits: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = ProfileFormat::Table)]
    pub(crate) format: ProfileFormat,
    /// Maximum number of functions in a table
    #[arg(long, default_value_t = 30, value_name = "N")]
    pub(crate) top: usize,
    /// Write to this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileFormat {
    /// Functions with the most CPU time of their own, or the longest waits
    Table,
    /// One line per call path with its samples (of waits, µs), for flamegraph.pl, inferno, and others
    Folded,
    /// For `go tool pprof`, Grafana Pyroscope, Polar Signals, and others (binary)
    Pprof,
    /// For speedscope, <https://www.speedscope.app>
    Speedscope,
    /// For the Firefox Profiler, <https://profiler.firefox.com>
    Firefox,
}
