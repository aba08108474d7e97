//! Content in an object store instead of a file: the interface of such a store, and reading content
//! from either place.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use groupware_ids::{ContentHash, ObjectId, Placed};

use crate::ContentError;

/// A store of objects. Its calls block on the network, within its own time limits.
pub trait Objects: fmt::Debug + Send + Sync {
    /// Puts the first bytes of a file, which have this hash. They are durable, as far as the store
    /// provides, when it returns.
    ///
    /// # Errors
    /// [`ContentError::Away`] if the store can't be reached or is too slow; [`ContentError::Full`].
    fn put(&self, hash: ContentHash, file: &File, bytes: u64) -> Result<Placed, ContentError>;

    /// Starts to read this many bytes of content from `at` on; `None` if no object has it.
    ///
    /// # Errors
    /// [`ContentError::Missing`] if the object that should have it is missing; as [`Objects::put`].
    fn read(
        &self,
        hash: ContentHash,
        span: (u64, u64),
    ) -> Result<Option<Box<dyn ReadAt>>, ContentError>;

    /// Removes an object, including the parts of an unfinished upload. A missing one is no error.
    ///
    /// # Errors
    /// As [`Objects::put`].
    fn remove(
        &self,
        hash: ContentHash,
        id: ObjectId,
        parts: Option<&str>,
    ) -> Result<(), ContentError>;

    /// Lists the objects of content whose hash begins with this byte.
    ///
    /// # Errors
    /// As [`Objects::put`].
    fn list(&self, first: u8) -> Result<Vec<(ContentHash, ObjectId)>, ContentError>;
}

/// Segments of pending uploads, in a store of objects shared by several servers. Its calls block on
/// the network, within its own time limits.
pub trait Segments: fmt::Debug + Send + Sync {
    /// Puts a segment. Its bytes are durable, as far as the store provides, when it returns. They
    /// are read as they are sent, to save memory.
    ///
    /// # Errors
    /// As [`Objects::put`]; errors of `read`.
    fn put(
        &self,
        name: &str,
        read: &dyn Fn() -> Result<Vec<u8>, ContentError>,
    ) -> Result<(), ContentError>;

    /// Reads the bytes of a segment within this span, in pieces as they arrive.
    ///
    /// # Errors
    /// [`ContentError::Missing`] if the segment is missing, and as [`Objects::put`]; errors of `take`.
    fn read(
        &self,
        name: &str,
        span: Range<u64>,
        take: &mut dyn FnMut(&[u8]) -> Result<(), ContentError>,
    ) -> Result<(), ContentError>;

    /// Returns true if the segment exists, without reading its bytes.
    ///
    /// # Errors
    /// As [`Objects::put`].
    fn has(&self, name: &str) -> Result<bool, ContentError>;

    /// Removes a segment. A missing one is no error.
    ///
    /// # Errors
    /// As [`Objects::put`].
    fn remove(&self, name: &str) -> Result<(), ContentError>;

    /// The names of all segments.
    ///
    /// # Errors
    /// As [`Objects::put`].
    fn list(&self) -> Result<Vec<String>, ContentError>;
}

/// Random read access. Calls block.
pub trait ReadAt: fmt::Debug + Send + Sync {
    /// Fills the buffer with the bytes from `at` on.
    ///
    /// # Errors
    /// If there are too few bytes, or they can't be read.
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()>;
}

/// Content opened for reading. Bytes after its end are to be ignored.
#[derive(Debug)]
pub enum Content {
    /// In a file.
    File(File),
    /// In an object.
    Object(Box<dyn ReadAt>),
}

impl Content {
    /// Returns a reader of its first bytes.
    pub fn reader(self, bytes: u64) -> ContentReader {
        ContentReader {
            content: self,
            at: 0,
            end: bytes,
        }
    }
}

impl ReadAt for Content {
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.read_exact_at(buffer, at),
            Self::Object(object) => object.read_exact_at(buffer, at),
        }
    }
}

/// A sequential reader of content. It returns an error if the content is too short.
#[derive(Debug)]
pub struct ContentReader {
    content: Content,
    at: u64,
    end: u64,
}

impl Read for ContentReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        self.content.read_exact_at(&mut buffer[..count], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
