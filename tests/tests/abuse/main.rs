//! What strangers and users may try on a server, a row each: the server lives, keeps to its memory and
//! disk, and answers the others.
//!
//! `cargo test` does a little of each and judges all but times; `make abuse` does as much as an abuser
//! would, on the program as it is released, and judges the times of the neighbour, too.

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

/// What abuse may take of memory above what an idle server has.
const MEMORY_BYTES: u64 = 256 << 20;
/// What it may take of the disk, unless its row says more.
const DISK_BYTES: u64 = 256 << 20;
/// The longest time that others wait, 99 times of 100, unless they wait a fifth of that at rest.
const OTHERS_WITHIN: Duration = Duration::from_millis(250);
/// How much longer than at rest others' changes may take where long work goes on in the store: any of them.
const CHANGES_LATER: Duration = Duration::from_millis(50);

/// An abuse.
pub(crate) struct Row {
    name: &'static str,
    /// Puts there what it needs; what that takes of the disk is none of the abuse.
    prepare: fn(&Stage),
    /// Does it, and returns when nothing worse is to come.
    play: fn(&Stage),
    /// What it may take of the disk.
    disk_bytes: u64,
    /// Each of the others' changes is looked at, not 99 of 100.
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

    /// The same on a server that is started otherwise.
    pub(crate) const fn on(self, setting: Setting) -> Self {
        Self { setting, ..self }
    }

    /// The same where what was sent may be kept.
    pub(crate) const fn keeps(self, disk_bytes: u64) -> Self {
        Self { disk_bytes, ..self }
    }

    /// The same where something is there before.
    pub(crate) const fn after(self, prepare: fn(&Stage)) -> Self {
        Self { prepare, ..self }
    }

    /// The same where nobody's change may be held up.
    pub(crate) const fn holding_up_no_change(self) -> Self {
        Self {
            is_each_change_soon: true,
            ..self
        }
    }
}

/// What a row has taken.
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
    // As `cargo test` hands names of tests on: rows whose names have one of these in them.
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

/// What comes of all rows, in a sentence.
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

/// Plays the rows, shows what each takes, and says what is wrong.
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

/// Lets a row play beside the neighbour.
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
                // A look at each descriptor takes long where there are many.
                if look.is_multiple_of(25) {
                    nameless = stage.nameless_bytes();
                }
                disk_bytes.fetch_max(stage.disk_bytes() + nameless, Relaxed);
                if done.load(Relaxed) {
                    break;
                }
                // Nobody wakes it: it looks now and then.
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
