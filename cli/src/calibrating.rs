//! The arguments of `plimsoll calibrate`. Text only; there is no code of commands here.

use clap::{Args, ValueEnum};

/// The default length of each of the two measurements.
pub(crate) const SECONDS: u32 = 5;

#[derive(Debug, Args)]
#[command(after_help = "\
It drives a server that does nothing, on another core where there is one: first as fast as answers
come, then with 1000 users who mostly wait. It ends with 0 where a trial would be a measurement, as
far as generator and machine go, and with 120 where it would not be, and says why.

Examples:
  plimsoll calibrate                    before a study, and where trials were invalid
  plimsoll calibrate --format json      for a script that waits for a quiet machine")]
pub(crate) struct CalibrateArgs {
    /// Length of each of the two measurements
    #[arg(long, default_value_t = SECONDS, value_parser = clap::value_parser!(u32).range(1..=600))]
    pub(crate) seconds: u32,
    /// What to print
    #[arg(long, value_enum, default_value_t = CalibrateFormat::Terminal)]
    pub(crate) format: CalibrateFormat,
    /// Be the server that does nothing, on this port of loopback
    #[arg(long, hide = true, value_name = "PORT")]
    pub(crate) null_server: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CalibrateFormat {
    Terminal,
    Json,
}
