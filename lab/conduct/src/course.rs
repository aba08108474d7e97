//! What a trial is run with, what is learned on the way, and how its next event is awaited. It knows
//! no phase.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use lab_archive::{
    Circumstances, ErrorExample, Noted, Pinning, Profiled, QuietGate, RawBaseline, Waited,
};
use lab_driver::{DriverEvent, WorkerThread};
use lab_machine::scratch::{Scratch, Work};
use lab_sampling::Sampler;
use lab_study::Secrets;
use lab_study::plan::{LoadSpec, Plan, Trial};
use lab_workload::{User, Workload, seed_of};

use crate::control::Control;
use crate::event::Event;
use crate::far::Machines;
use crate::generators::LoadGenerators;
use crate::measuring::Measured;
use crate::meeting::Seat;
use crate::profiles::Profiles;
use crate::provision::{Group, Users};
use crate::record;
use crate::snapshot::Snapshots;
use crate::start::System;
use crate::state;
use crate::stop::Stop;

/// What a trial is run with.
pub(crate) struct Conductor<'a> {
    pub(crate) program: &'a std::path::Path,
    pub(crate) plan: &'a Plan,
    pub(crate) trial: &'a Trial,
    /// The trial of the plan that it repeats.
    pub(crate) attempt_of: Option<u32>,
    /// What its users do, at the plan's speed: one workload, or those of its populations.
    pub(crate) workloads: &'a [Arc<Workload>],
    pub(crate) pinning: &'a Pinning,
    pub(crate) scratch: &'a Scratch,
    /// The folder that the trial's is in.
    pub(crate) work: &'a Work,
    pub(crate) snapshots: &'a Snapshots,
    /// What the profiles of the run have in common.
    pub(crate) profiles: &'a Profiles,
    /// Kernel settings in force.
    pub(crate) kernel: BTreeMap<String, String>,
    /// What is masked in all that is written.
    pub(crate) secrets: &'a Secrets,
    /// Ramps and holds of the trials that follow.
    pub(crate) after: Duration,
    /// The wait for a quiet machine.
    pub(crate) quiet: Option<QuietGate>,
    /// Where it meets the trial that runs at the same time.
    pub(crate) beside: Option<Beside<'a>>,
    pub(crate) events: &'a mut dyn FnMut(Event),
    pub(crate) interrupt: &'a AtomicBool,
    pub(crate) control: &'a Control,
    /// Of a search: whether fewer users are carried already, so that these may be too many.
    pub(crate) goes_beyond: bool,
    /// Who drives the load in the place of this machine.
    pub(crate) generators: Option<&'a LoadGenerators>,
    /// Who has the systems of trials in the place of this machine.
    pub(crate) machines: &'a Machines,
}

/// A population of a trial.
pub(crate) struct Crowd<'a> {
    /// Empty where there is but one.
    pub(crate) name: &'a str,
    pub(crate) workload: &'a Arc<Workload>,
    /// Users of those before it.
    pub(crate) first: u32,
    /// Of all its draws.
    pub(crate) seed: u64,
    pub(crate) load: LoadSpec,
}

/// The other trial of a duet.
#[derive(Debug)]
pub(crate) struct Beside<'a> {
    /// Its number in the archive.
    pub(crate) partner: u32,
    pub(crate) seat: Seat<'a>,
    /// The cores that both trials may use; `None` where each stays on its half.
    pub(crate) together: Option<&'a Pinning>,
}

impl Beside<'_> {
    /// From now on the generator changes places with the other one, where both use the same cores.
    pub(crate) fn change_places(&self, worker: Option<WorkerThread>) {
        let generator = worker.filter(|_| self.together.is_some());
        self.seat.change_places(generator.map(|worker| worker.pid));
    }
}

/// What is learned on the way: what each phase that was reached left, and what all of them add to.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// How long provisioning took so far.
    pub(crate) provision: Duration,
    /// Open files of this process before the driver's.
    pub(crate) files_before: usize,
    /// The driver's.
    pub(crate) workers: usize,
    pub(crate) set_up: Option<SetUp>,
    pub(crate) begun: Option<Begun>,
    pub(crate) measured: Option<Measured>,
    pub(crate) circumstances: Circumstances,
    pub(crate) error_examples: Vec<ErrorExample>,
    pub(crate) raw: Option<RawBaseline>,
    /// The samples of the system, still without names.
    pub(crate) sampler: Option<Sampler>,
    pub(crate) profile: Option<Profiled>,
    /// How its waits were recorded.
    pub(crate) waits: Option<Waited>,
    pub(crate) noted: Vec<Noted>,
    /// Sentences of those who had the system.
    pub(crate) notes: Vec<String>,
}

/// The users have done their setup.
#[derive(Debug, Default)]
pub(crate) struct SetUp {
    pub(crate) took: Duration,
    pub(crate) transactions: u64,
    pub(crate) errors: u64,
}

/// The state that the load began in.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    /// When, once it began.
    pub(crate) started: Option<String>,
    pub(crate) data_bytes: u64,
    /// Kernel settings in force on the system's machine, where that is another one.
    pub(crate) kernel: BTreeMap<String, String>,
    /// What is told of file systems that were made on other machines.
    pub(crate) storage: BTreeMap<String, String>,
}

impl Conductor<'_> {
    /// The populations of the trial, each with what its users do: one where all do the same.
    pub(crate) fn crowds(&self) -> Vec<Crowd<'_>> {
        let load = &self.trial.load;
        let mut first = 0;
        let of = |(at, workload)| {
            let population = load.mix.get(at);
            let load = population.map_or_else(|| load.clone(), |population| load.of(population));
            let name = population.map_or("", |population| population.name.as_str());
            let crowd = Crowd {
                name,
                workload,
                first,
                seed: match population {
                    Some(_) => seed_of(self.plan.seed, name),
                    None => self.plan.seed,
                },
                load,
            };
            first += crowd.load.users;
            crowd
        };
        self.workloads.iter().enumerate().map(of).collect()
    }

    /// The trial's users, for a preparation.
    pub(crate) fn users(&self, filled_in: [String; 3]) -> Users<'_> {
        let mut groups = Vec::new();
        for crowd in self.crowds() {
            let first = User {
                index: 0,
                users: crowd.load.users,
                first: crowd.first,
                seed: crowd.seed,
                block: self.trial.block,
                base_date: self.plan.dates_from,
            };
            groups.push(Group {
                workload: crowd.workload,
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

    /// Waits for the driver's next event, for as long as `wait`; looks at the interrupt and at the
    /// system on the way.
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

    pub(crate) fn tell(&mut self, event: Event) {
        (self.events)(event);
    }
}

/// The next thing that happens.
pub(crate) enum Input {
    /// The driver tells something.
    Driver(DriverEvent),
    /// Nothing, and something else is due.
    Due,
    /// The driver tells nothing any more.
    Ended,
}

impl Facts {
    /// Keeps an example of an error, and gives it as an event; others tell nothing here.
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
