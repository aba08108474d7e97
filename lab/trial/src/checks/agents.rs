//! Agents that drove the load or had the system: the offsets of their clocks. Times are never taken over two clocks;
//! the offsets show when each agent began, and reveal a machine that stood still.

use lab_archive::{Agent, TrialEnvironment};
use lab_plan::checks::{AGENT_CLOCK_BOUND, AGENT_CLOCK_STEP, CheckId};

use super::facts::Facts;
use super::outcome::{judged, not_judged};
use crate::format::{list, ms};
use crate::model::Check;

/// Returns `None` if no agent had a part.
pub(super) fn clocks(facts: &Facts<'_>) -> Option<Check> {
    let id = CheckId::AgentsClocks;
    let around = &facts.data.record.environment;
    let parts = around.parts.iter().filter_map(|part| part.agent.as_ref());
    let agents = around.agents.iter().chain(&around.system_agent);
    let agents: Vec<&Agent> = agents.chain(parts).collect();
    if agents.is_empty() {
        return None;
    }
    let worst = |of: fn(&Agent) -> Option<f64>| {
        let known: Option<Vec<f64>> = agents.iter().copied().map(of).collect();
        known.map(|known| known.into_iter().fold(0.0, f64::max))
    };
    let (Some(bound), Some(apart)) = (worst(|one| one.bound_ms), worst(|one| one.apart_ms)) else {
        return Some(not_judged(id, "they were not measured"));
    };
    Some(judged(
        id,
        vec![
            facts.held(bound, &AGENT_CLOCK_BOUND),
            facts.held(apart, &AGENT_CLOCK_STEP),
        ],
        format!(
            "{}; their clocks are known to ± {} ms{}",
            who(around),
            ms(bound),
            drift(&agents)
        ),
    ))
}

/// Describes the agents that drove the load, and those that had the system or parts of it.
fn who(around: &TrialEnvironment) -> String {
    let named = around.agents.iter();
    let named = named.map(|one| format!("{} ({} workers)", one.name, one.workers));
    let named: Vec<String> = named.collect();
    let driven = (!named.is_empty()).then(|| format!("driven by {}", list(&named)));
    let system = around.system_agent.as_ref();
    let system = system.map(|one| format!("the system run by {}", one.name));
    let parts = around.parts.iter().filter_map(|part| {
        let agent = part.agent.as_ref()?;
        Some(format!("{} run by {}", part.name, agent.name))
    });
    let all: Vec<String> = driven.into_iter().chain(system).chain(parts).collect();
    all.join("; ")
}

/// Describes the largest drift; empty if there is none.
fn drift(agents: &[&Agent]) -> String {
    let drifts = agents.iter().filter_map(|one| Some((one.drift_ppm?, one)));
    let largest = drifts.max_by(|one, other| one.0.abs().total_cmp(&other.0.abs()));
    largest.map_or(String::new(), |(ppm, one)| {
        let goes = if ppm > 0.0 { "faster" } else { "slower" };
        format!("; that of {} goes {goes} by {:.1} ppm", one.name, ppm.abs())
    })
}
