//! `plimsoll calibrate`: what this machine's generator can be trusted with, measured against a
//! server that does nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hdrhistogram::Histogram;
use lab_archive::{Run, Series, TrialData, TrialEnd};
use lab_conduct::RunRequest;
use lab_monitor::{Monitor, MonitorSpec};
use lab_study::plan::{PlanOptions, plan};
use lab_study::{Files, load_study};
use serde_json::json;

use crate::args::{CalibrateArgs, CalibrateFormat};
use crate::commands::run::conduct;
use crate::commands::{load, print};
use crate::exit::{Exit, Failure};

/// Users of the two loads: as fast as answers come, and mostly waiting.
const STUDY: &str = "\
study: calibrate
title: The generator against a server that does nothing
workload: WORKLOAD
system:
  command:
    start: [PROGRAM, calibrate, --null-server, \"{{ port }}\"]
load: { users: USERS, ramp: 1s, hold: SECONDSs }
trials: 1
order: listed
";
const WORKLOAD: &str = "\
workload: NAME
session:
  steps:
    - { step: Ask, WAITrequest: GET / }
";
const BUSY_USERS: u32 = 64;
const WAITING_USERS: u32 = 1000;
/// Samples that the monitor is timed over.
const SAMPLES: u32 = 100;
/// A connection's thread holds a buffer and little else.
const STACK_BYTES: usize = 128 << 10;

pub(crate) fn run(args: &CalibrateArgs) -> Result<Exit, Failure> {
    if let Some(port) = args.null_server {
        return serve_nothing(port).map_err(|error| Failure::new(Exit::Internal, &error));
    }
    let folder = Folder::new()?;
    let busy = measure(args, &folder, "busy", (BUSY_USERS, ""))?;
    let wait = "wait: exponential(1s), ";
    let waiting = measure(args, &folder, "waiting", (WAITING_USERS, wait))?;
    let found = Calibration {
        requests_per_s: busy.per_s,
        busy_percent: busy.cpu_fraction.map(|share| 100.0 * share),
        per_core_per_s: busy
            .cpu_fraction
            .map(|share| busy.per_s / (share * busy.workers)),
        lateness_ms: waiting.lateness_ms,
        sends_per_s: waiting.per_s,
        monitor_ms: monitor_cost(),
    };
    match args.format {
        CalibrateFormat::Terminal => print(&found.table()),
        CalibrateFormat::Json => print(&format!("{:#}\n", found.json())),
    }
}

/// What this machine's generator can be trusted with.
#[derive(Debug)]
struct Calibration {
    requests_per_s: f64,
    busy_percent: Option<f64>,
    per_core_per_s: Option<f64>,
    /// p50, p99, max.
    lateness_ms: [f64; 3],
    sends_per_s: f64,
    monitor_ms: f64,
}

impl Calibration {
    fn table(&self) -> String {
        let mut text = String::new();
        let or = |value: Option<f64>, unit: &str| {
            value.map_or("not told by this kernel".to_owned(), |v| {
                format!("{v:.0}{unit}")
            })
        };
        let [p50, p99, max] = self.lateness_ms;
        let rows = [
            (
                "requests",
                format!("{:.0} per s reached", self.requests_per_s),
            ),
            ("generator busy", or(self.busy_percent, " % meanwhile")),
            (
                "one core drives",
                or(self.per_core_per_s, " requests per s at most"),
            ),
            (
                "sends are late by",
                format!(
                    "p50 {p50:.2} ms, p99 {p99:.2} ms, max {max:.2} ms at {:.0} per s",
                    self.sends_per_s
                ),
            ),
            (
                "the monitor takes",
                format!("{:.2} ms per sample", self.monitor_ms),
            ),
        ];
        for (name, value) in rows {
            let _ = writeln!(text, "{name:<18} {value}");
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let [p50, p99, max] = self.lateness_ms;
        json!({
            "schema": "plimsoll.calibration/1",
            "requests_per_s": self.requests_per_s,
            "generator_busy_percent": self.busy_percent,
            "requests_per_core_per_s": self.per_core_per_s,
            "lateness_ms": { "p50": p50, "p99": p99, "max": max },
            "sends_per_s": self.sends_per_s,
            "monitor_ms_per_sample": self.monitor_ms,
        })
    }
}

/// Figures of one load, over its hold.
struct Load {
    per_s: f64,
    cpu_fraction: Option<f64>,
    workers: f64,
    lateness_ms: [f64; 3],
}

fn measure(
    args: &CalibrateArgs,
    folder: &Folder,
    name: &str,
    (users, wait): (u32, &str),
) -> Result<Load, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::new(Exit::Internal, &e))?;
    let quoted = json!(program.to_string_lossy()).to_string();
    let study = STUDY
        .replace("WORKLOAD", name)
        .replace("PROGRAM", &quoted)
        .replace("USERS", &users.to_string())
        .replace("SECONDS", &args.seconds.to_string());
    let workload = WORKLOAD.replace("NAME", name).replace("WAIT", wait);
    let files = Texts(BTreeMap::from([
        ("calibrate.study.yaml".to_owned(), study),
        (format!("{name}.workload.yaml"), workload),
    ]));
    let loaded = load_study("calibrate.study.yaml", &files, &[]);
    let loaded = loaded.map_err(|error| load::bad_file(&error))?;
    let options = PlanOptions {
        speed: 1.0,
        seed: None,
    };
    let plan = plan(&loaded.study, &options).map_err(|e| Failure::new(Exit::Internal, &e))?;
    let out = folder.0.join(name);
    let outcome = conduct(&RunRequest {
        loaded,
        plan,
        out: out.clone(),
        resume: false,
        overrides: vec![],
        program,
        state: folder.0.join("state"),
    })?;
    if outcome.interrupted {
        return Err(Failure::text(Exit::Interrupted, "interrupted".to_owned()));
    }
    let run = Run::open(&out).map_err(|error| Failure::new(Exit::Internal, &error))?;
    let trial = run.trials.first();
    let trial = trial.ok_or_else(|| Failure::text(Exit::Internal, "no trial ran".to_owned()))?;
    if let TrialEnd::SystemFailed { message } = &trial.record.end {
        return Err(Failure::text(Exit::SystemFailed, message.clone()));
    }
    Ok(figures(trial))
}

fn figures(trial: &TrialData) -> Load {
    let ramp_ms = trial.record.ramp_ms;
    let hold = trial
        .windows
        .iter()
        .filter(|w| w.start_ms >= ramp_ms as f64);
    let (mut answered, mut ms) = (0, 0.0);
    for window in hold {
        answered += window.steps.values().map(|step| step.ok).sum::<u64>();
        ms += window.end_ms - window.start_ms;
    }
    let mut lateness: Option<Histogram<u64>> = None;
    for interval in trial
        .series(Series::Lateness)
        .filter(|i| i.start_ms >= ramp_ms)
    {
        match &mut lateness {
            Some(sum) => interval.add_to(sum),
            None => lateness = Some(interval.histogram()),
        }
    }
    let at = |quantile| {
        let us = lateness
            .as_ref()
            .map_or(0, |sum| sum.value_at_quantile(quantile));
        us as f64 / 1e3
    };
    Load {
        per_s: if ms > 0.0 {
            1e3 * answered as f64 / ms
        } else {
            0.0
        },
        cpu_fraction: trial
            .record
            .generator
            .cpu_fraction
            .filter(|share| *share > 0.0),
        workers: f64::from(trial.record.generator.workers),
        lateness_ms: [at(0.5), at(0.99), at(1.0)],
    }
}

/// Milliseconds of one sample, as a trial takes it.
fn monitor_cost() -> f64 {
    let own = std::process::id();
    let mut monitor = Monitor::new(&MonitorSpec {
        data_dir: Some(std::env::temp_dir()),
        processes: vec![("generator".to_owned(), own)],
        ..MonitorSpec::default()
    });
    let began = clock::now();
    for _ in 0..SAMPLES {
        monitor.sample(clock::now().duration_since(began));
    }
    clock::now().duration_since(began).as_secs_f64() * 1e3 / f64::from(SAMPLES)
}

/// Files that were never on a disk.
struct Texts(BTreeMap<String, String>);

impl Files for Texts {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let name = Path::new(path).file_name().and_then(|name| name.to_str());
        let found = name.and_then(|name| self.0.get(name));
        let text = found.ok_or(io::ErrorKind::NotFound)?;
        Ok(text.clone().into_bytes())
    }
}

/// A folder for the archives, removed with this.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Failure> {
        let name = format!("plimsoll-calibrate-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|error| Failure::new(Exit::Internal, &error))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left lies in a folder for what is temporary.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Answers every request with nothing, until it is killed.
fn serve_nothing(port: u16) -> io::Result<Exit> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    for stream in listener.incoming() {
        let stream = stream?;
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        // A connection that breaks is the other side's to tell.
        thread.spawn(move || drop(answer(&stream)))?;
    }
    Ok(Exit::Success)
}

fn answer(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(300)))?;
    let mut reader = BufReader::with_capacity(4096, stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line == b"\r\n" {
            (&*stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        }
    }
}

/// What the monitor's cost is timed with.
mod clock {
    use std::time::Instant;

    #[expect(
        clippy::disallowed_methods,
        reason = "the cost of a sample is a time on this machine"
    )]
    pub(super) fn now() -> Instant {
        Instant::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_short_and_the_json_has_the_same() {
        let found = Calibration {
            requests_per_s: 38_211.4,
            busy_percent: Some(98.6),
            per_core_per_s: Some(38_754.0),
            lateness_ms: [0.062, 0.41, 2.1],
            sends_per_s: 990.2,
            monitor_ms: 0.312,
        };
        insta::assert_snapshot!(format!("{}\n{:#}", found.table(), found.json()));
    }
}
