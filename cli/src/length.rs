//! How long trials take, roughly, setup included.

use std::time::Duration;

use lab_plan::Side;
use lab_study::plan::{Plan, Trial};

/// What starting, provisioning, and setting up cost beside ramp and hold; measured at 1000 to 3000
/// users with the built-in server, rounded up.
const START_ALLOWANCE: Duration = Duration::from_secs(5);
const SETUP_ALLOWANCE_PER_USER: Duration = Duration::from_millis(6);

/// The time that all trials need, setup included; those of a duet run at the same time.
pub(crate) fn total(plan: &Plan) -> Duration {
    let has_own_time = |trial: &&Trial| trial.duet.is_none_or(|duet| duet.side == Side::Left);
    let trials = plan.trials.iter().filter(has_own_time);
    trials.map(|trial| length(trial, trial.load.users)).sum()
}

/// The time that a trial needs with so many users.
pub(crate) fn length(trial: &Trial, users: u32) -> Duration {
    Duration::from_millis(trial.load.ramp_ms + trial.load.hold_ms)
        + START_ALLOWANCE
        + SETUP_ALLOWANCE_PER_USER * users
}
