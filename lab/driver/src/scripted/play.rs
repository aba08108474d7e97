//! The engine of scripts with the clock and the terms of a load.

use std::rc::Rc;

pub(crate) use lab_scripted::{Engines, Playing};
use lab_scripted::{Terms, WallClock};

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
