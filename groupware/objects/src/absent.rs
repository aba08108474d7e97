//! What stands in for an object store where this program can't speak to one.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use groupware_content::{ContentError, ContentHash, ObjectId, Objects, Placed, ReadAt, Segments};
use groupware_store::Store;

use crate::{Address, Credentials, OpenError, Stats};

/// None can be had.
#[derive(Debug)]
pub enum Shelf {}

impl Shelf {
    /// Says that it can't be.
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

    /// Nothing.
    pub fn server(&self) -> &str {
        match *self {}
    }

    /// It isn't.
    pub fn is_there(&self) -> bool {
        match *self {}
    }

    /// There is none.
    pub fn stats(&self) -> Stats {
        match *self {}
    }
}

impl Objects for Shelf {
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

impl Segments for Shelf {
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
