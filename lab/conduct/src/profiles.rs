//! What the profiles of a run have in common.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lab_archive::Frames;

/// What the profiles of a run have in common, so that its trials can be compared.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    pub(crate) decided: Arc<Mutex<Decided>>,
    /// Whether it was told why there are none.
    pub(crate) told: AtomicBool,
}

/// What the first trial decides for all.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Decided {
    pub(crate) rate: Option<f64>,
    pub(crate) frames: Option<Frames>,
}

pub(crate) fn lock(decided: &Mutex<Decided>) -> MutexGuard<'_, Decided> {
    decided.lock().unwrap_or_else(PoisonError::into_inner)
}
