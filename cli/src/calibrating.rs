//! Arguments of `plimsoll calibrate`. Text only: its code is in `commands`.

use clap::{Args, ValueEnum};

/// The default length of each of the two measurements.
pub(crate) const SECONDS: u32 = 5;

#[derive(Debug, Args)]
#[command(after_help = "\
Drives a server that does nothing, on another core if there is one: first as
fast as it responds, then with 1000 users that mostly wait. Exits with 0 if a
trial would be valid, as far as generator and machine are concerned. Otherwise
exits with 120, and prints the reasons.

Examples:
  plimsoll calibrate                    before a study, or after invalid trials
  plimsoll calibrate --format json      for a script that waits for an idle host")]
pub(crate) struct CalibrateArgs {
    /// Length of each of the two measurements, in seconds
    #[arg(long, default_value_t = SECONDS, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
    /// Output format
    #[arg(long, value_enum, default_value_t = CalibrateFormat::Terminal)]
    pub(crate) format: CalibrateFormat,
    /// Run the server that does nothing, on this port of loopback
    #[arg(long, hide = true, value_name = "PORT")]
    pub(crate) null_server: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CalibrateFormat {
    Terminal,
    Json,
}
