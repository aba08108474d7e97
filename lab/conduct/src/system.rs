//! The system under test: the groupware server as a child process, and what all systems have in
//! common. It knows no load.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lab_study::{Engine, GroupwareSpec, MailSpec, SystemSpec};
use nix::sys::signal::Signal;

use crate::ConductError;
use crate::attach;
use crate::child::Child;
use crate::command;
use crate::http::{ANSWER, Ask, Client};
use crate::start::{End, Starting, Stop, System, SystemStart, without_own_environment};

/// How long a system may take to accept requests.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// How long it may take to end when asked.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// Starts a system and waits until it accepts requests.
pub(crate) fn start(start: &SystemStart<'_>, interrupt: &AtomicBool) -> Result<System, Stop> {
    match start.spec {
        SystemSpec::Groupware(spec) => groupware(start, spec, interrupt),
        SystemSpec::Command(spec) => command::start(start, spec, interrupt),
        SystemSpec::Attach(spec) => attach::start(start, spec, interrupt),
        _ => {
            let problem = "this version can't start such a system".to_owned();
            Err(Stop::Fatal(ConductError::Unsupported(problem)))
        }
    }
}

fn groupware(
    start: &SystemStart<'_>,
    spec: &GroupwareSpec,
    interrupt: &AtomicBool,
) -> Result<System, Stop> {
    let token = random_token().map_err(|e| start.scratch_error(e))?;
    let token_file = start.scratch.file("admin-token");
    write_secret(&token_file, &token).map_err(|e| start.scratch_error(e))?;
    let port_file = start.scratch.file("port");
    let output = File::create(&start.output).map_err(|e| start.scratch_error(e))?;
    let errors = output.try_clone().map_err(|e| start.scratch_error(e))?;
    let mut command = Command::new(start.program);
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(start.scratch.data())
        .arg("--port-file")
        .arg(&port_file)
        .arg("--admin-token-file")
        .arg(&token_file)
        .args(["--parent-pid", &std::process::id().to_string()])
        .args(flags(spec))
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    without_own_environment(&mut command);
    let child = Child::start(command, start.cores).map_err(|source| {
        Stop::Fatal(ConductError::Program {
            path: start.program.to_path_buf(),
            source,
        })
    })?;
    let starting = Starting {
        child,
        output: start.output.clone(),
        deadline: START_DEADLINE,
        end: End {
            signal: Signal::SIGTERM,
            grace: STOP_GRACE,
        },
        token: Some(token),
    };
    starting.wait(interrupt, || ready(&port_file, interrupt))
}

/// The groupware's address, once it is written and answers.
fn ready(port_file: &Path, interrupt: &AtomicBool) -> Option<SocketAddr> {
    let address: SocketAddr = fs::read_to_string(port_file).ok()?.trim().parse().ok()?;
    let ask = Ask::get("/healthz", ANSWER);
    let answer = Client::plain(address).exchange(&ask, interrupt).ok()?;
    (answer.status == 200).then_some(address)
}

/// The flags of a setting.
fn flags(spec: &GroupwareSpec) -> Vec<String> {
    let mut flags = Vec::new();
    if let Some(threads) = spec.http_threads {
        flags.extend(["--http-threads".to_owned(), threads.to_string()]);
    }
    if spec.engine == Engine::Memory {
        flags.extend(["--engine".to_owned(), "memory".to_owned()]);
    }
    if spec.mailbox_pad_bytes > 0 {
        flags.extend([
            "--mailbox-pad".to_owned(),
            spec.mailbox_pad_bytes.to_string(),
        ]);
    }
    if let Some(layout) = spec.lookup_layout {
        flags.extend(["--lookup-layout".to_owned(), layout.name().to_owned()]);
    }
    flags
}

/// The settings for the archive's reader.
pub(crate) fn settings(spec: &SystemSpec) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let mut set = |name: &str, value: String| settings.insert(name.to_owned(), value);
    if let SystemSpec::Groupware(spec) = spec {
        set("system", "groupware".to_owned());
        let threads = spec
            .http_threads
            .map_or("one per core, no bound".to_owned(), |n| n.to_string());
        set("http_threads", threads);
        let engine = if spec.engine == Engine::Memory {
            "memory"
        } else {
            "sqlite"
        };
        set("engine", engine.to_owned());
        set("mailbox_pad_bytes", spec.mailbox_pad_bytes.to_string());
        if let Some(mail) = spec.mail {
            set("mail_messages", mail.messages.to_string());
            if let Some(bytes) = mail.message_bytes {
                set("mail_message_bytes", bytes.to_string());
            }
        }
    }
    if let SystemSpec::Command(spec) = spec {
        set("system", "command".to_owned());
        set("start", spec.start.join(" "));
        for (name, value) in &spec.env {
            set(&format!("env {name}"), value.clone());
        }
    }
    if let SystemSpec::Attach(spec) = spec {
        set("system", "attached".to_owned());
        set("url", spec.url.clone());
        set("cpus", "not pinned: attached".to_owned());
        if let Some(pid) = spec.pid {
            set("pid", pid.to_string());
        }
    }
    settings
}

/// Whether the lab did not start it.
pub(crate) fn is_attached(spec: &SystemSpec) -> bool {
    matches!(spec, SystemSpec::Attach(_))
}

/// The address of the exporter of its machine, where it has one.
pub(crate) fn exporter(spec: &SystemSpec) -> Option<&str> {
    match spec {
        SystemSpec::Attach(spec) => spec.node_exporter.as_deref(),
        _ => None,
    }
}

/// The bound on requests worked on at once, where the study sets one.
pub(crate) fn http_threads(spec: &SystemSpec) -> Option<u32> {
    match spec {
        SystemSpec::Groupware(spec) => spec.http_threads,
        _ => None,
    }
}

/// Whether it is the groupware server that comes with the lab.
pub(crate) fn is_groupware(spec: &SystemSpec) -> bool {
    matches!(spec, SystemSpec::Groupware(_))
}

/// What each mailbox is filled with.
pub(crate) fn mail(spec: &SystemSpec) -> Option<MailSpec> {
    match spec {
        SystemSpec::Groupware(spec) => spec.mail,
        _ => None,
    }
}

/// Bytes by which each mailbox is padded.
pub(crate) fn mailbox_pad_bytes(spec: &SystemSpec) -> u64 {
    match spec {
        SystemSpec::Groupware(spec) => spec.mailbox_pad_bytes,
        _ => 0,
    }
}

/// 128 random bits in hex.
fn random_token() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn write_secret(path: &Path, secret: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{secret}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_become_flags() {
        let plain = GroupwareSpec::default();
        assert_eq!(flags(&plain), [] as [String; 0]);
        let mut spec = plain;
        spec.http_threads = Some(80);
        spec.engine = Engine::Memory;
        spec.mailbox_pad_bytes = 5;
        let expected = [
            "--http-threads",
            "80",
            "--engine",
            "memory",
            "--mailbox-pad",
            "5",
        ];
        assert_eq!(flags(&spec), expected);
    }

    #[test]
    fn tokens_are_random_and_private() {
        use std::os::unix::fs::PermissionsExt;
        let (a, b) = (random_token().unwrap(), random_token().unwrap());
        assert_eq!((a.len(), b.len()), (32, 32));
        assert_ne!(a, b);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        write_secret(&path, &a).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}
