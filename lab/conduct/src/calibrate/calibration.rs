//! The request and the result of a calibration.

use std::path::PathBuf;

/// The inputs of a calibration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalibrateRequest {
    /// The `plimsoll` binary.
    pub program: PathBuf,
    /// The arguments that call [`serve_nothing`](super::serve_nothing); `{{ port }}` stands for the port.
    pub null_server: Vec<String>,
    /// Length of each of the two measurements.
    pub seconds: u32,
    /// The parent of temporary archives, which are in a new folder and removed at the end.
    pub temporary: PathBuf,
}

/// The measured abilities of this machine's generator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Responses per second at full speed; `None` if the generator got so little CPU that its trial has no hold to
    /// compute it from.
    pub requests_per_s: Option<f64>,
    /// CPU use of the generator's cores meanwhile; `None` if the kernel doesn't report it, or too little of it was
    /// read.
    pub busy_percent: Option<f64>,
    /// Requests per second of one fully busy core; `None` if `busy_percent` is.
    pub per_core_per_s: Option<f64>,
    /// Delays of the generator with mostly waiting users.
    pub lateness: Lateness,
    /// Responses per second meanwhile; `None` as with `requests_per_s`.
    pub sends_per_s: Option<f64>,
    /// Time of one sample of the monitor.
    pub monitor_ms: f64,
}

/// Delays of sends against their schedule. All 0 if nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lateness {
    /// Median.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}
