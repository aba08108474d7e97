//! Pins: references to content by uncommitted changes, which protect it from sweeps.
//!
//! Content is stored before the record that refers to it is committed. Until then a pin is its only
//! reference: from before the content is looked up in its folder until the record is committed or
//! abandoned. Pins are in memory, and for sweeps of other processes also in locks of the system.
//! That is enough: a crash ends uncommitted changes together with their pins.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::process_locks::Locked;
use crate::{ContentHash, Placed};

#[derive(Debug, Default)]
pub(crate) struct Pins {
    held: HashMap<ContentHash, u32>,
    /// The folders being swept, and the content pinned there at any time since the sweep began.
    sweep: Option<(RangeInclusive<u8>, HashSet<ContentHash>)>,
}

pub(crate) type SharedPins = Arc<Mutex<Pins>>;

/// Protects the content with its hash until it is dropped.
#[derive(Debug)]
pub struct Pin {
    pins: SharedPins,
    hash: ContentHash,
    placed: Placed,
    /// The same for other processes.
    _elsewhere: Option<Locked>,
}

impl Pin {
    pub(crate) fn new(pins: &SharedPins, hash: ContentHash, elsewhere: Option<Locked>) -> Self {
        let mut locked = lock(pins);
        *locked.held.entry(hash).or_default() += 1;
        if let Some((folders, touched)) = &mut locked.sweep
            && folders.contains(&hash.as_bytes()[0])
        {
            touched.insert(hash);
        }
        drop(locked);
        Self {
            pins: Arc::clone(pins),
            hash,
            placed: Placed::InFile,
            _elsewhere: elsewhere,
        }
    }

    /// The same for content in an object, which records protect.
    pub(crate) fn of_object(pins: &SharedPins, hash: ContentHash, placed: Placed) -> Self {
        let mut pin = Self::new(pins, hash, None);
        pin.placed = placed;
        pin
    }

    /// Returns the place of the content.
    pub fn placed(&self) -> Placed {
        self.placed
    }

    /// The content's hash.
    pub fn hash(&self) -> ContentHash {
        self.hash
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut pins = lock(&self.pins);
        if let Some(count) = pins.held.get_mut(&self.hash) {
            *count -= 1;
            if *count == 0 {
                pins.held.remove(&self.hash);
            }
        }
    }
}

impl Pins {
    /// Starts a sweep of folders; false if another one is running.
    pub(crate) fn begin_sweep(&mut self, folders: RangeInclusive<u8>) -> bool {
        if self.sweep.is_some() {
            return false;
        }
        let is_there = |hash: &&ContentHash| folders.contains(&hash.as_bytes()[0]);
        let held = self.held.keys().filter(is_there).copied().collect();
        self.sweep = Some((folders, held));
        true
    }

    pub(crate) fn end_sweep(&mut self) {
        self.sweep = None;
    }

    /// Returns true if the content was pinned at any time since the sweep began.
    pub(crate) fn was_pinned(&self, hash: &ContentHash) -> bool {
        let touched = self.sweep.as_ref().map(|(_, touched)| touched);
        touched.is_none_or(|touched| touched.contains(hash))
    }
}

/// A thread that panicked with the lock leaves counts that are correct or too high.
pub(crate) fn lock(pins: &SharedPins) -> MutexGuard<'_, Pins> {
    pins.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pinned_during_a_sweep_counts_to_its_end() {
        let pins = SharedPins::default();
        let (early, late, never) = (
            ContentHash::from_bytes([7; 32]),
            ContentHash::from_bytes([7; 32].map(|byte| byte)),
            ContentHash::from_bytes([7, 8].repeat(16).try_into().unwrap()),
        );
        let first = Pin::new(&pins, early, None);
        assert!(lock(&pins).begin_sweep(6..=7) && !lock(&pins).begin_sweep(8..=8));
        drop(first);
        drop(Pin::new(&pins, late, None));
        assert!(lock(&pins).was_pinned(&early) && lock(&pins).was_pinned(&late));
        assert!(!lock(&pins).was_pinned(&never));
        lock(&pins).end_sweep();
        assert!(lock(&pins).begin_sweep(7..=7) && !lock(&pins).was_pinned(&early));
        assert!(lock(&pins).held.is_empty());
    }
}
