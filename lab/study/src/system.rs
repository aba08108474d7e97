//! The system under test as written, and what it comes to in one cell: how it is set up, and what
//! is set around it.

use std::collections::HashSet;

use lab_language::{
    CellError, FilesystemSpec, Optional, Setting, StorageTemplate, agents,
    machine::{self, Cpus},
};
use serde::{Deserialize, Serialize};

use crate::attach::{AttachSpec, AttachTemplate};
use crate::command::{CommandSpec, CommandTemplate};
use crate::groupware::GroupwareTemplate;
use crate::model::{Cell, Level, VARIANT};
use crate::preparation::Preparation;
use crate::reach::ReachTemplate;

/// How the system under test is set up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SystemSpec {
    /// Any program.
    Command(CommandSpec),
    /// A server that runs already, here or elsewhere.
    Attach(AttachSpec),
}

impl SystemSpec {
    /// What is done to it before the load.
    #[must_use]
    pub fn preparation(&self) -> &Preparation {
        match self {
            Self::Command(spec) => &spec.preparation,
            Self::Attach(spec) => &spec.preparation,
        }
    }
}

/// What is set around the system in a trial, whichever system it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostSpec {
    /// Settings of the kernel, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel: Vec<KernelSetting>,
    /// Cores of the system; `None` = all that the generator leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// The folder for its data, a whole path; `None` = the folder of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// A file system for its data, made in a file in that folder; `None` = the folder's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<FilesystemSpec>,
    /// The agent on whose machine it runs, by its name or a label; `None` = this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
}

impl HostSpec {
    /// Whether the machine is left as it is.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A file of the kernel's, and what is to be in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KernelSetting {
    /// As written: `net.ipv4.tcp_autocorking`, or a path.
    pub name: String,
    /// The file, under `/proc/sys/` or `/sys/`.
    pub path: String,
    /// One line without its end.
    pub value: String,
}

/// The systems of a study, by the name of their variant.
#[derive(Debug, Clone)]
pub(crate) enum SystemsTemplate {
    One(Box<SystemTemplate>),
    /// At least one.
    Variants(Vec<(String, SystemTemplate)>),
}

impl SystemsTemplate {
    /// The system that a cell is about.
    pub(crate) fn of(&self, cell: &Cell) -> &SystemTemplate {
        match self {
            Self::One(system) => system,
            Self::Variants(variants) => {
                let name = match cell.get(VARIANT) {
                    Some(Level::Text(name)) => name.as_str(),
                    _ => "",
                };
                let named = variants.iter().find(|(variant, _)| variant == name);
                // Cells are made of these very names.
                &named.unwrap_or(&variants[0]).1
            }
        }
    }
}

/// A system of a study, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct SystemTemplate {
    pub(crate) kind: KindTemplate,
    pub(crate) kernel: Vec<KernelTemplate>,
    pub(crate) cpus: Option<Setting>,
    pub(crate) storage: StorageTemplate,
    pub(crate) on: Option<Setting>,
    pub(crate) reach: ReachTemplate,
}

/// A system of one kind, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) enum KindTemplate {
    Groupware(Box<GroupwareTemplate>),
    Command(Box<CommandTemplate>),
    Attach(Box<AttachTemplate>),
}

/// A kernel setting, its value still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct KernelTemplate {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) value: Setting,
}

impl SystemTemplate {
    /// The system in `cell`.
    pub(crate) fn system(&self, cell: &Cell) -> Result<SystemSpec, CellError> {
        match &self.kind {
            KindTemplate::Groupware(template) => {
                let spec = template.spec(cell, self.on.is_some())?;
                Ok(SystemSpec::Command(spec))
            }
            KindTemplate::Command(template) => template.spec(cell).map(SystemSpec::Command),
            KindTemplate::Attach(template) => template.spec(cell).map(SystemSpec::Attach),
        }
    }

    /// What is around it in `cell`.
    pub(crate) fn host(&self, cell: &Cell) -> Result<HostSpec, CellError> {
        let kernel = self.kernel.iter().map(|setting| {
            Ok(KernelSetting {
                name: setting.name.clone(),
                path: setting.path.clone(),
                value: setting.value.value(cell, machine::kernel_value)?,
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

/// The first name whose file an earlier one names, too.
pub(crate) fn twice<'n>(paths: impl Iterator<Item = (&'n str, &'n str)>) -> Option<&'n str> {
    let mut seen = HashSet::new();
    paths
        .filter(|(_, path)| !seen.insert(*path))
        .map(|(name, _)| name)
        .next()
}
