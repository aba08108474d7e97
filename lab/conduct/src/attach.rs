//! A system that already runs: reset to its first state, and watched. It is never started, pinned, or stopped.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_client::{BaseUrl, Resolve};
use lab_host::clock::{Stopwatch, pause};
use lab_machine::{AttachedProcess, Runner, Setting};
use lab_study::plan::Plan;
use lab_study::{AttachSpec, SystemSpec};

use crate::ConductError;
use crate::connect::ConnectSettings;
use crate::parts::Parts;
use crate::remote_host;
use crate::scrape::Exporter;
use crate::start::{END_CHECK, Process, System, SystemStart};
use crate::stop::{Stop, stopped};

/// Longest wait until it accepts connections, also after its reset.
const READY_DEADLINE: Duration = Duration::from_secs(30);
/// Longest wait for one connection.
const CONNECT: Duration = Duration::from_secs(1);

/// The problems of the attached systems of a plan; one sentence each.
pub(crate) fn check(plan: &Plan) -> Vec<String> {
    let problems = plan.every_trial().flat_map(|trial| match &trial.system {
        SystemSpec::Attach(spec) => problems(spec, trial.host.on.is_some()),
        _ => vec![],
    });
    let mut seen = BTreeSet::new();
    problems.filter(|said| seen.insert(said.clone())).collect()
}

fn problems(spec: &AttachSpec, is_far: bool) -> Vec<String> {
    let mut problems = Vec::new();
    if spec.url.parse::<BaseUrl>().is_err() {
        let what = "the address of the attached system is not of the form http://host:port";
        problems.push(what.to_owned());
    }
    if let Some(url) = &spec.node_exporter {
        problems.extend(Exporter::new(url).err());
    }
    // On a remote host its agent checks.
    if let Some(pid) = spec.pid.filter(|_| !is_far) {
        problems.extend(unusable(pid));
    }
    problems
}

/// Why a process can't be watched, if it can't.
fn unusable(pid: u32) -> Option<String> {
    let folder = PathBuf::from("/proc").join(pid.to_string());
    if AttachedProcess::find(pid).is_none() {
        return Some(format!(
            "there is no process {pid}, which the study attaches to"
        ));
    }
    // Only its owner and root may read its storage counters and open files.
    let readable = File::open(folder.join("io"))
        .and_then(|mut io| std::io::copy(&mut io, &mut std::io::sink()))
        .and_then(|_| fs::read_dir(folder.join("fd")));
    readable.err().map(|error| {
        format!(
            "process {pid}, which the study attaches to, can't be watched: {error} (its owner or \
             root may)"
        )
    })
}

/// The unreachable attached systems that a plan starts with, one sentence each with what to do. Systems with a reset
/// are excluded: the reset may start them.
pub(crate) fn unreachable(plan: &Plan) -> Vec<String> {
    let mut asked = BTreeSet::new();
    let mut problems = Vec::new();
    for trial in plan.every_trial() {
        let SystemSpec::Attach(spec) = &trial.system else {
            continue;
        };
        let resolve = Resolve::new(&trial.reach.resolve);
        let base = spec.url.parse::<BaseUrl>().ok();
        let is_new = asked.insert((&spec.url, &trial.reach.resolve));
        if let Some(base) = base.filter(|_| spec.reset.is_none() && is_new) {
            problems.extend(refused(&base, &resolve));
        }
    }
    problems
}

/// Why nothing listens at an address, if that is known at once: a silent server may be busy.
fn refused(base: &BaseUrl, resolve: &Resolve) -> Option<String> {
    match look(base, resolve) {
        Ok(_) => None,
        Err(Unreached::Unknown(cause)) => Some(format!(
            "{cause}: correct the name in the address, or say where it is under `resolve`"
        )),
        Err(Unreached::Refused(cause)) => Some(format!(
            "nothing listens at {base} ({cause}): start the server, or correct its address"
        )),
        Err(Unreached::Silent(_)) => None,
    }
}

/// Why there is no connection.
enum Unreached {
    /// The name has no address.
    Unknown(String),
    /// The machine refuses the connection, or there is no route to it.
    Refused(String),
    /// No answer in time.
    Silent(String),
}

/// An address that accepts connections now.
fn look(base: &BaseUrl, resolve: &Resolve) -> Result<SocketAddr, Unreached> {
    let addresses = resolve
        .addresses(base)
        .map_err(|error| Unreached::Unknown(format!("{} has no address ({error})", base.host)))?;
    let mut problem = Unreached::Unknown(format!("{} has no address", base.host));
    for address in addresses.iter() {
        if base.datagrams {
            // Only an answer would show that something listens, and no request is known here.
            return Ok(*address);
        }
        match TcpStream::connect_timeout(address, CONNECT) {
            Ok(_) => return Ok(*address),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                problem = Unreached::Silent(error.to_string());
            }
            Err(error) => problem = Unreached::Refused(error.kind().to_string()),
        }
    }
    Err(problem)
}

/// The process of a server on this machine that the study doesn't name, found by its port, so that its CPU does not
/// count as other programs'. `None` if this process may not watch it.
fn listener(base: &BaseUrl) -> Option<AttachedProcess> {
    let address: Option<IpAddr> = base.host.parse().ok();
    let is_here = base.host == "localhost" || address.is_some_and(|address| address.is_loopback());
    let found = lab_monitor::listener(base.port).filter(|_| is_here)?;
    let is_own = found.pid == std::process::id();
    AttachedProcess::find(found.pid).filter(|_| !is_own && unusable(found.pid).is_none())
}

/// Runs the reset and waits until the system accepts connections.
pub(crate) fn start(
    start: &SystemStart<'_>,
    spec: &AttachSpec,
    interrupt: &AtomicBool,
) -> Result<System, Stop> {
    let base: BaseUrl = spec
        .url
        .parse()
        .map_err(|_| Stop::System("its address is not of the form http://host:port".to_owned()))?;
    File::create(&start.output).map_err(|source| ConductError::Scratch {
        path: start.output.clone(),
        source,
    })?;
    let folder = start.scratch.data();
    if let Some(argv) = &spec.reset {
        let here = start.here();
        let runner = Runner {
            start: &here,
            env: &[],
            folder: &folder,
        };
        let done = runner.run("reset command", argv, interrupt);
        done.map_err(stopped)?;
    }
    let resolve = Resolve::new(&start.reach.resolve);
    let address = reach(&base, &resolve, interrupt)?;
    let (process, noted) = match start.far {
        Some(agent) => {
            let which = (base.port, spec.pid);
            let (machine, noted) = remote_host::watching(agent, which, interrupt)?;
            (Process::Own(Box::new(machine)), noted)
        }
        None => (Process::Attached(watched(&base, spec)?), None),
    };
    Ok(System {
        parts: Parts::default(),
        process,
        warning: noted,
        base,
        address,
        reach: ConnectSettings::default(),
        setting: Setting {
            preparation: spec.preparation.clone(),
            folder,
            ..Setting::default()
        },
    })
}

/// Its process on this machine, if known.
fn watched(base: &BaseUrl, spec: &AttachSpec) -> Result<Option<AttachedProcess>, Stop> {
    let Some(pid) = spec.pid else {
        return Ok(listener(base));
    };
    let gone = || {
        Stop::System(format!(
            "process {pid}, which the study attaches to, is gone"
        ))
    };
    AttachedProcess::find(pid).map(Some).ok_or_else(gone)
}

/// An address of the server that accepts connections.
fn reach(base: &BaseUrl, resolve: &Resolve, interrupt: &AtomicBool) -> Result<SocketAddr, Stop> {
    let began = Stopwatch::start();
    loop {
        if interrupt.load(Ordering::Relaxed) {
            return Err(Stop::Interrupted);
        }
        let problem = match look(base, resolve) {
            Ok(address) => return Ok(address),
            Err(
                Unreached::Unknown(cause) | Unreached::Refused(cause) | Unreached::Silent(cause),
            ) => cause,
        };
        if began.elapsed() > READY_DEADLINE {
            let seconds = READY_DEADLINE.as_secs();
            return Err(Stop::System(format!(
                "nothing accepts connections at {base} within {seconds} s: {problem}"
            )));
        }
        pause(END_CHECK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(url: &str) -> AttachSpec {
        AttachSpec {
            url: url.to_owned(),
            pid: None,
            node_exporter: None,
            reset: None,
            preparation: Default::default(),
        }
    }

    #[test]
    fn a_name_without_address_and_a_port_without_server_are_told_at_once() {
        let said = |url: &str| refused(&url.parse().unwrap(), &Resolve::default());
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        assert_eq!(said(&format!("http://127.0.0.1:{port}")), None);
        drop(free);
        let told = said(&format!("http://127.0.0.1:{port}")).unwrap();
        assert!(
            told.starts_with("nothing listens at http://127.0.0.1:"),
            "{told}"
        );
        assert!(told.contains("start the server"), "{told}");
        let told = said("http://no-such-host.invalid:80").unwrap();
        assert!(told.contains("no-such-host.invalid"), "{told}");
        assert!(told.contains("correct the name"), "{told}");
    }

    #[test]
    fn what_can_not_be_attached_to_is_said_without_secrets() {
        assert_eq!(
            problems(&spec("http://127.0.0.1:80"), false),
            [] as [String; 0]
        );
        let said = problems(&spec("http://user:secret@host"), false).join("");
        assert!(
            said.contains("http://host:port") && !said.contains("secret"),
            "{said}"
        );
        let mut remote = spec("https://host");
        remote.node_exporter = Some("ftp://host:9100/metrics?key=secret".to_owned());
        let said = problems(&remote, false).join("");
        assert!(
            said.contains("http://host:port/path") && !said.contains("secret"),
            "{said}"
        );
        remote.node_exporter = Some("https://host:9100/metrics?key=secret".to_owned());
        assert_eq!(problems(&remote, false), [] as [String; 0]);
        let mut gone = spec("http://host");
        gone.pid = Some(4_194_304);
        let said = problems(&gone, false).join("");
        assert_eq!(
            said,
            "there is no process 4194304, which the study attaches to"
        );
        gone.pid = Some(std::process::id());
        assert_eq!(problems(&gone, false), [] as [String; 0]);
    }
}
