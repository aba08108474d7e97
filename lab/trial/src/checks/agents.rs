//! Agents that drove the load: what their clocks were off. Times are never taken over two clocks; the
//! offsets say when each agent began, and show a machine that stood still.

use lab_plan::checks::{AGENT_CLOCK_BOUND, AGENT_CLOCK_STEP};

use super::facts::Facts;
use super::outcome::{judged, not_judged};
use crate::format::{list, ms};
use crate::model::Check;

/// Nothing where no agent drove.
pub(super) fn clocks(facts: &Facts<'_>) -> Option<Check> {
    let name = "agents' clocks";
    let agents = &facts.data.record.circumstances.agents;
    if agents.is_empty() {
        return None;
    }
    let worst = |of: fn(&lab_archive::Agent) -> Option<f64>| {
        let known: Option<Vec<f64>> = agents.iter().map(of).collect();
        known.map(|known| known.into_iter().fold(0.0, f64::max))
    };
    let (Some(bound), Some(apart)) = (worst(|one| one.bound_ms), worst(|one| one.apart_ms)) else {
        return Some(not_judged(name, "they were not measured"));
    };
    let named: Vec<String> = agents
        .iter()
        .map(|one| format!("{} ({} workers)", one.name, one.workers))
        .collect();
    Some(judged(
        name,
        vec![
            facts.held(bound, &AGENT_CLOCK_BOUND),
            facts.held(apart, &AGENT_CLOCK_STEP),
        ],
        format!(
            "driven by {}; their clocks are known to ± {} ms{}",
            list(&named),
            ms(bound),
            drift(agents)
        ),
        "Agents began at moments that are known no better, or a machine stood still: use a network \
         with shorter ways, and machines that nobody suspends.",
    ))
}

/// The largest drift, in words; nothing where none shows.
fn drift(agents: &[lab_archive::Agent]) -> String {
    let drifts = agents.iter().filter_map(|one| Some((one.drift_ppm?, one)));
    let largest = drifts.max_by(|one, other| one.0.abs().total_cmp(&other.0.abs()));
    largest.map_or(String::new(), |(ppm, one)| {
        let goes = if ppm > 0.0 { "faster" } else { "slower" };
        format!("; that of {} goes {goes} by {:.1} ppm", one.name, ppm.abs())
    })
}
