//! Remote parts of a system, for a trial: started one after the other before the process that users connect to,
//! watched, counted, and stopped in reverse order. It knows no load.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lab_archive::{StartingState, SystemHost};
use lab_driver::Clock;
use lab_machine::{Counts, Failed, Machine, RemoteMachine, Row, Started};
use lab_study::plan::Trial;
use lab_study::{KernelSetting, PartSpec};

use crate::remote_host::{self, Machines};
use crate::stop::{Stop, stopped, with_end};

/// Separates the name of a part from that of its counter.
const OF: char = '/';

/// A running part.
struct Part {
    name: String,
    machine: RemoteMachine,
}

/// All running parts, in their order.
#[derive(Default)]
pub(crate) struct Parts {
    running: Vec<Part>,
    /// The addresses of their processes, by name.
    places: Vec<(String, SocketAddr)>,
}

/// Prefix of the settings about the place of data.
const STORAGE: &str = "storage";

/// The prefix for a part.
pub(crate) fn storage_of(name: &str) -> String {
    format!("{STORAGE} of {name}")
}

/// The file for the output of a part, beside that of the last process.
pub(crate) fn output(of_system: &Path, name: &str) -> PathBuf {
    let stem = of_system.file_stem().unwrap_or_default().to_string_lossy();
    let kind = of_system.extension().unwrap_or_default();
    of_system
        .with_file_name(format!("{stem}.{name}"))
        .with_added_extension(kind)
}

/// Starts a system on its host. If that fails, the output is fetched, and the host is restored before the next system
/// starts there. `told` converts a failure of the host for the trial.
pub(crate) fn begin(
    machine: &mut dyn Machine,
    interrupt: &AtomicBool,
    told: &dyn Fn(Failed) -> Stop,
) -> Result<Started, Stop> {
    let failed = match machine.start(interrupt) {
        Ok(started) => return Ok(started),
        Err(failed @ Failed::System(_)) => failed,
        Err(failed) => return Err(told(failed)),
    };
    let ended = machine.stop().map_err(told);
    let (result, _) = with_end(Err(told(failed)), ended);
    // The first failure counts.
    Err(result.err().unwrap_or(Stop::Interrupted))
}

impl Parts {
    /// Starts all parts of a trial's system. If one does not start, those before it are stopped.
    pub(crate) fn start(
        machines: &Machines,
        (trial, of_system): (&Trial, &Path),
        interrupt: &AtomicBool,
    ) -> Result<Self, Stop> {
        let mut parts = Self::default();
        for part in &trial.parts {
            let output = output(of_system, part.name());
            let began = parts.begin(machines, (trial.id, part), output, interrupt);
            if let Err(stop) = began {
                return Err(parts.end_with(stop));
            }
        }
        Ok(parts)
    }

    fn begin(
        &mut self,
        machines: &Machines,
        (trial, part): (u32, &PartSpec),
        output: PathBuf,
        interrupt: &AtomicBool,
    ) -> Result<(), Stop> {
        let name = part.name();
        let mut machine = remote_host::part(machines, (trial, part), output)?;
        machine.knows(&self.places);
        let started = begin(&mut machine, interrupt, &|failed| told(name, failed))?;
        self.places.extend(places(&started));
        self.running.push(Part {
            name: name.to_owned(),
            machine,
        });
        Ok(())
    }

    /// The addresses of their processes, by name.
    pub(crate) fn places(&self) -> &[(String, SocketAddr)] {
        &self.places
    }

    /// Stops all, since a later start failed. A part that has ended by itself reports why.
    pub(crate) fn end_with(mut self, stop: Stop) -> Stop {
        let stop = match (stop, self.look()) {
            (Stop::System(_), Err(earlier)) => earlier,
            (stop, _) => stop,
        };
        match self.stop(Err(stop)) {
            Err(stop) => stop,
            // The first failure counts.
            Ok(_) => Stop::Interrupted,
        }
    }

    /// Checks them.
    pub(crate) fn look(&mut self) -> Result<(), Stop> {
        self.each(|machine| machine.look()).map(drop)
    }

    /// Calls a function for each part, in their order; returns the results by name.
    fn each<T>(
        &mut self,
        mut ask: impl FnMut(&mut RemoteMachine) -> Result<T, Failed>,
    ) -> Result<Vec<(String, T)>, Stop> {
        let parts = self.running.iter_mut();
        let said = parts.map(|part| {
            let said = ask(&mut part.machine).map_err(|failed| told(&part.name, failed))?;
            Ok((part.name.clone(), said))
        });
        said.collect()
    }

    /// The states at the start of the trial.
    pub(crate) fn states(
        &mut self,
        touched: &[KernelSetting],
    ) -> Result<Vec<(String, StartingState)>, Stop> {
        self.each(|machine| machine.state(touched))
    }

    /// Starts their counters; returns the names by part, each with the part's name.
    pub(crate) fn count(
        &mut self,
        clock: Clock,
        (every, end): (Duration, Duration),
    ) -> Result<Vec<(String, Counts)>, Stop> {
        let zero = clock.shared_zero();
        let counted = self.each(|machine| machine.count(zero, every, end))?;
        let named = |(part, mut counts): (String, Counts)| {
            for name in &mut counts.columns {
                *name = format!("{part}{OF}{name}");
            }
            (part, counts)
        };
        Ok(counted.into_iter().map(named).collect())
    }

    /// The rows since the last call, by part.
    pub(crate) fn rows(&mut self) -> Vec<Vec<Row>> {
        let parts = self.running.iter_mut();
        parts.map(|part| part.machine.rows()).collect()
    }

    /// Starts to observe their environments.
    pub(crate) fn look_around(&mut self) -> Result<(), Stop> {
        self.each(|machine| machine.look_around()).map(drop)
    }

    /// Their environments.
    pub(crate) fn looked_around(&mut self) -> Result<Vec<(String, Option<SystemHost>)>, Stop> {
        self.each(|machine| machine.looked_around())
    }

    /// Kernel settings in force on their hosts, with the names of the parts.
    pub(crate) fn kernel(&self) -> BTreeMap<String, String> {
        let all = self.running.iter().flat_map(|part| {
            let settings = part.machine.kernel().into_iter();
            settings.map(|(name, value)| (format!("{name} of {}", part.name), value))
        });
        all.collect()
    }

    /// Facts of file systems made on their hosts, with the names of the parts.
    pub(crate) fn storage(&self) -> BTreeMap<String, String> {
        let all = self.running.iter().flat_map(|part| {
            let named = |name: &str| name.replacen(STORAGE, &storage_of(&part.name), 1);
            let told = part.machine.storage().iter();
            told.map(move |(name, value)| (named(name), value.clone()))
        });
        all.collect()
    }

    /// Stops them, the last first, after the process that users connect to, whose result is `result`.
    pub(crate) fn stop(
        mut self,
        last: Result<Option<String>, Stop>,
    ) -> Result<Option<String>, Stop> {
        let (mut result, note) = match last {
            Ok(note) => (Ok(()), note),
            Err(stop) => (Err(stop), None),
        };
        let mut notes: Vec<String> = note.into_iter().collect();
        while let Some(mut part) = self.running.pop() {
            let ended = part.machine.stop();
            let ended = ended.map_err(|failed| told(&part.name, failed));
            let (so_far, note) = with_end(result, ended);
            result = so_far;
            notes.extend(note.map(|note| format!("{}: {note}", part.name)));
        }
        result.map(|()| (!notes.is_empty()).then(|| notes.join(" ")))
    }
}

/// The addresses of a host's processes, by name.
fn places(started: &Started) -> impl Iterator<Item = (String, SocketAddr)> {
    let address = started.address.ip();
    let ports = started.setting.ports.iter();
    ports.map(move |(name, port)| (name.clone(), SocketAddr::new(address, *port)))
}

/// The failure of a part, with its name.
fn told(name: &str, failed: Failed) -> Stop {
    match stopped(failed) {
        Stop::System(why) => Stop::System(format!("{name}: {why}")),
        stop => stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_a_file_for_its_output() {
        let of = |system: &str| output(Path::new(system), "db");
        assert_eq!(of("001/system.log"), Path::new("001/system.db.log"));
    }

    #[test]
    fn without_parts_the_end_is_that_of_the_system() {
        let note = || Some("slow".to_owned());
        assert_eq!(Parts::default().stop(Ok(note())).unwrap(), note());
        let failed = Parts::default().stop(Err(Stop::System("gone".to_owned())));
        assert!(matches!(failed, Err(Stop::System(_))));
        let stop = Parts::default().end_with(Stop::Lost("gone".to_owned()));
        assert!(matches!(stop, Stop::Lost(_)));
    }
}
