//! The inputs of a comparison.

use lab_analysis::answer::Deciding;
use lab_analysis::model::{Analysis, CellSummary};
use lab_plan::Decides;

use crate::setup;

/// Runs to compare: those of one build with those of another.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'a> {
    /// The baseline.
    pub a: &'a [Analysis],
    /// The candidate.
    pub b: &'a [Analysis],
    /// Earlier runs: those of the same study and machine as the baseline show the spread between runs, all others are
    /// ignored.
    pub earlier: &'a [Analysis],
    /// The measure that decides. By default that of the study of `b`, or else that of `a`.
    pub decides: Option<Decides>,
}

/// A cell of the first run, and that of the second.
pub(crate) type Pair<'a> = (&'a CellSummary, &'a CellSummary);

impl<'a> Runs<'a> {
    /// All runs except the earlier ones.
    pub(crate) fn both(&self) -> impl Iterator<Item = &'a Analysis> + use<'a> {
        self.a.iter().chain(self.b)
    }

    /// The measures that decide.
    pub(crate) fn deciding(&self) -> Deciding {
        let by_study = |of: &[Analysis]| of.iter().find_map(|run| run.study.decides);
        let named = self.decides.or(by_study(self.b)).or(by_study(self.a));
        Deciding::of_runs(named, self.both())
    }

    /// The common seed of all runs, if any: each block then had the same waits and choices in all.
    pub(crate) fn one_seed(&self) -> Option<u64> {
        let mut seeds = self.both().map(|run| run.study.seed);
        let first = seeds.next()?;
        seeds.all(|seed| seed == first).then_some(first)
    }

    /// Returns true if a run is compared with itself: this shows nothing about the noise of runs and blocks.
    pub(crate) fn has_one_twice(&self) -> bool {
        let mut begun: Vec<&str> = self.both().map(|run| &*run.study.started).collect();
        begun.sort_unstable();
        begun.windows(2).any(|two| two[0] == two[1])
    }

    /// Earlier runs with the same study and machine.
    pub(crate) fn earlier(&self) -> impl Iterator<Item = &'a Analysis> + use<'a> {
        let a = self.a.first();
        let earlier = self.earlier.iter();
        earlier.filter(move |run| a.is_some_and(|a| setup::is_same_study(a, run)))
    }
}
