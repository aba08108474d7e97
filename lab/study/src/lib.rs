//! Study and workload files: text to a validated study or workload, and a study to a seeded plan of
//! trials.
//!
//! Pure: it reads no clock, opens no socket, and reads files only through the reader that it is given.

mod archived;
mod attach;
mod cell;
mod command;
mod demand;
mod extent;
mod file;
mod kinds;
mod mix;
pub mod model;
mod parameters;
pub mod plan;
mod preparation;
mod preset;
mod processes;
mod read;
mod stages;
mod system;
mod timeline;

pub use archived::{ArchivedError, present_plan};
pub use attach::AttachSpec;
pub use command::{CommandSpec, FilledIn, PresetUse, Ready, StopSignal, as_host};
pub use file::schema_study;
pub use lab_ask::{AskSpec, By, filled_in};
pub use lab_language::connect::{ConnectSpec, HttpSpec, HttpVersion, TlsSpec};
pub use lab_language::host::{HostSpec, KernelSetting};
pub use lab_language::machine::{CPU_LATENCY, Cpus, Filesystem, filesystem, kernel_path};
pub use lab_language::units::{duration, size};
pub use lab_language::{
    AddressRange, Agents, Environment, Files, FilesystemSpec, LoadError, Problem, Secrets,
    TextError, Which, nearest, schema_workload,
};
pub use lab_language::{ScriptFacts, read_script};
pub use lab_workload::{Bytes, Data, Each, looks_secret};
pub use model::{Study, Workload};
pub use preparation::{
    Action, ActionRequest, BasicAuth, EACH, Keep, Piece, Preparation, USERS_FILE,
};
pub use read::{Loaded, LoadedAny, load_any, load_study, load_workload};
pub use system::{PartSpec, SystemSpec};
