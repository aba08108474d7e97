//! Study files as written: the shape that the JSON Schema describes.
//!
//! Only the shape is checked here: keys, lists, mappings. `load` checks the meaning of a text. Types
//! print back to YAML, and the printed text reads as the same.

mod abort;
mod arrival;
mod attach;
mod checks;
mod command;
mod find;
mod generators;
mod load;
mod matrix;
mod mix;
mod preparation;
mod reach;
mod requires;
mod study;
mod system;
mod timeline;

pub(crate) use abort::AbortFile;
pub(crate) use arrival::ArrivalFile;
pub(crate) use attach::AttachFile;
pub(crate) use checks::{ChecksFile, LimitFile};
pub(crate) use command::CommandFile;
pub(crate) use find::FindFile;
pub(crate) use generators::{AwayFile, GeneratorsFile, LabelledFile, WhichFile};
pub(crate) use lab_language::{At, Json, ProfileFile, ProfileWithFile, Scalar, StorageFile, Table};
pub(crate) use load::{LoadFile, StageFile};
pub(crate) use matrix::{CellFile, MatrixFile};
pub(crate) use mix::PopulationFile;
pub(crate) use preparation::{ActionFile, KeepFile};
pub(crate) use reach::HttpFile;
pub(crate) use requires::RequiresFile;
pub(crate) use study::StudyFile;
pub(crate) use system::{GroupwareFile, SystemFile};
pub(crate) use timeline::TimelineFile;

/// The JSON Schema of study files.
#[must_use]
pub fn schema_study() -> serde_json::Value {
    schemars::schema_for!(StudyFile).to_value()
}

#[cfg(test)]
mod tests;
