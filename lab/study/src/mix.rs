//! The populations of a load: still with references to factors, and resolved in one cell.

use std::time::Duration;

use lab_language::{CellError, Optional, Setting, TextError, units};
use lab_workload::{LoadKind, Population, Stage, deal};

use crate::extent::MAX_PHASE;
use crate::kinds::{Kind, KindTemplate};
use crate::model::Cell;
use crate::parameters::ParametersTemplate;

/// Largest share of a population.
const SHARES: std::ops::RangeInclusive<u64> = 1..=10_000;

/// Populations, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct MixTemplate {
    /// The load that they share; `None` where each has a load of its own.
    pub(crate) shared: Option<Box<KindTemplate>>,
    pub(crate) populations: Vec<PopulationTemplate>,
}

/// A population, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct PopulationTemplate {
    pub(crate) name: String,
    /// Short name of its workload.
    pub(crate) workload: String,
    pub(crate) share: Option<Setting>,
    /// Its own load, where it has no share.
    pub(crate) own: Option<KindTemplate>,
    /// The delay of the population after the start of the load.
    pub(crate) after: Option<Setting>,
    pub(crate) parameters: ParametersTemplate,
}

impl MixTemplate {
    pub(crate) fn kind(&self, cell: &Cell) -> Result<Kind, CellError> {
        let mut populations = Vec::with_capacity(self.populations.len());
        for template in &self.populations {
            let share = template
                .share
                .value(cell, |text| units::whole_number(text, SHARES))?;
            let own = template
                .own
                .as_ref()
                .map(|own| own.kind(cell))
                .transpose()?;
            let own = own.unwrap_or_default();
            populations.push(Population {
                name: template.name.clone(),
                workload: template.workload.clone(),
                parameters: template.parameters.parameters(cell)?,
                share: share.map(|share| share as u32),
                users: own.users,
                kind: own.kind,
                stages: own.stages,
                timeline: own.timeline.map(|(timeline, _)| timeline),
                after_ms: 0,
            });
        }
        let shared = self.shared.as_ref().map(|shared| shared.kind(cell));
        let stages = match shared.transpose()? {
            Some(shared) => {
                divide(&shared, &mut populations);
                shared.stages
            }
            None => Vec::new(),
        };
        let users = populations
            .iter()
            .map(|one| u64::from(one.users))
            .sum::<u64>();
        Ok(Kind {
            kind: kind(&populations),
            users: u32::try_from(users).unwrap_or(u32::MAX),
            stages,
            mix: populations,
            timeline: None,
        })
    }
}

impl PopulationTemplate {
    /// The delay of the population after the start of a load of this length.
    pub(crate) fn after(&self, cell: &Cell, length: Duration) -> Result<Duration, CellError> {
        let after = self.after.value(cell, |text| {
            let after = units::duration(text, MAX_PHASE)?;
            if after < length {
                return Ok(after);
            }
            let message = "the load is over by then";
            let help = "say a time that is shorter than `ramp` and `hold` together";
            Err(TextError::new(message, 0..text.len()).help(help))
        })?;
        Ok(after.unwrap_or_default())
    }
}

/// The kind of load of all populations together.
fn kind(populations: &[Population]) -> LoadKind {
    let arrivals = populations.iter().filter_map(|one| match one.kind {
        LoadKind::Arrival {
            rate_per_s,
            spacing,
        } => Some((rate_per_s, spacing)),
        LoadKind::Users | LoadKind::Sequence { .. } => None,
    });
    let sum = arrivals.reduce(|(sum, spacing), (more, _)| (sum + more, spacing));
    sum.map_or(LoadKind::Users, |(rate_per_s, spacing)| LoadKind::Arrival {
        rate_per_s,
        spacing,
    })
}

/// Assigns each population its part of a load.
fn divide(load: &Kind, populations: &mut [Population]) {
    let shares: Vec<u32> = populations.iter().filter_map(|one| one.share).collect();
    let sum: f64 = shares.iter().copied().map(f64::from).sum();
    let dealt = deal(load.users, &shares);
    for ((at, population), users) in populations.iter_mut().enumerate().zip(dealt) {
        let part = f64::from(population.share.unwrap_or_default()) / sum;
        match load.kind {
            LoadKind::Arrival {
                rate_per_s,
                spacing,
            } => {
                // A session that arrives needs a connection, however small its population is.
                population.users = users.max(1);
                population.kind = LoadKind::Arrival {
                    rate_per_s: rate_per_s * part,
                    spacing,
                };
                population.stages = stages(&load.stages, |rate| rate * part);
            }
            kind @ (LoadKind::Users | LoadKind::Sequence { .. }) => {
                population.kind = kind;
                population.users = users;
                population.stages = stages(&load.stages, |level| {
                    f64::from(deal(level as u32, &shares)[at])
                });
            }
        }
    }
}

/// The stages with other levels.
fn stages(stages: &[Stage], level: impl Fn(f64) -> f64) -> Vec<Stage> {
    let stage = |stage: &Stage| Stage {
        from: level(stage.from),
        to: level(stage.to),
        ..stage.clone()
    };
    stages.iter().map(stage).collect()
}
