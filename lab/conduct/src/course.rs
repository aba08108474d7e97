//! The inputs of a trial, the facts recorded during it, and the wait for its next event. It knows no phase.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use lab_archive::{
    ErrorExample, Pinning, Profiled, QuietGate, RawBaseline, TrialEnvironment, Waited, Warning,
};
use lab_driver::{DriverEvent, ScriptNote, WorkerThread};
use lab_machine::scratch::{Scratch, Work};
use lab_sampling::Sampler;
use lab_study::Secrets;
use lab_study::plan::{LoadSpec, Plan, Trial};
use lab_workload::{User, Workload, seed_of};

use crate::barrier::Slot;
use crate::control::Control;
use crate::event::Event;
use crate::generators::LoadGenerators;
use crate::measuring::Measured;
use crate::profiles::Profiles;
use crate::provision::{Group, Users};
use crate::record;
use crate::remote_host::Machines;
use crate::snapshot::Snapshots;
use crate::start::System;
use crate::state;
use crate::stop::Stop;

/// The inputs of a trial.
pub(crate) struct Conductor<'a> {
    pub(crate) program: &'a std::path::Path,
    pub(crate) plan: &'a Plan,
    pub(crate) trial: &'a Trial,
    /// The trial of the plan that it repeats.
    pub(crate) attempt_of: Option<u32>,
    /// The workloads of its users, at the plan's speed: one, or one for each population.
    pub(crate) workloads: &'a [Arc<Workload>],
    pub(crate) pinning: &'a Pinning,
    pub(crate) scratch: &'a Scratch,
    /// The parent of the trial's folder.
    pub(crate) work: &'a Work,
    pub(crate) snapshots: &'a Snapshots,
    /// What the profiles of the run have in common.
    pub(crate) profiles: &'a Profiles,
    /// Kernel settings in force.
    pub(crate) kernel: BTreeMap<String, String>,
    /// Values masked in all output.
    pub(crate) secrets: &'a Secrets,
    /// Ramps and holds of the trials that follow.
    pub(crate) after: Duration,
    /// The wait for a quiet machine.
    pub(crate) quiet: Option<QuietGate>,
    /// The barrier with the trial that runs at the same time.
    pub(crate) peer: Option<DuetPeer<'a>>,
    pub(crate) events: &'a mut dyn FnMut(Event),
    pub(crate) interrupt: &'a AtomicBool,
    pub(crate) control: &'a Control,
    /// In a search, true if fewer users are sustained already, so that these may be too many.
    pub(crate) goes_beyond: bool,
    /// The remote load generators, if this machine generates no load.
    pub(crate) generators: Option<&'a LoadGenerators>,
    /// The remote hosts of the systems of trials.
    pub(crate) machines: &'a Machines,
}

/// A population of a trial.
pub(crate) struct TrialPopulation<'a> {
    /// Empty if there is only one.
    pub(crate) name: &'a str,
    pub(crate) workload: &'a Arc<Workload>,
    /// Number of users in the populations before it.
    pub(crate) first: u32,
    /// Seed of all its draws.
    pub(crate) seed: u64,
    pub(crate) load: LoadSpec,
}

/// The other trial of a duet.
#[derive(Debug)]
pub(crate) struct DuetPeer<'a> {
    /// Its number in the archive.
    pub(crate) trial: u32,
    pub(crate) slot: Slot<'a>,
    /// The cores that both trials may use; `None` if each stays on its half.
    pub(crate) together: Option<&'a Pinning>,
}

impl DuetPeer<'_> {
    /// From now on the generator swaps cores with the other one, if both use the same cores.
    pub(crate) fn change_places(&self, worker: Option<WorkerThread>) {
        let generator = worker.filter(|_| self.together.is_some());
        self.slot.change_places(generator.map(|worker| worker.pid));
    }
}

/// Facts recorded during a trial: those of each phase reached, and those that all phases add to.
#[derive(Debug, Default)]
pub(crate) struct TrialFacts {
    /// Provisioning time so far.
    pub(crate) provision: Duration,
    /// Open files of this process before the driver started.
    pub(crate) files_before: usize,
    /// Number of the driver's workers.
    pub(crate) workers: usize,
    pub(crate) set_up: Option<SetUp>,
    pub(crate) begun: Option<Begun>,
    pub(crate) measured: Option<Measured>,
    pub(crate) environment: TrialEnvironment,
    pub(crate) error_examples: Vec<ErrorExample>,
    pub(crate) raw: Option<RawBaseline>,
    /// The samples of the system, not yet symbolized.
    pub(crate) sampler: Option<Sampler>,
    pub(crate) profile: Option<Profiled>,
    /// How its waits were recorded.
    pub(crate) waits: Option<Waited>,
    pub(crate) warnings: Vec<Warning>,
    /// Sentences of the hosts of the system.
    pub(crate) notes: Vec<String>,
}

/// The users have completed their setup.
#[derive(Debug, Default)]
pub(crate) struct SetUp {
    pub(crate) took: Duration,
    pub(crate) transactions: u64,
    pub(crate) errors: u64,
}

/// The state at the start of the load.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    /// The start time, once started.
    pub(crate) started: Option<String>,
    pub(crate) data_bytes: u64,
    /// Kernel settings in force on the system's host, if it is remote.
    pub(crate) kernel: BTreeMap<String, String>,
    /// Facts of file systems that were made on remote hosts.
    pub(crate) storage: BTreeMap<String, String>,
}

impl Conductor<'_> {
    /// The populations of the trial with their workloads: one if all users do the same.
    pub(crate) fn populations(&self) -> Vec<TrialPopulation<'_>> {
        let load = &self.trial.load;
        let mut first = 0;
        let of = |(at, workload)| {
            let population = load.mix.get(at);
            let load = population.map_or_else(|| load.clone(), |population| load.of(population));
            let name = population.map_or("", |population| population.name.as_str());
            let of_trial = TrialPopulation {
                name,
                workload,
                first,
                seed: match population {
                    Some(_) => seed_of(self.plan.seed, name),
                    None => self.plan.seed,
                },
                load,
            };
            first += of_trial.load.users;
            of_trial
        };
        self.workloads.iter().enumerate().map(of).collect()
    }

    /// The trial's users, for a preparation.
    pub(crate) fn users(&self, filled_in: [String; 3]) -> Users<'_> {
        let mut groups = Vec::new();
        for of_trial in self.populations() {
            let first = User {
                index: 0,
                users: of_trial.load.users,
                first: of_trial.first,
                seed: of_trial.seed,
                block: self.trial.block,
                base_date: self.plan.dates_from,
            };
            groups.push(Group {
                workload: of_trial.workload,
                first,
            });
        }
        Users {
            groups,
            constants: state::constants(self.plan, self.trial),
            filled_in,
        }
    }

    pub(crate) fn limits(&self) -> lab_driver::Limits {
        let load = &self.trial.load;
        lab_driver::Limits {
            request_timeout: Duration::from_millis(load.timeout_ms()),
            timeout_ends_step: load.time_limit_ms.is_some(),
            ..lab_driver::Limits::default()
        }
    }

    pub(crate) fn ramp(&self) -> Duration {
        Duration::from_millis(self.trial.load.ramp_ms)
    }

    pub(crate) fn hold(&self) -> Duration {
        Duration::from_millis(self.trial.load.hold_ms)
    }

    /// Waits at most `wait` for the driver's next event; checks the interrupt and the system meanwhile.
    pub(crate) fn select(
        &self,
        events: &Receiver<DriverEvent>,
        system: &mut System,
        wait: Duration,
    ) -> Result<Input, Stop> {
        if self.interrupt.load(Ordering::Relaxed) || self.control.skips() {
            return Err(Stop::Interrupted);
        }
        match events.recv_timeout(wait) {
            Ok(event) => Ok(Input::Driver(event)),
            Err(RecvTimeoutError::Timeout) => system.check().map(|()| Input::Due),
            Err(RecvTimeoutError::Disconnected) => Ok(Input::Ended),
        }
    }

    /// Records an example of an error, or a fact that a script caused; all other events are ignored.
    pub(crate) fn record_event(
        &mut self,
        event: DriverEvent,
        facts: &mut TrialFacts,
    ) -> Result<(), Stop> {
        if let DriverEvent::Script(ScriptNote::Aborted(reason)) = &event {
            return Err(Stop::by_script(reason));
        }
        facts.script(&event);
        let example = facts.example(event);
        example.into_iter().for_each(|example| self.tell(example));
        Ok(())
    }

    pub(crate) fn tell(&mut self, event: Event) {
        (self.events)(event);
    }
}

/// The next input of the loop.
pub(crate) enum Input {
    /// The driver sent an event.
    Driver(DriverEvent),
    /// No event; other work is due.
    Due,
    /// The driver sends no more events.
    Ended,
}

impl TrialFacts {
    /// Stores a fact that a script caused: the first failure of the test, and the number of values for each name.
    pub(crate) fn script(&mut self, event: &DriverEvent) {
        let is_failed = |noted: &Warning| matches!(noted, Warning::TestFailed { .. });
        match event {
            DriverEvent::Script(ScriptNote::Failed(reason))
                if !self.warnings.iter().any(is_failed) =>
            {
                let reason = reason.clone();
                self.warnings.push(Warning::TestFailed { reason });
            }
            DriverEvent::Script(ScriptNote::NotCounted { name, values }) => {
                let known = self.warnings.iter_mut().find_map(|noted| match noted {
                    Warning::NotCounted {
                        name: known,
                        values,
                    } if known == name => Some(values),
                    _ => None,
                });
                match known {
                    Some(known) => *known += values,
                    None => self.warnings.push(Warning::NotCounted {
                        name: name.clone(),
                        values: *values,
                    }),
                }
            }
            _ => {}
        }
    }

    /// Stores an example of an error, and returns it as an event; other driver events return none.
    pub(crate) fn example(&mut self, event: DriverEvent) -> Option<Event> {
        let DriverEvent::ErrorExample {
            t,
            step,
            class,
            detail,
            trace,
        } = event
        else {
            return None;
        };
        let example = ErrorExample {
            t_ms: record::whole_ms(t),
            step,
            class,
            detail,
            trace,
        };
        self.error_examples.push(example.clone());
        Some(Event::Failed(example))
    }
}
