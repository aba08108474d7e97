//! The engine of scripts with the clock and the terms of a load.

use std::rc::Rc;

pub(crate) use lab_scripted::{Engines, Playing};
use lab_scripted::{Terms, WallClock};
use lab_workload::LoadKind;

use crate::assignment::Assignment;
use crate::clock::Clock;
use crate::error::DriverError;

/// Returns the program of a population's sessions, if a script plays them.
pub(crate) fn playing(
    engines: &Engines,
    drive: &Assignment,
    clock: Clock,
) -> Result<Option<Playing>, DriverError> {
    let terms = Terms {
        scenario: match drive.population.as_str() {
            "" => "default".to_owned(),
            name => name.to_owned(),
        },
        executor: executor(drive),
        users: drive.users,
        first: drive.first,
        workers: drive.workers(),
        seed: drive.seed,
        block: drive.block,
        length: lab_client::time::nanos(drive.ramp.saturating_add(drive.hold)),
    };
    let of_worker = WallClock {
        now: Rc::new(move || clock.nanos()),
        unix_ms: Rc::new(move |at| clock.unix_ms(at)),
    };
    let playing = engines.of(&drive.workload, terms, &of_worker);
    playing.map_err(DriverError::Script)
}

/// Returns the executor of k6 that runs such a load.
fn executor(drive: &Assignment) -> &'static str {
    match (drive.kind, drive.stages.is_empty()) {
        (LoadKind::Users, true) => "constant-vus",
        (LoadKind::Users, false) => "ramping-vus",
        (LoadKind::Arrival { .. }, true) => "constant-arrival-rate",
        (LoadKind::Arrival { .. }, false) => "ramping-arrival-rate",
        (LoadKind::Sequence { .. }, _) => "shared-iterations",
    }
}
