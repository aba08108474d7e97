//! CPU time of the generator per request on a plain GET, beside `wrk`, and over HTTP/2 beside `h2load`, against the
//! same nginx, and per call of gRPC beside `ghz`, against the same etcd: one core for the generator, the other for the
//! server, rounds in turn.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use lab_driver::{Assignment, Driver, DriverEvent, Limits, Offer, Part, Protocol, TlsOptions};
use nix::sys::resource::UsageWho;

use crate::common::{Error, cpu_us, median};
use crate::etcd::Etcd;
use crate::nginx::Nginx;

/// First argument of this program when it is its own load generator.
pub(crate) const CHILD: &str = "--drive";

const ROUNDS: usize = 5;
pub(crate) const CONNECTIONS: u32 = 64;
const SECONDS: u64 = 4;
const GENERATOR_CORE: usize = 0;
const SERVER_CORE: usize = 1;
/// Connections that all users share.
const SHARED: u32 = 8;

/// The gRPC call: a key that isn't there, answered from memory.
const CALL: &str = "etcdserverpb.KV/Range";
const CALLED_WITH: &str = r#"{ "key": "a", "serializable": true }"#;
const PROTO: &str = include_str!("../../workloads/etcd.proto");

/// The resources that a generator used.
pub(crate) struct Usage {
    pub(crate) requests: f64,
    pub(crate) cpu_us: f64,
}

impl Usage {
    pub(crate) fn us_per_request(&self) -> f64 {
        self.cpu_us / self.requests
    }
}

/// Prints the comparisons.
pub(crate) fn compare() -> Result<(), Error> {
    let nginx = Nginx::start(SERVER_CORE)?;
    let (url, two) = (nginx.url(), nginx.url_of_two());
    println!("driver: CPU per request, plain GET of 1 KB, {CONNECTIONS} users, one core");
    beside("wrk", || wrk(&url, None), || plimsoll(&url, "1:0"))?;
    println!("driver: the same over HTTP/2, a connection each");
    let own = || plimsoll(&two, "2:0");
    beside("h2load", || h2load(&two, CONNECTIONS), own)?;
    println!("driver: the same on {SHARED} connections that all share");
    let shared = || plimsoll(&two, &format!("2:{SHARED}"));
    beside("h2load", || h2load(&two, SHARED), shared)?;
    drop(nginx);
    calls()
}

/// Compares gRPC calls, if the other generator and the server are installed.
fn calls() -> Result<(), Error> {
    let (Some(ghz), Some(_)) = (found("ghz"), found("etcd")) else {
        println!(
            "driver: gRPC is left out: it takes ghz (go install github.com/bojand/ghz/cmd/ghz@latest) and etcd \
             (Debian: etcd-server)"
        );
        return Ok(());
    };
    let etcd = Etcd::start(SERVER_CORE)?;
    let (address, folder) = (etcd.address(), tempfile::tempdir()?);
    let proto = folder.path().join("etcd.proto");
    std::fs::write(&proto, PROTO)?;
    for (connections, words, reach) in [
        (
            CONNECTIONS,
            "a connection each".to_owned(),
            "1:0".to_owned(),
        ),
        (
            SHARED,
            format!("on {SHARED} connections that all share"),
            format!("1:{SHARED}"),
        ),
    ] {
        println!("driver: unary calls of gRPC, {words}");
        let other = || {
            let mut command = pinned(&ghz.to_string_lossy());
            command.args(["--insecure", "--proto"]).arg(&proto);
            command.args(["--call", CALL, "--data", CALLED_WITH, "--cpus", "1"]);
            command.args([
                "--duration",
                &format!("{SECONDS}s"),
                "--duration-stop",
                "wait",
            ]);
            command.args(["--concurrency", &CONNECTIONS.to_string()]);
            command.args(["--connections", &connections.to_string(), &address]);
            let (text, cpu_us) = run(command)?;
            let requests = number_after(&text, "[OK]")?;
            Ok(Usage { requests, cpu_us })
        };
        beside("ghz", other, || {
            plimsoll(&format!("grpc://{address}"), &reach)
        })?;
    }
    Ok(())
}

/// Returns the path of a program: on the path, or where Go installs programs.
fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let of_go = std::env::var_os("HOME").map(|home| Path::new(&home).join("go/bin"));
    let folders = std::env::split_paths(&path).chain(of_go);
    let mut places = folders.map(|folder| folder.join(program));
    places.find(|place| place.is_file())
}

/// Compares ours with another generator.
pub(crate) fn beside(
    name: &str,
    other: impl Fn() -> Result<Usage, Error>,
    plimsoll: impl Fn() -> Result<Usage, Error>,
) -> Result<(), Error> {
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let our = plimsoll()?.us_per_request();
        let other = other()?.us_per_request();
        // The first round warms up.
        if round > 0 {
            ours.push(our);
            others.push(other);
        }
    }
    let ratios = ours.iter().zip(&others).map(|(our, other)| our / other);
    let ratio = median(ratios.collect());
    println!("  {name:<32} {:>9.2} us", median(others));
    println!(
        "  plimsoll                         {:>9.2} us   {ratio:.2} x {name}",
        median(ours)
    );
    Ok(())
}

/// Runs ours; `reach` is VERSION:CONNECTIONS.
fn plimsoll(url: &str, reach: &str) -> Result<Usage, Error> {
    let program = std::env::current_exe()?;
    let users = CONNECTIONS.to_string();
    let seconds = SECONDS.to_string();
    let mut command = pinned(&program.to_string_lossy());
    command.args([CHILD, url, &users, &seconds, "0s", reach]);
    let (text, cpu_us) = run(command)?;
    let requests = number_after(&text, "requests ")?;
    Ok(Usage { requests, cpu_us })
}

/// Runs `wrk`, with a script of its requests if there is one.
pub(crate) fn wrk(url: &str, script: Option<&Path>) -> Result<Usage, Error> {
    let mut command = pinned("wrk");
    command.args(["-t1", &format!("-c{CONNECTIONS}"), &format!("-d{SECONDS}s")]);
    if let Some(script) = script {
        command.arg("-s").arg(script);
    }
    command.arg(url);
    let (text, cpu_us) = run(command)?;
    let line = text.lines().find(|line| line.contains(" requests in "));
    let count = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    let requests = count.ok_or_else(|| Error::Peer(format!("wrk printed no count:\n{text}")))?;
    Ok(Usage { requests, cpu_us })
}

/// Runs `h2load` with as many concurrent requests as we have users, on this many connections.
fn h2load(url: &str, connections: u32) -> Result<Usage, Error> {
    let mut command = pinned("h2load");
    command.args([
        "-t1",
        &format!("-c{connections}"),
        &format!("-m{}", CONNECTIONS / connections),
        &format!("-D{SECONDS}"),
        url,
    ]);
    let (text, cpu_us) = run(command)?;
    let line = text.lines().find(|line| line.starts_with("requests:"));
    let words = line.map(|line| line.split([' ', ',']).filter(|word| !word.is_empty()));
    let done = words.and_then(|words| {
        let words: Vec<&str> = words.collect();
        let at = words.iter().position(|word| *word == "succeeded")?;
        words.get(at.checked_sub(1)?)?.parse().ok()
    });
    let requests = done.ok_or_else(|| Error::Peer(format!("h2load printed no count:\n{text}")))?;
    Ok(Usage { requests, cpu_us })
}

pub(crate) fn pinned(program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &GENERATOR_CORE.to_string(), program]);
    command
}

/// Runs a command to its end; returns its output and its CPU time, in µs.
pub(crate) fn run(mut command: Command) -> Result<(String, f64), Error> {
    let before = cpu_us(UsageWho::RUSAGE_CHILDREN)?;
    let output = command.output()?;
    let cpu_us = cpu_us(UsageWho::RUSAGE_CHILDREN)? - before;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Error::Peer(format!("{command:?} failed: {text}")));
    }
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), cpu_us))
}

/// Returns the number that follows `mark` in a child's output.
pub(crate) fn number_after(text: &str, mark: &str) -> Result<f64, Error> {
    let at = text.find(mark).map(|at| &text[at + mark.len()..]);
    at.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| Error::Peer(format!("no “{mark}” in:\n{text}")))
}

/// A workload, with the description of its calls if it has any.
struct OneFile(String);

impl lab_study::Files for OneFile {
    fn read(&self, path: &str) -> std::io::Result<Vec<u8>> {
        Ok(match path.ends_with(".proto") {
            true => PROTO.into(),
            false => self.0.clone().into_bytes(),
        })
    }
}

/// The error for unexpected output of a peer.
pub(crate) fn peer(text: impl std::fmt::Display) -> Error {
    Error::Peer(text.to_string())
}

/// Parses `VERSION:CONNECTIONS`.
fn protocol(reach: &str) -> Result<Protocol, Error> {
    let Some((version, connections)) = reach.split_once(':') else {
        return Err(peer("it takes VERSION:CONNECTIONS"));
    };
    let shared = connections.parse().map_err(peer)?;
    Ok(Protocol {
        offer: if version == "2" {
            Offer::Two
        } else {
            Offer::default()
        },
        shared: Some(shared).filter(|shared| *shared > 0),
    })
}

/// The generator as a separate program: `--drive URL USERS SECONDS WAIT [VERSION:CONNECTIONS]`. Users start evenly over
/// the first half of the time if they wait, otherwise at once. They use that version of HTTP, by default 1, or gRPC if
/// the URL has its scheme, on this many connections, or one each for 0.
pub(crate) fn child(args: &[String]) -> Result<(), Error> {
    let [url, users, seconds, wait, reach @ ..] = args else {
        return Err(peer(
            "--drive takes URL USERS SECONDS WAIT [VERSION:CONNECTIONS]",
        ));
    };
    let time = Duration::from_secs(seconds.parse().map_err(peer)?);
    let (spoken, request) = match url.starts_with("grpc:") {
        true => (
            "protocol: { name: grpc, descriptors: etcd.proto }\n",
            format!("request: {CALL}\n      json: {CALLED_WITH}"),
        ),
        false => ("", "request: GET /".to_owned()),
    };
    let yaml = format!(
        "workload: get\n{spoken}session:\n  steps:\n    - step: Get\n      wait: {wait}\n      {request}\n"
    );
    let mut drive = drive(url, yaml)?;
    drive.users = users.parse().map_err(peer)?;
    if let Some(reach) = reach.first() {
        drive.protocol = protocol(reach)?;
    }
    drive.ramp = match wait.as_str() {
        "0s" => Duration::ZERO,
        _ => time / 2,
    };
    drive.hold = time - drive.ramp;
    let empty_kb = resident_kb("VmRSS:")?;
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

/// Builds the load of one user of this workload, on the generator's core, of zero length yet.
pub(crate) fn drive(url: &str, yaml: String) -> Result<Assignment, Error> {
    let workload = lab_study::load_workload("get.workload.yaml", &OneFile(yaml)).map_err(peer)?;
    Ok(Assignment {
        population: String::new(),
        first: 0,
        workload: Arc::new(workload),
        base: url.parse().map_err(peer)?,
        tls: TlsOptions::default(),
        resolve: Vec::new(),
        sources: Vec::new(),
        protocol: Protocol::default(),
        kind: lab_study::plan::LoadKind::Users,
        users: 1,
        part: Part::whole(),
        user_extra: Vec::new(),
        seed: 1,
        block: 0,
        base_date: lab_study::model::DEFAULT_DATES_FROM,
        cores: vec![GENERATOR_CORE],
        own_cores: false,
        ramp: Duration::ZERO,
        hold: Duration::ZERO,
        stages: Vec::new(),
        timeline: None,
        window: Duration::from_secs(1),
        limits: Limits::default(),
    })
}

/// The totals of a load.
#[derive(Default)]
pub(crate) struct Sum {
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    /// The maximum number of open files, connections included; 0 if they were not counted.
    open_files: usize,
}

pub(crate) fn drive_to_the_end(drive: Assignment, count_files: bool) -> Result<Sum, Error> {
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
                    sum.requests += step.counts.ok;
                    sum.errors += step.failed();
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
