//! Systems on remote hosts, for a run: which parts of a trial are remote, which of them the agents refuse before
//! anything starts, and the connection to them in each trial. It knows no load.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lab_archive::Warning;
use lab_driver::DriverError;
use lab_driver::remote::{Peer, RemoteGenerators, Seen};
use lab_machine::{CoreSharing, RemoteMachine, Setup, Slot};
use lab_study::plan::{LoadKind, Plan, Trial};
use lab_study::{HostSpec, PartSpec, SystemSpec};

use crate::ConductError;
use crate::stop::{Stop, driver_stop, stopped};

/// The remote hosts of systems, by their names in the study.
pub type Machines = BTreeMap<String, SystemMachine>;

/// The remote host of a system under test, or of a part of one, with its agent.
#[derive(Debug, Clone)]
pub struct SystemMachine(Arc<dyn RemoteGenerators>);

impl SystemMachine {
    /// The host of this agent.
    #[must_use]
    pub fn new(agent: Arc<dyn RemoteGenerators>) -> Self {
        Self(agent)
    }

    /// Opens the connection for the next trial.
    pub(crate) fn open(&self) -> Result<Vec<Peer>, DriverError> {
        self.0.open()
    }

    /// Observations of its agent since the last trial was opened.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.0.seen()
    }
}

/// Returns true if a remote host has the trial's system.
pub(crate) fn is_remote(trial: &Trial) -> bool {
    trial.host.on.is_some()
}

/// Returns true if a remote host has any part of it.
pub(crate) fn has_remote_part(trial: &Trial) -> bool {
    trial.machines().next().is_some()
}

/// The trial with only the local part of the work around its system.
pub(crate) fn local_part(trial: &Trial) -> Trial {
    let mut here = trial.clone();
    if is_remote(trial) {
        here.host = HostSpec {
            on: trial.host.on.clone(),
            ..HostSpec::default()
        };
    }
    here
}

/// The plan with only the local part of each trial.
pub(crate) fn local_plan(plan: &Plan) -> Plan {
    let mut here_all = plan.clone();
    let searched = here_all
        .search
        .iter_mut()
        .flat_map(|search| &mut search.cells);
    for trial in here_all.trials.iter_mut().chain(searched) {
        *trial = local_part(trial);
    }
    here_all
}

/// Settings that are not possible with remote systems; one sentence each.
pub(crate) fn problems(plan: &Plan) -> Vec<String> {
    let mut problems = Vec::new();
    if !plan.every_trial().any(has_remote_part) {
        return problems;
    }
    let is_sequence = |trial: &Trial| matches!(trial.load.kind, LoadKind::Sequence { .. });
    if plan.raw_baseline
        && plan
            .every_trial()
            .any(|trial| has_remote_part(trial) && is_sequence(trial))
    {
        let what = "`raw_baseline` measures the disk of this machine, and the system runs `on` another: leave out one \
                    of them";
        problems.push(what.to_owned());
    }
    for trial in plan.every_trial().filter(|trial| is_remote(trial)) {
        let SystemSpec::Attach(spec) = &trial.system else {
            continue;
        };
        if !trial.host.kernel.is_empty() {
            let what = "kernel settings of another machine are set where its system is started: have it started as a \
                        `command`, or leave `kernel` out";
            problems.push(what.to_owned());
        }
        if spec.node_exporter.is_some() {
            let what = "counters come by the agent that the system is `on`, or by `node_exporter`: leave out one of them";
            problems.push(what.to_owned());
        }
    }
    problems.sort();
    problems.dedup();
    problems
}

/// Asks the agents which settings of a plan they refuse.
pub(crate) fn allowed(
    plan: &Plan,
    machines: &Machines,
    interrupt: &AtomicBool,
) -> Result<(), ConductError> {
    let mut problems = Vec::new();
    for (on, setups) in setups(plan) {
        let Some(machine) = machines.get(&on) else {
            problems.push(format!(
                "no agent has the system on {on}: name a fleet, and start one there"
            ));
            continue;
        };
        if setups.is_empty() {
            continue;
        }
        let refused = open(machine, None, PathBuf::new())
            .and_then(|mut afar| afar.check(&setups, interrupt).map_err(stopped));
        match refused {
            Ok(refused) => {
                problems.extend(refused.into_iter().map(|why| format!("on {on}: {why}")))
            }
            Err(Stop::Fatal(error)) => return Err(error),
            Err(Stop::Interrupted) => return Ok(()),
            Err(
                Stop::System(why)
                | Stop::Preparation(why, _)
                | Stop::Lost(why)
                | Stop::Generator(why)
                | Stop::Aborted(why),
            ) => {
                problems.push(why);
            }
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(ConductError::Settings { problems }),
    }
}

/// How the systems of a plan's duets share cores; `None` if they run in sequence.
pub(crate) fn core_sharing(plan: &Plan) -> Option<CoreSharing> {
    let how = match plan.question.apart {
        true => CoreSharing::Split,
        false => CoreSharing::Shared,
    };
    plan.question.duet.then_some(how)
}

/// The distinct systems of a plan, by host.
fn setups(plan: &Plan) -> BTreeMap<String, Vec<Setup>> {
    let mut all: BTreeMap<String, Vec<Setup>> = BTreeMap::new();
    for trial in plan.every_trial() {
        let mut add = |on: &str, wanted: Option<Setup>| {
            let of = all.entry(on.to_owned()).or_default();
            let wanted = wanted.map(|setup| Setup {
                trial: 0,
                core_sharing: core_sharing(plan),
                ..setup
            });
            of.extend(wanted.filter(|setup| !of.contains(setup)));
        };
        for part in &trial.parts {
            if let Some(on) = &part.host.on {
                add(on, Some(setup_of_part(0, part)));
            }
        }
        if let Some(on) = &trial.host.on {
            add(on, setup(trial));
        }
    }
    all
}

/// The setup of a remote part.
fn setup_of_part(trial: u32, part: &PartSpec) -> Setup {
    Setup {
        trial,
        spec: part.spec.clone(),
        host: HostSpec {
            on: None,
            ..part.host.clone()
        },
        // Users connect to the last process only.
        secure: false,
        // No part of a system is one of a duet.
        core_sharing: None,
    }
}

/// The setup of a remote system.
fn setup(trial: &Trial) -> Option<Setup> {
    let SystemSpec::Command(spec) = &trial.system else {
        return None;
    };
    Some(Setup {
        trial: trial.id,
        spec: spec.clone(),
        host: HostSpec {
            on: None,
            ..trial.host.clone()
        },
        secure: trial.reach.secure,
        core_sharing: None,
    })
}

/// The host of a trial's system, with the file for its output.
pub(crate) fn machine(
    host: &SystemMachine,
    (trial, beside): (&Trial, Option<(Slot, CoreSharing)>),
    output: PathBuf,
) -> Result<RemoteMachine, Stop> {
    let setup = setup(trial).ok_or_else(|| {
        let what = "a system that runs already is started nowhere: leave out `on`".to_owned();
        Stop::Fatal(ConductError::Unsupported(what))
    })?;
    let (slot, beside) = beside.unzip();
    let setup = Setup {
        core_sharing: beside,
        ..setup
    };
    open_for(host, slot.unwrap_or(Slot::Left), Some(setup), output)
}

/// The host of a part of a trial's system, with the file for its output.
pub(crate) fn part(
    machines: &Machines,
    (trial, part): (u32, &PartSpec),
    output: PathBuf,
) -> Result<RemoteMachine, Stop> {
    let on = part.host.on.as_deref().unwrap_or_default();
    let machine = machines.get(on).ok_or_else(|| {
        let what = format!("no agent has {} on {on}", part.name());
        Stop::Fatal(ConductError::Unsupported(what))
    })?;
    open(machine, Some(setup_of_part(trial, part)), output)
}

/// The host of a remote system that already runs and that its agent watches; or a note that the agent found none.
pub(crate) fn watching(
    host: &SystemMachine,
    (port, pid): (u16, Option<u32>),
    interrupt: &AtomicBool,
) -> Result<(RemoteMachine, Option<Warning>), Stop> {
    let mut afar = open(host, None, PathBuf::new())?;
    let found = afar.watch(port, pid, interrupt).map_err(stopped)?;
    Ok((afar, (!found).then_some(Warning::NotWatched { port })))
}

fn open(
    host: &SystemMachine,
    setup: Option<Setup>,
    output: PathBuf,
) -> Result<RemoteMachine, Stop> {
    open_for(host, Slot::Left, setup, output)
}

fn open_for(
    host: &SystemMachine,
    slot: Slot,
    setup: Option<Setup>,
    output: PathBuf,
) -> Result<RemoteMachine, Stop> {
    let peers = host.open().map_err(driver_stop)?;
    let peer = peers.into_iter().next();
    let peer = peer.ok_or(Stop::Fatal(ConductError::DriverEnded))?;
    let afar = RemoteMachine::new((peer, slot), setup, output);
    Ok(afar.map_err(ConductError::Scraper)?)
}
