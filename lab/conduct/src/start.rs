//! A running system of any kind that accepts requests. It knows no load.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab_archive::{StartingState, SystemHost, Warning};
use lab_driver::{BaseUrl, Clock};
use lab_machine::scratch::Scratch;
use lab_machine::{
    AttachedProcess, CoreSharing, Counted, Counts, Machine, Row, Setting, Slot, Start, Started,
    local, starting_state,
};
use lab_study::plan::Trial;
use lab_study::{ConnectSpec, KernelSetting, SystemSpec};

use crate::connect::ConnectSettings;
use crate::parts::Parts;
use crate::remote_host::{Machines, SystemMachine};
use crate::stop::{Stop, stopped};

/// Interval between two checks of a starting system.
pub(crate) const END_CHECK: Duration = Duration::from_millis(20);

/// Variables of each user from provisioning, by index.
pub(crate) type UserExtra = Vec<Vec<(String, String)>>;

/// The inputs to start a system.
#[derive(Debug)]
pub(crate) struct SystemStart<'a> {
    /// The `plimsoll` binary.
    pub(crate) program: &'a Path,
    pub(crate) spec: &'a SystemSpec,
    /// The connection settings of its users.
    pub(crate) reach: &'a ConnectSpec,
    pub(crate) cores: &'a [u32],
    pub(crate) scratch: &'a Scratch,
    /// The agent of its host, if that is remote.
    pub(crate) far: Option<&'a SystemMachine>,
    /// Which of two systems it is there, and how it shares cores with the other one, in a duet.
    pub(crate) core_sharing: Option<(Slot, CoreSharing)>,
    /// The remote hosts of its parts.
    pub(crate) machines: &'a Machines,
    pub(crate) trial: &'a Trial,
    /// The file for its output.
    pub(crate) output: PathBuf,
}

impl SystemStart<'_> {
    /// The inputs to start its programs on this machine.
    pub(crate) fn here(&self) -> Start {
        Start {
            program: self.program.to_path_buf(),
            secure: self.reach.secure,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            only_there: false,
            cores: self.cores.to_vec(),
            folder: self.scratch.folder().to_path_buf(),
            output: self.output.clone(),
        }
    }
}

/// A running system that accepts requests.
pub(crate) struct System {
    /// The parts started before it on remote hosts.
    pub(crate) parts: Parts,
    pub(crate) process: Process,
    /// A warning for its trial's record.
    pub(crate) warning: Option<Warning>,
    pub(crate) base: BaseUrl,
    pub(crate) address: SocketAddr,
    /// The connection settings, once it runs.
    pub(crate) reach: ConnectSettings,
    /// The trial's values.
    pub(crate) setting: Setting,
}

/// The owner of its process.
pub(crate) enum Process {
    /// Started by the trial, local or remote, or watched by a remote host's agent.
    Own(Box<dyn Machine>),
    /// Already running on this machine before, and not stopped; `None` if the study does not identify it.
    Attached(Option<AttachedProcess>),
}

impl System {
    /// A started system.
    pub(crate) fn of(machine: Box<dyn Machine>, started: Started, secure: bool) -> Self {
        Self {
            parts: Parts::default(),
            process: Process::Own(machine),
            warning: None,
            base: local(started.address, secure),
            address: started.address,
            reach: ConnectSettings::default(),
            setting: started.setting,
        }
    }

    /// Its processes with counters on this machine.
    pub(crate) fn counted(&self) -> Option<Counted<'_>> {
        match &self.process {
            Process::Own(machine) => machine.counted(),
            Process::Attached(watched) => {
                let pid = watched.map(|watched| watched.pid)?;
                Some(Counted { pid, hold: None })
            }
        }
    }

    /// Its first process and its held processes.
    pub(crate) fn processes(&self) -> Vec<u32> {
        match &self.process {
            Process::Own(machine) => machine.processes(),
            Process::Attached(watched) => watched.iter().map(|watched| watched.pid).collect(),
        }
    }

    /// The state at the start of its trial, with the settings that the study touches; for an attached system, the state
    /// of this machine.
    pub(crate) fn state(
        &mut self,
        data: &Path,
        touched: &[KernelSetting],
    ) -> Result<StartingState, Stop> {
        match &mut self.process {
            Process::Own(machine) => machine.state(touched).map_err(stopped),
            Process::Attached(_) => Ok(starting_state(data, touched.iter())),
        }
    }

    /// Starts the counters of remote hosts: that of the process that users connect to, and those of the parts.
    pub(crate) fn count(
        &mut self,
        clock: Clock,
        schedule: (Duration, Duration),
    ) -> Result<(Counts, Vec<(String, Counts)>), Stop> {
        let (every, end) = schedule;
        let zero = clock.shared_zero();
        let own = match &mut self.process {
            Process::Own(machine) => machine.count(zero, every, end).map_err(stopped)?,
            Process::Attached(_) => Counts::default(),
        };
        Ok((own, self.parts.count(clock, schedule)?))
    }

    /// The remote counters since the last call, likewise.
    pub(crate) fn rows(&mut self) -> Vec<Vec<Row>> {
        let own = match &mut self.process {
            Process::Own(machine) => machine.rows(),
            Process::Attached(_) => Vec::new(),
        };
        [vec![own], self.parts.rows()].concat()
    }

    /// Starts to observe its environment on remote hosts.
    pub(crate) fn look_around(&mut self) -> Result<(), Stop> {
        self.parts.look_around()?;
        match &mut self.process {
            Process::Own(machine) => machine.look_around().map_err(stopped),
            Process::Attached(_) => Ok(()),
        }
    }

    /// Its environment on a remote host.
    pub(crate) fn looked_around(&mut self) -> Result<Option<SystemHost>, Stop> {
        match &mut self.process {
            Process::Own(machine) => machine.looked_around().map_err(stopped),
            Process::Attached(_) => Ok(None),
        }
    }

    /// Kernel settings in force on remote hosts.
    pub(crate) fn kernel(&self) -> BTreeMap<String, String> {
        let mut all = self.parts.kernel();
        if let Process::Own(machine) = &self.process {
            all.extend(machine.kernel());
        }
        all
    }

    /// Facts of file systems made on remote hosts.
    pub(crate) fn storage(&self) -> BTreeMap<String, String> {
        let mut all = self.parts.storage();
        if let Process::Own(machine) = &self.process {
            all.extend(machine.storage().iter().cloned());
        }
        all
    }

    /// Returns true if it runs on this machine, as far as known.
    pub(crate) fn is_here(&self) -> bool {
        match &self.process {
            Process::Own(machine) => machine.counted().is_some(),
            Process::Attached(_) => true,
        }
    }

    /// Pins threads that left the system's cores to them again; returns how many.
    pub(crate) fn keep_on(&self, cores: &[u32]) -> usize {
        match &self.process {
            Process::Own(machine) => machine.keep_on(cores),
            Process::Attached(_) => 0,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL of its preparation.
    pub(crate) fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// The base URL of its users.
    pub(crate) fn users_base(&self) -> BaseUrl {
        let (own, http) = (self.base.clone(), false);
        match self.setting.users_port {
            0 => own,
            port => BaseUrl { http, port, ..own },
        }
    }

    /// An error with its last lines, if it has ended.
    pub(crate) fn check(&mut self) -> Result<(), Stop> {
        // It may have ended because a part did.
        self.parts.look()?;
        match &mut self.process {
            Process::Own(machine) => machine.look().map_err(stopped),
            Process::Attached(watched) => match watched.and_then(|watched| watched.ended()) {
                Some(end) => Err(Stop::System(format!("the system {end} during the trial"))),
                None => Ok(()),
            },
        }
    }

    /// Stops it, if the trial started it; returns a sentence if that failed.
    pub(crate) fn stop(self) -> Result<Option<String>, Stop> {
        let ended = match self.process {
            Process::Own(mut machine) => machine.stop().map_err(stopped),
            Process::Attached(_) => Ok(None),
        };
        self.parts.stop(ended)
    }
}
