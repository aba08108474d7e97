//! Compares a run's archive with the requests at its system: an accepted trial has every window of every agent, once.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::web::ASKED;

/// The time between the start message to agents and a trial's 0.
const NOTICE_MS: u64 = 2_000;
/// The tolerance for an early start, beyond the known clock error.
const EARLY_MS: u64 = 500;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The trials of a run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trials {
    pub(crate) accepted: u64,
    /// Of them, those with all requests of all users.
    pub(crate) full: u64,
    /// Invalid: an agent was lost.
    pub(crate) lost: u64,
    /// Invalid for another reason.
    pub(crate) failed: u64,
}

impl Trials {
    pub(crate) fn add(&mut self, other: Self) {
        self.accepted += other.accepted;
        self.full += other.full;
        self.lost += other.lost;
        self.failed += other.failed;
    }
}

/// Judges all trials of an archive. Accepted ones that are not whole are added to `wrong`.
pub(crate) fn judge(archive: &Path, requests: usize, wrong: &mut Vec<String>) -> Trials {
    let mut trials = Trials::default();
    let folders = fs::read_dir(archive.join("trials"))
        .into_iter()
        .flatten()
        .flatten();
    for folder in folders.map(|entry| entry.path()) {
        // A trial that has not ended has no record.
        let Ok(record) = fs::read(folder.join("trial.json")) else {
            continue;
        };
        let record: Value = serde_json::from_slice(&record).expect("a record is JSON");
        match record["end"]["how"].as_str() {
            Some("complete") => {}
            Some("agent_lost") => {
                trials.lost += 1;
                continue;
            }
            _ => {
                trials.failed += 1;
                println!("{}: {}", folder.display(), record["end"]);
                continue;
            }
        }
        trials.accepted += 1;
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        let asked = asked(&text("system.log"));
        trials.full += u64::from(asked.len() == requests);
        let lines: Vec<Value> = text("windows.jsonl")
            .lines()
            .map(|line| serde_json::from_str(line).expect("a window is JSON"))
            .collect();
        let told = |why: String| format!("{}: {why}", folder.display());
        wrong.extend(whole(&record, &lines, &asked).err().map(told));
    }
    trials
}

/// A request at the system: its time and path.
type LoggedRequest = (u64, String);

fn asked(log: &str) -> Vec<LoggedRequest> {
    let lines = log.lines().filter_map(|line| line.strip_prefix(ASKED));
    let parts = lines.filter_map(|line| line.split_once(' '));
    let of_users = parts.filter(|(_, path)| path.starts_with("/get/"));
    of_users
        .filter_map(|(at, path)| Some((at.parse().ok()?, path.to_owned())))
        .collect()
}

/// Checks that an accepted trial has all events, once.
fn whole(record: &Value, windows: &[Value], asked: &[LoggedRequest]) -> Result<(), String> {
    let number = |name: &str| record[name].as_u64().unwrap_or(0);
    let length = number("ramp_ms") + number("hold_ms");
    cover(windows, length)?;
    let agents = record["circumstances"]["agents"].as_array();
    let agents = agents.map_or(&[][..], Vec::as_slice);
    if agents.len() != crate::plan::AGENTS {
        return Err(format!("it was driven by {} agents", agents.len()));
    }
    let steps = || {
        windows
            .iter()
            .filter_map(|window| window["steps"].as_object())
    };
    let steps = || steps().flat_map(serde_json::Map::values);
    let ok: u64 = steps().filter_map(|step| step["ok"].as_u64()).sum();
    let failed = steps().filter_map(|step| step["errors"].as_object());
    let failed: u64 = failed
        .flat_map(|errors| errors.values())
        .filter_map(Value::as_u64)
        .sum();
    let different: BTreeSet<&str> = asked.iter().map(|(_, path)| path.as_str()).collect();
    if different.len() < asked.len() {
        let twice = asked.len() - different.len();
        return Err(format!("{twice} requests were sent twice"));
    }
    if ok > asked.len() as u64 {
        let asked = asked.len();
        return Err(format!("{ok} answers are in it, and {asked} were given"));
    }
    let unanswered = record["unanswered"]["count"].as_u64().unwrap_or(0);
    let sure = before_the_end(record, agents, length, asked);
    if ok + failed + unanswered < sure {
        return Err(format!(
            "{ok} answers are in it, {failed} failures, and {unanswered} requests without an answer, and the \
             system was asked {sure} times"
        ));
    }
    Ok(())
}

/// Checks that windows follow each other from 0 to the end.
fn cover(windows: &[Value], length: u64) -> Result<(), String> {
    let mut end = 0.0;
    for (at, window) in windows.iter().enumerate() {
        let (start, next) = (window["start_ms"].as_f64(), window["end_ms"].as_f64());
        let (Some(start), Some(next)) = (start, next) else {
            return Err(format!("window {at} has no times"));
        };
        if (start - end).abs() > 0.01 {
            return Err(format!(
                "window {at} begins at {start} ms, where {end} was due"
            ));
        }
        end = next;
    }
    match (end - length as f64).abs() > 0.01 {
        true => Err(format!(
            "windows end at {end} ms, and the trial at {length}"
        )),
        false => Ok(()),
    }
}

/// The minimum number of requests before any agent had ended: a stopped agent may send later, which is no part of the
/// trial.
fn before_the_end(record: &Value, agents: &[Value], length: u64, asked: &[LoggedRequest]) -> u64 {
    let bounds = agents.iter().filter_map(|agent| agent["bound_ms"].as_f64());
    let early = EARLY_MS + bounds.fold(0.0, f64::max).ceil() as u64;
    let Some(began) = record["started"].as_str().and_then(of_day) else {
        return 0;
    };
    let is_early = |at: u64| (at % DAY_MS + DAY_MS - began) % DAY_MS + early < NOTICE_MS + length;
    asked.iter().filter(|(at, _)| is_early(*at)).count() as u64
}

/// Parses the time of day of `2026-01-05T10:20:30.123Z`, in ms.
fn of_day(text: &str) -> Option<u64> {
    let time = text.split_once('T')?.1.strip_suffix('Z')?;
    let mut parts = time.split(':');
    let (hours, minutes) = (parts.next()?.parse::<u64>(), parts.next()?.parse::<u64>());
    let seconds: f64 = parts.next()?.parse().ok()?;
    let minutes = hours.ok()? * 60 + minutes.ok()?;
    Some(minutes * 60_000 + (seconds * 1000.0).round() as u64)
}

/// Checks the judge: a whole trial, and the same with something missing or twice.
pub(crate) fn judges() {
    let record = |unanswered: u64| {
        serde_json::json!({
            "ramp_ms": 1000, "hold_ms": 1000, "started": "2026-01-05T00:00:10.250Z",
            "unanswered": { "count": unanswered, "oldest_ms": 1.0 },
            "circumstances": { "agents": [{ "bound_ms": 0.1 }, { "bound_ms": 0.2 }] },
        })
    };
    let window = |from: u64, ok: u64| {
        serde_json::json!({
            "start_ms": from as f64, "end_ms": (from + 1000) as f64,
            "steps": { "0": { "ok": ok }, "1": { "errors": { "reset": 1 } } },
        })
    };
    // At 12.3, 12.4 … s of the day; the trial ends at 14.25 s at the earliest.
    let heard = |count: u64| -> Vec<LoggedRequest> {
        (0..count)
            .map(|at| (5 * DAY_MS + 12_300 + 100 * at, format!("/get/{at}")))
            .collect()
    };
    let windows = [window(0, 3), window(1000, 4)];
    assert_eq!(whole(&record(0), &windows, &heard(9)), Ok(()));
    assert_eq!(whole(&record(3), &windows, &heard(12)), Ok(()));
    for (windows, asked) in [
        (&windows[..1], heard(9)),
        (&windows[1..], heard(9)),
        // A window of one agent is missing, or there twice.
        (&windows[..], heard(10)),
        (&windows[..], heard(6)),
        (&windows[..], [heard(8), heard(1)].concat()),
    ] {
        assert!(whole(&record(0), windows, &asked).is_err(), "{asked:?}");
    }
    // Late requests of an agent that was stopped prove nothing.
    let late = [
        heard(9),
        vec![(5 * DAY_MS + 14_000, "/get/late".to_owned())],
    ]
    .concat();
    assert_eq!(whole(&record(0), &windows, &late), Ok(()));
    assert_eq!(of_day("2026-01-05T01:02:03.5Z"), Some(3_723_500));
}
