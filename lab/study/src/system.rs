//! The system under test: as written, and resolved in one cell, with its setup and
//! the settings around it.

use lab_ask::AskTemplate;
use lab_language::CellError;
use lab_language::connect::ConnectTemplate;
use lab_language::host::{HostSpec, HostTemplate};
use serde::{Deserialize, Serialize};

use crate::attach::{AttachSpec, AttachTemplate};
use crate::command::{CommandSpec, CommandTemplate};
use crate::model::{Cell, Level, VARIANT};
use crate::preparation::Preparation;
use crate::preset::PresetTemplate;

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
    /// The preparation before the load.
    #[must_use]
    pub fn preparation(&self) -> &Preparation {
        match self {
            Self::Command(spec) => &spec.preparation,
            Self::Attach(spec) => &spec.preparation,
        }
    }
}

/// A part of a system on a machine of its own: processes started before the one that users connect to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartSpec {
    /// The last of its processes, with the ones before it.
    pub spec: CommandSpec,
    /// The machine, which is another one, and the settings around the processes.
    pub host: HostSpec,
}

impl PartSpec {
    /// Returns its name, which is that of its last process.
    #[must_use]
    pub fn name(&self) -> &str {
        self.spec.name.as_deref().unwrap_or("part")
    }
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
                // Cells are built from these very names.
                &named.unwrap_or(&variants[0]).1
            }
        }
    }
}

/// A system of a study, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct SystemTemplate {
    pub(crate) kind: KindTemplate,
    pub(crate) host: HostTemplate,
    pub(crate) reach: ConnectTemplate,
    pub(crate) ask: AskTemplate,
}

/// A system of one kind, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) enum KindTemplate {
    Preset(Box<PresetTemplate>),
    Command(Box<CommandTemplate>),
    Attach(Box<AttachTemplate>),
}

impl SystemTemplate {
    /// The system in `cell`.
    pub(crate) fn system(&self, cell: &Cell) -> Result<SystemSpec, CellError> {
        match &self.kind {
            KindTemplate::Preset(template) => {
                let spec = template.spec(cell, self.host.on.is_some())?;
                Ok(SystemSpec::Command(spec))
            }
            KindTemplate::Command(template) => {
                let (_, last) = template.machines(cell, self.host.spec(cell)?)?;
                Ok(SystemSpec::Command(last.spec))
            }
            KindTemplate::Attach(template) => template.spec(cell).map(SystemSpec::Attach),
        }
    }

    /// Returns the settings around it in `cell`, on the machine that users connect to.
    pub(crate) fn host(&self, cell: &Cell) -> Result<HostSpec, CellError> {
        let own = self.host.spec(cell)?;
        match &self.kind {
            KindTemplate::Command(template) => Ok(template.machines(cell, own)?.1.host),
            _ => Ok(own),
        }
    }

    /// Returns the parts on other machines, started before it, in `cell`.
    pub(crate) fn parts(&self, cell: &Cell) -> Result<Vec<PartSpec>, CellError> {
        match &self.kind {
            KindTemplate::Command(template) => {
                Ok(template.machines(cell, self.host.spec(cell)?)?.0)
            }
            _ => Ok(Vec::new()),
        }
    }
}
