//! CPU time of the generator per request on a plain GET, beside `wrk` against the same nginx: one
//! core for the generator, the other for nginx, rounds in turn.

use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use lab_driver::{Drive, Driver, DriverEvent, Limits, Part, TlsOptions};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::common::{Error, median};
use crate::nginx::Nginx;

/// First argument of this program when it is its own load generator.
pub(crate) const CHILD: &str = "--drive";

const ROUNDS: usize = 5;
const CONNECTIONS: u32 = 64;
const SECONDS: u64 = 4;
const GENERATOR_CORE: usize = 0;
const SERVER_CORE: usize = 1;

/// What a generator used.
struct Usage {
    requests: f64,
    cpu_us: f64,
}

impl Usage {
    fn us_per_request(&self) -> f64 {
        self.cpu_us / self.requests
    }
}

/// Prints the comparison.
pub(crate) fn compare() -> Result<(), Error> {
    let nginx = Nginx::start(SERVER_CORE)?;
    let (mut ours, mut wrks) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let our = plimsoll(&nginx.url())?.us_per_request();
        let wrk = wrk(&nginx.url())?.us_per_request();
        // The first round warms up.
        if round > 0 {
            ours.push(our);
            wrks.push(wrk);
        }
    }
    let ratio = median(ours.iter().zip(&wrks).map(|(our, wrk)| our / wrk).collect());
    println!("driver: CPU per request, plain GET of 1 KB, {CONNECTIONS} connections, one core");
    println!(
        "  wrk                              {:>9.2} us",
        median(wrks)
    );
    println!(
        "  plimsoll                         {:>9.2} us   {ratio:.2} x wrk",
        median(ours)
    );
    Ok(())
}

fn plimsoll(url: &str) -> Result<Usage, Error> {
    let program = std::env::current_exe()?;
    let users = CONNECTIONS.to_string();
    let seconds = SECONDS.to_string();
    let mut command = pinned(&program.to_string_lossy());
    command.args([CHILD, url, &users, &seconds, "0s"]);
    let (text, cpu_us) = run(command)?;
    let requests = number_after(&text, "requests ")?;
    Ok(Usage { requests, cpu_us })
}

fn wrk(url: &str) -> Result<Usage, Error> {
    let mut command = pinned("wrk");
    command.args([
        "-t1",
        &format!("-c{CONNECTIONS}"),
        &format!("-d{SECONDS}s"),
        url,
    ]);
    let (text, cpu_us) = run(command)?;
    let line = text.lines().find(|line| line.contains(" requests in "));
    let count = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    let requests = count.ok_or_else(|| Error::Peer(format!("wrk printed no count:\n{text}")))?;
    Ok(Usage { requests, cpu_us })
}

fn pinned(program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &GENERATOR_CORE.to_string(), program]);
    command
}

/// Runs to the end; its output and the CPU time that it used, in µs.
fn run(mut command: Command) -> Result<(String, f64), Error> {
    let before = children_cpu_us()?;
    let output = command.output()?;
    let cpu_us = children_cpu_us()? - before;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::Peer(format!("{command:?} failed: {text}")));
    }
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), cpu_us))
}

fn children_cpu_us() -> Result<f64, Error> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(std::io::Error::from)?;
    let total = usage.user_time() + usage.system_time();
    Ok(total.num_microseconds() as f64)
}

/// The number that follows `mark` in a child's output.
pub(crate) fn number_after(text: &str, mark: &str) -> Result<f64, Error> {
    let at = text.find(mark).map(|at| &text[at + mark.len()..]);
    at.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| Error::Peer(format!("no “{mark}” in:\n{text}")))
}

struct OneFile(String);

impl lab_study::Files for OneFile {
    fn read(&self, _path: &str) -> std::io::Result<Vec<u8>> {
        Ok(self.0.clone().into_bytes())
    }
}

/// The generator as a program of its own: `--drive URL USERS SECONDS WAIT`. Users start evenly over
/// the first half of the time where they wait, at once where they don't.
pub(crate) fn child(args: &[String]) -> Result<(), Error> {
    let [url, users, seconds, wait] = args else {
        return Err(Error::Peer(
            "--drive takes URL USERS SECONDS WAIT".to_owned(),
        ));
    };
    let peer = |text: &dyn std::fmt::Display| Error::Peer(text.to_string());
    let users: u32 = users.parse().map_err(|e| peer(&e))?;
    let time = Duration::from_secs(seconds.parse().map_err(|e| peer(&e))?);
    let yaml = format!(
        "workload: get\nsession:\n  steps:\n    - step: Get\n      wait: {wait}\n      request: GET /\n"
    );
    let workload =
        lab_study::load_workload("get.workload.yaml", &OneFile(yaml)).map_err(|e| peer(&e))?;
    let ramp = if wait == "0s" {
        Duration::ZERO
    } else {
        time / 2
    };
    let empty_kb = resident_kb("VmRSS:")?;
    let drive = Drive {
        population: String::new(),
        first: 0,
        workload: Arc::new(workload),
        base: url.parse().map_err(|e| peer(&e))?,
        tls: TlsOptions::default(),
        resolve: Vec::new(),
        sources: Vec::new(),
        protocol: lab_driver::Protocol::default(),
        kind: lab_study::plan::LoadKind::Users,
        users,
        part: Part::whole(),
        user_extra: Vec::new(),
        seed: 1,
        block: 0,
        base_date: lab_study::model::DEFAULT_DATES_FROM,
        cores: vec![GENERATOR_CORE],
        own_cores: false,
        ramp,
        hold: time - ramp,
        stages: Vec::new(),
        timeline: None,
        window: Duration::from_secs(1),
        limits: Limits::default(),
    };
    let Sum {
        requests,
        errors,
        open_files,
    } = drive_to_the_end(drive, wait != "0s")?;
    let peak_kb = resident_kb("VmHWM:")?;
    println!(
        "requests {requests} errors {errors} open_files {open_files} empty_kb {empty_kb} peak_kb {peak_kb}"
    );
    Ok(())
}

/// What a drive came to.
#[derive(Default)]
struct Sum {
    requests: u64,
    errors: u64,
    /// Most files open at once, connections among them; 0 where they were not counted.
    open_files: usize,
}

fn drive_to_the_end(drive: Drive, count_files: bool) -> Result<Sum, Error> {
    let (sender, events) = sync_channel(64);
    let driver = Driver::start(drive, sender).map_err(|error| Error::Peer(error.to_string()))?;
    let mut sum = Sum::default();
    for event in events {
        match event {
            DriverEvent::SetupDone { .. } => {
                let begun = driver.begin();
                begun.map_err(|error| Error::Peer(error.to_string()))?;
            }
            DriverEvent::Window(window) => {
                for step in &window.steps {
                    sum.requests += step.ok.len();
                    sum.errors += step.errors.iter().sum::<u64>();
                }
                if count_files {
                    let open = std::fs::read_dir("/proc/self/fd")?.count();
                    sum.open_files = sum.open_files.max(open);
                }
            }
            DriverEvent::Done => break,
            _ => {}
        }
    }
    driver
        .join()
        .map_err(|error| Error::Peer(error.to_string()))?;
    Ok(sum)
}

fn resident_kb(field: &str) -> Result<u64, Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| Error::Peer(format!("/proc/self/status has no {field}")))
}
