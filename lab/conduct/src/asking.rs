//! What a trial's system is asked during the hold, with what the trial filled in; and the answers in the archive.

use std::net::SocketAddr;

use lab_archive::TrialWriter;
use lab_asked::{Recorded, to_jsonl};
use lab_client::Resolve;
use lab_driver::Clock;
use lab_machine::{Asker, Asking};
use lab_study::{AskSpec, as_host};

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
        let mut secrets = self.secrets.clone();
        secrets.learn(&system.setting.secret);
        let asker = Asker {
            env: system.setting.env.clone(),
            folder: self.scratch.data(),
            cores: self.beside_cores(),
            secrets,
            base: system.base().clone(),
            tls: system.reach.options.clone(),
            resolve: Resolve::new(&system.reach.hosts),
        };
        let hold = spans.ramp..spans.ramp + spans.hold;
        Some(Asking::start(asks, &asker, clock, &hold))
    }

    /// What texts of asks may name, with the values of this trial.
    fn filled_in(&self, system: &System) -> Vec<(String, String)> {
        let (setting, here) = (&system.setting, system.address().ip());
        let pid = system.counted().map(|counted| counted.pid);
        let own = [
            ("port", system.address().port().to_string()),
            ("pid", pid.map_or_else(String::new, |pid| pid.to_string())),
            ("scratch", setting.scratch.clone()),
            ("secret", setting.secret.clone()),
            ("plimsoll", self.program.display().to_string()),
            ("address", as_host(here)),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        let ports = setting.ports.iter();
        let ports = ports.map(|(name, port)| (name, SocketAddr::new(here, *port)));
        let parts = system.parts.places().iter().map(|(name, at)| (name, *at));
        let places = ports.chain(parts).flat_map(|(name, at)| {
            [
                (format!("{name}_port"), at.port().to_string()),
                (format!("{name}_address"), as_host(at.ip())),
            ]
        });
        own.into_iter().chain(places).collect()
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
        for said in all.iter().filter_map(Recorded::unanswered) {
            self.tell(Event::Note(said));
        }
        writer.asked(to_jsonl(all).as_bytes())?;
        Ok(())
    }
}
