//! Figures of step tags, each over its steps.

use lab_plan::{Question, TagOutline};

use crate::model::{TagAnalysis, Times};
use crate::sums::Sums;

/// A tag with the sums of its steps.
pub(crate) struct OfTag {
    outline: TagOutline,
    pub(crate) sums: Sums,
}

/// Returns the tags of a trial's steps, in order.
pub(crate) fn tags(
    study: &Question,
    all: &Sums,
) -> Result<Vec<OfTag>, lab_stats::histogram::MergeError> {
    let one = |outline: &TagOutline| {
        Ok(OfTag {
            outline: outline.clone(),
            sums: all.of_steps(&outline.steps)?,
        })
    };
    study.workload.tags.iter().map(one).collect()
}

impl OfTag {
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.outline.name == name
    }

    pub(crate) fn analysis(&self) -> TagAnalysis {
        let counts = &self.sums.hold;
        TagAnalysis {
            name: self.outline.name.clone(),
            steps: self.outline.steps.clone(),
            transactions: self.sums.whole.ok(),
            errors: self.sums.whole.errors(),
            skipped: self.sums.whole.skipped(),
            throughput_per_s: counts.per_s(counts.ok()),
            response_ms: Times::of(&self.sums.response),
        }
    }
}
