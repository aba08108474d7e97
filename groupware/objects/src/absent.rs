//! Stands in for an object store in a build without support for one.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use groupware_content::{ContentError, ContentHash, ObjectId, Objects, Placed, ReadAt, Segments};
use groupware_store::Store;

use crate::{Address, Credentials, OpenError, Stats};

/// An object store; no value exists in this build.
#[derive(Debug)]
pub enum ObjectStorage {}

impl ObjectStorage {
    /// Always fails.
    ///
    /// # Errors
    /// [`OpenError::NotBuilt`].
    pub fn open(
        _store: &Store,
        _place: (&Address, &Credentials),
        _bits: fn() -> u128,
    ) -> Result<Arc<Self>, OpenError> {
        Err(OpenError::NotBuilt)
    }

    /// Unreachable: there is no value.
    pub fn server(&self) -> &str {
        match *self {}
    }

    /// Unreachable: there is no value.
    pub fn is_there(&self) -> bool {
        match *self {}
    }

    /// Unreachable: there is no value.
    pub fn stats(&self) -> Stats {
        match *self {}
    }
}

impl Objects for ObjectStorage {
    fn put(&self, _: ContentHash, _: &File, _: u64) -> Result<Placed, ContentError> {
        match *self {}
    }

    fn read(&self, _: ContentHash, _: (u64, u64)) -> Result<Option<Box<dyn ReadAt>>, ContentError> {
        match *self {}
    }

    fn remove(&self, _: ContentHash, _: ObjectId, _: Option<&str>) -> Result<(), ContentError> {
        match *self {}
    }

    fn list(&self, _: u8) -> Result<Vec<(ContentHash, ObjectId)>, ContentError> {
        match *self {}
    }
}

impl Segments for ObjectStorage {
    fn put(
        &self,
        _: &str,
        _: &dyn Fn() -> Result<Vec<u8>, ContentError>,
    ) -> Result<(), ContentError> {
        match *self {}
    }

    fn read(
        &self,
        _: &str,
        _: Range<u64>,
        _: &mut dyn FnMut(&[u8]) -> Result<(), ContentError>,
    ) -> Result<(), ContentError> {
        match *self {}
    }

    fn has(&self, _: &str) -> Result<bool, ContentError> {
        match *self {}
    }

    fn remove(&self, _: &str) -> Result<(), ContentError> {
        match *self {}
    }

    fn list(&self) -> Result<Vec<String>, ContentError> {
        match *self {}
    }
}
