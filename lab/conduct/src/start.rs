//! A system that runs and accepts requests, whichever kind it is. It knows no load.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab_archive::{Noted, StartingState, SystemHost};
use lab_driver::{BaseUrl, Clock};
use lab_machine::scratch::Scratch;
use lab_machine::{
    Beside, Counted, Counts, Hand, Machine, Row, Setting, Start, Started, Watched, local,
    starting_state,
};
use lab_study::plan::Trial;
use lab_study::{KernelSetting, ReachSpec, SystemSpec};

use crate::far::{Machines, SystemMachine};
use crate::parts::Parts;
use crate::reach::Reach;
use crate::stop::{Stop, stopped};

/// Between two looks at a system that starts.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Variables of each user that provisioning gave, by index.
pub(crate) type UserExtra = Vec<Vec<(String, String)>>;

/// How a system is started.
#[derive(Debug)]
pub(crate) struct SystemStart<'a> {
    /// The `plimsoll` binary.
    pub(crate) program: &'a Path,
    pub(crate) spec: &'a SystemSpec,
    /// How its users reach it.
    pub(crate) reach: &'a ReachSpec,
    pub(crate) cores: &'a [u32],
    pub(crate) scratch: &'a Scratch,
    /// The agent of its machine, where that is another one.
    pub(crate) far: Option<&'a SystemMachine>,
    /// Which of two it is there, and how it is beside the other one, in a duet.
    pub(crate) beside: Option<(Hand, Beside)>,
    /// Those of its parts on other machines.
    pub(crate) machines: &'a Machines,
    pub(crate) trial: &'a Trial,
    /// The file that its output goes to.
    pub(crate) output: PathBuf,
}

impl SystemStart<'_> {
    /// What its programs are started with on this machine.
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
    /// What was started before it on other machines.
    pub(crate) parts: Parts,
    pub(crate) process: Process,
    /// What its trial's record is to say of it.
    pub(crate) noted: Option<Noted>,
    pub(crate) base: BaseUrl,
    pub(crate) address: SocketAddr,
    /// The way to it, once it runs.
    pub(crate) reach: Reach,
    /// With what the trial filled in.
    pub(crate) setting: Setting,
}

/// Whose process it is.
pub(crate) enum Process {
    /// One that the trial started, wherever that is, or that another machine's agent looks after.
    Own(Box<dyn Machine>),
    /// One that ran before on this machine, and runs on; `None` where the study does not say which.
    Attached(Option<Watched>),
}

impl System {
    /// One that was started.
    pub(crate) fn of(machine: Box<dyn Machine>, started: Started, secure: bool) -> Self {
        Self {
            parts: Parts::default(),
            process: Process::Own(machine),
            noted: None,
            base: local(started.address, secure),
            address: started.address,
            reach: Reach::default(),
            setting: started.setting,
        }
    }

    /// What is counted of it on this machine.
    pub(crate) fn counted(&self) -> Option<Counted<'_>> {
        match &self.process {
            Process::Own(machine) => machine.counted(),
            Process::Attached(watched) => {
                let pid = watched.map(|watched| watched.pid)?;
                Some(Counted { pid, hold: None })
            }
        }
    }

    /// Its first process, and those that it holds.
    pub(crate) fn processes(&self) -> Vec<u32> {
        match &self.process {
            Process::Own(machine) => machine.processes(),
            Process::Attached(watched) => watched.iter().map(|watched| watched.pid).collect(),
        }
    }

    /// The state that its trial begins in, with the settings that the study touches; of one that was attached
    /// to, what this machine has.
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

    /// Has what is counted on other machines counted there: on that of what users come to, and on those of its parts.
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

    /// What was counted on other machines since the last call, likewise.
    pub(crate) fn rows(&mut self) -> Vec<Vec<Row>> {
        let own = match &mut self.process {
            Process::Own(machine) => machine.rows(),
            Process::Attached(_) => Vec::new(),
        };
        [vec![own], self.parts.rows()].concat()
    }

    /// Begins to look at what surrounds it on other machines.
    pub(crate) fn look_around(&mut self) -> Result<(), Stop> {
        self.parts.look_around()?;
        match &mut self.process {
            Process::Own(machine) => machine.look_around().map_err(stopped),
            Process::Attached(_) => Ok(()),
        }
    }

    /// What surrounded it on another machine.
    pub(crate) fn looked_around(&mut self) -> Result<Option<SystemHost>, Stop> {
        match &mut self.process {
            Process::Own(machine) => machine.looked_around().map_err(stopped),
            Process::Attached(_) => Ok(None),
        }
    }

    /// Kernel settings in force on other machines.
    pub(crate) fn kernel(&self) -> BTreeMap<String, String> {
        let mut all = self.parts.kernel();
        if let Process::Own(machine) = &self.process {
            all.extend(machine.kernel());
        }
        all
    }

    /// What is told of file systems that were made on other machines.
    pub(crate) fn storage(&self) -> BTreeMap<String, String> {
        let mut all = self.parts.storage();
        if let Process::Own(machine) = &self.process {
            all.extend(machine.storage().iter().cloned());
        }
        all
    }

    /// Whether it runs on this machine, as far as is known.
    pub(crate) fn is_here(&self) -> bool {
        match &self.process {
            Process::Own(machine) => machine.counted().is_some(),
            Process::Attached(_) => true,
        }
    }

    /// Puts threads back on the system's cores that left them; how many did.
    pub(crate) fn keep_on(&self, cores: &[u32]) -> usize {
        match &self.process {
            Process::Own(machine) => machine.keep_on(cores),
            Process::Attached(_) => 0,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it is prepared.
    pub(crate) fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// Where its users send their requests.
    pub(crate) fn users_base(&self) -> BaseUrl {
        let (own, http) = (self.base.clone(), false);
        match self.setting.users_port {
            0 => own,
            port => BaseUrl { http, port, ..own },
        }
    }

    /// An error with its last lines, if it has ended.
    pub(crate) fn check(&mut self) -> Result<(), Stop> {
        // It may end because one of these has.
        self.parts.look()?;
        match &mut self.process {
            Process::Own(machine) => machine.look().map_err(stopped),
            Process::Attached(watched) => match watched.and_then(|watched| watched.ended()) {
                Some(end) => Err(Stop::System(format!("the system {end} during the trial"))),
                None => Ok(()),
            },
        }
    }

    /// Ends it, where the trial started it; a sentence if that did not go well.
    pub(crate) fn stop(self) -> Result<Option<String>, Stop> {
        let ended = match self.process {
            Process::Own(mut machine) => machine.stop().map_err(stopped),
            Process::Attached(_) => Ok(None),
        };
        self.parts.stop(ended)
    }
}
