//! Arguments of the commands that list runs over time.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Any free port on loopback.
pub(crate) const ANY_PORT: &str = "127.0.0.1:0";

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll runs                                  the runs in runs/
  plimsoll runs --study calendar-load            the runs of one study
  plimsoll runs --search users=500               the runs with this text
  plimsoll runs /srv/ci/runs --format html > index.html

Each line is a run: its valid trials out of all, its verdict, and the deciding
figure with its interval over the trials: the load line, else the deciding
comparison of a study that asks for a verdict, else the p95 response under the
highest load. `≠` marks a run whose machine, plimsoll version, or study differs
from the run before.

The changes of a figure, with their runs, follow: E-divisive change points
(Matteson & James 2014) whose means differ as well, over runs of the same
study file with the same settings. If nothing changes, the chance that any is
shown in a study is 5 %, however many figures it has. Fewer than eight runs show
little: a change needs four runs before it and four from it on.")]
pub(crate) struct RunsArgs {
    /// Folder with the archives, one subfolder each
    #[arg(default_value = "runs")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Output format; pages link to the report of each run beside them
    #[arg(long, value_enum, default_value_t = RunsFormat::Terminal)]
    pub(crate) format: RunsFormat,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll serve-reports                          the runs in runs/
  plimsoll serve-reports /srv/ci/runs --listen 127.0.0.1:8081

The page lists the runs as `plimsoll runs` does, with trends, and links to their
reports. Each request renders its page from the current archives. The address
contains a token: everyone with the address has read access.")]
pub(crate) struct ServeReportsArgs {
    /// Folder with the archives, one subfolder each
    #[arg(default_value = "runs")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Address to serve the pages on; port 0 selects a free port
    #[arg(long, env = "PLIMSOLL_LISTEN_REPORTS", value_name = "ADDR", default_value = ANY_PORT)]
    pub(crate) listen: SocketAddr,
}

/// Filters for the runs in a folder.
#[derive(Debug, Clone, Args)]
pub(crate) struct Which {
    /// Include only runs of this study
    #[arg(long, value_name = "NAME")]
    pub(crate) study: Option<String>,
    /// Include only runs with this text in their names, title, verdict sentence, levels, overrides, or
    /// machine; case doesn't matter
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
