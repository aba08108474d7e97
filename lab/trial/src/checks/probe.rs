//! Was the probe answered? Its times are known from its responses alone.

use lab_plan::checks::{CheckId, UNANSWERED};

use super::facts::Facts;
use super::outcome::warn;
use crate::format::{count, duration, percent, plural_count};
use crate::model::{Check, CheckOutcome};
use crate::number::as_f64;
use crate::sums::hold;

/// Returns `None` if every request had the expected response, and if there is no probe.
pub(super) fn probe(facts: &Facts<'_>) -> Option<Check> {
    if !facts.study.workload.probe {
        return None;
    }
    let told: Vec<String> = [failed(facts), silent(facts)]
        .into_iter()
        .flatten()
        .collect();
    (!told.is_empty()).then(|| warn(CheckId::Probe, told.join("; ")))
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

/// The probe is sent again at its next moment after a response, and the response may be as slow as the ones before.
fn silent(facts: &Facts<'_>) -> Option<String> {
    let every_ms = as_f64(facts.planned.probe_every_ms?);
    let end_ms = hold(facts.data, facts.planned.load.kind).end_ms;
    let with_answer = facts.data.windows.iter().filter(|window| {
        let mut steps = window.steps.iter();
        steps.any(|(step, line)| {
            let ended = line.ok + line.failed();
            facts.names.is_probe(*step) && ended > 0
        })
    });
    let (mut last_ms, mut longest_ms) = (None, 0.0_f64);
    for window in with_answer {
        longest_ms = longest_ms.max(window.end_ms - last_ms.unwrap_or_default());
        last_ms = Some(window.end_ms);
    }
    let silent_ms = end_ms - last_ms.unwrap_or_default();
    let figure = facts.held(silent_ms - every_ms.max(longest_ms), &UNANSWERED);
    (figure.outcome() > CheckOutcome::Pass).then(|| match last_ms {
        None => "it was never answered".to_owned(),
        Some(_) => format!("no answer in the last {}", duration(silent_ms)),
    })
}
