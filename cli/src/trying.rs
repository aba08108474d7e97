//! Arguments for measurements without a study file. Text only: the code of the commands is in `commands`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lab_conduct::IdleWait;

/// The maximum time of a flag.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// A running server and its load, in place of a study.
#[derive(Debug, Args)]
#[command(next_help_heading = "Without a study file")]
pub(crate) struct QuickArgs {
    /// Measure this running server under the WORKLOAD named in place of a study
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) load: QuickLoadArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// The load and the variables of a script in the form of k6, named in place of a study.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "For a script in the form of k6")]
pub(crate) struct ScriptArgs {
    /// Number of virtual users, in place of the script's options
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) vus: Option<u32>,
    /// Duration of the load, such as 30s or 5m, in place of the script's options
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) duration: Option<Duration>,
    /// Number of iterations of all users together, in place of the script's options
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    pub(crate) iterations: Option<u32>,
    #[command(flatten)]
    pub(crate) variables: VariableArgs,
}

/// The variables of a script.
#[derive(Debug, Default, Args)]
pub(crate) struct VariableArgs {
    /// A variable of the script's `__ENV`; may be given several times
    #[arg(short = 'e', long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("NAME=VALUE, such as BASE_URL=http://127.0.0.1:8080".to_owned()),
    }
}

/// The connection settings of a server without a study.
#[derive(Debug, Default, Args)]
pub(crate) struct ReachArgs {
    /// PEM file with the certificate of the server's authority, or with its own if that is self-signed
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) ca: Option<PathBuf>,
    /// Accept any certificate; the output notes it
    #[arg(long, requires = "url", conflicts_with = "ca")]
    pub(crate) insecure: bool,
    /// HTTP version: 1, 2, or auto for the server's choice over TLS (default: 1)
    #[arg(long, value_name = "VERSION", requires = "url", value_parser = ["1", "2", "auto"], hide_possible_values = true)]
    pub(crate) http: Option<String>,
}

/// The load of a study, by flags.
#[derive(Debug, Default, Args)]
pub(crate) struct QuickLoadArgs {
    /// Number of virtual users, each starting its next session when the last one ends (default: 10);
    /// with --rate, maximum concurrent sessions
    #[arg(short = 'c', long, value_name = "N", requires = "url", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) users: Option<u32>,
    /// Sessions to start per second, evenly spaced, however slow the server is
    #[arg(long, value_name = "PER_S", requires = "url", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Duration of the full load, such as 30s or 5m (default: 30s)
    #[arg(short = 'd', long = "for", value_name = "TIME", requires = "url", value_parser = time)]
    pub(crate) hold: Option<Duration>,
    /// Duration of the ramp before the full load (default: a tenth of --for, at most 10s)
    #[arg(long, value_name = "TIME", requires = "url", value_parser = time_or_none)]
    pub(crate) ramp: Option<Duration>,
    /// Timeout after which a response counts as an error (default: 60s)
    #[arg(long, value_name = "TIME", requires = "url", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll bench http://127.0.0.1:8080/
  plimsoll bench http://127.0.0.1:8080/search?q=x -c 100 -d 1m
  plimsoll bench http://127.0.0.1:8080/ --rate 500     even if it is slow
  plimsoll bench https://127.0.0.1:8443/ --ca ca.pem --http 2
  plimsoll bench http://127.0.0.1:8080/items --body '{\"name\": \"x\"}' \\
      -H 'Content-Type: application/json'

Prints first whether the measurement is valid, then the figures. The archive is
like that of any run: `plimsoll report` and `compare` read it.

Exit codes: 0 the measurement is valid; 99 at least 1 % of the requests failed;
105 interrupted; 110 there was no server, or all responses were errors;
120 the measurement is invalid.")]
pub(crate) struct BenchArgs {
    /// The URL, with its path and query
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) load: QuickLoadArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    /// Method of the request (default: GET, or POST with a --body)
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Header of the request; may be given several times
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,
    /// Body of the request, or a file with it, such as @body.json
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) body: Option<String>,
    /// Maximum size of a response body, such as `1 GiB` (default: 64 MiB)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_body: Option<u64>,
    /// Folder of the archive (default: `runs/bench-HOST-TIME`)
    #[arg(long, env = "PLIMSOLL_OUT", value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Folder for the journal of changed kernel settings; as in `plimsoll run`
    #[arg(long, env = "PLIMSOLL_STATE", value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

pub(crate) fn time(text: &str) -> Result<Duration, String> {
    lab_study::duration(text, LONGEST).map_err(|error| format!("{error}; write 30s or 5m"))
}

fn time_or_none(text: &str) -> Result<Duration, String> {
    match text.trim() {
        "0" => Ok(Duration::ZERO),
        other => time(other),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.trim().trim_end_matches("/s").parse().ok();
    number
        .filter(|rate| (0.001..=1e7).contains(rate))
        .ok_or_else(|| "a number per second, such as 500".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    lab_study::size(text, 1 << 40).map_err(|error| format!("{error}; write 1 GiB or 200 MB"))
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("NAME: VALUE, such as 'Accept: application/json'".to_owned()),
    }
}

/// Parses the maximum wait for an idle machine: before a trial, and over the whole run.
pub(crate) fn patience(text: &str) -> Result<IdleWait, String> {
    let length = |text: &str| match text.trim() {
        "0" => Ok(Duration::ZERO),
        other => lab_study::duration(other, LONGEST)
            .map_err(|error| format!("{error}; write 2m, or 2m,15m")),
    };
    let usual = IdleWait::default();
    match text.split_once(',') {
        Some((trial, run)) => Ok(IdleWait {
            trial: length(trial)?,
            run: length(run)?,
        }),
        None => length(text).map(|trial| IdleWait {
            trial,
            run: usual.run.max(trial),
        }),
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn an_authority_is_of_no_use_where_any_certificate_is_taken() {
        let parsed = |flags: &[&str]| {
            let words = [&["bench", "https://h/"][..], flags].concat();
            let bench = BenchArgs::augment_args(Command::new("bench"));
            let failed = bench.try_get_matches_from(words).err();
            failed.map(|error| error.kind())
        };
        assert_eq!(parsed(&["--ca", "ca.pem"]), None);
        assert_eq!(parsed(&["--insecure"]), None);
        let both = parsed(&["--ca", "ca.pem", "--insecure"]);
        assert_eq!(both, Some(ErrorKind::ArgumentConflict));
    }
}
