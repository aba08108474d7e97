//! The server under callgrind, which starts counting and writes its counts on command.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll_tests::server::{ADMIN_TOKEN, Client};
use serde_json::json;

use super::user::User;
use crate::clock::now;
use crate::common::Error;

/// A program is some fifty times slower under callgrind.
const READY_WITHIN: Duration = Duration::from_secs(600);
/// The prefix of callgrind's files.
const WRITTEN: &str = "counted";
/// The maximum share of other threads during read-only requests, in percent: a larger one means that another thread
/// answers some.
const MOST_OF_OTHERS: u64 = 20;

/// A running server, ended on drop.
pub(super) struct Server {
    child: Child,
    address: SocketAddr,
    /// The folder of callgrind's files.
    folder: PathBuf,
    files: u32,
    /// Callgrind's number of the HTTP thread.
    http: String,
    _data: tempfile::TempDir,
}

impl Server {
    /// Starts the program with one HTTP thread, and waits until it answers.
    pub(super) fn start(program: &Path, folder: &Path) -> Result<Self, Error> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        let data = tempfile::tempdir()?;
        let port_file = data.path().join("port");
        let child = Command::new("valgrind")
            .args(["--tool=callgrind", "--separate-threads=yes", "--quiet"])
            .arg(format!(
                "--callgrind-out-file={}",
                folder.join(WRITTEN).display()
            ))
            .arg(program)
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--http-threads",
                "1",
                "--requests-at-once",
                "80",
                "--slow-request",
                "1h",
                "--slow-commit",
                "1h",
                "--data",
            ])
            .arg(data.path().join("data"))
            .arg("--port-file")
            .arg(&port_file)
            .args(["--parent-pid", &std::process::id().to_string()])
            .env("PLIMSOLL_ADMIN_TOKEN", ADMIN_TOKEN)
            .stdin(Stdio::null())
            .stderr(fs::File::create(folder.join("log"))?)
            .spawn()?;
        let mut server = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            folder,
            files: 0,
            http: String::new(),
            _data: data,
        };
        server.address = server.wait_for(&port_file)?;
        Ok(server)
    }

    fn wait_for(&mut self, port_file: &Path) -> Result<SocketAddr, Error> {
        let begin = now();
        while begin.elapsed() < READY_WITHIN {
            if let Ok(text) = fs::read_to_string(port_file)
                && let Ok(address) = text.trim().parse()
            {
                return Ok(address);
            }
            if self.child.try_wait()?.is_some() {
                break;
            }
            std::thread::yield_now();
        }
        let log = self.folder.join("log");
        Err(Error::Peer(format!(
            "the server did not start: {}",
            log.display()
        )))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Registers users with application passwords, as a study does.
    pub(super) fn users(&self, count: usize) -> Result<Vec<User>, Error> {
        let names: Vec<_> = (0..count).map(User::name_of).collect();
        let users: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
        let users = json!({ "users": users, "app_passwords": true });
        let made = Client::admin(self.address)?.request("POST", "/admin/users", &users)?;
        let user = |at| {
            let password = made.body["users"][at]["app_password"].as_str();
            let password = password.ok_or_else(|| Error::Peer(format!("no users: {made:?}")))?;
            Ok(User::new((at, count), password))
        };
        (0..count).map(user).collect()
    }

    /// Resets the counts.
    pub(super) fn zero(&self) -> Result<(), Error> {
        self.tell("zero")
    }

    /// Finds the HTTP thread by its count since the reset, over read-only requests only.
    pub(super) fn note_who_answers(&mut self) -> Result<(), Error> {
        self.tell("dump")?;
        let by_thread = self.written("who-answers")?;
        self.http = busiest(&by_thread)?;
        Ok(())
    }

    /// Returns the HTTP thread's instructions since the reset.
    pub(super) fn instructions(&mut self, name: &str) -> Result<u64, Error> {
        self.tell("dump")?;
        let counted = self.written(name)?.get(&self.http).copied();
        counted.ok_or_else(|| Error::Peer(format!("nothing is counted of “{name}”")))
    }

    /// Reads the counts by thread, and renames the files by their contents.
    fn written(&mut self, name: &str) -> Result<BTreeMap<String, u64>, Error> {
        self.files += 1;
        let mut by_thread = BTreeMap::new();
        for file in fs::read_dir(&self.folder)? {
            let path = file?.path();
            let file_name = path.file_name().unwrap_or_default().to_string_lossy();
            let Some(rest) = file_name.strip_prefix(WRITTEN) else {
                continue;
            };
            let thread = rest.rsplit_once('-').map_or("", |(_, thread)| thread);
            let text = fs::read_to_string(&path)?;
            let totals = text
                .lines()
                .rev()
                .find_map(|line| line.strip_prefix("totals: "));
            let count = totals.and_then(|total| total.trim().parse().ok());
            *by_thread.entry(thread.to_owned()).or_default() += count.unwrap_or(0);
            let kind = name.replace(' ', "-");
            let to = format!("{kind}.{:02}-{thread}", self.files);
            fs::rename(&path, self.folder.join(to))?;
        }
        Ok(by_thread)
    }

    fn tell(&self, command: &str) -> Result<(), Error> {
        let told = Command::new("vgdb")
            .arg(format!("--pid={}", self.child.id()))
            .arg(command)
            .stderr(Stdio::null())
            .output()?;
        match told.status.success() {
            true => Ok(()),
            false => Err(Error::Peer(format!("vgdb {command}: {}", told.status))),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the thread with nearly all instructions.
fn busiest(by_thread: &BTreeMap<String, u64>) -> Result<String, Error> {
    let all: u64 = by_thread.values().sum();
    let most = by_thread.iter().max_by_key(|(_, count)| **count);
    let (thread, count) = most.ok_or_else(|| Error::Peer("nothing is counted".to_owned()))?;
    match (all - count) * 100 <= all * MOST_OF_OTHERS {
        true => Ok(thread.clone()),
        false => Err(Error::Peer(format!(
            "several threads answer: {by_thread:?}"
        ))),
    }
}
