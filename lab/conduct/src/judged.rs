//! What a trial came to, as whoever asked for the run judges it from the archive. Nothing here judges.

use std::path::Path;

use lab_stats::search::Judgement;

/// Judges a complete trial, by its number, of the archive in a folder.
pub type Judge<'a> = &'a mut dyn FnMut(&Path, u32) -> Judged;

/// So many trials in a row that fail for the same reason are no accident.
const STREAK: u32 = 3;

/// What a trial came to. The default is a measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    /// The checks that make it no measurement, what explains the others first; empty of a measurement.
    pub failed: Vec<FailedCheck>,
    /// Whether the reason lies outside system and generator.
    pub is_outside: bool,
    /// Whether the system under test failed.
    pub system_failed: bool,
    /// Whether the study's `abort_on` ended it.
    pub aborted: bool,
    /// Of a search: whether a measurement holds what the search is subject to.
    pub carried: Option<bool>,
}

/// A check that makes a trial no measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedCheck {
    /// Its name.
    pub name: String,
    /// The figures, with the limit.
    pub evidence: String,
    /// What to do about it.
    pub advice: String,
}

impl Judged {
    /// Of a trial that can't be judged, with the reason.
    #[must_use]
    pub fn unreadable(why: String) -> Self {
        Self {
            failed: vec![FailedCheck {
                name: "archive".to_owned(),
                evidence: why,
                advice: String::new(),
            }],
            ..Self::default()
        }
    }

    /// Whether the trial is a measurement.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.failed.is_empty() && !self.system_failed
    }

    pub(crate) fn may_be_repeated(&self) -> bool {
        !self.is_valid() && self.is_outside && !self.system_failed
    }

    /// As a search takes it in.
    pub(crate) fn judgement(&self) -> Judgement {
        match (self.system_failed, self.failed.first(), self.carried) {
            (true, ..) => Judgement::SystemFailed,
            // What must be stopped to protect the system, it doesn't carry.
            _ if self.aborted => Judgement::NotCarried,
            (_, Some(check), _) => Judgement::Invalid {
                reason: format!("{}: {}", check.name, check.evidence),
                outside: self.is_outside,
            },
            (_, None, Some(true)) => Judgement::Carried,
            (_, None, _) => Judgement::NotCarried,
        }
    }

    #[cfg(test)]
    pub(crate) fn made_up(check: &str, is_outside: bool) -> Self {
        let failed = FailedCheck {
            name: check.to_owned(),
            evidence: "50 % (limit 20 %)".to_owned(),
            advice: "Stop them.".to_owned(),
        };
        Self {
            failed: vec![failed],
            is_outside,
            ..Self::default()
        }
    }
}

/// Trials in a row that are no measurements for the same reason.
#[derive(Debug, Default)]
pub(crate) struct Streak {
    check: String,
    length: u32,
}

impl Streak {
    /// Takes a trial in. A sentence when a streak is long enough that it will not end by itself.
    pub(crate) fn learn(&mut self, judged: &Judged) -> Option<String> {
        let Some(check) = judged.failed.first() else {
            *self = Self::default();
            return None;
        };
        if check.name != self.check {
            check.name.clone_into(&mut self.check);
            self.length = 0;
        }
        self.length += 1;
        if self.length != STREAK {
            return None;
        }
        let then = if judged.is_outside {
            " More `--patience` waits longer for a quiet machine; `--resume` repeats these trials at \
             another time; where that much is usual here, the study may set the limit under `checks:`."
        } else {
            ""
        };
        Some(format!(
            "{STREAK} trials in a row are no measurements for the same reason, {}: {}. {}{then}",
            check.name, check.evidence, check.advice
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_trial_in_a_row_with_the_same_reason_is_told_once() {
        let outside = Judged::made_up("other programs", true);
        let mut streak = Streak::default();
        let told: Vec<bool> = (0..5).map(|_| streak.learn(&outside).is_some()).collect();
        assert_eq!(told, [false, false, true, false, false]);
        let mut broken = Streak::default();
        for judged in [&outside, &outside, &Judged::default(), &outside, &outside] {
            assert_eq!(broken.learn(judged), None);
        }
        let text = broken.learn(&outside).unwrap();
        assert!(
            text.contains("other programs: 50 % (limit 20 %). Stop them."),
            "{text}"
        );
        assert!(text.contains("--patience"), "{text}");
        let generator = Judged::made_up("waits", false);
        let mut streak = Streak::default();
        let texts: Vec<_> = (0..3).filter_map(|_| streak.learn(&generator)).collect();
        assert!(!texts[0].contains("--patience"), "{texts:?}");
    }

    #[test]
    fn a_search_takes_it_in() {
        let held = Judged {
            carried: Some(true),
            ..Judged::default()
        };
        assert_eq!(held.judgement(), Judgement::Carried);
        assert_eq!(Judged::default().judgement(), Judgement::NotCarried);
        let failed = Judged {
            system_failed: true,
            ..Judged::made_up("system under test", true)
        };
        assert_eq!(failed.judgement(), Judgement::SystemFailed);
        assert!(!failed.may_be_repeated());
        let aborted = Judged {
            aborted: true,
            ..Judged::made_up("abort", false)
        };
        assert_eq!(aborted.judgement(), Judgement::NotCarried);
        assert!(!aborted.may_be_repeated() && !aborted.is_valid());
        assert!(Judged::made_up("other programs", true).may_be_repeated());
        assert!(!Judged::made_up("waits", false).may_be_repeated());
    }
}
