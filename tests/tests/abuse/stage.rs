//! What an abuse plays on: a server of its own, who abuses it, and what it takes of the machine.
//!
//! It knows no abuse.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use plimsoll_tests::server::{Client, ServerProcess, basic, connect_from, free_address};
use plimsoll_tests::wait_until;
use serde_json::{Value, json};

/// Where the abuser comes from.
pub(crate) const ABUSER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 66));
/// Where the well-behaved user comes from.
pub(crate) const NEIGHBOUR: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));
/// Whatever is waited for is there by then, or never.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// Ada behaves well, Bob is written to, Mallory doesn't behave.
const USERS: [&str; 3] = ["ada", "bob", "mallory"];

/// How much of an abuse is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Enough to find a bound that isn't there.
    Quick,
    /// As much as an abuser would.
    Full,
}

/// A server and who uses it.
pub(crate) struct Stage {
    pub(crate) server: ServerProcess,
    pub(crate) smtp: SocketAddr,
    pub(crate) scale: Scale,
    /// Rounds that the neighbour has made.
    pub(crate) rounds: AtomicU64,
    credentials: Vec<String>,
    folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new(scale: Scale, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let smtp = free_address();
        let smtp_argument = smtp.to_string();
        let mut all = vec!["--smtp-listen", &smtp_argument];
        all.extend_from_slice(arguments);
        let server = ServerProcess::start_with(folder.path(), &all);
        let mut stage = Self {
            server,
            smtp,
            scale,
            rounds: AtomicU64::new(0),
            credentials: Vec::new(),
            folder,
        };
        stage.register();
        stage
    }

    fn register(&mut self) {
        let users: Vec<_> = USERS.iter().map(|name| json!({ "name": name })).collect();
        let body = json!({ "users": users, "app_passwords": true });
        let answer = self.admin().request("POST", "/admin/users", &body).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        let users = answer.body["users"].as_array().unwrap();
        self.credentials = users
            .iter()
            .zip(USERS)
            .map(|(user, name)| basic(name, user["app_password"].as_str().unwrap()))
            .collect();
    }

    /// So much in the quick form, so much in the full one.
    pub(crate) fn size(&self, quick: usize, full: usize) -> usize {
        match self.scale {
            Scale::Quick => quick,
            Scale::Full => full,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub(crate) fn admin(&self) -> Client {
        Client::admin(self.address()).unwrap()
    }

    /// The value of a user's `Authorization` header.
    pub(crate) fn credentials(&self, name: &str) -> &str {
        let at = USERS.iter().position(|known| *known == name).unwrap();
        &self.credentials[at]
    }

    /// A kept connection of a user, from an address.
    pub(crate) fn user(&self, name: &str, source: IpAddr) -> io::Result<Client> {
        let stream = connect_from(source, self.address())?;
        Client::over(stream, self.credentials(name).to_owned())
    }

    /// Mallory, signed in.
    pub(crate) fn mallory(&self) -> Client {
        self.user("mallory", ABUSER).unwrap()
    }

    /// Sends Mallory's request with a JSON body; the status.
    pub(crate) fn post(&self, path: &str, body: &Value) -> u16 {
        let sent = self.mallory().send(
            "POST",
            path,
            &[("content-type", "application/json")],
            body.to_string().as_bytes(),
        );
        sent.map_or(0, |answer| answer.status)
    }

    /// A connection of a stranger that has sent these bytes, as far as the server takes them.
    pub(crate) fn stranger(&self, bytes: &[u8]) -> Option<TcpStream> {
        stranger_at(self.address(), bytes)
    }

    /// So many connections that have each sent these bytes.
    pub(crate) fn strangers(&self, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
        let made = (0..count).filter_map(|_| self.stranger(bytes));
        made.collect()
    }

    /// The start of a request of Mallory's, up to the headers that say what its body is.
    pub(crate) fn head(&self, method: &str, path: &str) -> String {
        let auth = self.credentials("mallory");
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {auth}\r\n")
    }

    /// Waits until the neighbour has made some rounds from now on.
    pub(crate) fn let_the_neighbour_work(&self) {
        let target = self.rounds.load(Relaxed) + self.size(3, 30) as u64;
        wait_until(DEADLINE, "the neighbour is served", || {
            self.rounds.load(Relaxed) >= target
        });
    }

    /// Bytes that the server's files take.
    pub(crate) fn disk_bytes(&self) -> u64 {
        folder_bytes(self.folder.path())
    }

    /// The most memory that the server has had since the peak was forgotten.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Forgets the peak; the memory that the server has now.
    pub(crate) fn forget_peak(&self) -> u64 {
        // See proc(5): 5 resets the peak.
        fs::write(self.proc("clear_refs"), "5").unwrap();
        self.memory("VmRSS:")
    }

    fn memory(&self, field: &str) -> u64 {
        let status = fs::read_to_string(self.proc("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.unwrap_or_default() << 10
    }

    fn proc(&self, file: &str) -> PathBuf {
        format!("/proc/{}/{file}", self.server.pid()).into()
    }
}

/// A connection of the abuser to any of the server's addresses. Who is not let in gets none.
pub(crate) fn stranger_at(address: SocketAddr, bytes: &[u8]) -> Option<TcpStream> {
    let mut stream = connect_from(ABUSER, address).ok()?;
    stream.write_all(bytes).ok()?;
    Some(stream)
}

/// Reads until the other side ends it, and says how it began.
pub(crate) fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // What came before an end in a reset counts, too.
    let _ = stream.read_to_end(&mut bytes);
    bytes.truncate(1 << 16);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn folder_bytes(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let sizes = entries.filter_map(Result::ok).map(|entry| {
        // A file may be gone by now.
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
            Ok(metadata) => metadata.blocks() * 512,
            Err(_) => 0,
        }
    });
    sizes.sum()
}
