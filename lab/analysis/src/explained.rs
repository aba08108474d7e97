//! What explains differences, beside the figures that decide: profiles of CPU time, and counters of the system itself.

use lab_asked::{AskDifference, CountedSeries};
use lab_plan::Plan;
use lab_trial::Input;

use crate::asked::{self, Asked};
use crate::cpu::{self, Profiled};
use crate::model::{CellSummary, CpuProfile, ProfileDifference, Scaling, TrialAnalysis};
use crate::{capacity, profiles};

/// What trials recorded for it.
pub(crate) struct Recorded {
    profiled: Vec<Profiled>,
    asked: Asked,
}

/// What it shows of cells, and between them.
pub(crate) struct Explained {
    pub(crate) cpu_profiles: Vec<CpuProfile>,
    pub(crate) profile_differences: Vec<ProfileDifference>,
    pub(crate) counted: Vec<CountedSeries>,
    pub(crate) ask_differences: Vec<AskDifference>,
}

impl Recorded {
    /// Reads what trials recorded; what can't be read is a note of its trial.
    pub(crate) fn of(inputs: &[Input<'_>], trials: &mut [TrialAnalysis]) -> Self {
        Self {
            profiled: cpu::profiled(inputs, trials),
            asked: asked::asked(inputs, trials),
        }
    }

    pub(crate) fn explain(
        &self,
        plan: &Plan,
        cells: &[CellSummary],
        trials: &[TrialAnalysis],
    ) -> Explained {
        Explained {
            cpu_profiles: cpu::summarise(cells, trials, &self.profiled),
            profile_differences: profiles::differences(plan, cells, trials, &self.profiled),
            counted: asked::summarise(cells, trials, &self.asked),
            ask_differences: asked::differences(plan, cells, trials, &self.asked),
        }
    }
}

impl Explained {
    /// The findings of the run: what differs, and how throughput scales.
    pub(crate) fn sentences(&self, scaling: Option<&Scaling>) -> Vec<String> {
        let mut sentences = profiles::sentences(&self.profile_differences);
        sentences.extend(self.ask_differences.iter().filter_map(lab_asked::summary));
        sentences.extend(scaling.map(capacity::sentence));
        sentences
    }
}
