//! The arguments for measurements without a study file. Text only; there is no code of commands here.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lab_conduct::Patience;

/// The maximum time of a flag.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// In the place of a study: a server that runs already, and the load.
#[derive(Debug, Args)]
#[command(next_help_heading = "Without a study file")]
pub(crate) struct QuickArgs {
    /// Measure this server, which runs already, under the WORKLOAD that is named in place of a study
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) load: QuickLoadArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// How a server is reached that no study says it of.
#[derive(Debug, Default, Args)]
pub(crate) struct ReachArgs {
    /// A PEM file with the certificate of the server's authority, or with its own where that is signed
    /// by itself
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) ca: Option<PathBuf>,
    /// Take any certificate; what is shown says so
    #[arg(long, requires = "url", conflicts_with = "ca")]
    pub(crate) insecure: bool,
    /// Version of HTTP: 2, or auto for the server's choice over TLS; 1 unless said
    #[arg(long, value_name = "VERSION", requires = "url", value_parser = ["1", "2", "auto"], hide_possible_values = true)]
    pub(crate) http: Option<String>,
}

/// The load of a study that flags stand for.
#[derive(Debug, Default, Args)]
pub(crate) struct QuickLoadArgs {
    /// Virtual users, each beginning its next session when its last is over (10 unless said); with
    /// --rate, sessions under way at once, at most
    #[arg(short = 'c', long, value_name = "N", requires = "url", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) users: Option<u32>,
    /// Sessions that begin per second, evenly apart, whatever the server does
    #[arg(long, value_name = "PER_S", requires = "url", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// How long the full load lasts, such as 30s or 5m; 30s unless said
    #[arg(short = 'd', long = "for", value_name = "TIME", requires = "url", value_parser = time)]
    pub(crate) hold: Option<Duration>,
    /// How long the load rises before that; a tenth of --for, 10s at most, unless said
    #[arg(long, value_name = "TIME", requires = "url", value_parser = time_or_none)]
    pub(crate) ramp: Option<Duration>,
    /// How long an answer may take before it counts as an error; 60s unless said
    #[arg(long, value_name = "TIME", requires = "url", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  plimsoll bench http://127.0.0.1:8080/
  plimsoll bench http://127.0.0.1:8080/search?q=x -c 100 -d 1m
  plimsoll bench http://127.0.0.1:8080/ --rate 500     also if it is slow
  plimsoll bench https://127.0.0.1:8443/ --ca ca.pem --http 2
  plimsoll bench http://127.0.0.1:8080/items --body '{\"name\": \"x\"}' \\
      -H 'Content-Type: application/json'

It says first whether what follows is a measurement, then the figures. The
archive is like that of any run: `plimsoll report` and `compare` read it.

Exit codes: 0 it is a measurement; 99 1 % of the requests failed or more;
105 interrupted; 110 there was no server, or all it answered was errors;
120 it is no measurement.")]
pub(crate) struct BenchArgs {
    /// The address, with its path and query
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) load: QuickLoadArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    /// Method of the request; GET, or POST where there is a --body
    #[arg(short = 'X', long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// A header of the request; may be given several times
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,
    /// The body, or a file that holds it, such as @body.json
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) body: Option<String>,
    /// The longest body of an answer, such as `1 GiB`; 64 MiB unless given
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_body: Option<u64>,
    /// Folder of the archive; `runs/bench-HOST-TIME` unless given
    #[arg(long, env = "PLIMSOLL_OUT", value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Folder that remembers kernel settings; as in `plimsoll run`
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
pub(crate) fn patience(text: &str) -> Result<Patience, String> {
    let length = |text: &str| match text.trim() {
        "0" => Ok(Duration::ZERO),
        other => lab_study::duration(other, LONGEST)
            .map_err(|error| format!("{error}; write 2m, or 2m,15m")),
    };
    let usual = Patience::default();
    match text.split_once(',') {
        Some((trial, run)) => Ok(Patience {
            trial: length(trial)?,
            run: length(run)?,
        }),
        None => length(text).map(|trial| Patience {
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
