//! Figures of a load's populations, each from its own users' requests.

use lab_plan::{LoadKind, Population, PopulationOutline, PopulationPrediction, Question, Trial};

use crate::model::{PopulationAnalysis, PopulationPlan, Times};
use crate::sums::Sums;

/// A population with its sums.
pub(crate) struct OfPopulation {
    plan: PopulationPlan,
    pub(crate) sums: Sums,
    /// See [`PopulationAnalysis::offered_per_s`].
    offered_per_s: Option<f64>,
}

/// Returns the populations of a trial, in order.
pub(crate) fn populations(
    study: &Question,
    planned: &Trial,
    all: &Sums,
) -> Result<Vec<OfPopulation>, lab_stats::histogram::MergeError> {
    let outlines = study.workload.populations.iter();
    let each = outlines.zip(&planned.load.mix).enumerate();
    let predicted = planned.prediction.as_ref();
    let one = |(at, (outline, population)): (usize, (&PopulationOutline, &Population))| {
        let predicted = predicted.and_then(|plan| plan.populations.get(at));
        // If responses decide, the plan has no rate.
        let offered =
            |plan: &PopulationPrediction| plan.range.is_none().then_some(plan.offered_per_s);
        Ok(OfPopulation {
            plan: plan(outline, population),
            sums: all.of_steps(&outline.steps)?,
            offered_per_s: predicted.and_then(offered),
        })
    };
    each.map(one).collect()
}

fn plan(outline: &PopulationOutline, population: &Population) -> PopulationPlan {
    PopulationPlan {
        name: outline.name.clone(),
        workload: outline.workload.clone(),
        users: population.users,
        arrivals_per_s: match population.kind {
            LoadKind::Arrival { rate_per_s, .. } => Some(rate_per_s),
            LoadKind::Users | LoadKind::Sequence { .. } => None,
        },
        after_ms: (population.after_ms > 0).then_some(population.after_ms),
    }
}

impl OfPopulation {
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.plan.name == name
    }

    pub(crate) fn analysis(&self) -> PopulationAnalysis {
        let counts = &self.sums.hold;
        PopulationAnalysis {
            plan: self.plan.clone(),
            transactions: self.sums.whole.ok(),
            errors: self.sums.whole.errors(),
            skipped: self.sums.whole.skipped(),
            throughput_per_s: counts.per_s(counts.ok()),
            delivered_per_s: counts.per_s(counts.sent()),
            offered_per_s: self.offered_per_s,
            response_ms: Times::of(&self.sums.response),
        }
    }
}
