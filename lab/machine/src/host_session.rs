//! Prepares a machine for a trial's system: its folder, cores, and settings, within what its owner allows. It receives
//! no orders.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use lab_host::cores;
use lab_host::disk::{Disk, DiskFacts};
use lab_host::journal::{Gone, restore};
use lab_host::kernel::Kernel;
use lab_monitor::{MonitorSpec, Roots};
use lab_study::{Cpus, FilesystemSpec, HostSpec};

use crate::allow::Allowed;
use crate::error::MachineError;
use crate::local::Local;
use crate::machine::Machine;
use crate::message::{MOST_USERS, Setup};
use crate::output;
use crate::scratch::{Scratch, Work};
use crate::slots::{CoreSharing, Slot};
use crate::start::Start;
use crate::workspace::{Workspace, WorkspaceState};

/// Prefix of the system's counters.
pub(crate) const SYSTEM: &str = "system";
/// Prefix of the counters of the other system of a duet.
const OTHER: &str = "beside";

/// The resources that an agent's machine has for systems.
#[derive(Debug)]
pub(crate) struct HostSession {
    pub(crate) allowed: Allowed,
    /// The `plimsoll` binary.
    pub(crate) program: PathBuf,
    /// The folder of the agent's journal of kernel settings.
    pub(crate) state: PathBuf,
    /// Cores available to systems.
    pub(crate) cores: Vec<u32>,
}

/// Restores what a killed agent left changed, whatever its next start may change.
///
/// # Errors
/// When that can't be done.
pub fn restore_host(state: &Path) -> Result<(), MachineError> {
    restore(state, Gone::Keep)?;
    Ok(())
}

/// A trial's system, with all that is undone after it, in this order.
#[derive(Debug)]
pub(crate) struct HeldSystem {
    pub(crate) machine: Local,
    /// True if it runs, as far as known.
    pub(crate) runs: bool,
    pub(crate) output: PathBuf,
    pub(crate) setup: Setup,
    pub(crate) scratch: Scratch,
}

impl HostSession {
    pub(crate) fn work(&self, folder: &Path) -> Result<Work, MachineError> {
        Work::in_storage(&folder.to_string_lossy(), &self.state)
    }

    /// Makes a file system as trials will have it, and removes it: returns the reason if that fails.
    pub(crate) fn try_disk(
        &self,
        host: &HostSpec,
        spec: &FilesystemSpec,
    ) -> Result<Option<String>, MachineError> {
        // What an earlier trial could not remove: this trial's journal would overwrite its entries.
        restore_host(&self.state)?;
        let work = self.work(self.allowed.folder(host).unwrap_or(&self.state))?;
        let whole = work.whole()?;
        let free = lab_host::machine::free_bytes(&whole).unwrap_or(u64::MAX);
        if free < spec.bytes {
            let megabytes = |bytes: u64| bytes / 1_000_000;
            return Ok(Some(format!(
                "a file system of {} MB is wanted in a folder with {} MB free",
                megabytes(spec.bytes),
                megabytes(free)
            )));
        }
        let journal = Kernel::of(&self.state, std::iter::empty(), vec![whole.clone()])?;
        let tried = Disk::try_out(spec, &whole.join("try"));
        journal.finish()?;
        Ok(tried.err().map(|error| error.to_string()))
    }

    /// Makes the folder of a trial, with a file system of its own if requested. The old kernel settings and the places
    /// of file systems are journalled before.
    pub(crate) fn hold(
        &self,
        setup: Setup,
        (ground, slot): (&Workspace, Slot),
        gone: &AtomicBool,
    ) -> Result<HeldSystem, MachineError> {
        let mut common = ground.common();
        let made = self.make(&setup, &mut common, gone);
        if made.is_err() {
            common.end_if_free()?;
            common.clear_if_free();
        }
        let scratch = made?;
        common.come();
        drop(common);
        let output = scratch.file("output");
        let start = Start {
            program: self.program.clone(),
            secure: setup.secure,
            address: self.allowed.address,
            only_there: true,
            cores: self.cores_of(&setup, slot),
            folder: scratch.folder().to_path_buf(),
            output: output.clone(),
        };
        let machine = Local::new(start, self.allowed.settled(&setup.spec));
        Ok(HeldSystem {
            machine,
            runs: false,
            output,
            setup,
            scratch,
        })
    }

    fn make(
        &self,
        setup: &Setup,
        common: &mut WorkspaceState,
        gone: &AtomicBool,
    ) -> Result<Scratch, MachineError> {
        if common.is_free() {
            // What an earlier trial could not restore: no trial begins before that is done.
            restore_host(&self.state)?;
        }
        let disks = self.disks(setup, common)?;
        common.begin(&self.state, &setup.host.kernel, disks)?;
        // The check of the setup has passed: the folder is an allowed one.
        let folder = self.allowed.folder(&setup.host).unwrap_or(&self.state);
        let work = common.work(folder, &self.state)?;
        work.fresh_on(setup.host.filesystem.as_ref(), setup.trial, gone)
    }

    /// The folders in which file systems are made. For a duet, all allowed ones: the other system's is not known yet.
    fn disks(
        &self,
        setup: &Setup,
        common: &mut WorkspaceState,
    ) -> Result<Vec<PathBuf>, MachineError> {
        let own = setup.host.filesystem.as_ref();
        let own = own.and_then(|_| self.allowed.folder(&setup.host));
        let all = setup
            .core_sharing
            .filter(|_| self.allowed.makes_filesystems());
        let folders: Vec<&Path> = match all {
            Some(_) => self
                .allowed
                .folders()
                .iter()
                .map(PathBuf::as_path)
                .collect(),
            None => own.into_iter().collect(),
        };
        let wholes = folders
            .into_iter()
            .map(|folder| common.work(folder, &self.state)?.whole());
        wholes.collect()
    }

    /// The agent's cores that a study wants; for a duet kept apart, a half of them.
    pub(crate) fn cores_of(&self, setup: &Setup, slot: Slot) -> Vec<u32> {
        let halves = match setup.core_sharing {
            Some(CoreSharing::Split) => cores::split(&self.cores, &cores::siblings),
            Some(CoreSharing::Shared) | None => None,
        };
        match halves {
            Some(halves) => halves[slot.at()].clone(),
            None => chosen(setup.host.cpus.as_ref(), &self.cores),
        }
    }
}

impl HeldSystem {
    /// Facts of the file system made for it.
    pub(crate) fn storage(&self) -> Vec<(String, String)> {
        let folder = self.setup.host.storage.as_deref();
        let told = |disk: &DiskFacts| disk.told(Some(folder.unwrap_or("the agent's folder")));
        self.scratch
            .disk()
            .map(told)
            .into_iter()
            .flatten()
            .collect()
    }

    pub(crate) fn counted(&self) -> MonitorSpec {
        let counted = self.machine.counted();
        let processes = counted.iter().map(|one| (SYSTEM.to_owned(), one.pid));
        let hold = counted.and_then(|one| one.hold);
        let holds = hold.map(|hold| (SYSTEM.to_owned(), hold.clone()));
        // Other processes below this program belong to the other system.
        let other = self.setup.core_sharing;
        let other = other.map(|_| (OTHER.to_owned(), std::process::id()));
        MonitorSpec {
            data_dir: Some(self.scratch.data()),
            processes: processes.chain(other).collect(),
            holds: holds.into_iter().collect(),
            remote: false,
            roots: Roots::default(),
        }
    }

    /// Stops the system, and truncates its output to what may be sent. Returns a sentence about a failure or a
    /// truncation.
    pub(crate) fn stop(&mut self, gone: &AtomicBool) -> Option<String> {
        self.runs = false;
        let ended = self.machine.end(gone);
        let shortened = output::shorten(&self.output).unwrap_or_default();
        let notes: Vec<String> = ended.into_iter().chain(shortened).collect();
        (!notes.is_empty()).then(|| notes.join(" "))
    }
}

/// Appends a piece of the list of users, which may have passwords; returns the new length of the list. The first piece
/// truncates it.
pub(crate) fn keep_users(path: &Path, after: u64, piece: &str) -> io::Result<u64> {
    let mut options = OpenOptions::new();
    let options = options.create(true).append(true).mode(0o600);
    let mut file = options.open(path)?;
    if after == 0 {
        file.set_len(0)?;
    }
    if file.metadata()?.len() != after {
        return Err(io::Error::other("a piece of it is missing"));
    }
    let bytes = after + piece.len() as u64;
    if bytes > MOST_USERS {
        let gigabytes = MOST_USERS >> 30;
        return Err(io::Error::other(format!("it has over {gigabytes} GB")));
    }
    file.write_all(piece.as_bytes())?;
    Ok(bytes)
}

/// The agent's cores that a study wants.
fn chosen(cpus: Option<&Cpus>, cores: &[u32]) -> Vec<u32> {
    match cpus {
        None => cores.to_vec(),
        Some(Cpus::List(list)) => list.clone(),
        Some(Cpus::Count(count)) => cores.iter().copied().take(*count as usize).collect(),
    }
}
