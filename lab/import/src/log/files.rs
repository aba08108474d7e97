//! The workload and the study that replay a log.

use std::fmt::Write as _;

use super::tally::{Outcome, Tally};
use crate::yaml::{comment, text};

/// Connections that the sessions share at most: those of the busiest second, within these.
const CONNECTIONS: std::ops::RangeInclusive<u64> = 20..=1000;

/// What columns the rows have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Columns {
    pub(super) has_agent: bool,
    pub(super) has_body: bool,
}

/// The name of a kind of request, which is that of its step.
pub(super) fn kind(method: &str, outcome: Outcome) -> String {
    format!("{method} {}", outcome.name())
}

pub(super) fn workload(name: &str, shown: &str, columns: Columns, tally: &Tally) -> String {
    let mut out = comment(
        0,
        &format!(
            "What {shown} has: a session is one request, at the moment and with the path of its row.\n\
             A step is of one method and one class of recorded answers, which is what it expects.\n\
             Made by `plimsoll import log`; all of it is yours to change."
        ),
    );
    let _ = writeln!(out, "workload: {name}");
    let _ = writeln!(
        out,
        "data: {{ file: {}, each: session }}",
        text(&format!("{name}.jsonl"))
    );
    out.push_str("session:\n  steps:\n");
    let is_one = tally.kinds.len() == 1;
    for (method, outcome) in tally.kinds.keys() {
        let name = kind(method, *outcome);
        let _ = writeln!(out, "    - step: {}", text(&name));
        if !is_one {
            let _ = writeln!(out, "      when: {}", text(&format!("kind == '{name}'")));
        }
        let _ = writeln!(
            out,
            "      request: {}",
            text(&format!("{method} {{{{ path }}}}"))
        );
        let mut headers = Vec::new();
        if columns.has_agent {
            headers.push("User-Agent: \"{{ agent }}\"");
        }
        let has_body = columns.has_body && !matches!(&**method, "GET" | "HEAD");
        if has_body {
            headers.push("Content-Type: \"{{ type }}\"");
        }
        if !headers.is_empty() {
            let _ = writeln!(out, "      headers: {{ {} }}", headers.join(", "));
        }
        if has_body {
            out.push_str("      text: \"{{ body }}\"\n");
        }
        let _ = writeln!(out, "      expect: {}", outcome.expect());
    }
    out
}

pub(super) fn study(name: &str, shown: &str, url: &str, tally: &Tally) -> String {
    let mut out = comment(
        0,
        &format!(
            "Replays {shown}. Made by `plimsoll import log`; all of it is yours to change.\n\
             \x20 plimsoll plan {name}.study.yaml    how many requests, and for how long\n\
             \x20 plimsoll run  {name}.study.yaml    measures, and writes a report"
        ),
    );
    let _ = writeln!(out, "study: {name}");
    let _ = writeln!(out, "title: {}", text(&format!("Replay of {shown}")));
    let _ = writeln!(out, "workload: ./{name}.workload.yaml");
    out.push_str("system:\n  attach:                           # a server that runs already\n");
    let _ = writeln!(out, "    url: {}", text(url));
    let connections = tally
        .busiest()
        .clamp(*CONNECTIONS.start(), *CONNECTIONS.end());
    out.push_str(
        "load:\n  # As recorded. `scale: 2` replays twice as fast; `from: 10m` and `to: 20m` take a part.\n  \
         timeline: { column: time_us, unit: us }\n",
    );
    let _ = writeln!(out, "  arrival: {{ connections: {connections} }}");
    out
}
