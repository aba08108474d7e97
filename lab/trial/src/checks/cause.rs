//! The cause of an invalid trial: the common cause of its failed checks.

use lab_plan::checks::Cause;

use crate::model::{Check, CheckOutcome};

/// Returns the cause of an invalid trial; `None` for a valid one. It is derived from the checks on the machine, the
/// generator, and the records alone, never from the system's response times.
///
/// Competition for the CPU also delays sends and windows: if an outside check fails, or warns while only generator
/// checks fail, the cause is outside. A failed system takes precedence, as do responses that made steps skip, and the
/// study.
pub(crate) fn cause(checks: &[Check]) -> Option<Cause> {
    let failed = |check: &&Check| check.outcome == CheckOutcome::Invalid;
    let causes: Vec<Cause> = checks
        .iter()
        .filter(failed)
        .filter_map(|check| check.cause)
        .collect();
    let first = [Cause::System, Cause::Study, Cause::Outside];
    if let Some(cause) = first.into_iter().find(|cause| causes.contains(cause)) {
        return Some(cause);
    }
    let disturbed =
        |check: &Check| check.cause == Some(Cause::Outside) && check.outcome == CheckOutcome::Warn;
    match causes.first()? {
        Cause::Generator if checks.iter().any(disturbed) => Some(Cause::Outside),
        cause => Some(*cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CheckOutcome::{Invalid, Pass, Warn};
    use lab_plan::checks::CheckId;

    fn found(of: &[(CheckOutcome, Cause)]) -> Option<Cause> {
        let check = |(outcome, cause): &(CheckOutcome, Cause)| Check {
            id: CheckId::Waits,
            outcome: *outcome,
            evidence: String::new(),
            advice: None,
            cause: (*outcome >= Warn).then_some(*cause),
            figures: Vec::new(),
        };
        cause(&of.iter().map(check).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_outside_explains_the_generator_and_nothing_explains_the_system() {
        let (outside, generator, system) = (Cause::Outside, Cause::Generator, Cause::System);
        assert_eq!(found(&[(Pass, outside), (Warn, system)]), None);
        let both = [(Invalid, generator), (Invalid, outside)];
        assert_eq!(found(&both), Some(outside));
        let warned = [(Invalid, generator), (Warn, outside)];
        assert_eq!(found(&warned), Some(outside));
        let alone = [(Invalid, generator), (Pass, outside)];
        assert_eq!(found(&alone), Some(generator));
        let skipped = [(Invalid, system), (Invalid, outside)];
        assert_eq!(found(&skipped), Some(system));
        let cut = [(Invalid, Cause::Study), (Warn, outside)];
        assert_eq!(found(&cut), Some(Cause::Study));
    }
}
