//! Why a trial stops early.

use std::time::Duration;

use lab_archive::PreparationCause;
use lab_driver::DriverError;
use lab_machine::Failed;

use crate::ConductError;

/// Longest wait for a driver after the end of its hold, or after a request to stop.
pub(crate) const DRIVER_GRACE: Duration = Duration::from_secs(30);

/// Why a trial stops early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The system under test failed; with its last lines.
    System(String),
    /// The preparation failed, before any load; the failure, and the place of its cause.
    Preparation(String, PreparationCause),
    /// A generator process failed; with its last lines.
    Generator(String),
    /// A remote generator was lost, or the system's host.
    Lost(String),
    /// An abort condition of the study was met, or a script ended the test; which, and when.
    Aborted(String),
    /// The user requested it.
    Interrupted,
    /// The run can't continue.
    Fatal(ConductError),
}

impl Stop {
    /// A generator that does not stop in time. It gets a request to stop and is abandoned: on a machine whose cores are
    /// all taken it may just be late, which is no reason to lose the trials that follow.
    pub(crate) fn overdue() -> Self {
        let seconds = DRIVER_GRACE.as_secs();
        Self::Generator(format!(
            "the load generator had not ended {seconds} s after its hold, as one does that gets no CPU time"
        ))
    }
}

impl Stop {
    /// A script that ends the test, for this reason.
    pub(crate) fn by_script(reason: &str) -> Self {
        Self::Aborted(format!("`test.abort` of the script ended it: {reason}"))
    }

    /// A failure of the system during its preparation, which is no evidence about its load.
    pub(crate) fn in_preparation(self, cause: PreparationCause) -> Self {
        match self {
            Self::System(message) => Self::Preparation(message, cause),
            stop => stop,
        }
    }
}

impl<E: Into<ConductError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Fatal(error.into())
    }
}

/// Converts a machine's failure for the trial.
pub(crate) fn stopped(failed: Failed) -> Stop {
    match failed {
        Failed::System(message) => Stop::System(message),
        Failed::Lost(message) => Stop::Lost(message),
        Failed::Interrupted => Stop::Interrupted,
        Failed::Fatal(error) => error.into(),
    }
}

/// The end of a trial after its system was stopped, with a note about that stop. The first failure counts, except that
/// a machine that can't be restored ends the run.
pub(crate) fn with_end(
    result: Result<(), Stop>,
    ended: Result<Option<String>, Stop>,
) -> (Result<(), Stop>, Option<String>) {
    match (result, ended) {
        (result, Ok(note)) => (result, note),
        (Ok(()), Err(stop)) => (Err(stop), None),
        (Err(Stop::Fatal(error)), Err(_)) | (Err(_), Err(Stop::Fatal(error))) => {
            (Err(Stop::Fatal(error)), None)
        }
        // The rest of a system whose machine was lost soon fails, too, or slows down, before the loss is known.
        (
            Err(Stop::System(why) | Stop::Preparation(why, _) | Stop::Aborted(why)),
            Err(Stop::Lost(lost)),
        ) => (Err(Stop::Lost(lost)), Some(format!("Before that: {why}."))),
        (result, Err(Stop::System(why) | Stop::Lost(why))) => {
            (result, Some(format!("When the system was ended: {why}.")))
        }
        (result, Err(_)) => (result, None),
    }
}

/// A failed generator is a fact of its trial, as a failed system is.
pub(crate) fn driver_stop(error: DriverError) -> Stop {
    match error {
        DriverError::Generator { .. } => Stop::Generator(error.to_string()),
        DriverError::Lost { .. } => Stop::Lost(error.to_string()),
        DriverError::Aborted(reason) => Stop::by_script(&reason),
        DriverError::Script(why) => Stop::Preparation(why, PreparationCause::Study),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost() -> Stop {
        Stop::Lost("it was lost".to_owned())
    }

    #[test]
    fn what_shows_at_the_end_of_a_system_is_the_end_of_a_good_trial() {
        let (result, note) = with_end(Ok(()), Ok(Some("slow".to_owned())));
        assert!(result.is_ok() && note.as_deref() == Some("slow"));
        let (result, _) = with_end(Ok(()), Err(lost()));
        assert!(matches!(result, Err(Stop::Lost(_))), "{result:?}");
        let (result, _) = with_end(Ok(()), Err(Stop::System("it ended".to_owned())));
        assert!(matches!(result, Err(Stop::System(_))), "{result:?}");
    }

    #[test]
    fn the_first_failure_is_the_end_unless_the_machine_is_not_as_it_was() {
        let failed = || Err(Stop::Generator("no memory".to_owned()));
        let (result, note) = with_end(failed(), Err(lost()));
        assert!(matches!(result, Err(Stop::Generator(_))), "{result:?}");
        let expected = "When the system was ended: it was lost.";
        assert_eq!(note.as_deref(), Some(expected));
        for why in [Stop::System, Stop::Aborted] {
            let (result, note) = with_end(Err(why("it ended".to_owned())), Err(lost()));
            assert!(matches!(result, Err(Stop::Lost(_))), "{result:?}");
            assert_eq!(note.as_deref(), Some("Before that: it ended."));
        }
        let fatal = || Err(Stop::Fatal(ConductError::DriverEnded));
        let (result, _) = with_end(failed(), fatal());
        assert!(matches!(result, Err(Stop::Fatal(_))), "{result:?}");
        let (result, _) = with_end(Err(Stop::Interrupted), fatal());
        assert!(matches!(result, Err(Stop::Fatal(_))), "{result:?}");
    }
}
