//! What is asked of a calibration, and what it tells.

use std::path::PathBuf;

/// What to measure with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalibrateRequest {
    /// The `plimsoll` binary.
    pub program: PathBuf,
    /// Its arguments with which it calls [`serve_nothing`](super::serve_nothing); the port stands
    /// as `{{ port }}`.
    pub null_server: Vec<String>,
    /// Length of each of the two measurements.
    pub seconds: u32,
    /// A folder for what is temporary: archives are in a new one in it, and removed at the end.
    pub temporary: PathBuf,
}

/// What this machine's generator can be trusted with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Answered per second as fast as answers came; `None` where the generator got so little of the machine that
    /// its trial has no hold to tell it from.
    pub requests_per_s: Option<f64>,
    /// How busy the generator's cores were meanwhile; `None` where the kernel doesn't tell, or too little
    /// was seen of it.
    pub busy_percent: Option<f64>,
    /// What one core would drive if it were wholly busy; `None` where that is.
    pub per_core_per_s: Option<f64>,
    /// How late the generator sent where users mostly waited.
    pub lateness: Lateness,
    /// Answered per second meanwhile; `None` as with `requests_per_s`.
    pub sends_per_s: Option<f64>,
    /// What a sample of the monitor takes.
    pub monitor_ms: f64,
}

/// How much later than meant the generator sent. All 0 where nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lateness {
    /// Median.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// The latest.
    pub max_ms: f64,
}
