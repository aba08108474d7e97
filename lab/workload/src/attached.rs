//! Files whose content requests carry: read once, held once per process, and shared by all requests. It opens none: the
//! loader of a workload provides the [`Bytes`].

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
    /// The file's name in the workload.
    pub name: String,
    /// Its length, bytes.
    pub length: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// Its content; empty while the workload came from another process and its files have not arrived.
    #[serde(skip)]
    content: bytes::Bytes,
}

impl Attached {
    /// Reads the whole file.
    ///
    /// # Errors
    /// The error of the read, and [`io::ErrorKind::FileTooLarge`] for more than `most` bytes.
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

    /// Its content.
    #[must_use]
    pub fn content(&self) -> &bytes::Bytes {
        &self.content
    }

    /// Sets its content; returns false, and changes nothing, if that is not the file's.
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
