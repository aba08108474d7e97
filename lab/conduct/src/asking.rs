//! What a trial's system is asked during the hold, with what the trial filled in; and the answers in the archive.

use lab_archive::TrialWriter;
use lab_asked::to_jsonl;
use lab_driver::Clock;
use lab_machine::{Asker, Asking};
use lab_study::AskSpec;

use crate::course::Conductor;
use crate::event::Event;
use crate::measuring::Spans;
use crate::start::System;
use crate::stop::Stop;

impl Conductor<'_> {
    /// Begins to ask, from the begin of the hold on. `None` where the study asks nothing.
    pub(crate) fn ask(&self, system: &System, clock: Clock, spans: Spans) -> Option<Asking> {
        if self.trial.ask.is_empty() {
            return None;
        }
        let with = self.filled_in(system);
        let asks: Vec<AskSpec> = self.trial.ask.iter().map(|ask| ask.filled(&with)).collect();
        // Clients run on the generator's cores, so that they take no CPU from the system. The generator has priority.
        let cores = match self.own_cores() {
            true => self.pinning.generator.clone(),
            false => Vec::new(),
        };
        let mut secrets = self.secrets.clone();
        secrets.learn(&system.setting.secret);
        let asker = Asker {
            env: system.setting.env.clone(),
            folder: self.scratch.data(),
            cores,
            secrets,
        };
        let hold = spans.ramp..spans.ramp + spans.hold;
        Some(Asking::start(asks, &asker, clock, &hold))
    }

    /// What texts of asks may name, with the values of this trial.
    fn filled_in(&self, system: &System) -> Vec<(String, String)> {
        let setting = &system.setting;
        let pid = system.counted().map(|counted| counted.pid);
        let own = [
            ("port", system.address().port().to_string()),
            ("pid", pid.map_or_else(String::new, |pid| pid.to_string())),
            ("scratch", setting.scratch.clone()),
            ("secret", setting.secret.clone()),
            ("plimsoll", self.program.display().to_string()),
            ("address", system.base().host.clone()),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        let ports = setting.ports.iter();
        let ports = ports.map(|(name, port)| (format!("{name}_port"), port.to_string()));
        let far = system.parts.places().iter().flat_map(|(name, at)| {
            let host = match at.is_ipv6() {
                true => format!("[{}]", at.ip()),
                false => at.ip().to_string(),
            };
            [
                (format!("{name}_port"), at.port().to_string()),
                (format!("{name}_address"), host),
            ]
        });
        own.into_iter().chain(ports).chain(far).collect()
    }

    /// Ends the asking, and writes the answers.
    pub(crate) fn end_asking(
        &mut self,
        asking: Option<Asking>,
        writer: &mut TrialWriter,
    ) -> Result<(), Stop> {
        let Some(asking) = asking else {
            return Ok(());
        };
        let all = asking.end();
        for one in all
            .iter()
            .filter(|one| one.asked > 0 && one.missed == one.asked)
        {
            let problem = one.problem().unwrap_or("no answer came in time");
            self.tell(Event::Note(format!(
                "The system did not say what it counts as `{}`: {problem}.",
                one.name
            )));
        }
        writer.asked(to_jsonl(all).as_bytes())?;
        Ok(())
    }
}
