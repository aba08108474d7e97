//! The measure that a study's comparisons are decided by.

use lab_language::{Problems, unknown_name};

use crate::file::StudyFile;
use crate::model::{Decides, Workload};

/// The measure that the study names, if it names one that its trials have.
pub(super) fn decides(
    file: &StudyFile,
    workload: &Workload,
    problems: &mut Problems,
) -> Option<Decides> {
    let at = file.decides.as_ref()?;
    let text = at.text();
    let named = text.parse::<Decides>();
    let (message, help) = match named {
        Err(_) => unknown_name("measure", &text, &Decides::names()),
        Ok(_) if file.find.is_some() => (
            "the load line is what a search is decided by".to_owned(),
            "take this out: limits under `subject_to` say what is carried".to_owned(),
        ),
        Ok(Decides::ProbeMean) if workload.probe.is_none() => (
            "the workload has no probe".to_owned(),
            "give it one, or name another measure".to_owned(),
        ),
        Ok(Decides::TransferRate) if workload.transfer.is_none() => (
            "the workload does not say what a session carries".to_owned(),
            "it says so under `transfer`; or name another measure".to_owned(),
        ),
        Ok(measure) => return Some(measure),
    };
    problems.push(at.span.first_line().problem(message, "here").help(help));
    None
}
