//! What a sweep could not do.

use std::error::Error;

/// What went wrong, in words, is left to the next sweep.
pub(crate) struct Failed(pub(crate) String);

impl<E: Error> From<E> for Failed {
    fn from(error: E) -> Self {
        let mut words = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            words += &format!(": {error}");
            source = error.source();
        }
        Self(words)
    }
}
