//! A system that runs and accepts requests, whichever kind it is. It knows no load.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab_driver::remote::Elsewhere;
use lab_driver::{BaseUrl, Clock, DriverError};
use lab_machine::scratch::Scratch;
use lab_machine::{
    Counted, Counts, Failed, Machine, Row, Setting, Start, Started, State, Surrounded, Watched,
    local,
};
use lab_study::plan::Trial;
use lab_study::{KernelSetting, ReachSpec, SystemSpec};

use crate::ConductError;
use crate::reach::Reach;

/// Between two looks at a system that starts.
pub(crate) const LOOK: Duration = Duration::from_millis(20);
/// How long after the end of its hold, or when it is told to end, a driver may take.
pub(crate) const DRIVER_GRACE: Duration = Duration::from_secs(30);

/// Variables of each user that provisioning gave, by index.
pub(crate) type UserExtra = Vec<Vec<(String, String)>>;

/// Why a trial stops before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The system under test failed; with its last lines.
    System(String),
    /// A generator process failed; with its last words.
    Generator(String),
    /// A generator on another machine was lost, or the system's.
    Lost(String),
    /// What the study wants a trial ended by came; what, and when.
    Aborted(String),
    /// The user wants it.
    Interrupted,
    /// The run can't go on.
    Fatal(ConductError),
}

impl Stop {
    /// A generator that is to end, and doesn't. It is told to, and left behind: on a machine whose cores are
    /// all taken it may just not get to it, which is no reason to lose the trials that follow.
    pub(crate) fn overdue() -> Self {
        let seconds = DRIVER_GRACE.as_secs();
        Self::Generator(format!(
            "the load generator had not ended {seconds} s after its hold, as one does that gets no CPU time"
        ))
    }
}

impl<E: Into<ConductError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Fatal(error.into())
    }
}

/// What became of something on a machine, for the trial.
pub(crate) fn stopped(failed: Failed) -> Stop {
    match failed {
        Failed::System(message) => Stop::System(message),
        Failed::Lost(message) => Stop::Lost(message),
        Failed::Interrupted => Stop::Interrupted,
        Failed::Fatal(error) => error.into(),
    }
}

/// What became of a trial, once its system was ended, with what is to be noted of that end. The first failure is
/// its end, but of a machine that can't be left as it was no other trial is measured.
pub(crate) fn with_end(
    result: Result<(), Stop>,
    ended: Result<Option<String>, Stop>,
) -> (Result<(), Stop>, Option<String>) {
    match (result, ended) {
        (result, Ok(note)) => (result, note),
        (Ok(()), Err(stop)) => (Err(stop), None),
        (Err(Stop::Fatal(error)), Err(_)) | (Err(_), Err(Stop::Fatal(error))) => {
            (Err(Stop::Fatal(error)), None)
        }
        (result, Err(Stop::System(why) | Stop::Lost(why))) => {
            (result, Some(format!("When the system was ended: {why}.")))
        }
        (result, Err(_)) => (result, None),
    }
}

/// A generator that fails is a fact of its trial, as a failing system is.
pub(crate) fn driver_stop(error: DriverError) -> Stop {
    match error {
        DriverError::Generator { .. } => Stop::Generator(error.to_string()),
        DriverError::Lost { .. } => Stop::Lost(error.to_string()),
        error => error.into(),
    }
}

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
    pub(crate) far: Option<&'a dyn Elsewhere>,
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
    pub(crate) process: Process,
    /// What its trial's record is to say of it.
    pub(crate) note: Option<String>,
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
            process: Process::Own(machine),
            note: None,
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
    pub(crate) fn state(&mut self, data: &Path, touched: &[KernelSetting]) -> Result<State, Stop> {
        match &mut self.process {
            Process::Own(machine) => machine.state(touched).map_err(stopped),
            Process::Attached(_) => Ok(State::read(data, touched.iter())),
        }
    }

    /// Has what is counted on another machine counted there.
    pub(crate) fn count(
        &mut self,
        clock: Clock,
        schedule: (Duration, Duration),
    ) -> Result<Counts, Stop> {
        let (every, end) = schedule;
        let zero = clock.shared_zero();
        match &mut self.process {
            Process::Own(machine) => machine.count(zero, every, end).map_err(stopped),
            Process::Attached(_) => Ok(Counts::default()),
        }
    }

    /// What was counted on another machine since the last call.
    pub(crate) fn rows(&mut self) -> Vec<Row> {
        match &mut self.process {
            Process::Own(machine) => machine.rows(),
            Process::Attached(_) => Vec::new(),
        }
    }

    /// Begins to look at what surrounds it on another machine.
    pub(crate) fn look_around(&mut self) -> Result<(), Stop> {
        match &mut self.process {
            Process::Own(machine) => machine.look_around().map_err(stopped),
            Process::Attached(_) => Ok(()),
        }
    }

    /// What surrounded it on another machine.
    pub(crate) fn looked_around(&mut self) -> Result<Option<Surrounded>, Stop> {
        match &mut self.process {
            Process::Own(machine) => machine.looked_around().map_err(stopped),
            Process::Attached(_) => Ok(None),
        }
    }

    /// Kernel settings in force on another machine.
    pub(crate) fn kernel(&self) -> BTreeMap<String, String> {
        match &self.process {
            Process::Own(machine) => machine.kernel(),
            Process::Attached(_) => BTreeMap::new(),
        }
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
        match self.process {
            Process::Own(mut machine) => machine.stop().map_err(stopped),
            Process::Attached(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost() -> Stop {
        Stop::Lost("it was lost".to_owned())
    }

    #[test]
    fn what_shows_at_the_end_of_a_system_is_the_end_of_a_good_trial() {
        let (result, note) = with_end(Ok(()), Ok(Some("slow".to_owned())));
        assert!(result.is_ok() && note.as_deref() == Some("slow"));
        let (result, _) = with_end(Ok(()), Err(lost()));
        assert!(matches!(result, Err(Stop::Lost(_))), "{result:?}");
        let (result, _) = with_end(Ok(()), Err(Stop::System("it ended".to_owned())));
        assert!(matches!(result, Err(Stop::System(_))), "{result:?}");
    }

    #[test]
    fn the_first_failure_is_the_end_unless_the_machine_is_not_as_it_was() {
        let failed = || Err(Stop::Generator("no memory".to_owned()));
        let (result, note) = with_end(failed(), Err(lost()));
        assert!(matches!(result, Err(Stop::Generator(_))), "{result:?}");
        let expected = "When the system was ended: it was lost.";
        assert_eq!(note.as_deref(), Some(expected));
        let fatal = || Err(Stop::Fatal(ConductError::DriverEnded));
        let (result, _) = with_end(failed(), fatal());
        assert!(matches!(result, Err(Stop::Fatal(_))), "{result:?}");
        let (result, _) = with_end(Err(Stop::Interrupted), fatal());
        assert!(matches!(result, Err(Stop::Fatal(_))), "{result:?}");
    }
}
