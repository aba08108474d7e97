//! Files whose content requests carry: read once, held once in a process, and shared by all who send them.
//! It opens none: whoever loads a workload lends it the [`Bytes`].

use std::fmt;
use std::io;

use lab_filters::sha256;
use serde::{Deserialize, Serialize};

use crate::data::Bytes;

/// Most bytes of all files that a workload's requests carry, together.
pub const MAX_ATTACHED_BYTES: u64 = 256 << 20;

/// A file that requests carry.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// The file, as the workload names it.
    pub name: String,
    /// Its length, bytes.
    pub length: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// What is in it; nothing where the workload came from another process and its files did not yet.
    #[serde(skip)]
    content: bytes::Bytes,
}

impl Attached {
    /// Reads the whole file.
    ///
    /// # Errors
    /// Whatever the reading gave, and [`io::ErrorKind::FileTooLarge`] for more than `most` bytes.
    pub fn read(name: &str, file: &dyn Bytes, most: u64) -> io::Result<Self> {
        let mut content = Vec::new();
        let mut piece = vec![0; 64 << 10];
        loop {
            let count = file.read_at(content.len() as u64, &mut piece)?;
            if count == 0 {
                break;
            }
            content.extend_from_slice(&piece[..count]);
            if content.len() as u64 > most {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
        }
        Ok(Self {
            name: name.to_owned(),
            length: content.len() as u64,
            sha256: sha256(&content),
            content: content.into(),
        })
    }

    /// What is in it.
    #[must_use]
    pub fn content(&self) -> &bytes::Bytes {
        &self.content
    }

    /// Gives it its content; false, and nothing changes, where that is not the file's.
    #[must_use]
    pub fn fill(&mut self, content: Vec<u8>) -> bool {
        let same = content.len() as u64 == self.length && sha256(&content) == self.sha256;
        if same {
            self.content = content.into();
        }
        same
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} bytes, {})", self.name, self.length, self.sha256)
    }
}
