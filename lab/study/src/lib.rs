//! Study and workload files: text to a validated model to a seeded plan of trials.
//!
//! Pure: it reads no clock, opens no socket, and reads files only through what it is given.

mod attach;
mod cell;
mod command;
mod demand;
mod error;
mod file;
mod load;
pub mod model;
mod nearest;
mod node;
pub mod plan;
mod scope;
mod source;
mod system;
pub mod template;
mod text_error;
pub mod timing;
mod units;

pub use command::{CommandSpec, Ready, StopSignal};
pub use error::{LoadError, Problem};
pub use file::{schema_study, schema_workload};
pub use load::{Files, Loaded, LoadedAny, load_any, load_study, load_workload, load_workload_with};
pub use model::{Study, Workload};
pub use scope::{PASSWORD, Slot, User, UserScope};
pub use system::{
    AttachSpec, Cpus, Engine, GroupwareSpec, HostSpec, KernelSetting, LookupLayout, MailSpec,
    SystemSpec,
};
pub use template::{RenderError, Template};
pub use text_error::TextError;
