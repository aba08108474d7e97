//! Estimates the lengths of trials, setup included.

use std::time::Duration;

use lab_plan::Side;
use lab_study::Study;
use lab_study::plan::{Plan, Trial};

/// The time of a start besides ramp and hold.
const START_ALLOWANCE: Duration = Duration::from_secs(5);
/// Time of provisioning and setup per user; measured at 1000 to 3000 users with the built-in server, rounded up.
const SETUP_ALLOWANCE_PER_USER: Duration = Duration::from_millis(6);
/// Number of users that the generator creates in a second, at least.
const USERS_MADE_PER_S: u32 = 100_000;

/// The properties of a study that determine the lengths of its trials, besides their loads.
#[derive(Debug, Clone, Copy)]
pub struct Lengths {
    /// True if each user sends requests before the ramp.
    has_setup: bool,
}

impl Lengths {
    /// The lengths for a study, with any plan.
    #[must_use]
    pub fn of(study: &Study) -> Self {
        let of_populations = study.populations.iter().map(|one| &one.workload);
        let mut workloads = of_populations.chain([&study.workload]);
        Self {
            has_setup: workloads.any(|workload| workload.setup.iter().any(|step| !step.once)),
        }
    }

    /// The time that all trials need, setup included; those of a duet run at the same time.
    #[must_use]
    pub fn total(self, plan: &Plan) -> Duration {
        let has_own_time = |trial: &&Trial| trial.duet.is_none_or(|duet| duet.side == Side::Left);
        let trials = plan.trials.iter().filter(has_own_time);
        trials
            .map(|trial| self.of_trial(trial, trial.load.users))
            .sum()
    }

    /// The time that a trial needs with so many users.
    #[must_use]
    pub fn of_trial(self, trial: &Trial, users: u32) -> Duration {
        let load = Duration::from_millis(trial.load.ramp_ms.saturating_add(trial.load.hold_ms));
        let of_users = match self.has_setup || trial.system.preparation().is_of_users() {
            true => SETUP_ALLOWANCE_PER_USER * users,
            false => Duration::from_secs(u64::from(users / USERS_MADE_PER_S)),
        };
        load + START_ALLOWANCE + of_users
    }
}
