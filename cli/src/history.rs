//! The arguments of commands about runs over time.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Any free port on loopback.
pub(crate) const ANY_PORT: &str = "127.0.0.1:0";

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll runs                                  the runs in runs/
  plimsoll runs --study calendar-load            of one study
  plimsoll runs --search users=500               whose settings, machine, or words have this
  plimsoll runs /srv/ci/runs --format html > index.html

A line is a run: valid trials of all, the verdict, and what decides with its
interval over the trials: the load line, else the deciding comparison of a
study that asks for a verdict, else the p95 response under the most load. `≠`
marks a run whose machine, version of plimsoll, or study differs from the run
before.

Below stands at which run a figure changed: E-divisive change points
(Matteson & James 2014) whose means differ as well, over runs of the same
study file with the same settings. Where nothing changes, the chance that
any is shown in a study is 5 %, however many figures it has. Fewer than eight
runs show little: four before a change and four from it on.")]
pub(crate) struct RunsArgs {
    /// Where the archives are, one folder each
    #[arg(default_value = "runs")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) which: Which,
    /// What to print; pages link to the report of each run beside them
    #[arg(long, value_enum, default_value_t = RunsFormat::Terminal)]
    pub(crate) format: RunsFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll serve-reports                          the runs in runs/
  plimsoll serve-reports /srv/ci/runs --listen 127.0.0.1:8081

The page lists the runs as `plimsoll runs` does, with trends, and leads to the
report of each. Pages are made when they are asked for, from the archives as
they are then. The address has a token in it: who has the address may read.")]
pub(crate) struct ServeReportsArgs {
    /// Where the archives are, one folder each
    #[arg(default_value = "runs")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Where to serve the pages; port 0 is any free one
    #[arg(long, env = "PLIMSOLL_LISTEN_REPORTS", value_name = "ADDR", default_value = ANY_PORT)]
    pub(crate) listen: SocketAddr,
}

/// Which of the runs in a folder.
#[derive(Debug, Clone, Args)]
pub(crate) struct Which {
    /// Of this study only
    #[arg(long, value_name = "NAME")]
    pub(crate) study: Option<String>,
    /// Only those that have this in their names, title, sentence of the verdict, levels, overrides, or
    /// machine; capitals don't matter
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunsFormat {
    Terminal,
    Html,
    Md,
    Json,
}
