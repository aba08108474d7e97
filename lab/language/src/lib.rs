//! The language of workload files: text → raw → [`lab_workload::Workload`], and the parts that study files share with
//! it.
//!
//! Pure: it opens no file (the caller provides them by [`Files`]), reads no clock, and knows no study.

pub mod connect;
mod file;
pub mod host;
mod profile;
mod read;
pub mod secrets;
mod setting;
pub mod settings;
mod storage;
pub mod template_words;

pub use file::{
    BasicFile, Count, HoldTime, Limit, Rate, Size, Time, WaitTime, WorkloadFile, schema_workload,
};
pub use lab_units::decode::{Container, Decode, Fields, unexpected};
pub use lab_units::error::{LoadError, Location, Problem, Problems};
pub use lab_units::nearest::{nearest, one_of};
pub use lab_units::parts::{At, Json, Levels, OneOrMany, Scalar, Table};
pub use lab_units::source::{SourceFile, Span};
pub use lab_units::{
    AddressRange, Agents, TextError, Which, agents, machine, node, servers, units,
};
use lab_units::{error, source, text_error};
pub use lab_workload::{Secrets, password_of};
pub use profile::{ProfileFile, ProfileWithFile};
pub use read::{
    Environment, Files, ScriptFacts, check_short_name, decode, first_file, has_gap, header_problem,
    level, method_problem, parsed, read_script, read_workload, read_yaml, sibling_path, switch,
    unknown_name, workload_with,
};
pub use setting::{CellError, Optional, Setting};
pub use storage::{
    FilesystemFile, FilesystemSpec, FilesystemTemplate, StorageFile, StorageTemplate,
};
