//! The record of a trial: the recorded facts, and warnings for its reader.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_archive::{DuetRecord, SystemHost, TRIAL_SCHEMA, TrialEnd, TrialRecord, Warning};
use lab_host::clock::calendar;
use lab_host::cores;
use lab_host::machine;
use lab_host::sysctl;
use lab_study::{CPU_LATENCY, Cpus};

use crate::course::{Conductor, TrialFacts};
use crate::record::whole_ms;
use crate::system;

impl Conductor<'_> {
    pub(crate) fn record(&self, facts: TrialFacts, end: TrialEnd) -> TrialRecord {
        let ramp = Duration::from_millis(self.trial.load.ramp_ms);
        let set_up = facts.set_up.unwrap_or_default();
        let begun = facts.begun.unwrap_or_default();
        let measured = facts.measured.unwrap_or_default();
        let held = measured.elapsed.saturating_sub(ramp);
        let (generator, unread) = measured.health.summary(facts.workers, held);
        let mut system_settings = self.settings();
        let kernel = begun.kernel.into_iter();
        system_settings.extend(kernel.map(|(name, value)| (format!("kernel {name}"), value)));
        system_settings.extend(begun.storage);
        let there = facts.environment.system_host.as_ref();
        system_settings.extend(there.map(|there| ("cpus".to_owned(), self.cores_there(there))));
        let parts = facts.environment.parts.iter();
        system_settings.extend(parts.filter_map(|part| {
            let count = Cpus::Count(part.host.as_ref()?.system_cores);
            Some((format!("cpus of {}", part.name), cores::wanted(&count)))
        }));
        let complete = matches!(end, TrialEnd::Complete);
        let mut noted = facts.warnings;
        noted.extend(unread.filter(|_| complete));
        noted.extend(self.noted(measured.sessions));
        let mut notes = facts.notes;
        notes.extend_from_slice(system::notes(&self.trial.system));
        TrialRecord {
            schema: TRIAL_SCHEMA.to_owned(),
            id: self.trial.id,
            attempt_of: self.attempt_of,
            duet: self.duet(),
            started: begun.started.unwrap_or_else(calendar),
            end,
            ramp_ms: self.trial.load.ramp_ms,
            hold_ms: self.trial.load.hold_ms,
            elapsed_ms: whole_ms(measured.elapsed),
            provision_ms: whole_ms(facts.provision),
            setup_ms: whole_ms(set_up.took),
            setup_transactions: set_up.transactions,
            setup_errors: set_up.errors,
            error_examples: facts.error_examples,
            unanswered: measured.unanswered,
            raw: facts.raw,
            profile: facts.profile,
            waits: facts.waits,
            generator,
            start_data_bytes: begun.data_bytes,
            environment: facts.environment,
            system_settings,
            warnings: noted,
            notes,
        }
    }

    fn duet(&self) -> Option<DuetRecord> {
        self.peer.as_ref().map(|beside| DuetRecord {
            partner: beside.trial,
            left: beside.slot.is_left(),
            pinning: beside.together.unwrap_or(self.pinning).clone(),
            together: beside.together.is_some(),
            exchanges: beside.slot.swaps(),
            later_ms: beside.slot.later_ms(),
        })
    }

    /// Settings of the system, then those of its environment.
    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = system::settings(&self.trial.system);
        let kernel = self.kernel.iter();
        settings.extend(kernel.map(|(name, value)| (format!("kernel {name}"), value.clone())));
        settings.extend(system::way(&self.trial.reach));
        settings.extend(system::of_parts(self.trial));
        let host = &self.trial.host;
        if let Some(on) = &host.on {
            settings.insert("on".to_owned(), on.clone());
        }
        if let (Some(cpus), Some(_)) = (&host.cpus, &host.on) {
            settings.insert("cpus".to_owned(), cores::wanted(cpus));
        } else if host.on.is_none() && (host.cpus.is_some() || self.peer.is_some()) {
            let cores = cores::words(&self.pinning.system);
            settings.insert("cpus".to_owned(), cores);
        }
        if let Some(disk) = self.scratch.disk() {
            settings.extend(disk.told(host.storage.as_deref()));
        } else if let (Some(storage), true) = (&host.storage, host.on.is_some()) {
            settings.insert("storage".to_owned(), storage.clone());
        } else if let Some(storage) = &host.storage {
            let kind = machine::filesystem(storage.as_ref()).unwrap_or_default();
            settings.insert("storage".to_owned(), format!("{storage} ({kind})"));
        }
        settings
    }

    /// The cores of a remote system, as its agent reports them.
    fn cores_there(&self, there: &SystemHost) -> String {
        let count = cores::wanted(&Cpus::Count(there.system_cores));
        match &self.trial.host.cpus {
            Some(named @ Cpus::List(_)) => cores::wanted(named),
            _ if system::is_attached(&self.trial.system) => {
                format!("{count}, not pinned: attached")
            }
            _ => count,
        }
    }

    fn noted(&self, sessions_begun: u64) -> Vec<Warning> {
        let mut noted = Vec::new();
        if system::is_attached(&self.trial.system) {
            noted.push(Warning::NotPinned);
        }
        if self.pinning.shared {
            noted.push(Warning::SharedCore);
        }
        noted.extend(self.kernel_differs());
        let load = &self.trial.load;
        if let Some(sessions) = load.kind.sessions(load.users)
            && sessions_begun < sessions
        {
            noted.push(Warning::SequenceCut {
                begun: sessions_begun,
                sessions,
            });
        }
        let after = self.limits().request_timeout;
        noted.push(Warning::RequestTimeout {
            after_us: u64::try_from(after.as_micros()).unwrap_or(u64::MAX),
            bounds: self.trial.load.time_limit_ms.is_some(),
        });
        noted
    }

    /// Warnings about kernel settings whose values in force differ.
    fn kernel_differs(&self) -> impl Iterator<Item = Warning> {
        self.trial.host.kernel.iter().filter_map(|setting| {
            let in_force = self.kernel.get(&setting.name).unwrap_or(&setting.value);
            if sysctl::same(in_force, &setting.value) {
                return None;
            }
            let (name, wanted) = (setting.name.clone(), setting.value.clone());
            let in_force = in_force.clone();
            Some(match setting.path.as_str() {
                CPU_LATENCY => Warning::LatencyAsked {
                    name,
                    wanted,
                    in_force,
                },
                _ => Warning::KernelMade {
                    name,
                    wanted,
                    in_force,
                },
            })
        })
    }
}
