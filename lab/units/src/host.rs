//! Settings of a system's host, in raw form, and their values in one cell.

use std::collections::HashSet;

use lab_template::level::Parameters as Cell;
use serde::{Deserialize, Serialize};

use crate::agents;
use crate::machine::{self, CPU_LATENCY, Cpus};
use crate::setting::{CellError, Optional, Setting};
use crate::storage::{FilesystemSpec, StorageTemplate};

/// Settings of the system's host in a trial, for any system.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostSpec {
    /// Settings of the kernel, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel: Vec<KernelSetting>,
    /// Cores of the system; `None` = all that the generator leaves free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// The folder for its data, a whole path; `None` = the folder of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// A file system for its data, made in a file in that folder; `None` = the folder's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<FilesystemSpec>,
    /// The agent whose machine runs it, by name or label; `None` = this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
}

impl HostSpec {
    /// Returns true if the machine is left unchanged.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A kernel file, and the value to write.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KernelSetting {
    /// As written: `net.ipv4.tcp_autocorking`, or a path.
    pub name: String,
    /// The file, under `/proc/sys/` or `/sys/`, or [`CPU_LATENCY`].
    pub path: String,
    /// One line without its end.
    pub value: String,
}

/// Settings of the host of a system or its processes, with unresolved references to factors.
#[derive(Debug, Clone, Default)]
pub struct HostTemplate {
    /// Settings of the kernel, in the order of the file.
    pub kernel: Vec<KernelTemplate>,
    /// Cores.
    pub cpus: Option<Setting>,
    /// Location of the data.
    pub storage: StorageTemplate,
    /// The agent whose machine runs it.
    pub on: Option<Setting>,
}

/// A kernel setting, its value with unresolved references to factors.
#[derive(Debug, Clone)]
pub struct KernelTemplate {
    /// As written.
    pub name: String,
    /// The file.
    pub path: String,
    /// The value to write.
    pub value: Setting,
}

impl HostTemplate {
    /// Returns the settings in `cell`.
    ///
    /// # Errors
    /// A setting that is invalid there.
    pub fn spec(&self, cell: &Cell) -> Result<HostSpec, CellError> {
        let kernel = self.kernel.iter().map(|setting| {
            Ok(KernelSetting {
                name: setting.name.clone(),
                path: setting.path.clone(),
                value: match setting.path.as_str() {
                    CPU_LATENCY => setting.value.value(cell, machine::cpu_latency)?,
                    _ => setting.value.value(cell, machine::kernel_value)?,
                },
            })
        });
        let (storage, filesystem) = self.storage.spec(cell)?;
        Ok(HostSpec {
            kernel: kernel.collect::<Result<_, _>>()?,
            cpus: self.cpus.value(cell, machine::cpus)?,
            storage,
            filesystem,
            on: self.on.value(cell, agents::machine)?,
        })
    }
}

/// Returns the first name whose file an earlier one also names.
#[must_use]
pub fn twice<'n>(paths: impl Iterator<Item = (&'n str, &'n str)>) -> Option<&'n str> {
    let mut seen = HashSet::new();
    paths
        .filter(|(_, path)| !seen.insert(*path))
        .map(|(name, _)| name)
        .next()
}
