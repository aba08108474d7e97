//! Whether a run has anything to show.

use crate::Analysis;
use crate::model::{Outcome, Verdict};

/// Whether nothing of a run is a measurement: then tables of figures have nothing to show.
pub(super) fn is_void(analysis: &Analysis) -> bool {
    let mut trials = analysis.trials.iter();
    trials.all(|trial| trial.verdict == Verdict::Invalid)
        && matches!(
            analysis.summary.outcome,
            Outcome::TooFewValidTrials | Outcome::SystemFailed | Outcome::PreparationFailed
        )
}
