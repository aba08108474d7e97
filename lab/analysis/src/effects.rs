//! Sentences on the comparisons: one per level of a factor, by the mean response.

use lab_trial::format::{figure, list, ratio_or_percent, signed_percent};

use crate::answer::verdict_words;
use crate::compare::Differences;
use crate::model::{Comparison, Difference, Measure};

/// The maximum number of sentences; the tables have all.
const MOST: usize = 12;

/// The sentences; with too few blocks, one that reports this if the study asks for comparisons at all.
pub(crate) fn sentences(differences: &Differences) -> Vec<String> {
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
    let no_verdict = said.is_empty();
    if no_verdict {
        said.extend(by_factor(main_effects).filter_map(|levels| unjudged(&levels)));
    }
    said.extend(by_factor(main_effects).filter_map(|levels| memory(&levels)));
    if no_verdict && differences.inference.asked {
        let most = comparisons.iter().max_by_key(|one| one.blocks);
        let reason = most.and_then(|one| one.reason.as_ref());
        said.extend(
            reason.map(|reason| format!("No difference between cells can be judged: {reason}.")),
        );
    }
    said.extend(claim(differences));
    said
}

/// The main effects of each factor, level after level.
fn by_factor(effects: &[Comparison]) -> impl Iterator<Item = Vec<&Comparison>> {
    effects
        .chunk_by(|one, next| one.factor == next.factor)
        .map(|levels| levels.iter().collect())
}

/// The effect of a factor on the mean response, if no verdict is possible.
fn unjudged(levels: &[&Comparison]) -> Option<String> {
    let means: Vec<&&Comparison> = levels
        .iter()
        .filter(|one| one.metric == Measure::Mean)
        .collect();
    let (last, between) = means.split_last()?;
    let ratios = || between.iter().map(|one| one.ratio);
    let (low, high) = (
        ratios().fold(f64::INFINITY, f64::min),
        ratios().fold(0.0, f64::max),
    );
    let between = match between.len() {
        0 => String::new(),
        1 => format!(" ({} at the level between)", ratio_or_percent(low)),
        _ => format!(
            " ({} to {} at the levels between)",
            ratio_or_percent(low),
            ratio_or_percent(high)
        ),
    };
    Some(format!(
        "{} → {}, over all cells and without a verdict: mean response {}{between}.",
        last.a,
        last.b,
        ratio_or_percent(last.ratio)
    ))
}

/// The memory per unit of a numeric factor, unless the cost may be noise alone.
fn memory(levels: &[&Comparison]) -> Option<String> {
    let mut memory = levels.iter().filter(|one| one.metric == Measure::Memory);
    let last = memory.next_back()?;
    if matches!(
        last.verdict,
        Some(Difference::CouldNotTell | Difference::NotWorse)
    ) {
        return None;
    }
    let number = |name: &str| name.rsplit(' ').next()?.parse::<f64>().ok();
    let more = number(&last.b)? - number(&last.a)?;
    let each_kb = lab_stats::ratio(last.difference * 1024.0, more)?;
    Some(format!(
        "Peak memory over all cells: {} MB at {}, {} MB at {}: {} KB for each one more.",
        figure(last.mean_a),
        last.a,
        figure(last.mean_b),
        last.b,
        figure(each_kb)
    ))
}

/// The sentence on the control.
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
        .map(|other| {
            format!(
                "{} {}",
                other.metric.name(),
                other.metric.change(other.ratio)
            )
        })
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
    let change = one.metric.change(one.ratio);
    match one.verdict {
        Some(Difference::Slower) => format!("slower: mean response {change}"),
        Some(Difference::Faster) => format!("faster: mean response {change}"),
        Some(Difference::CouldNotTell) if one.reason.is_some() => format!(
            "could not tell by the mean response: {}",
            one.reason.as_deref().unwrap_or_default()
        ),
        Some(Difference::CouldNotTell) => format!(
            "could not tell by the mean response, anywhere from {} to {}; more blocks would tell",
            ratio_or_percent(low),
            ratio_or_percent(high)
        ),
        _ => format!(
            "mean response {}, at most {} off",
            verdict_words(one),
            signed_percent(part(low).abs().max(part(high).abs())).trim_start_matches('+')
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(to: &str, metric: Measure, (a, b): (f64, f64)) -> Comparison {
        Comparison {
            a: "http_threads 10".to_owned(),
            b: to.to_owned(),
            factor: "http_threads".to_owned(),
            metric,
            blocks: 3,
            mean_a: a,
            mean_b: b,
            difference: b - a,
            ratio: b / a,
            interval: None,
            smallest_difference: 0.02,
            matters: 0.02,
            run_spread: None,
            decides: false,
            p: None,
            p_single: None,
            verdict: None,
            worse_at_most: None,
            reason: Some("three blocks are too few".to_owned()),
        }
    }

    #[test]
    fn main_effects_without_a_verdict_are_said_and_what_each_more_costs() {
        let effects = [
            effect("http_threads 25", Measure::Mean, (10.0, 9.5)),
            effect("http_threads 25", Measure::Memory, (60.0, 61.0)),
            effect("http_threads 100", Measure::Mean, (10.0, 10.2)),
            effect("http_threads 200", Measure::Mean, (10.0, 11.0)),
            effect("http_threads 200", Measure::Memory, (60.0, 79.0)),
        ];
        let levels: Vec<&Comparison> = by_factor(&effects).next().unwrap();
        assert_eq!(
            unjudged(&levels).unwrap(),
            "http_threads 10 → http_threads 200, over all cells and without a verdict: mean \
             response +10.0 % (−5.0 % to +2.0 % at the levels between)."
        );
        assert_eq!(
            memory(&levels).unwrap(),
            "Peak memory over all cells: 60.0 MB at http_threads 10, 79.0 MB at http_threads 200: \
             102 KB for each one more."
        );
        let named = effect("storage /dev/shm", Measure::Memory, (60.0, 79.0));
        assert_eq!(memory(&[&named]), None);
        let unclear = Comparison {
            verdict: Some(Difference::CouldNotTell),
            ..effect("http_threads 200", Measure::Memory, (60.0, 79.0))
        };
        assert_eq!(memory(&[&unclear]), None);
    }
}
