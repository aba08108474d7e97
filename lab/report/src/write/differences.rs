//! Comparisons as text, line by line, shared by all writers. It knows no layout.

use crate::Analysis;
use crate::format::{NONE, figure, plural, ratio_or_percent, signed_percent, times};
use crate::model::{Comparison, Difference};

/// The texts of one comparison.
pub(crate) struct Texts {
    /// `mean response, ms`.
    pub(crate) measure: String,
    pub(crate) a: String,
    pub(crate) b: String,
    /// With its sign.
    pub(crate) difference: String,
    /// `+12.5 %`, or `×3.60`.
    pub(crate) relative: String,
    /// `+10.1 % to +14.9 %`.
    pub(crate) interval: String,
    pub(crate) p: String,
    pub(crate) verdict: String,
}

pub(crate) fn texts(one: &Comparison) -> Texts {
    let sign = if one.difference > 0.0 { "+" } else { "" };
    Texts {
        measure: format!("{}, {}", one.metric.name(), one.metric.unit()),
        a: figure(one.mean_a),
        b: figure(one.mean_b),
        difference: format!("{sign}{}", figure(one.difference)),
        relative: ratio_or_percent(one.ratio),
        interval: one.interval.map_or_else(
            || NONE.to_owned(),
            |(low, high)| {
                let (low, high) = (ratio_or_percent(low), ratio_or_percent(high));
                if low == high {
                    low
                } else {
                    format!("{low} to {high}")
                }
            },
        ),
        p: one.p.map_or_else(|| NONE.to_owned(), |p| format!("{p:.3}")),
        verdict: verdict(one),
    }
}

/// The verdict in a word that suits the measure; without a difference, what it can be at most.
pub(crate) fn verdict(one: &Comparison) -> String {
    match (one.verdict, one.interval) {
        (Some(Difference::NoneShown), Some(interval)) if at_most(interval) != "0.0 %" => format!(
            "{}, at most {}",
            Difference::NoneShown.name(),
            at_most(interval)
        ),
        (Some(verdict), _) => verdict.name().to_owned(),
        (None, _) => "no verdict".to_owned(),
    }
}

/// The far end of an interval of ratios: `1.8 %`.
pub(crate) fn at_most((low, high): (f64, f64)) -> String {
    let far = low.ln().abs().max(high.ln().abs()).exp_m1();
    signed_percent(far * 100.0)
        .trim_start_matches(['+', '±'])
        .to_owned()
}

/// What a reader must know of the control.
pub(crate) fn control_lead(analysis: &Analysis) -> String {
    let text = "The same system under two labels in every block. What seems to differ here is \
                noise, and no smaller difference is called one in the comparisons";
    let bounded = !analysis.inference.claims.is_empty();
    if bounded {
        format!("{text}.")
    } else {
        format!("{text}; these blocks are too few to bound it.")
    }
}

/// Comparisons of one pair.
pub(crate) struct Group<'a> {
    pub(crate) title: String,
    pub(crate) blocks: String,
    pub(crate) comparisons: &'a [Comparison],
}

/// Neighbouring comparisons of the same pair together.
pub(crate) fn groups(comparisons: &[Comparison]) -> Vec<Group<'_>> {
    comparisons
        .chunk_by(|one, next| (&one.a, &one.b) == (&next.a, &next.b))
        .map(|group| {
            let blocks = group.iter().map(|one| one.blocks).max().unwrap_or_default();
            Group {
                title: format!("{} → {}", group[0].a, group[0].b),
                blocks: plural(blocks, "block"),
                comparisons: group,
            }
        })
        .collect()
}

/// What a reader must know before the comparisons.
pub(crate) fn lead(analysis: &Analysis) -> String {
    let rule = &analysis.inference;
    let mut text = "Each cell beside the one with the first level of a factor, over valid trials \
                    paired by block."
        .to_owned();
    if rule.judged > 0 {
        text.push_str(&format!(
            " A difference is called one only if it is beyond noise (joint p ≤ {} over {}) and \
             larger than {} %{}; where the noise is larger than that, the word is unstable.",
            times(1.0 - rule.confidence),
            plural(rule.judged, "comparison"),
            times(rule.smallest_relevant * 100.0),
            if rule.claims.is_empty() {
                ""
            } else {
                " and than what the control seems to differ from its cell"
            },
        ));
    }
    let unjudged = analysis
        .comparisons
        .iter()
        .filter(|one| one.verdict.is_none())
        .max_by_key(|one| one.blocks);
    if let Some(reason) = unjudged.and_then(|one| one.reason.as_ref()) {
        let what = match (rule.judged, rule.asked) {
            (0, false) => " Without repeated trials these are ratios and no verdicts.".to_owned(),
            (0, true) => {
                format!(" No verdict is possible: {reason}. Ratios are shown without one.")
            }
            _ => format!(" Some have no verdict: {reason}. Ratios are shown without one."),
        };
        text.push_str(&what);
    }
    if rule.pairs_left_out > 0 {
        text.push_str(&format!(
            " {} beyond the first are not compared.",
            plural(rule.pairs_left_out, "pair")
        ));
    }
    text
}
