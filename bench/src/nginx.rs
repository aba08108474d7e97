//! A scratch nginx that answers one small JSON document, on one core, ended on drop.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::clock::now;
use crate::common::{Error, Server};

const READY_WITHIN: Duration = Duration::from_secs(10);

/// A running nginx.
pub(crate) struct Nginx {
    _server: Server,
    pub(crate) port: u16,
    /// The port of HTTP/2 without TLS.
    two: u16,
    _folder: tempfile::TempDir,
}

impl Nginx {
    /// Starts one on a free port, pinned to `core`.
    pub(crate) fn start(core: usize) -> Result<Self, Error> {
        let body = format!("{{\"text\":\"{}\"}}", "x".repeat(1000));
        let location = format!("location / {{ return 200 '{body}'; }}");
        Self::start_with(&location, &["-c", &core.to_string()], None)
    }

    /// Starts one that stores files in `folder` over WebDAV, on all cores, and with its temporary files on the same
    /// disk.
    pub(crate) fn start_dav(folder: &Path) -> Result<Self, Error> {
        let root = folder.canonicalize()?;
        let location = format!(
            "location = / {{ return 200 ready; }}\n\
             location / {{ root {}; dav_methods PUT DELETE; client_max_body_size 16m; }}",
            root.display()
        );
        let all = "0-1023".to_owned();
        Self::start_with(&location, &["-c", &all], root.parent())
    }

    /// Starts one with this `location`, pinned to the cores that these arguments of `taskset` name.
    pub(crate) fn start_with(
        location: &str,
        cores: &[&str],
        temporary: Option<&Path>,
    ) -> Result<Self, Error> {
        let folder = match temporary {
            Some(beside) => tempfile::tempdir_in(beside)?,
            None => tempfile::tempdir()?,
        };
        let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0"));
        let [port, two] = free.map(|bound| bound.and_then(|bound| bound.local_addr()));
        let (port, two) = (port?.port(), two?.port());
        let root = folder.path().display();
        let config = format!(
            "daemon off; master_process off; worker_processes 1; pid {root}/pid; error_log {root}/error.log;\n\
             worker_rlimit_nofile 20000; events {{ worker_connections 19000; }}\n\
             http {{ access_log off; keepalive_timeout 600; keepalive_requests 100000000;\n\
             client_body_temp_path {root}/b; proxy_temp_path {root}/p; fastcgi_temp_path {root}/f;\n\
             uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;\n\
             server {{ listen 127.0.0.1:{port} backlog=4096; listen 127.0.0.1:{two} http2 backlog=4096;\n\
             default_type application/json; {location} }} }}\n"
        );
        let path = folder.path().join("nginx.conf");
        fs::write(&path, config)?;
        let child = Command::new("taskset")
            .args(cores)
            .args(["nginx", "-c"])
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let nginx = Self {
            _server: Server(child),
            port,
            two,
            _folder: folder,
        };
        nginx.wait_ready()?;
        Ok(nginx)
    }

    /// The URL of the document.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The same over HTTP/2.
    pub(crate) fn url_of_two(&self) -> String {
        format!("http://127.0.0.1:{}", self.two)
    }

    fn wait_ready(&self) -> Result<(), Error> {
        let begin = now();
        while begin.elapsed() < READY_WITHIN {
            if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
                let mut answer = String::new();
                stream.read_to_string(&mut answer)?;
                if answer.contains(" 200 ") {
                    return Ok(());
                }
            }
            std::thread::yield_now();
        }
        Err(Error::Peer("nginx did not answer within 10 s".to_owned()))
    }
}
