//! The language of workload files: text → raw → [`lab_workload::Workload`], and the parts that study files share with
//! it.
//!
//! Pure: it opens no file (the caller provides them by [`Files`]), reads no clock, and knows no study.

mod file;
mod profile;
mod read;
pub mod secrets;
pub mod template_words;

pub use file::{
    BasicFile, Count, HoldTime, Limit, Rate, Size, Time, WaitTime, WorkloadFile, schema_workload,
};
pub use lab_units::decode::{Container, Decode, Fields, unexpected};
pub use lab_units::error::{LoadError, Location, Problem, Problems};
pub use lab_units::nearest::{nearest, one_of};
pub use lab_units::parts::{At, Json, Levels, OneOrMany, Scalar, Table};
pub use lab_units::source::{SourceFile, Span, sibling_path};
pub use lab_units::{
    AddressRange, Agents, CellError, FilesystemFile, FilesystemSpec, FilesystemTemplate, Optional,
    Setting, StorageFile, StorageTemplate, TextError, Which, agents, connect, host, machine, node,
    servers, settings, units,
};
use lab_units::{error, source, text_error};
pub use lab_workload::{Secrets, password_of};
pub use profile::{ProfileFile, ProfileWithFile};
pub use read::{
    Environment, Files, ScriptFacts, check_short_name, decode, first_file, has_gap, header_problem,
    level, method_problem, parsed, read_script, read_workload, read_yaml, switch, unknown_name,
    workload_with,
};
