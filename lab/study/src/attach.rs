//! A system that already runs: as written, and resolved in one cell.

use lab_language::{CellError, Optional, Setting, servers, units};
use serde::{Deserialize, Serialize};

use crate::model::Cell;

/// A server that runs already. The lab neither starts, pins, nor stops it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AttachSpec {
    /// `http://host:port` or `https://host:port`.
    pub url: String,
    /// Its main process, where it runs on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// `http://host:port/metrics` of the Prometheus node_exporter on its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_exporter: Option<String>,
    /// A command run on this machine before each trial, which brings it back to its first state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<Vec<String>>,
    /// The preparation before the load.
    #[serde(default, skip_serializing_if = "crate::Preparation::is_empty")]
    pub preparation: crate::Preparation,
}

/// Highest process id that Linux gives (`/proc/sys/kernel/pid_max` can't be set higher).
const MAX_PID: u64 = 4_194_304;

/// A server that runs already, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct AttachTemplate {
    pub(crate) url: Setting,
    pub(crate) pid: Option<Setting>,
    pub(crate) node_exporter: Option<Setting>,
    pub(crate) reset: Vec<Setting>,
    pub(crate) preparation: crate::preparation::PreparationTemplate,
}

impl AttachTemplate {
    /// The system in `cell`.
    pub(crate) fn spec(&self, cell: &Cell) -> Result<AttachSpec, CellError> {
        let url = self.url.value(cell, servers::server)?;
        let pid = self
            .pid
            .value(cell, |text| units::whole_number(text, 1..=MAX_PID))?;
        let node_exporter = self.node_exporter.value(cell, servers::exporter)?;
        let words = self
            .reset
            .iter()
            .map(|word| word.value(cell, |text| Ok(text.to_owned())));
        let reset: Vec<String> = words.collect::<Result<_, _>>()?;
        Ok(AttachSpec {
            url,
            pid: pid.map(|pid| pid as u32),
            node_exporter,
            reset: (!reset.is_empty()).then_some(reset),
            preparation: self.preparation.spec(cell)?,
        })
    }
}
