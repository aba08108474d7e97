//! What the profiles of a run have in common.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lab_archive::Frames;
use lab_study::plan::Plan;

/// What the profiles of a run have in common, so that its trials can be compared.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    pub(crate) decided: Arc<Mutex<Decided>>,
    /// True if the run has already reported why a trial has no profile.
    pub(crate) is_reported: AtomicBool,
}

/// What the first trial decides for all.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Decided {
    pub(crate) rate: Option<f64>,
    pub(crate) frames: Option<Frames>,
}

impl Profiles {
    /// Takes the choices from the first trial that was profiled before the run was resumed, if there is one.
    pub(crate) fn of_run(dir: &Path, plan: &Plan) -> Self {
        let earlier = plan.question.profile.as_ref().and_then(|_| {
            let run = lab_archive::Follow::open(dir).ok()?;
            let mut trials = plan.trials.iter();
            trials.find_map(|trial| run.record(trial.id).ok()??.profile)
        });
        let decided = earlier.map_or_else(Decided::default, |profile| Decided {
            rate: Some(profile.rate),
            frames: Some(profile.frames),
        });
        Self {
            decided: Arc::new(Mutex::new(decided)),
            is_reported: AtomicBool::new(false),
        }
    }
}

pub(crate) fn lock(decided: &Mutex<Decided>) -> MutexGuard<'_, Decided> {
    decided.lock().unwrap_or_else(PoisonError::into_inner)
}
