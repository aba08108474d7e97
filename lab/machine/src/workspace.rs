//! What both systems of a duet share on a machine: kernel settings, the folders of their data, and facts of each other.
//! The first system prepares the machine, and the last one restores it. A single system has it for itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lab_host::HostError;
use lab_host::kernel::Kernel;
use lab_study::KernelSetting;

use crate::error::MachineError;
use crate::scratch::Work;
use crate::slots::Slot;

/// The workspace of one trial, or of both trials of a duet.
#[derive(Debug, Default)]
pub(crate) struct Workspace(Mutex<WorkspaceState>);

/// Dropped, all is restored: folders before settings, which are journalled with what is mounted in them.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceState {
    /// Number of systems held.
    held: usize,
    works: BTreeMap<PathBuf, Work>,
    kernel: Option<(Vec<KernelSetting>, Kernel)>,
    /// Processes of each, as last reported.
    processes: [Vec<u32>; 2],
}

impl Workspace {
    /// Locks the shared state.
    pub(crate) fn common(&self) -> MutexGuard<'_, WorkspaceState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a system's processes, and adds those of the other system.
    pub(crate) fn with_other(&self, slot: Slot, own: Vec<u32>) -> Vec<u32> {
        let mut common = self.common();
        common.processes[slot.at()].clone_from(&own);
        let other = common.processes[slot.other().at()].iter().copied();
        // Its own processes are first.
        own.into_iter().chain(other).collect()
    }
}

impl WorkspaceState {
    /// Returns true if no system uses it.
    pub(crate) fn is_free(&self) -> bool {
        self.held == 0
    }

    /// Returns true if a system with these settings may start beside the present one.
    pub(crate) fn agrees(&self, settings: &[KernelSetting]) -> bool {
        let set = self.kernel.as_ref().map(|(set, _)| &set[..]);
        self.is_free() || set == Some(settings)
    }

    /// The parent of the trials' folders, in one of the owner's folders.
    pub(crate) fn work(&mut self, folder: &Path, state: &Path) -> Result<&Work, MachineError> {
        if !self.works.contains_key(folder) {
            let work = Work::in_storage(&folder.to_string_lossy(), state)?;
            self.works.insert(folder.to_path_buf(), work);
        }
        Ok(&self.works[folder])
    }

    /// The first system has the old settings journalled, and the folders in which file systems are made.
    pub(crate) fn begin(
        &mut self,
        state: &Path,
        settings: &[KernelSetting],
        disks: Vec<PathBuf>,
    ) -> Result<(), HostError> {
        if self.is_free() {
            let kernel = Kernel::of(state, settings.iter(), disks)?;
            self.kernel = Some((settings.to_vec(), kernel));
        }
        Ok(())
    }

    /// Replaces the settings of a system.
    #[cfg(test)]
    pub(crate) fn set(&mut self, kernel: Kernel) {
        self.kernel = Some((Vec::new(), kernel));
    }

    /// Counts a system.
    pub(crate) fn come(&mut self) {
        self.held += 1;
    }

    /// Applies the settings.
    pub(crate) fn apply(&self) -> Result<BTreeMap<String, String>, HostError> {
        let kernel = self.kernel.as_ref();
        kernel.map_or_else(
            || Ok(BTreeMap::new()),
            |(settings, kernel)| kernel.apply(settings),
        )
    }

    /// Releases a system. The last one restores settings and removes file systems.
    pub(crate) fn leave(&mut self, slot: Slot) -> Result<(), HostError> {
        self.held = self.held.saturating_sub(1);
        self.processes[slot.at()].clear();
        self.end_if_free()
    }

    /// Restores settings if no system needs them.
    pub(crate) fn end_if_free(&mut self) -> Result<(), HostError> {
        match self.kernel.take_if(|_| self.held == 0) {
            Some((_, kernel)) => kernel.put_back().and_then(|()| kernel.finish()),
            None => Ok(()),
        }
    }

    /// Removes the folders if no system has data in them.
    pub(crate) fn clear_if_free(&mut self) {
        if self.is_free() {
            self.works.clear();
        }
    }
}
