//! Study and workload files as written: the shape that the JSON Schema describes.
//!
//! Only the shape is checked here: keys, lists, mappings. What a text means is for `load`. Types
//! print back to YAML, and what is printed reads as the same.

mod attach;
mod checks;
mod command;
mod decode;
mod find;
mod load;
mod matrix;
mod parts;
mod preparation;
mod study;
mod system;
mod workload;

pub(crate) use attach::AttachFile;
pub(crate) use checks::{ChecksFile, LimitFile};
pub(crate) use command::CommandFile;
pub(crate) use decode::Decode;
pub(crate) use find::FindFile;
pub(crate) use matrix::{CellFile, MatrixFile};
pub(crate) use parts::{At, Json, OneOrMany, Scalar, Table};
pub(crate) use preparation::{ActionFile, KeepFile};
pub(crate) use study::StudyFile;
pub(crate) use system::{GroupwareFile, SystemFile};
pub(crate) use workload::{
    ExpectFile, ProbeFile, RequestFile, RequestItem, StepFile, TransferFile, WorkloadFile,
};

/// The JSON Schema of study files.
#[must_use]
pub fn schema_study() -> serde_json::Value {
    schemars::schema_for!(StudyFile).to_value()
}

/// The JSON Schema of workload files.
#[must_use]
pub fn schema_workload() -> serde_json::Value {
    schemars::schema_for!(WorkloadFile).to_value()
}

#[cfg(test)]
mod tests;
