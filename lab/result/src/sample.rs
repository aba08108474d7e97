//! The one rule for the trials that a comparison counts: for matrix comparisons, duets, comparisons of runs, and
//! histories.
//!
//! A planned trial never leaves a sample silently. A trial that is missing because of the system is evidence against
//! it: the remaining trials would be a choice of the good ones (informative censoring). A trial that is missing because
//! of the environment is no evidence on the system: the run repeats it, and meanwhile its block is excluded on both
//! sides. Any other missing trial prevents an answer.

use std::collections::BTreeMap;

use lab_plan::checks::Cause;
use lab_plan::{Cell, Plan};
use lab_trial::format::{list, plural};
use lab_trial::model::{TrialAnalysis, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of a planned trial.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// A valid trial.
    Valid,
    /// Invalid for a reason outside system and generator.
    Disturbed,
    /// Invalid because of the generator, of the study, or of a check on the system.
    Invalid,
    /// The system failed before the load started.
    NotStarted,
    /// The system failed under load.
    Died,
    /// `abort_on` or a script ended the trial early.
    Aborted,
    /// Interrupted, skipped, or not run yet: the archive does not contain the trial.
    NotRun,
}

impl Fate {
    /// All fates, the good one first.
    pub const ALL: [Self; 7] = [
        Self::Valid,
        Self::Disturbed,
        Self::Invalid,
        Self::NotStarted,
        Self::Died,
        Self::Aborted,
        Self::NotRun,
    ];

    /// The fate of a trial that ran, by itself: the peer in a duet doesn't change it.
    #[must_use]
    pub fn of(trial: &TrialAnalysis) -> Self {
        match (&trial.system_failure, trial.verdict, trial.cause) {
            (Some(_), ..) if trial.elapsed_ms == 0 => Self::NotStarted,
            (Some(_), ..) => Self::Died,
            (None, ..) if trial.aborted => Self::Aborted,
            (None, Verdict::Valid, _) => Self::Valid,
            (None, Verdict::Invalid, Some(Cause::Outside)) => Self::Disturbed,
            (None, Verdict::Invalid, _) => Self::Invalid,
        }
    }

    /// The fate of a planned trial by its attempts, in the order in which they ran. A valid attempt makes up
    /// for a disturbance and for a failed start, and never for a failure under load.
    #[must_use]
    pub fn of_attempts(attempts: &[Self]) -> Self {
        let has = |fate: &Self| attempts.contains(fate);
        let stays = [Self::Died, Self::Aborted, Self::Valid];
        let last = attempts.last().copied();
        stays.into_iter().find(has).or(last).unwrap_or(Self::NotRun)
    }

    /// Returns true if the system is the reason.
    #[must_use]
    pub fn is_failure(self) -> bool {
        match self {
            Self::NotStarted | Self::Died | Self::Aborted => true,
            Self::Valid | Self::Disturbed | Self::Invalid | Self::NotRun => false,
        }
    }

    /// In words, as a remark on one trial or pair.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Disturbed => "disturbed from outside",
            Self::Invalid => "invalid",
            Self::NotStarted => "the system did not start",
            Self::Died => "the system failed",
            Self::Aborted => "ended by `abort_on`",
            Self::NotRun => "not run",
        }
    }

    /// The fate with its number of trials: `the system failed in 2 of 8 trials`.
    fn words(self, of: &str) -> String {
        match self {
            Self::Valid => format!("{of} are valid"),
            Self::Disturbed => format!("{of} are disturbed"),
            Self::Invalid => format!("{of} are invalid"),
            Self::NotStarted => format!("the system did not start in {of}"),
            Self::Died => format!("the system failed in {of}"),
            Self::Aborted => format!("{of} were aborted"),
            Self::NotRun => format!("{of} were not run"),
        }
    }
}

/// A side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What is compared with.
    Baseline,
    /// What is compared.
    Candidate,
}

/// What reads the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consumer {
    /// The comparisons of one run, those of a duet as well: a run that isn't complete says so itself.
    Run,
    /// Comparisons between runs.
    Runs,
    /// The series of a study over its runs.
    History,
}

/// What a planned trial counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counts {
    /// Its figures count.
    Included,
    /// It is to be run again. Until then its block counts on neither side.
    Repeat,
    /// Without it there is no answer that is good.
    NoAnswer,
    /// It speaks against the candidate, unless the baseline failed as well.
    Worse,
}

/// The rule: returns the effect of a trial with this fate.
#[must_use]
pub fn counts(fate: Fate, side: Side, consumer: Consumer) -> Counts {
    match (fate, side, consumer) {
        (Fate::Valid, ..) => Counts::Included,
        (Fate::Disturbed, ..) => Counts::Repeat,
        (Fate::NotRun, _, Consumer::Run | Consumer::History) => Counts::Repeat,
        (Fate::NotRun, _, Consumer::Runs) => Counts::NoAnswer,
        (Fate::Invalid, ..) => Counts::NoAnswer,
        (Fate::NotStarted | Fate::Died | Fate::Aborted, _, Consumer::History) => Counts::NoAnswer,
        (Fate::NotStarted | Fate::Died | Fate::Aborted, Side::Baseline, _) => Counts::NoAnswer,
        (Fate::NotStarted | Fate::Died | Fate::Aborted, Side::Candidate, _) => Counts::Worse,
    }
}

/// The planned trials of a cell, by result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellSample {
    /// The level of each factor.
    pub cell: Cell,
    /// The cell in words.
    pub label: String,
    /// The number of users at the top of the ramp.
    pub users: u32,
    /// The number of planned trials with each result.
    pub fates: BTreeMap<Fate, u32>,
}

/// A sample for each planned cell; none for a search, which chooses its trials as it runs and counts them in its line.
/// Trials are in the order in which they ran, each judged by itself.
pub fn samples(plan: &Plan, trials: &[TrialAnalysis]) -> Vec<CellSample> {
    let mut samples: Vec<CellSample> = Vec::new();
    if plan.search.is_some() {
        return samples;
    }
    for planned in plan.trials.iter().filter(|trial| !trial.control) {
        let attempts = trials.iter().filter(|trial| trial.planned() == planned.id);
        let attempts: Vec<Fate> = attempts.map(Fate::of).collect();
        let users = planned.load.users;
        let known = samples
            .iter()
            .position(|one| one.cell == planned.cell && one.users == users);
        let at = known.unwrap_or_else(|| {
            samples.push(CellSample {
                cell: planned.cell.clone(),
                label: lab_trial::format::cell_label(&plan.question, &planned.cell),
                users,
                fates: BTreeMap::new(),
            });
            samples.len() - 1
        });
        let fate = Fate::of_attempts(&attempts);
        *samples[at].fates.entry(fate).or_default() += 1;
    }
    samples
}

impl CellSample {
    /// Planned trials with this fate.
    #[must_use]
    pub fn count(&self, fate: Fate) -> u32 {
        self.fates.get(&fate).copied().unwrap_or_default()
    }

    /// All planned trials.
    #[must_use]
    pub fn planned(&self) -> u32 {
        self.fates.values().sum()
    }

    /// Adds the trials of another run of the same build.
    pub fn add(&mut self, other: &Self) {
        for (fate, count) in &other.fates {
            *self.fates.entry(*fate).or_default() += count;
        }
    }

    /// The most severe effect of its trials.
    #[must_use]
    pub fn counts(&self, side: Side, consumer: Consumer) -> Counts {
        let some = self.fates.iter().filter(|(_, count)| **count > 0);
        let each = some.map(|(fate, _)| counts(*fate, side, consumer));
        each.max().unwrap_or(Counts::Repeat)
    }

    /// The trials with the wanted effect, in words: `the system failed in 2 of 8 trials of run b`.
    fn words(&self, name: &str, wanted: Counts, (side, consumer): (Side, Consumer)) -> String {
        let all = plural(self.planned() as usize, "trial");
        let is_wanted =
            |fate: Fate, count: u32| count > 0 && counts(fate, side, consumer) == wanted;
        let found = self
            .fates
            .iter()
            .filter(|(fate, count)| is_wanted(**fate, **count));
        let each = found.map(|(fate, count)| fate.words(&format!("{count} of {all} of {name}")));
        list(&each.collect::<Vec<_>>())
    }
}

/// How the sample of a cell and its baseline stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The figures decide.
    Complete,
    /// Trials are missing, and nothing good can be said. The reason is the end of a sentence.
    NoAnswer(String),
    /// The candidate's system failed, and the baseline's did not.
    Worse(String),
}

impl Standing {
    /// Judges a candidate `b` beside its baseline `a`, each with its name in words. `None` is a cell that a side
    /// doesn't have.
    #[must_use]
    pub fn of(
        (a, name_a): (Option<&CellSample>, &str),
        (b, name_b): (Option<&CellSample>, &str),
        consumer: Consumer,
    ) -> Self {
        let (of_a, of_b) = ((Side::Baseline, consumer), (Side::Candidate, consumer));
        let (a, b) = match (a, b) {
            (Some(a), Some(b)) => (a, b),
            (Some(_), None) => return Self::NoAnswer(format!("{name_b} is not planned")),
            (None, _) => return Self::NoAnswer(format!("{name_a} is not planned")),
        };
        let failed = |of: &CellSample| Fate::ALL.iter().any(|f| f.is_failure() && of.count(*f) > 0);
        let without_a = || a.words(name_a, Counts::NoAnswer, of_a);
        let without_b = || b.words(name_b, Counts::NoAnswer, of_b);
        let worse = || b.words(name_b, Counts::Worse, of_b);
        match (a.counts(of_a.0, consumer), b.counts(of_b.0, consumer)) {
            (_, Counts::Worse) if failed(a) => {
                Self::NoAnswer(format!("{}, and {}", without_a(), worse()))
            }
            (_, Counts::Worse) => Self::Worse(format!("{}, and in none of {name_a}", worse())),
            (Counts::NoAnswer, _) => Self::NoAnswer(without_a()),
            (_, Counts::NoAnswer) => Self::NoAnswer(without_b()),
            _ => Self::of_valid([(a, name_a), (b, name_b)]),
        }
    }

    fn of_valid(sides: [(&CellSample, &str); 2]) -> Self {
        let none = |(of, _): &&(&CellSample, &str)| of.count(Fate::Valid) == 0;
        match sides.iter().find(none) {
            None => Self::Complete,
            Some((of, name)) => {
                let all = plural(of.planned() as usize, "trial");
                Self::NoAnswer(format!("none of {all} of {name} is valid"))
            }
        }
    }

    /// Why a good verdict is impossible, as the end of a sentence; `None` if the figures decide.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Complete => None,
            Self::NoAnswer(why) | Self::Worse(why) => Some(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Consumer::{History, Run, Runs};
    use Counts::{Included, NoAnswer, Repeat, Worse};

    /// The effect of each fate: for the baseline and for the candidate in a run, the same between runs, and in a
    /// history.
    const TABLE: [(Fate, [Counts; 5]); 7] = [
        (Fate::Valid, [Included; 5]),
        (Fate::Disturbed, [Repeat; 5]),
        (Fate::Invalid, [NoAnswer; 5]),
        (
            Fate::NotStarted,
            [NoAnswer, Worse, NoAnswer, Worse, NoAnswer],
        ),
        (Fate::Died, [NoAnswer, Worse, NoAnswer, Worse, NoAnswer]),
        (Fate::Aborted, [NoAnswer, Worse, NoAnswer, Worse, NoAnswer]),
        (Fate::NotRun, [Repeat, Repeat, NoAnswer, NoAnswer, Repeat]),
    ];

    #[test]
    fn each_fate_counts_for_the_same_everywhere_unless_a_run_says_it_itself() {
        assert_eq!(TABLE.map(|(fate, _)| fate), Fate::ALL);
        let readers = [
            (Side::Baseline, Run),
            (Side::Candidate, Run),
            (Side::Baseline, Runs),
            (Side::Candidate, Runs),
        ];
        for (fate, expected) in TABLE {
            for (at, (side, consumer)) in readers.into_iter().enumerate() {
                let found = counts(fate, side, consumer);
                assert_eq!(found, expected[at], "{fate:?} {side:?} {consumer:?}");
            }
            for side in [Side::Baseline, Side::Candidate] {
                assert_eq!(
                    counts(fate, side, History),
                    expected[4],
                    "{fate:?} {side:?}"
                );
            }
        }
    }

    #[test]
    fn a_failure_under_load_stays_whatever_is_repeated() {
        use Fate::{Aborted, Died, Disturbed, Invalid, NotRun, NotStarted, Valid};
        let table: [(&[Fate], Fate); 11] = [
            (&[], NotRun),
            (&[Valid], Valid),
            (&[Disturbed], Disturbed),
            (&[Disturbed, Valid], Valid),
            (&[Disturbed, Invalid], Invalid),
            (&[NotStarted, Valid], Valid),
            (&[Disturbed, NotStarted], NotStarted),
            (&[Died, Valid], Died),
            (&[Aborted, Valid], Aborted),
            (&[Aborted, Died], Died),
            (&[Died, Disturbed], Died),
        ];
        for (attempts, expected) in table {
            assert_eq!(Fate::of_attempts(attempts), expected, "{attempts:?}");
        }
    }

    fn sample(fates: &[(Fate, u32)]) -> CellSample {
        CellSample {
            cell: Cell::new(),
            label: "200 users".to_owned(),
            users: 200,
            fates: fates.iter().copied().collect(),
        }
    }

    fn of(a: &[(Fate, u32)], b: &[(Fate, u32)], consumer: Consumer) -> Standing {
        Standing::of((Some(&sample(a)), "a"), (Some(&sample(b)), "b"), consumer)
    }

    #[test]
    fn a_pair_stands_as_its_graver_side_does() {
        use Fate::{Aborted, Died, Disturbed, Invalid, NotRun, NotStarted, Valid};
        let no = |why: &str| Standing::NoAnswer(why.to_owned());
        let well = [(Valid, 8)];
        let with = |fate| [(Valid, 6), (fate, 2)];
        for consumer in [Run, Runs] {
            let of = |a: &[(Fate, u32)], b: &[(Fate, u32)]| of(a, b, consumer);
            assert_eq!(of(&well, &well), Standing::Complete);
            assert_eq!(of(&well, &with(Disturbed)), Standing::Complete);
            assert_eq!(of(&with(Disturbed), &well), Standing::Complete);
            let worse = "the system failed in 2 of 8 trials of b, and in none of a";
            assert_eq!(of(&well, &with(Died)), Standing::Worse(worse.to_owned()));
            assert_eq!(
                of(&with(Disturbed), &with(Died)),
                Standing::Worse(worse.to_owned())
            );
            for fate in [NotStarted, Aborted] {
                assert!(matches!(of(&well, &with(fate)), Standing::Worse(_)));
            }
            for fate in [NotStarted, Died, Aborted, Invalid] {
                assert!(matches!(of(&with(fate), &well), Standing::NoAnswer(_)));
            }
            assert!(matches!(
                of(&with(Died), &with(Aborted)),
                Standing::NoAnswer(_)
            ));
            assert_eq!(
                of(&well, &with(Invalid)),
                no("2 of 8 trials of b are invalid")
            );
            let none = no("none of 8 trials of b is valid");
            assert_eq!(of(&well, &[(Disturbed, 8)]), none);
            assert_eq!(
                of(&[(Disturbed, 8)], &well),
                no("none of 8 trials of a is valid")
            );
        }
        assert_eq!(of(&well, &with(NotRun), Run), Standing::Complete);
        let left = no("2 of 8 trials of b were not run");
        assert_eq!(of(&well, &with(NotRun), Runs), left);
        assert_eq!(of(&[], &well, Runs), no("none of 0 trials of a is valid"));
        let one = sample(&well);
        let sides = [(Some(&one), None), (None, Some(&one)), (None, None)];
        for (a, b) in sides {
            let found = Standing::of((a, "a"), (b, "b"), Runs);
            assert!(matches!(found, Standing::NoAnswer(_)), "{found:?}");
        }
    }

    #[test]
    fn runs_of_one_build_add_up() {
        let mut all = sample(&[(Fate::Valid, 6), (Fate::Died, 2)]);
        all.add(&sample(&[(Fate::Valid, 8)]));
        assert_eq!(
            (all.planned(), all.count(Fate::Valid), all.count(Fate::Died)),
            (16, 14, 2)
        );
    }
}
