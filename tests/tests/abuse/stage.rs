//! The stage of an abuse: a server of its own, its abusers, and the measurement of what the server uses.
//!
//! It is independent of the abuses.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use plimsoll_tests::server::{ADMIN_TOKEN, Client, ServerProcess, basic, connect_from};
use plimsoll_tests::tmpfs::Tmpfs;
use plimsoll_tests::{program, wait_until};
use serde_json::{Value, json};

/// The abuser's address.
pub(crate) const ABUSER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 66));
/// The well-behaved user's address.
pub(crate) const NEIGHBOUR: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));
/// The maximum wait for anything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// Ada behaves well, Bob receives messages, Mallory misbehaves.
const USERS: [&str; 3] = ["ada", "bob", "mallory"];

/// The extent of an abuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Enough to detect a missing bound.
    Quick,
    /// As much as an abuser would.
    Full,
}

/// How the server is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// It speaks TLS.
    pub(crate) is_tls: bool,
    /// The process's limit of descriptors.
    pub(crate) descriptors: Option<u32>,
    /// It queries the DNS for the senders of mails, and never gets an answer. Mails arrive by a proxy at the abuser's
    /// address: there are no queries for this machine's own programs.
    pub(crate) asks_in_vain: bool,
    /// Its data is on a disk of this size, where one may be mounted.
    pub(crate) disk: Option<&'static str>,
}

impl Setting {
    /// The default setting.
    pub(crate) const PLAIN: Self = Self {
        is_tls: false,
        descriptors: None,
        asks_in_vain: false,
        disk: None,
    };
}

/// A server and its users.
pub(crate) struct Stage {
    pub(crate) server: ServerProcess,
    pub(crate) smtp: SocketAddr,
    pub(crate) scale: Scale,
    /// Rounds of the neighbour.
    pub(crate) rounds: AtomicU64,
    credentials: Vec<String>,
    passwords: Vec<String>,
    tls: Option<Arc<rustls::ClientConfig>>,
    folder: tempfile::TempDir,
    disk: Option<Tmpfs>,
    /// Held open, so that queries are not even refused.
    _resolver: UdpSocket,
}

impl Stage {
    pub(crate) fn new(scale: Scale, setting: Setting) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut arguments = vec![
            "--smtp-listen".to_owned(),
            "127.0.0.1:0".to_owned(),
            "--trust-client".to_owned(),
            "127.0.0.1".to_owned(),
        ];
        let tls = setting.is_tls.then(|| {
            let (client, files) = certified(folder.path());
            arguments.extend(files);
            client
        });
        let resolver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        if setting.asks_in_vain {
            let resolver = resolver.local_addr().unwrap();
            arguments.push("--mail-auth=true".to_owned());
            arguments.push(format!("--resolver={resolver}"));
            arguments.push(format!("--proxy={ABUSER}"));
            arguments.push("--proxy-protocol=smtp".to_owned());
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let command = limited(setting.descriptors);
        let disk = setting.disk.and_then(Tmpfs::mount);
        let place = disk.as_ref().map_or(folder.path(), Tmpfs::path);
        let server = ServerProcess::start_by(place, command, &arguments);
        let mut stage = Self {
            smtp: server.smtp(),
            server,
            scale,
            rounds: AtomicU64::new(0),
            credentials: Vec::new(),
            passwords: Vec::new(),
            tls,
            folder,
            disk,
            _resolver: resolver,
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
        let password = |user: &Value| user["app_password"].as_str().unwrap().to_owned();
        self.passwords = users.iter().map(password).collect();
        let both = USERS.iter().zip(&self.passwords);
        self.credentials = both.map(|(name, password)| basic(name, password)).collect();
    }

    /// Returns the first number for the quick form, the second for the full one.
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
        let stream = TcpStream::connect(self.address()).unwrap();
        self.client(stream, format!("Bearer {ADMIN_TOKEN}"))
            .unwrap()
    }

    /// The value of a user's `Authorization` header.
    pub(crate) fn credentials(&self, name: &str) -> &str {
        let at = USERS.iter().position(|known| *known == name).unwrap();
        &self.credentials[at]
    }

    /// The password of a user.
    fn password(&self, name: &str) -> &str {
        let at = USERS.iter().position(|known| *known == name).unwrap();
        &self.passwords[at]
    }

    /// Signs in; returns the cookie.
    pub(crate) fn cookie(&self, name: &str) -> String {
        let form = format!("username={name}&password={}", self.password(name));
        let kind = [("content-type", "application/x-www-form-urlencoded")];
        let signed_in = self
            .mallory()
            .send("POST", "/login", &kind, form.as_bytes());
        let signed_in = signed_in.unwrap();
        let cookie = signed_in.header("set-cookie").expect("a session");
        cookie.split(';').next().unwrap_or_default().to_owned()
    }

    /// A kept connection of a user, from this address.
    pub(crate) fn user(&self, name: &str, source: IpAddr) -> io::Result<Client> {
        let stream = connect_from(source, self.address())?;
        self.client(stream, self.credentials(name).to_owned())
    }

    /// A client with these credentials over a connection.
    pub(crate) fn client(&self, stream: TcpStream, authorization: String) -> io::Result<Client> {
        let Some(tls) = &self.tls else {
            return Client::over(stream, authorization);
        };
        stream.set_read_timeout(Some(DEADLINE))?;
        let stream = rustls::StreamOwned::new(self.session(tls), stream);
        Ok(Client::within(Box::new(stream), authorization))
    }

    /// The client's side of a handshake.
    fn session(&self, tls: &Arc<rustls::ClientConfig>) -> rustls::ClientConnection {
        let name = "localhost".try_into().unwrap();
        rustls::ClientConnection::new(Arc::clone(tls), name).unwrap()
    }

    /// The first bytes of a client to a server that speaks TLS.
    pub(crate) fn client_hello(&self) -> Vec<u8> {
        let tls = self.tls.as_ref().expect("the server speaks TLS");
        let mut hello = Vec::new();
        self.session(tls).write_tls(&mut hello).unwrap();
        hello
    }

    /// Mallory, signed in.
    pub(crate) fn mallory(&self) -> Client {
        self.user("mallory", ABUSER).unwrap()
    }

    /// Sends Mallory's request with a JSON body; returns the status.
    pub(crate) fn post(&self, path: &str, body: &Value) -> u16 {
        let sent = self.mallory().send(
            "POST",
            path,
            &[("content-type", "application/json")],
            body.to_string().as_bytes(),
        );
        sent.map_or(0, |answer| answer.status)
    }

    /// A stranger's connection after sending these bytes, as far as the server takes them.
    pub(crate) fn stranger(&self, bytes: &[u8]) -> Option<TcpStream> {
        stranger_at(self.address(), bytes)
    }

    /// `count` connections that have each sent these bytes.
    pub(crate) fn strangers(&self, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
        let made = (0..count).filter_map(|_| self.stranger(bytes));
        made.collect()
    }

    /// The start of a request of Mallory's, up to the headers that describe its body.
    pub(crate) fn head(&self, method: &str, path: &str) -> String {
        let auth = self.credentials("mallory");
        format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {auth}\r\n")
    }

    /// Waits until the neighbour has made some more rounds.
    pub(crate) fn let_the_neighbour_work(&self) {
        let target = self.rounds.load(Relaxed) + self.size(3, 30) as u64;
        wait_until(DEADLINE, "the neighbour is served", || {
            self.rounds.load(Relaxed) >= target
        });
    }

    /// The size of the server's files, in bytes.
    pub(crate) fn disk_bytes(&self) -> u64 {
        let place = self.disk.as_ref().map_or(self.folder.path(), Tmpfs::path);
        folder_bytes(place)
    }

    /// Bytes of its deleted files that are open: large answers are buffered in those.
    pub(crate) fn nameless_bytes(&self) -> u64 {
        nameless_bytes(&self.proc("fd"))
    }

    /// The server's peak memory since the last reset.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// The server's memory now.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// Resets the peak to the current value.
    pub(crate) fn forget_peak(&self) {
        // See proc(5): 5 resets the peak.
        fs::write(self.proc("clear_refs"), "5").unwrap();
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

/// Raises this process's limit of descriptors: an abuser's connections are its own.
pub(crate) fn take_all_descriptors() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // If it is refused, there are fewer.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// The maximum number of an abuser's connections here, so that some are left for others.
pub(crate) fn most_connections() -> usize {
    const LEFT: u64 = 1000;
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(limit, _)| limit);
    usize::try_from(limit.saturating_sub(LEFT)).unwrap_or(usize::MAX)
}

/// A certificate for `localhost`: a client configuration that trusts it, and the server's arguments.
fn certified(folder: &Path) -> (Arc<rustls::ClientConfig>, [String; 4]) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    fs::write(&cert, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let [cert, key] = [cert, key].map(|path| path.to_str().unwrap().to_owned());
    let files = ["--tls-cert".to_owned(), cert, "--tls-key".to_owned(), key];
    (Arc::new(client), files)
}

/// The program with this limit of descriptors.
fn limited(descriptors: Option<u32>) -> Command {
    let Some(descriptors) = descriptors else {
        return Command::new(program());
    };
    let mut command = Command::new("sh");
    let script = format!("ulimit -n {descriptors} && exec \"$@\"");
    command.args(["-c", &script, "sh"]).arg(program());
    command
}

/// One of very many loopback addresses.
pub(crate) fn abuser(number: usize) -> IpAddr {
    let [.., high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, 66, high, low).into()
}

/// A connection of the abuser to any of the server's addresses; `None` if it is refused.
pub(crate) fn stranger_at(address: SocketAddr, bytes: &[u8]) -> Option<TcpStream> {
    stranger_from(ABUSER, address, bytes)
}

/// The same from any of this machine's addresses.
pub(crate) fn stranger_from(
    source: IpAddr,
    address: SocketAddr,
    bytes: &[u8],
) -> Option<TcpStream> {
    let mut stream = connect_from(source, address).ok()?;
    stream.write_all(bytes).ok()?;
    Some(stream)
}

/// Reads to the end of the connection; returns the beginning.
pub(crate) fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // Bytes before a reset count, too.
    let _ = stream.read_to_end(&mut bytes);
    bytes.truncate(1 << 16);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Bytes of the deleted files that a process has open.
fn nameless_bytes(descriptors: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = fs::read_dir(descriptors) else {
        return 0;
    };
    let sizes = entries.filter_map(Result::ok).map(|entry| {
        // Following it leads to the file, for as long as it is open.
        match fs::metadata(entry.path()) {
            Ok(metadata) if metadata.is_file() && metadata.nlink() == 0 => metadata.blocks() * 512,
            _ => 0,
        }
    });
    sizes.sum()
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
