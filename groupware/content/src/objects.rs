//! Content that lies in an object store instead of a file: what such a store must do, and how content is read
//! wherever it lies.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use groupware_ids::{ContentHash, ObjectId, Placed};

use crate::ContentError;

/// A store of objects. Its calls block on the network, within bounds of its own.
pub trait Objects: fmt::Debug + Send + Sync {
    /// Puts the first bytes of a file, which have this hash. When it returns, they are as durable as the store
    /// makes them.
    ///
    /// # Errors
    /// [`ContentError::Away`] where the store can't be reached or is too slow; [`ContentError::Full`].
    fn put(&self, hash: ContentHash, file: &File, bytes: u64) -> Result<Placed, ContentError>;

    /// Begins to read content from `at` on, so many bytes; `None` where no object has it.
    ///
    /// # Errors
    /// [`ContentError::Missing`] where the object that should have it is gone; as [`Objects::put`].
    fn read(
        &self,
        hash: ContentHash,
        span: (u64, u64),
    ) -> Result<Option<Box<dyn ReadAt>>, ContentError>;

    /// Removes an object, with what came in of its parts. Where there is none, that is no failure.
    ///
    /// # Errors
    /// As [`Objects::put`].
    fn remove(
        &self,
        hash: ContentHash,
        id: ObjectId,
        parts: Option<&str>,
    ) -> Result<(), ContentError>;

    /// The objects that there are, of content whose hash begins with this byte.
    ///
    /// # Errors
    /// As [`Objects::put`].
    fn list(&self, first: u8) -> Result<Vec<(ContentHash, ObjectId)>, ContentError>;
}

/// Segments of uploads under way, in a store of objects that several servers use. Its calls block on the network,
/// within bounds of its own.
pub trait Segments: fmt::Debug + Send + Sync {
    /// Puts a segment. When it returns, its bytes are as durable as the store makes them. They are read when it is their
    /// turn, so that no more is in memory than is sent.
    ///
    /// # Errors
    /// As [`Objects::put`]; those of `read`.
    fn put(
        &self,
        name: &str,
        read: &dyn Fn() -> Result<Vec<u8>, ContentError>,
    ) -> Result<(), ContentError>;

    /// Reads the bytes of a segment within this span, in pieces as they come.
    ///
    /// # Errors
    /// [`ContentError::Missing`] where there is no such segment, and as [`Objects::put`]; those of `take`.
    fn read(
        &self,
        name: &str,
        span: Range<u64>,
        take: &mut dyn FnMut(&[u8]) -> Result<(), ContentError>,
    ) -> Result<(), ContentError>;

    /// Whether there is a segment of this name. Its bytes are not read.
    ///
    /// # Errors
    /// As [`Objects::put`].
    fn has(&self, name: &str) -> Result<bool, ContentError>;

    /// Removes a segment. Where there is none, that is no failure.
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

/// What can be read from any place on. Calls block.
pub trait ReadAt: fmt::Debug + Send + Sync {
    /// Fills the buffer with what is there from `at` on.
    ///
    /// # Errors
    /// When there is less, or it can't be read.
    fn read_exact_at(&self, buffer: &mut [u8], at: u64) -> io::Result<()>;
}

/// Content, opened for reading. Behind its bytes there may be others, which don't count.
#[derive(Debug)]
pub enum Content {
    /// In a file.
    File(File),
    /// In an object.
    Object(Box<dyn ReadAt>),
}

impl Content {
    /// Its bytes from the first on, so many.
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

/// Content, read from its beginning to its end. It is an error if it ends before that.
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
