//! What the comparisons say, in sentences: one per level of a factor, by the mean response.

use super::compare::Differences;
use crate::format::{list, ratio_or_percent, signed_percent, times};
use crate::model::{Comparison, Difference, Measure};

/// More sentences than this aren't read; the tables have all.
const MOST: usize = 12;

/// The sentences; with too few blocks one that says so, if the study asks for comparisons at all.
pub(super) fn sentences(differences: &Differences) -> Vec<String> {
    let (comparisons, main_effects) = (&differences.comparisons, &differences.main_effects);
    let of = if main_effects.is_empty() {
        comparisons
    } else {
        main_effects
    };
    let mut said: Vec<String> = of
        .iter()
        .filter(|one| one.metric == Measure::Mean && one.verdict.is_some())
        .take(MOST)
        .map(|one| sentence(one, of))
        .collect();
    if said.is_empty() && differences.inference.asked {
        let most = comparisons.iter().max_by_key(|one| one.blocks);
        let reason = most.and_then(|one| one.reason.as_ref());
        said.extend(
            reason.map(|reason| format!("No difference between cells can be judged: {reason}.")),
        );
    }
    said.extend(claim(differences));
    said
}

/// What the control says of the study.
fn claim(differences: &Differences) -> Option<String> {
    let claims = &differences.inference.claims;
    let parts: Vec<String> = claims
        .iter()
        .filter(|claim| [Measure::Throughput, Measure::Mean, Measure::P95].contains(&claim.metric))
        .map(|claim| {
            let part = signed_percent(claim.smallest_difference * 100.0);
            format!("{} {}", claim.metric.name(), part.trim_start_matches('+'))
        })
        .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "The smallest difference that this study can claim, by its control (the same system \
             under two labels): {}.",
            list(&parts)
        )
    })
}

fn sentence(mean: &Comparison, all: &[Comparison]) -> String {
    let others: Vec<String> = all
        .iter()
        .filter(|other| (&other.a, &other.b) == (&mean.a, &mean.b) && other.is_shown())
        .filter(|other| other.metric != Measure::Mean)
        .map(|other| format!("{} {}", other.metric.name(), ratio_or_percent(other.ratio)))
        .collect();
    let others = if others.is_empty() {
        String::new()
    } else {
        format!("; shown as well: {}", list(&others))
    };
    format!("{} → {}: {}{others}.", mean.a, mean.b, outcome(mean))
}

/// Of the mean response.
fn outcome(one: &Comparison) -> String {
    let (low, high) = one.interval.unwrap_or((0.0, f64::INFINITY));
    let part = |ratio: f64| (ratio - 1.0) * 100.0;
    match one.verdict {
        Some(Difference::Slower) => format!("mean response {} slower", by(one.ratio)),
        Some(Difference::Faster) => format!("mean response {} faster", by(1.0 / one.ratio)),
        Some(Difference::Unstable) => format!(
            "mean response unstable, anywhere from {} to {}; more blocks would tell",
            ratio_or_percent(low),
            ratio_or_percent(high)
        ),
        _ => format!(
            "no difference shown in the mean response, at most {}",
            signed_percent(part(low).abs().max(part(high).abs())).trim_start_matches('+')
        ),
    }
}

/// `3.6 ×`, or of a small ratio `12.5 %`.
fn by(ratio: f64) -> String {
    if ratio >= 1.5 {
        format!("{} ×", times(ratio))
    } else {
        let text = signed_percent((ratio - 1.0) * 100.0);
        text.trim_start_matches('+').to_owned()
    }
}
