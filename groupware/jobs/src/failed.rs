//! Failures of a sweep.

use std::error::Error;

/// The description of a failure; the next sweep retries.
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
