//! `plimsoll serve` as a child process, and a small HTTP client to talk to it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procfs::process::Process;
use serde_json::Value;
use socket2::{Domain, Socket, Type};

use crate::{program, wait_until};

/// The admin token of every server started here.
pub const ADMIN_TOKEN: &str = "whole-product-test-token";

/// The maximum wait for bytes of an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns an address that was free a moment ago.
///
/// # Panics
/// If no port is free.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener
        .local_addr()
        .expect("a bound socket has an address")
}

/// A server that is killed when this value is dropped.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl ServerProcess {
    /// Starts a server on the data in `folder` and waits until it accepts connections.
    pub fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[])
    }

    /// The same with further arguments.
    pub fn start_with(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_by(folder, Command::new(program()), arguments)
    }

    /// The same by a command that executes the program with its arguments.
    pub fn start_by(folder: &Path, command: Command, arguments: &[&str]) -> Self {
        Self::start_on(&folder.join("data"), folder, command, arguments)
    }

    /// The same on data that lies elsewhere than the server's log and port file.
    pub fn start_on(data: &Path, beside: &Path, mut command: Command, arguments: &[&str]) -> Self {
        let port_file = beside.join("port");
        let _ = std::fs::remove_file(&port_file);
        let log = beside.join("log");
        let mut child = command
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--http-threads",
                "4",
                "--data",
            ])
            .arg(data)
            .arg("--port-file")
            .arg(&port_file)
            .args(["--parent-pid", &std::process::id().to_string()])
            .args(arguments)
            .env("PLIMSOLL_ADMIN_TOKEN", ADMIN_TOKEN)
            .stdin(Stdio::null())
            .stderr(File::create(&log).expect("the log can be written"))
            .spawn()
            .expect("the program starts");
        wait_until(
            Duration::from_secs(120),
            "the server accepts connections",
            || {
                let ended = child.try_wait().expect("the child can be waited for");
                assert!(ended.is_none(), "the server ended early: {ended:?}");
                port_file.exists()
            },
        );
        let address = std::fs::read_to_string(&port_file).expect("the port file can be read");
        let address = address
            .trim()
            .parse()
            .expect("the port file holds an address");
        Self {
            child,
            address,
            log,
        }
    }

    /// What it has printed to standard error so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).expect("the log can be read")
    }

    /// Sends a signal. After SIGSTOP, waits until it stands still: its threads run until one of them has a CPU to take
    /// the signal on.
    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("an id");
        kill(Pid::from_raw(id), signal).expect("it runs");
        if signal == Signal::SIGSTOP {
            wait_until(Duration::from_secs(120), "the server stands still", || {
                stands_still(id)
            });
        }
    }

    /// Waits until it ends by itself; returns its exit code.
    pub fn ended(&mut self) -> Option<i32> {
        let mut ended = None;
        wait_until(Duration::from_secs(120), "the server ends", || {
            ended = self.child.try_wait().expect("the child can be waited for");
            ended.is_some()
        });
        ended.and_then(|status| status.code())
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The SMTP address for incoming mail, of a server that listens on a free port for it.
    pub fn smtp(&self) -> SocketAddr {
        self.told("taking in mail on smtp://")
    }

    /// The address for mail submission, likewise.
    pub fn submission(&self) -> SocketAddr {
        self.told("taking mail from users on smtp://")
    }

    /// Returns the address that the startup log has after this text.
    fn told(&self, before: &str) -> SocketAddr {
        let mut told = None;
        wait_until(Duration::from_secs(120), before, || {
            let said = self.said();
            told = said.split_inclusive('\n').find_map(|line| {
                let address = line.strip_prefix(before)?.strip_suffix('\n')?;
                address.parse().ok()
            });
            told.is_some()
        });
        told.expect("it was waited for")
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it, whatever it does. Its writes are still with the system, flushed or not: unlike a power failure, this
    /// doesn't show whether it flushes.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// Connects from one of this machine's own addresses, so that the server takes it for another client.
///
/// # Errors
/// When the connection is refused.
pub fn connect_from(source: IpAddr, address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(source, 0).into())?;
    socket.connect(&address.into())?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    Ok(stream)
}

/// A transport of requests and answers.
pub trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// A user's credentials, as the value of a header.
pub fn basic(name: &str, password: &str) -> String {
    let secret = BASE64_STANDARD.encode(format!("{name}:{password}"));
    format!("Basic {secret}")
}

/// A kept connection with the credentials of its requests.
pub struct Client {
    stream: BufReader<Box<dyn Stream>>,
    authorization: String,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The `Location` header, if there is one.
    pub location: Option<String>,
    /// The body; null if it is empty.
    pub body: Value,
}

/// An answer as received.
#[derive(Debug)]
pub struct RawAnswer {
    /// The status code.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl RawAnswer {
    /// A header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Client {
    /// Connects as a user.
    ///
    /// # Errors
    /// When the connection is refused.
    pub fn user(address: SocketAddr, name: &str, password: &str) -> io::Result<Self> {
        Self::over(TcpStream::connect(address)?, basic(name, password))
    }

    /// Connects as the admin.
    ///
    /// # Errors
    /// When the connection is refused.
    pub fn admin(address: SocketAddr) -> io::Result<Self> {
        Self::over(
            TcpStream::connect(address)?,
            format!("Bearer {ADMIN_TOKEN}"),
        )
    }

    /// Sends requests with these credentials over a connection.
    ///
    /// # Errors
    /// When the connection refuses its settings.
    pub fn over(stream: TcpStream, authorization: String) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(Self::within(Box::new(stream), authorization))
    }

    /// The same over any stream on top of a connection, such as TLS.
    pub fn within(stream: Box<dyn Stream>, authorization: String) -> Self {
        Self {
            stream: BufReader::new(stream),
            authorization,
        }
    }

    /// Sends a request and waits for its answer; `Value::Null` sends no body.
    ///
    /// # Errors
    /// When the connection ends before the whole answer is there, or a body isn't JSON.
    pub fn request(&mut self, method: &str, path: &str, body: &Value) -> io::Result<Answer> {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.authorization,
            body.len(),
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.read_answer()
    }

    /// Sends a request with any body and waits for its answer.
    ///
    /// # Errors
    /// When the connection ends before the whole answer is there.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<RawAnswer> {
        self.send_head((method, path), headers, body.len())?;
        self.stream.get_mut().write_all(body)?;
        self.read_raw(method != "HEAD")
    }

    /// Sends a request whose body is sent in parts, `length` bytes in all, and waits for its answer.
    ///
    /// # Errors
    /// When the connection ends before the whole answer is there.
    pub fn send_stream(
        &mut self,
        method: &str,
        path: &str,
        length: usize,
        parts: impl Iterator<Item = Vec<u8>>,
    ) -> io::Result<RawAnswer> {
        self.send_head((method, path), &[], length)?;
        for part in parts {
            self.stream.get_mut().write_all(&part)?;
        }
        self.read_raw(true)
    }

    fn send_head(
        &mut self,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        length: usize,
    ) -> io::Result<()> {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\n\
             content-length: {length}\r\n",
            self.authorization,
        );
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        self.stream.get_mut().write_all(head.as_bytes())
    }

    fn read_raw(&mut self, has_body: bool) -> io::Result<RawAnswer> {
        let status = self
            .read_line()?
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok());
        let mut answer = RawAnswer {
            status: status.ok_or(io::ErrorKind::UnexpectedEof)?,
            headers: Vec::new(),
            body: Vec::new(),
        };
        while let Some((name, value)) = self.read_line()?.trim_end().split_once(": ") {
            answer.headers.push((name.to_owned(), value.to_owned()));
        }
        if let (true, Some(length)) = (has_body, answer.header("content-length")) {
            let length = length.parse().map_err(io::Error::other)?;
            answer.body.resize(length, 0);
            self.stream.read_exact(&mut answer.body)?;
        }
        Ok(answer)
    }

    fn read_answer(&mut self) -> io::Result<Answer> {
        let raw = self.read_raw(true)?;
        let body = match raw.body.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&raw.body)?,
        };
        Ok(Answer {
            status: raw.status,
            location: raw.header("location").map(str::to_owned),
            body,
        })
    }

    /// Reads a whole line: an end of the connection within a line is an error, not a shorter line.
    fn read_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        if line.ends_with('\n') {
            Ok(line)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

/// Returns true if no thread of the process runs.
fn stands_still(process: i32) -> bool {
    let mut threads = Process::new(process)
        .and_then(|process| process.tasks())
        .expect("it runs");
    // If a thread has just ended, all are checked again.
    threads.all(|thread| {
        let stat = thread.and_then(|thread| thread.stat());
        stat.is_ok_and(|stat| stat.state == 'T')
    })
}
