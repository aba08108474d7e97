//! An object store of a test's own: an S3 server, if one is installed, over a scratch folder and on a free port. It
//! ends with the test's process, however that ends.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use tempfile::TempDir;

use crate::server::free_address;
use crate::wait_until;

/// The access key id.
pub const KEY_ID: &str = "plimsoll-tests";
/// The secret access key.
pub const SECRET: &str = "not-a-secret-at-all";
/// The only bucket.
pub const BUCKET: &str = "attachments";

/// The number of ports that are tried.
const PORTS: u32 = 10;
const LIMIT: Duration = Duration::from_secs(120);

/// A server that this module can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Make {
    /// A gateway before a folder, by Versity.
    Versity,
    /// MinIO's last open release.
    Minio,
}

/// All of them.
pub const MAKES: [Make; 2] = [Make::Versity, Make::Minio];

impl Make {
    fn program_name(self) -> &'static str {
        match self {
            Self::Versity => "versitygw",
            Self::Minio => "minio",
        }
    }

    /// Returns the installed program: in the path, or where Go puts its builds.
    fn program(self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let home = std::env::var_os("HOME").map(|home| Path::new(&home).join("go/bin"));
        let places = std::env::split_paths(&path).chain(home);
        let mut found = places.map(|place| place.join(self.program_name()));
        found.find(|program| program.is_file())
    }

    fn command(self, program: &Path, data: &Path, address: SocketAddr) -> Command {
        // It ends with the thread that starts it, which waits for it.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        let at = address.to_string();
        match self {
            Self::Versity => command
                .args(["--access", KEY_ID, "--secret", SECRET])
                .args(["--quiet", "--port", &at, "posix"])
                .arg(data),
            Self::Minio => command
                .args(["server", "--quiet", "--address", &at])
                .args(["--console-address", "127.0.0.1:0"])
                .arg(data)
                .env("MINIO_ROOT_USER", KEY_ID)
                .env("MINIO_ROOT_PASSWORD", SECRET)
                .env("MINIO_UPDATE", "off"),
        };
        command.stdin(Stdio::null());
        command
    }
}

/// A running server with an empty bucket.
#[derive(Debug)]
pub struct ObjectServer {
    make: Make,
    program: PathBuf,
    scratch: TempDir,
    /// The data folder, if not in the scratch folder.
    data: PathBuf,
    address: SocketAddr,
    process: Mutex<Option<u32>>,
}

impl ObjectServer {
    /// Starts one of any make, or prints to standard output that none is installed.
    pub fn start() -> Option<Self> {
        let found = MAKES.into_iter().find_map(Self::of);
        if found.is_none() {
            println!("SKIPPED: neither versitygw nor minio is in the path or in ~/go/bin");
        }
        found
    }

    /// Starts one of this make; `None` where it isn't installed.
    ///
    /// # Panics
    /// When it doesn't start.
    pub fn of(make: Make) -> Option<Self> {
        let scratch = tempfile::tempdir().expect("a folder can be made");
        let data = scratch.path().join("objects");
        Self::on(make, scratch, data)
    }

    /// Starts one of any make with this data folder.
    ///
    /// # Panics
    /// When it doesn't start.
    pub fn start_on(data: &Path) -> Option<Self> {
        let scratch = || tempfile::tempdir().expect("a folder can be made");
        MAKES
            .into_iter()
            .find_map(|make| Self::on(make, scratch(), data.to_path_buf()))
    }

    fn on(make: Make, scratch: TempDir, data: PathBuf) -> Option<Self> {
        let mut server = Self {
            make,
            program: make.program()?,
            scratch,
            data,
            address: free_address(),
            process: Mutex::default(),
        };
        std::fs::create_dir_all(server.bucket()).expect("a folder can be made");
        // Another process may have taken a port that was free a moment ago.
        let is_there = (0..PORTS).any(|_| {
            server.address = free_address();
            server.begin()
        });
        assert!(is_there, "the object store starts");
        Some(server)
    }

    /// Starts it again after [`ObjectServer::kill`], at the same address.
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&self) {
        assert!(self.begin(), "the object store starts again");
    }

    /// Starts the process; returns true if it listens and hasn't ended at once.
    fn begin(&self) -> bool {
        let mut command = self.make.command(&self.program, &self.data, self.address);
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.scratch.path().join("log"))
            .expect("the log can be opened");
        command
            .stdout(log.try_clone().expect("it can be cloned"))
            .stderr(log);
        let (started, starts) = sync_channel(1);
        std::thread::spawn(move || {
            let child = command.spawn().expect("the object store can be started");
            let _ = started.send(child.id());
            wait_for(child);
        });
        let process = starts.recv().expect("the thread says what it has started");
        *self.process.lock().expect("nobody panics with it") = Some(process);
        let folder = PathBuf::from(format!("/proc/{process}"));
        let mut has_ended = false;
        wait_until(LIMIT, "the object store to listen", || {
            has_ended = !folder.exists();
            has_ended || listens(&folder, self.address)
        });
        !has_ended
    }

    /// Kills it, whatever it does.
    ///
    /// # Panics
    /// When it does not end.
    pub fn kill(&self) {
        let process = self.process.lock().expect("nobody panics with it").take();
        let Some(process) = process else { return };
        let id = nix::unistd::Pid::from_raw(i32::try_from(process).expect("ids are small"));
        let _ = nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGKILL);
        wait_until(LIMIT, "the object store to end", || {
            nix::sys::signal::kill(id, None).is_err()
        });
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a prefix of its bucket, reached directly or by a relay.
    pub fn url(&self, at: SocketAddr, prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}?endpoint=http://{at}&path-style=true")
    }

    /// The folder in which its bucket's objects are files, or folders with files.
    pub fn bucket(&self) -> PathBuf {
        self.data.join(BUCKET)
    }

    /// The bytes of all files that it keeps, in the bucket or elsewhere.
    pub fn kept_bytes(&self) -> u64 {
        bytes_below(&self.data)
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns true if this process listens there, and no other.
fn listens(process: &Path, address: SocketAddr) -> bool {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let port = format!(":{:04X}", address.port());
    let sockets = table.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let is_it = fields.get(1)?.ends_with(&port) && *fields.get(3)? == "0A";
        is_it.then(|| format!("socket:[{}]", fields.get(9).unwrap_or(&"")))
    });
    let sockets: Vec<_> = sockets.collect();
    let files = std::fs::read_dir(process.join("fd")).into_iter().flatten();
    let mut files = files
        .flatten()
        .filter_map(|file| file.path().read_link().ok());
    files.any(|file| sockets.iter().any(|socket| file.as_os_str() == &**socket))
}

fn wait_for(mut child: Child) {
    let _ = child.wait();
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(about) if about.is_dir() => bytes_below(&entry.path()),
            Ok(about) => about.len(),
            Err(_) => 0,
        })
        .sum()
}
