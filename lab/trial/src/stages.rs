//! Figures of a load's stages, each from the windows within it.

use lab_archive::TrialData;
use lab_plan::{LoadKind, LoadSpec, Prediction};

use crate::model::{StageAnalysis, StagePlan, Times};
use crate::number::as_f64;
use crate::sums::{self, Hold, Names, Sums};

/// A stage with its sums.
pub(crate) struct Stage {
    pub(crate) plan: StagePlan,
    pub(crate) sums: Sums,
    /// See [`StageAnalysis::offered_per_s`].
    pub(crate) offered_per_s: Option<f64>,
}

/// Returns the stages of a trial, in order.
pub(crate) fn stages(
    names: &Names<'_>,
    data: &TrialData,
    load: &LoadSpec,
    prediction: Option<&Prediction>,
) -> Result<Vec<Stage>, lab_stats::histogram::MergeError> {
    let mut start_ms = load.ramp_ms;
    let mut stages = Vec::with_capacity(load.stages.len());
    for (at, stage) in load.stages.iter().enumerate() {
        let predicted = prediction
            .filter(|plan| plan.range.is_none())
            .and_then(|plan| plan.stages.get(at));
        stages.push(Stage {
            plan: StagePlan {
                name: stage.name.clone(),
                start_ms,
                length_ms: stage.length_ms,
                from: stage.from,
                to: stage.to,
                ramps: stage.ramps(),
                arrives: matches!(load.kind, LoadKind::Arrival { .. }),
            },
            sums: sums::sum_within(names, data, Hold::new(start_ms, stage.length_ms))?,
            offered_per_s: predicted
                .map(|stage_plan| stage_plan.transactions * 1000.0 / as_f64(stage.length_ms)),
        });
        start_ms += stage.length_ms;
    }
    Ok(stages)
}

impl Stage {
    pub(crate) fn throughput_per_s(&self) -> Option<f64> {
        self.sums.hold.per_s(self.sums.hold.ok())
    }

    pub(crate) fn analysis(&self) -> StageAnalysis {
        let counts = &self.sums.hold;
        StageAnalysis {
            plan: self.plan.clone(),
            users: counts.users.mean(),
            arrived: counts.arrived,
            transactions: counts.ok(),
            errors: counts.errors(),
            throughput_per_s: self.throughput_per_s(),
            delivered_per_s: counts.per_s(counts.sent()),
            offered_per_s: self.offered_per_s,
            response_ms: Times::of(&self.sums.response),
        }
    }
}
