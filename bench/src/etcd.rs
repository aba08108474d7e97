//! A scratch etcd for gRPC calls, on one core, ended on drop.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::clock::now;
use crate::common::{Error, Server};

/// It first elects a leader, which takes a second or two.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A running etcd.
pub(crate) struct Etcd {
    _server: Server,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Etcd {
    /// Starts one on a free port, pinned to `core`.
    pub(crate) fn start(core: usize) -> Result<Self, Error> {
        let folder = tempfile::tempdir()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let url = format!("http://127.0.0.1:{port}");
        let child = Command::new("taskset")
            .args(["-c", &core.to_string(), "etcd", "--unsafe-no-fsync"])
            .args(["--listen-client-urls", &url])
            .args(["--advertise-client-urls", &url])
            .args(["--listen-peer-urls", "http://127.0.0.1:0", "--data-dir"])
            .arg(folder.path().join("data"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let etcd = Self {
            _server: Server(child),
            port,
            _folder: folder,
        };
        etcd.wait_ready()?;
        Ok(etcd)
    }

    /// The address that it listens on.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn wait_ready(&self) -> Result<(), Error> {
        let begin = now();
        while begin.elapsed() < READY_WITHIN {
            if self.is_healthy().unwrap_or(false) {
                return Ok(());
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        Err(Error::Peer("etcd was not healthy within 60 s".to_owned()))
    }

    fn is_healthy(&self) -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.contains("\"true\""))
    }
}
