//! The exit codes of the program: one per outcome, and their precedence.

use std::fmt;
use std::process::ExitCode;

use lab_archive::ArchiveError;
use lab_conduct::ConductError;
use lab_host::HostError;

use crate::args::GateArgs;
use lab_terminal::stderr::say;

/// The outcome of the program, by rising precedence where several hold: 99, 121, 120, 110, 105.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Success.
    Success,
    /// A threshold on the server failed.
    ThresholdFailed,
    /// A run, or a variant, is worse than its baseline.
    Regression,
    /// Inconclusive: the noise leaves the question open, or nothing could be compared.
    CouldNotTell,
    /// Too few valid trials for an answer, or a search that was not finished.
    TooFewValidTrials,
    /// The system under test did not start, could not be prepared, or died.
    SystemFailed,
    /// Interrupted; `--resume` continues a run.
    Interrupted,
    /// A bad file or flag.
    BadInput,
    /// A fault of this program or its environment (a full disk, say).
    Internal,
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Internal => 1,
            Exit::ThresholdFailed => 99,
            Exit::BadInput => 104,
            Exit::Interrupted => 105,
            Exit::SystemFailed => 110,
            Exit::CouldNotTell | Exit::TooFewValidTrials => 120,
            Exit::Regression => 121,
        }
    }
}

/// The exit code of an inconclusive answer under `--lenient`: as if there were no question, with a message.
pub(crate) fn unless_lenient(exit: Exit, gate: GateArgs, otherwise: Exit) -> Exit {
    if exit != Exit::CouldNotTell || !gate.lenient {
        return exit;
    }
    say(format_args!(
        "could not tell, and --lenient takes that for success"
    ));
    otherwise
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// A failure with its exit code and the text for people.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) report: String,
    pub(crate) hint: Option<String>,
    laid_out: bool,
}

impl Failure {
    /// The error with its chain of causes, one sentence.
    pub(crate) fn new(exit: Exit, error: &dyn std::error::Error) -> Failure {
        let mut report = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            report.push_str(": ");
            report.push_str(&inner.to_string());
            cause = inner.source();
        }
        Failure {
            exit,
            report,
            hint: None,
            laid_out: false,
        }
    }

    pub(crate) fn text(exit: Exit, report: impl Into<String>) -> Failure {
        Failure {
            exit,
            report: report.into(),
            hint: None,
            laid_out: false,
        }
    }

    /// A formatted report, with its own heading and hints.
    pub(crate) fn rendered(exit: Exit, report: String) -> Failure {
        Failure {
            exit,
            report,
            hint: None,
            laid_out: true,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.laid_out {
            return write!(f, "{}", self.report.trim_end());
        }
        write!(f, "error: {}", self.report.trim_end())?;
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

/// A load beyond this machine's limits, or an archive that doesn't fit, is a bad input.
pub(crate) fn failure(error: &ConductError) -> Failure {
    match error {
        ConductError::Preflight { .. }
        | ConductError::Settings { .. }
        | ConductError::Host(HostError::Kernel { .. } | HostError::Filesystem { .. })
        | ConductError::Unsupported(_) => Failure::new(Exit::BadInput, error),
        ConductError::Unreachable { .. } => Failure::new(Exit::SystemFailed, error),
        ConductError::Host(HostError::KernelBusy { .. }) => Failure::new(Exit::BadInput, error)
            .hint("runs that vary the same setting go one after the other"),
        ConductError::Host(HostError::PutBack { .. } | HostError::TakeAway { .. }) => {
            Failure::new(Exit::Internal, error)
                .hint("`plimsoll restore` tries again, as root where that is needed")
        }
        ConductError::Archive(ArchiveError::NotEmpty { .. }) => Failure::new(Exit::BadInput, error)
            .hint("--resume goes on with the run in it; a new run needs another --out"),
        ConductError::Archive(
            ArchiveError::Different { .. }
            | ArchiveError::Rewritten { .. }
            | ArchiveError::Changed { .. },
        ) => Failure::new(Exit::BadInput, error)
            .hint("resume it as it was begun, or start a new run without --resume"),
        ConductError::Archive(
            ArchiveError::NotAnArchive { .. }
            | ArchiveError::Busy { .. }
            | ArchiveError::Version { .. },
        ) => Failure::new(Exit::BadInput, error),
        _ => Failure::new(Exit::Internal, error),
    }
}

#[cfg(test)]
mod tests {
    use super::{Exit, unless_lenient};
    use crate::args::GateArgs;

    #[test]
    fn lenient_takes_an_open_answer_for_success_and_nothing_else() {
        let of = |exit, lenient| {
            unless_lenient(exit, GateArgs { lenient }, Exit::ThresholdFailed).code()
        };
        assert_eq!(of(Exit::CouldNotTell, false), 120);
        assert_eq!(of(Exit::CouldNotTell, true), 99);
        assert_eq!(of(Exit::Regression, true), 121);
        assert_eq!(of(Exit::TooFewValidTrials, true), 120);
    }

    #[test]
    fn the_graver_outcome_wins() {
        let of = |outcomes: &[Exit]| outcomes.iter().max().expect("some").code();
        assert_eq!(of(&[Exit::Success, Exit::ThresholdFailed]), 99);
        assert_eq!(of(&[Exit::ThresholdFailed, Exit::Regression]), 121);
        assert_eq!(of(&[Exit::Regression, Exit::TooFewValidTrials]), 120);
        assert_eq!(of(&[Exit::ThresholdFailed, Exit::CouldNotTell]), 120);
        assert_eq!(of(&[Exit::TooFewValidTrials, Exit::SystemFailed]), 110);
        assert_eq!(of(&[Exit::SystemFailed, Exit::Interrupted]), 105);
    }
}
