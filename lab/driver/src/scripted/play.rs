//! The engine of scripts with the clock and the terms of a load.

use std::rc::Rc;

pub(crate) use lab_scripted::{Engines, Playing, Programs};
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
        executor: executor(drive.kind, !drive.stages.is_empty()),
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
fn executor(kind: LoadKind, has_stages: bool) -> &'static str {
    match (kind, has_stages) {
        (LoadKind::Users, false) => "constant-vus",
        (LoadKind::Users, true) => "ramping-vus",
        (LoadKind::Arrival { .. }, false) => "constant-arrival-rate",
        (LoadKind::Arrival { .. }, true) => "ramping-arrival-rate",
        (LoadKind::Sequence { shared: true, .. }, _) => "shared-iterations",
        (LoadKind::Sequence { .. }, _) => "per-vu-iterations",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_has_the_executor_that_k6_would_run() {
        let sequence = |shared| LoadKind::Sequence {
            sessions: 2,
            shared,
        };
        assert_eq!(executor(sequence(true), false), "shared-iterations");
        assert_eq!(executor(sequence(false), false), "per-vu-iterations");
        assert_eq!(executor(LoadKind::Users, false), "constant-vus");
        assert_eq!(executor(LoadKind::Users, true), "ramping-vus");
    }
}
