//! Study and workload files: text to a validated study or workload, and a study to a seeded plan of
//! trials.
//!
//! Pure: it reads no clock, opens no socket, and reads files only through what it is given.

mod archived;
mod attach;
mod cell;
mod command;
mod demand;
mod error;
mod file;
mod groupware;
pub mod model;
mod nearest;
mod node;
pub mod plan;
mod preparation;
mod read;
mod secrets;
mod setting;
mod source;
mod system;
mod text_error;
mod units;

pub use archived::{ArchivedError, present_plan};
pub use attach::AttachSpec;
pub use command::{CommandSpec, FilledIn, PresetUse, Ready, StopSignal};
pub use error::{LoadError, Problem};
pub use file::{schema_study, schema_workload};
pub use model::{Study, Workload};
pub use nearest::nearest;
pub use preparation::{Action, ActionRequest, EACH, Keep, Piece, Preparation};
pub use read::{Files, Loaded, LoadedAny, load_any, load_study, load_workload, load_workload_with};
pub use secrets::Secrets;
pub use system::{Cpus, HostSpec, KernelSetting, SystemSpec};
pub use text_error::TextError;
pub use units::duration;
