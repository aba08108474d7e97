//! A program that plays the sessions of users, in place of steps in a file. It is data here: its files, and how its
//! calls are recorded. It knows no engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

/// The name of the step that counts uncaught errors, checks, and metrics of a script.
pub const SCRIPT_STEP: &str = "script";
/// The name of the step that counts requests of unknown places, and those beyond the maximum number of names.
pub const OTHER_STEP: &str = "other requests";
/// The name of the measure of all checks.
pub const ALL_CHECKS_MEASURE: &str = "checks";
/// The beginning of the name of a check's measure.
pub const CHECK_MEASURE: &str = "check: ";
/// Most names of requests of a script.
pub const MAX_SCRIPT_NAMES: usize = 1_000;
/// Most checks and metrics of a script.
pub const MAX_SCRIPT_MEASURES: usize = 500;

/// The kind of a script's metric, which says what its figures mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// The distribution of its values.
    Trend,
    /// The part of its values that are true. Checks are rates.
    Rate,
    /// The sum of its values.
    Counter,
    /// Its last value.
    Gauge,
}

/// A program that plays the sessions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scripted {
    /// Its files, the entry first.
    pub sources: Arc<[ScriptSource]>,
    /// The exported function that is a session.
    pub function: String,
    /// All its exported functions.
    pub exports: Vec<String>,
    /// The result of its `setup`, given to each session.
    #[serde(default)]
    pub data: Option<Arc<Value>>,
    /// The step of each call site, by its place in the program.
    pub steps: Vec<u32>,
    /// The steps by name.
    pub names: BTreeMap<String, u32>,
    /// The measures of the script's step by the names of checks: 1 for each that passed, else 0. The first measure is
    /// of all checks.
    pub checks: BTreeMap<String, u32>,
    /// The measures by the names of metrics.
    pub metrics: BTreeMap<String, u32>,
    /// The factor by which its waits are shorter.
    pub speed: f64,
    /// The limits of its engine.
    pub limits: ScriptLimits,
}

/// The limits of a script's engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptLimits {
    /// The longest time without a wait or a request.
    pub turn: Duration,
    /// The memory of all users of a worker, bytes; `None` for a quarter of the machine's, divided by the workers and
    /// by the programs of the load.
    pub memory: Option<u64>,
    /// The stack, bytes.
    pub stack: usize,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        Self {
            turn: Duration::from_millis(50),
            memory: None,
            stack: 256 << 10,
        }
    }
}

/// A file of a script.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptSource {
    /// The path relative to the folder of the entry.
    pub name: String,
    /// The content.
    #[serde(serialize_with = "to_text", deserialize_with = "from_text")]
    pub content: Vec<u8>,
}

impl std::fmt::Debug for ScriptSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.name, self.content.len())
    }
}

fn to_text<S: Serializer>(content: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&STANDARD.encode(content))
}

fn from_text<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    STANDARD.decode(text).map_err(de::Error::custom)
}

impl Scripted {
    /// Returns true if it exports this function.
    #[must_use]
    pub fn exports(&self, function: &str) -> bool {
        self.exports.iter().any(|known| known == function)
    }

    /// Returns the step that counts a request: by the name that the script gives, or by its call site.
    #[must_use]
    pub fn step(&self, name: Option<&str>, site: u32) -> usize {
        let named = name.and_then(|name| self.names.get(name));
        let of_site = || self.steps.get(site as usize).or(self.steps.first());
        named.or_else(of_site).copied().unwrap_or_default() as usize
    }
}
