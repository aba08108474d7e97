//! Location of a system's data: a folder, or a file system created for each trial. In raw form, with references to
//! factors, and resolved in one cell.

use lab_template::level::Parameters as Cell;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decode::{Container, Decode, Fields};
use crate::error::Problems;
use crate::machine::{self, Filesystem};
use crate::node::{Node, Value};
use crate::parts::{At, Scalar};
use crate::setting::{CellError, Optional, Setting};

/// The location of a system's data in each trial.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum StorageFile {
    /// The absolute path of a folder, and with it a file system.
    Folder(#[schemars(with = "String")] At<Scalar>),
    /// A file system that is created for each trial.
    Filesystem(Box<FilesystemFile>),
}

/// A file system that is created for each trial and removed after it, however the trial ends: in an image file of its
/// whole size, over a loop device. Requires root.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FilesystemFile {
    /// The kind: `ext4`, `xfs`, or `btrfs`.
    #[schemars(with = "String")]
    pub filesystem: At<Scalar>,
    /// The size, 320 MB to 16000 GB, such as `4 GB`.
    #[schemars(with = "Scalar")]
    pub size: At<Scalar>,
    /// The absolute path of the image file's folder, and with it the disk. Default: the folder of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub folder: Option<At<Scalar>>,
    /// More arguments for the mkfs program, such as `[-m, reflink=0]` for `mkfs.xfs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Scalar>>")]
    pub mkfs: Option<At<Vec<At<Scalar>>>>,
    /// The mount options, such as `noatime`. Default: those of its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub options: Option<At<Scalar>>,
}

impl Container for StorageFile {}

impl Decode for StorageFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(_) = node.value else {
            return At::decode(node, problems).map(Self::Folder);
        };
        let mut fields = Fields::of(node, "a storage", problems)?;
        let filesystem = fields.required("filesystem", problems);
        let size = fields.required("size", problems);
        let folder = fields.optional("folder", problems);
        let mkfs = fields.optional("mkfs", problems);
        let options = fields.optional("options", problems);
        fields.finish(problems);
        Some(Self::Filesystem(Box::new(FilesystemFile {
            filesystem: filesystem?,
            size: size?,
            folder,
            mkfs,
            options,
        })))
    }
}

/// A file system that is created for a trial and removed with it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FilesystemSpec {
    /// Kind of the file system.
    pub kind: Filesystem,
    /// Size of the file system.
    pub bytes: u64,
    /// More arguments for the mkfs program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mkfs: Vec<String>,
    /// Mount options; `None` = those of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<String>,
}

/// Location of the data, with unresolved references to factors.
#[derive(Debug, Clone, Default)]
pub struct StorageTemplate {
    /// The folder, or that of the file system's image.
    pub folder: Option<Setting>,
    /// The file system created in it.
    pub filesystem: Option<FilesystemTemplate>,
}

/// A file system, with unresolved references to factors.
#[derive(Debug, Clone)]
pub struct FilesystemTemplate {
    /// Its kind.
    pub kind: Setting,
    /// Its size.
    pub size: Setting,
    /// More arguments for the mkfs program.
    pub mkfs: Vec<Setting>,
    /// Mount options.
    pub options: Option<Setting>,
}

impl StorageTemplate {
    /// Returns folder and file system in `cell`.
    ///
    /// # Errors
    /// A setting that is invalid there.
    pub fn spec(&self, cell: &Cell) -> Result<(Option<String>, Option<FilesystemSpec>), CellError> {
        let folder = self.folder.value(cell, machine::whole_path)?;
        let filesystem = self.filesystem.as_ref().map(|one| one.spec(cell));
        Ok((folder, filesystem.transpose()?))
    }
}

impl FilesystemTemplate {
    fn spec(&self, cell: &Cell) -> Result<FilesystemSpec, CellError> {
        let mkfs = self.mkfs.iter();
        let mkfs = mkfs.map(|argument| argument.value(cell, machine::argument));
        Ok(FilesystemSpec {
            kind: self.kind.value(cell, machine::filesystem)?,
            bytes: self.size.value(cell, machine::filesystem_bytes)?,
            mkfs: mkfs.collect::<Result<_, _>>()?,
            options: self.options.value(cell, machine::mount_options)?,
        })
    }
}
