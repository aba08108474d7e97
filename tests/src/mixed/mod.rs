//! Load of all services at once, a ledger of what the server acknowledged, and a check that a server still holds
//! exactly that: for tests that end a server at a moment of their own choice.
//!
//! Each thing has a label of its own. The ledger has the combined view of all places after the last acknowledged
//! change, and after the one sent since. The view that is found must be one of the two, never something between.

mod files;
mod letters;
mod meetings;
mod registrations;
mod world;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;

pub use world::{Ledger, Thing, Things, World};

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use world::{USERS, Writer};

/// Changes things of one kind, one after the other.
type Write = fn(&mut Writer<'_>) -> io::Result<()>;
/// Returns all things of one kind.
type Look = fn(&World, &Things) -> io::Result<BTreeMap<String, String>>;

impl World {
    /// Changes things in all services from now on, each in a thread of its own, until `ends` is set and a request
    /// fails, or forever. `work` runs meanwhile and makes that happen; its result is returned.
    ///
    /// # Panics
    /// When a request fails before `ends` is set.
    pub fn load<T>(
        &self,
        ledger: &Ledger,
        (label, seed): (&str, u64),
        ends: &AtomicBool,
        work: impl FnOnce() -> T,
    ) -> T {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let writers: [(&str, Write); 7] = [
            ("outbox", letters::over_http),
            ("smtp", letters::over_smtp),
            ("page", letters::over_pages),
            ("meeting", meetings::write),
            ("document", files::write_documents),
            ("upload", files::write_uploads),
            ("service", registrations::write),
        ];
        std::thread::scope(|scope| {
            for (number, (kind, write)) in writers.into_iter().enumerate() {
                random.jump();
                let writer = Writer {
                    world: self,
                    ledger,
                    random: random.clone(),
                    user: number % USERS,
                    label: format!("{kind}-{label}"),
                    number: 0,
                    ends,
                };
                scope.spawn(move || writer.run(write));
            }
            work()
        })
    }

    /// Compares all that this server holds with the ledger; open changes count from now on as they were found. Returns
    /// how many open changes have happened.
    ///
    /// # Errors
    /// Lists what is lost, there in part, or there without having been sent.
    pub fn verify(&self, things: &mut Things) -> Result<u32, String> {
        let looks: [Look; 4] = [
            letters::look,
            meetings::look,
            files::look,
            registrations::look,
        ];
        let mut found = BTreeMap::new();
        for look in looks {
            let shown = look(self, things).map_err(|error| format!("a look fails: {error}"))?;
            found.extend(shown);
        }
        if let Some(label) = found.keys().find(|label| !things.contains_key(*label)) {
            return Err(format!("{label} is there and was never sent"));
        }
        let mut happened = 0;
        for (label, thing) in things {
            let found = found.remove(label).unwrap_or_default();
            happened += u32::from(
                thing
                    .settle(&found)
                    .map_err(|wrong| format!("{label} shows {found:?}, {wrong}"))?,
            );
        }
        Ok(happened)
    }
}
