//! The workload and the study that replay a log.

use std::fmt::Write as _;

use super::options::LogOptions;
use super::sessions::Found;
use super::tally::{Outcome, Tally};
use lab_units::yaml::{comment, text};

/// Most connections of sessions. More sessions share them.
const MAX_CONNECTIONS: u64 = 10_000;
/// Most concurrent sessions of a study.
const MAX_SESSIONS: u64 = 1_000_000;
/// The longest time of a study's `to`: 30 days.
const LONGEST_S: u64 = 30 * 86_400;

/// The columns of the rows.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Columns {
    pub(super) has_agent: bool,
    pub(super) has_body: bool,
}

/// The name of a kind of request, which is the name of its step.
pub(super) fn kind(method: &str, outcome: Outcome) -> String {
    format!("{method} {}", outcome.name())
}

/// The same without a space, for the lists of sessions.
pub(super) fn kind_word(method: &str, outcome: Outcome) -> String {
    format!("{method}_{}", outcome.name())
}

/// An entry of a column with one entry for each request of the session.
const PATH_OF_ROUND: &str = "(paths | split(' '))[round]";
const KIND_OF_ROUND: &str = "(kinds | split(' '))[round]";

pub(super) fn workload(
    options: &LogOptions,
    columns: Columns,
    tally: &Tally,
    sessions: Option<&Found>,
) -> String {
    let (name, shown) = (&options.name, &options.shown);
    let session = match sessions {
        Some(_) => "a session is what a client asked for, one after the other, with its pauses",
        None => "a session is one request, at the moment and with the path of its row",
    };
    let mut out = comment(
        0,
        &format!(
            "What {shown} has: {session}.\n\
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
    let indent = match sessions {
        Some(found) => {
            let _ = write!(
                out,
                "session:\n  visitor: new\n  steps:\n    - until: round + 1 >= requests\n      at_most: {}\n      steps:\n",
                found.longest.max(1)
            );
            "        "
        }
        None => {
            out.push_str("session:\n  steps:\n");
            "    "
        }
    };
    for (method, outcome) in tally.kinds.keys() {
        let mut before = "- ";
        for line in step((method, *outcome), columns, tally, sessions.is_some()) {
            let _ = writeln!(out, "{indent}{before}{line}");
            before = "  ";
        }
    }
    out
}

/// The lines of a step.
fn step(
    (method, outcome): (&str, Outcome),
    columns: Columns,
    tally: &Tally,
    in_session: bool,
) -> Vec<String> {
    let name = kind(method, outcome);
    let (path, condition) = match in_session {
        true => {
            let word = kind_word(method, outcome);
            (PATH_OF_ROUND, format!("{KIND_OF_ROUND} == '{word}'"))
        }
        false => ("path", format!("kind == '{name}'")),
    };
    let mut lines = vec![format!("step: {}", text(&name))];
    if in_session {
        lines.push("wait: seconds(pauses)".to_owned());
    }
    if tally.kinds.len() > 1 {
        lines.push(format!("when: {}", text(&condition)));
    }
    let request = format!("{method} {{{{ {path} }}}}");
    lines.push(format!("request: {}", text(&request)));
    let mut headers = Vec::new();
    if columns.has_agent {
        headers.push("User-Agent: \"{{ agent }}\"");
    }
    let has_body = columns.has_body && !matches!(method, "GET" | "HEAD");
    if has_body {
        headers.push("Content-Type: \"{{ type }}\"");
    }
    if !headers.is_empty() {
        lines.push(format!("headers: {{ {} }}", headers.join(", ")));
    }
    if has_body {
        lines.push("text: \"{{ body }}\"".to_owned());
    }
    lines.push(format!("expect: {}", outcome.expect()));
    lines
}

pub(super) fn study(options: &LogOptions, tally: &Tally, sessions: Option<&Found>) -> String {
    let (name, shown, url) = (&options.name, &options.shown, &options.url);
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
    match sessions {
        None => out.push_str(
            "load:\n  # As recorded. `scale: 2` replays twice as fast; `from: 10m` and `to: 20m` take a part.\n  \
             timeline: { column: time_us, unit: us }\n",
        ),
        Some(found) => {
            out.push_str(
                "load:\n  # Until the last session ends. `scale: 2` begins sessions twice as often; their waits stay.\n",
            );
            let to = found.span_s.min(LONGEST_S);
            let _ = writeln!(out, "  timeline: {{ column: time_us, unit: us, to: {to}s }}");
        }
    }
    // A slower server has more concurrent sessions.
    let at_once = sessions.map(|found| found.at_once * 2);
    match at_once {
        Some(sessions) if sessions > MAX_CONNECTIONS => {
            let sessions = sessions.min(MAX_SESSIONS);
            let _ = writeln!(out, "  arrival: {{ sessions: {sessions} }}");
            let _ = writeln!(out, "  connections: {MAX_CONNECTIONS}");
        }
        at_once => {
            let connections = at_once.unwrap_or(tally.busiest().min(1000)).max(20);
            let _ = writeln!(out, "  arrival: {{ connections: {connections} }}");
        }
    }
    out
}
