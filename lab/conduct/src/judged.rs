//! The outcome of a trial, as the caller of the run judges it from the archive. Nothing here judges.

use std::path::Path;

use lab_stats::search::Judgement;
use lab_study::model::Cell;

/// Judges a complete trial, by its number, of the archive in a folder.
pub type Judge<'a> = &'a mut dyn FnMut(&Path, u32) -> Judged;

/// Number of trials in a row with the same failure that end a run.
const STREAK: u32 = 3;

/// A run ends after so many trials of a cell end before their load, and no other trial: the first one and its repeat.
const UNSTARTED: u32 = 2;

/// The outcome of a trial. The default is valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The checks that make it invalid, root causes first; empty if it is valid.
    pub failed: Vec<FailedCheck>,
    /// True if the cause lies outside system and generator.
    pub is_outside: bool,
    /// True if the system under test failed.
    pub system_failed: bool,
    /// True if it ended before it offered any load.
    pub before_load: bool,
    /// The outcome for a search.
    pub judgement: Judgement,
    /// For a trial of a duet, its part of the CPU of the cores shared by both; for a pair, the sum.
    pub cpu: Option<f64>,
}

impl Default for Judged {
    fn default() -> Self {
        Self {
            failed: Vec::new(),
            is_outside: false,
            system_failed: false,
            before_load: false,
            judgement: Judgement::NotCarried,
            cpu: None,
        }
    }
}

/// A check that makes a trial invalid.
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
    /// The outcome of a trial that can't be judged, with the reason.
    #[must_use]
    pub fn unreadable(why: String) -> Self {
        Self {
            failed: vec![FailedCheck {
                name: "archive".to_owned(),
                evidence: why,
                advice: String::new(),
            }],
            judgement: Judgement::Invalid,
            ..Self::default()
        }
    }

    /// Returns true if the trial is valid.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.failed.is_empty() && !self.system_failed
    }

    pub(crate) fn may_be_repeated(&self) -> bool {
        !self.is_valid() && self.is_outside && !self.system_failed
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
            judgement: match is_outside {
                true => Judgement::Disturbed { held: false },
                false => Judgement::Invalid,
            },
            ..Self::default()
        }
    }
}

/// Cells whose trials ended before any load, as with a system that can't start.
#[derive(Debug, Default)]
pub(crate) struct Unstarted {
    /// By cell: the number of such trials, and whether any other trial reached its load.
    cells: Vec<(Cell, u32, bool)>,
}

impl Unstarted {
    /// Records a trial. Returns a sentence if the run must end: no trial of this cell reached its load, including the
    /// repeat, and the other cells cannot be compared without it.
    pub(crate) fn learn(&mut self, cell: &Cell, judged: &Judged) -> Option<String> {
        let known = self.cells.iter().position(|(known, ..)| known == cell);
        let at = known.unwrap_or_else(|| {
            self.cells.push((cell.clone(), 0, false));
            self.cells.len() - 1
        });
        let (_, failed, came) = &mut self.cells[at];
        match judged.judgement {
            Judgement::Unprepared => *failed += 1,
            _ => *came = true,
        }
        if *failed < UNSTARTED || *came {
            return None;
        }
        let why = judged.failed.first().map_or("", |check| &check.evidence);
        Some(format!(
            "The run ends: {UNSTARTED} trials of the same cell in a row ended before their load, and none of it \
             came further. The last: {why}"
        ))
    }
}

/// Counts trials in a row that are invalid for the same reason.
#[derive(Debug, Default)]
pub(crate) struct Streak {
    check: String,
    length: u32,
}

impl Streak {
    /// Records a trial. Returns a sentence if the streak is long enough that it will not end by itself.
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
    fn a_cell_that_never_comes_to_its_load_ends_the_run() {
        let unprepared = Judged {
            judgement: Judgement::Unprepared,
            ..Judged::made_up("system under test", false)
        };
        let cell = |n: i64| Cell::from([("threads".to_owned(), lab_study::model::Level::Int(n))]);
        let mut unstarted = Unstarted::default();
        assert_eq!(unstarted.learn(&cell(1), &unprepared), None);
        assert_eq!(unstarted.learn(&cell(2), &unprepared), None);
        let why = unstarted.learn(&cell(1), &unprepared).unwrap();
        assert!(why.contains("50 % (limit 20 %)"), "{why}");
        // A system that reached its load once can start.
        assert_eq!(unstarted.learn(&cell(3), &Judged::default()), None);
        for _ in 0..3 {
            assert_eq!(unstarted.learn(&cell(3), &unprepared), None);
        }
    }

    #[test]
    fn repeats_are_for_disturbed_trials() {
        let failed = Judged {
            system_failed: true,
            ..Judged::made_up("system under test", true)
        };
        assert!(!failed.may_be_repeated());
        let aborted = Judged::made_up("abort", false);
        assert!(!aborted.may_be_repeated() && !aborted.is_valid());
        assert!(Judged::made_up("other programs", true).may_be_repeated());
        assert!(!Judged::made_up("waits", false).may_be_repeated());
    }
}
