//! Abuse of a server by strangers and users, a row each: the server survives, stays within its memory and disk, and
//! answers the others.
//!
//! `cargo test` does a little of each and judges all but times; `make abuse` does as much as an abuser would, on the
//! release build, and judges the neighbour's times, too.

mod bodies;
mod connections;
mod contents;
mod mails;
mod neighbour;
mod shares;
mod stage;
mod stored;

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use neighbour::{Neighbour, Seen};
use stage::{Scale, Setting, Stage};

/// The memory that an abuse may take above that of an idle server.
const MEMORY_BYTES: u64 = 256 << 20;
/// The disk space that it may take, unless its row allows more.
const DISK_BYTES: u64 = 256 << 20;
/// The maximum p99 of the others' times, unless it is within five times that at rest.
const OTHERS_WITHIN: Duration = Duration::from_millis(250);
/// The maximum delay of any of the others' changes, against rest, while long work runs in the store.
const CHANGES_LATER: Duration = Duration::from_millis(50);

/// An abuse.
pub(crate) struct Row {
    name: &'static str,
    /// Creates what the abuse needs; its disk space is not counted.
    prepare: fn(&Stage),
    /// Runs the abuse; returns when nothing worse follows.
    play: fn(&Stage),
    /// The disk space that it may take.
    disk_bytes: u64,
    /// Each of the others' changes is judged, not 99 of 100.
    is_each_change_soon: bool,
    setting: Setting,
}

impl Row {
    pub(crate) const fn new(name: &'static str, play: fn(&Stage)) -> Self {
        Self {
            name,
            prepare: |_| {},
            play,
            disk_bytes: DISK_BYTES,
            is_each_change_soon: false,
            setting: Setting::PLAIN,
        }
    }

    /// The same on a server with another setting.
    pub(crate) const fn on(self, setting: Setting) -> Self {
        Self { setting, ..self }
    }

    /// The same if the sent data may be kept.
    pub(crate) const fn keeps(self, disk_bytes: u64) -> Self {
        Self { disk_bytes, ..self }
    }

    /// The same after a preparation.
    pub(crate) const fn after(self, prepare: fn(&Stage)) -> Self {
        Self { prepare, ..self }
    }

    /// The same if no change of any user may be delayed.
    pub(crate) const fn holding_up_no_change(self) -> Self {
        Self {
            is_each_change_soon: true,
            ..self
        }
    }
}

/// The measured effect of a row.
struct Outcome {
    memory_bytes: u64,
    disk_bytes: u64,
    at_rest: Seen,
    beside: Seen,
    is_alive: bool,
}

fn main() -> ExitCode {
    stage::take_all_descriptors();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let scale = match arguments.iter().any(|argument| argument == "--full") {
        true => Scale::Full,
        false => Scale::Quick,
    };
    // As `cargo test` filters tests by name: rows whose names contain one of these.
    let names: Vec<_> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let mut rows = rows();
    rows.retain(|row| names.is_empty() || names.iter().any(|name| row.name.contains(*name)));
    let wrong = judge(scale, &rows);
    for fault in &wrong {
        println!("{fault}");
    }
    println!("{}", verdict(rows.len(), &wrong));
    match wrong.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The result of all rows, in a sentence.
fn verdict(rows: usize, wrong: &[String]) -> String {
    match (rows, wrong.len()) {
        (0, _) => "no abuse has such a name".to_owned(),
        (_, 0) => format!("{rows} abuses, all within their bounds"),
        (_, 1) => format!("{rows} abuses, 1 fault"),
        (_, faults) => format!("{rows} abuses, {faults} faults"),
    }
}

fn rows() -> Vec<Row> {
    let all = [
        connections::rows(),
        bodies::rows(),
        contents::rows(),
        mails::rows(),
        shares::rows(),
        stored::rows(),
    ];
    all.into_iter().flatten().collect()
}

/// Runs the rows, prints the figures of each, and returns what is wrong.
fn judge(scale: Scale, rows: &[Row]) -> Vec<String> {
    let (memory, disk) = ("memory", "disk");
    println!(
        "{:<46} {memory:>9} {disk:>9} {:>9} {:>9} {:>9}",
        "abuse", "p99 rest", "p99", "change"
    );
    let mut wrong = Vec::new();
    for row in rows {
        let Ok(outcome) = std::panic::catch_unwind(|| act(row, scale)) else {
            wrong.push(format!("{}: see above", row.name));
            continue;
        };
        println!(
            "{:<46} {:>6} MB {:>6} MB {:>6} ms {:>6} ms {:>6} ms",
            row.name,
            outcome.memory_bytes >> 20,
            outcome.disk_bytes >> 20,
            outcome.at_rest.p99().as_millis(),
            outcome.beside.p99().as_millis(),
            outcome.beside.slowest_change.as_millis(),
        );
        let faults = faults(row, scale, &outcome);
        wrong.extend(
            faults
                .into_iter()
                .map(|fault| format!("{}: {fault}", row.name)),
        );
    }
    wrong
}

/// Runs a row beside the neighbour.
fn act(row: &Row, scale: Scale) -> Outcome {
    let stage = Stage::new(scale, row.setting);
    let idle_bytes = stage.memory_bytes();
    (row.prepare)(&stage);
    let mut neighbour = Neighbour::new(&stage);
    let (rested, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let disk_bytes = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let working = scope.spawn(|| (neighbour.work(&rested), neighbour.work(&done)));
        stage.let_the_neighbour_work();
        rested.store(true, Relaxed);
        stage.forget_peak();
        let idle = (idle_bytes, stage.disk_bytes());
        let watching = scope.spawn(|| {
            let mut nameless = 0;
            for look in 0_u32.. {
                // Checking each descriptor takes long if there are many.
                if look.is_multiple_of(25) {
                    nameless = stage.nameless_bytes();
                }
                disk_bytes.fetch_max(stage.disk_bytes() + nameless, Relaxed);
                if done.load(Relaxed) {
                    break;
                }
                // A polling interval: nothing unparks this thread.
                std::thread::park_timeout(Duration::from_millis(20));
            }
        });
        let played = std::panic::catch_unwind(AssertUnwindSafe(|| (row.play)(&stage)));
        let peak = stage.peak_bytes();
        let is_alive = stage
            .admin()
            .request("GET", "/healthz", &serde_json::Value::Null);
        done.store(true, Relaxed);
        watching.join().unwrap();
        let (at_rest, beside) = working.join().unwrap();
        if let Err(panic) = played {
            std::panic::resume_unwind(panic);
        }
        Outcome {
            memory_bytes: peak.saturating_sub(idle.0),
            disk_bytes: disk_bytes.load(Relaxed).saturating_sub(idle.1),
            at_rest,
            beside,
            is_alive: is_alive.is_ok_and(|answer| answer.status == 200),
        }
    })
}

fn faults(row: &Row, scale: Scale, outcome: &Outcome) -> Vec<String> {
    let mut faults = Vec::new();
    let mut must = |holds: bool, fault: String| {
        if !holds {
            faults.push(fault);
        }
    };
    must(outcome.is_alive, "the server is gone".into());
    let memory = outcome.memory_bytes;
    must(
        memory <= MEMORY_BYTES,
        format!("{} MB of memory", memory >> 20),
    );
    let disk = outcome.disk_bytes;
    must(
        disk <= row.disk_bytes,
        format!("{} MB of the disk", disk >> 20),
    );
    let wrong = &outcome.beside.wrong;
    let first = wrong.first().map_or("", String::as_str);
    must(
        wrong.is_empty(),
        format!(
            "{} answers to the neighbour were wrong: {first}",
            wrong.len()
        ),
    );
    if scale == Scale::Full {
        let within = OTHERS_WITHIN.max(outcome.at_rest.p99() * 5);
        let p99 = outcome.beside.p99();
        must(p99 < within, format!("the neighbour waited {p99:?}"));
        let slowest = outcome.beside.slowest_change;
        let soon = outcome.at_rest.slowest_change + CHANGES_LATER;
        must(
            !row.is_each_change_soon || slowest <= soon,
            format!("a change of the neighbour's took {slowest:?}"),
        );
    }
    faults
}
