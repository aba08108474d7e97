//! Was the probe answered? What it took is known of its answers alone.

use lab_plan::checks::{Cause, UNANSWERED};

use super::facts::Facts;
use super::outcome::warn;
use crate::format::{count, duration, percent, plural_count};
use crate::model::{Check, CheckOutcome};
use crate::number::as_f64;
use crate::sums::hold;

/// `None` where every request was answered as it is expected to be, and where there is no probe.
pub(super) fn probe(facts: &Facts<'_>) -> Option<Check> {
    if !facts.study.workload.probe {
        return None;
    }
    let told: Vec<String> = [failed(facts), silent(facts)]
        .into_iter()
        .flatten()
        .collect();
    let advice = "Its response times are those of its answers: they say nothing of the requests that had none.";
    let check = || warn("probe", told.join("; "), advice).caused_by(Cause::System);
    (!told.is_empty()).then(check)
}

fn failed(facts: &Facts<'_>) -> Option<String> {
    let (answered, errors) = facts.sums.whole.probe;
    let sent = answered + errors;
    (errors > 0).then(|| {
        format!(
            "{} of {} failed ({})",
            count(errors),
            plural_count(sent, "request"),
            percent(as_f64(errors) / as_f64(sent) * 100.0)
        )
    })
}

/// It is sent again at its next moment after an answer, which may be as far from the last one as usual.
fn silent(facts: &Facts<'_>) -> Option<String> {
    let every_ms = as_f64(facts.planned.probe_every_ms?);
    let (answered, errors) = facts.sums.whole.probe;
    let end_ms = hold(facts.data, facts.planned.load.kind).end_ms;
    let with_answer = facts.data.windows.iter().filter(|window| {
        let mut steps = window.steps.iter();
        steps.any(|(step, line)| {
            let ended = line.ok + line.errors.values().sum::<u64>();
            facts.names.is_probe(*step) && ended > 0
        })
    });
    let last_ms = with_answer.map(|window| window.end_ms).reduce(f64::max);
    let silent_ms = end_ms - last_ms.unwrap_or_default();
    let usual_ms = last_ms.map_or(0.0, |last| 2.0 * last / as_f64(answered + errors));
    let figure = facts.held(silent_ms - every_ms.max(usual_ms), &UNANSWERED);
    (figure.outcome() > CheckOutcome::Pass).then(|| match last_ms {
        None => "it was never answered".to_owned(),
        Some(_) => format!("no answer in the last {}", duration(silent_ms)),
    })
}
