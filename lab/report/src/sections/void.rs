//! Checks whether a run has any results.

use crate::Analysis;
use crate::model::{Outcome, Verdict};

/// Returns true if a run has no valid trial: then tables of figures are empty.
pub(super) fn is_void(analysis: &Analysis) -> bool {
    let mut trials = analysis.trials.iter();
    trials.all(|trial| trial.verdict == Verdict::Invalid)
        && matches!(
            analysis.summary.outcome,
            Outcome::TooFewValidTrials | Outcome::SystemFailed | Outcome::PreparationFailed
        )
}
