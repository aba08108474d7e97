//! `plimsoll serve` as a child process, and a small HTTP client to talk to it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::{program, wait_until};

/// The admin token of every server started here.
pub const ADMIN_TOKEN: &str = "whole-product-test-token";

/// A server that ends, by SIGKILL, with this value.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    address: SocketAddr,
}

impl ServerProcess {
    /// Starts a server on the data in `folder` and waits until it accepts connections.
    pub fn start(folder: &Path) -> Self {
        let port_file = folder.join("port");
        let _ = std::fs::remove_file(&port_file);
        let mut child = Command::new(program())
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--http-threads",
                "4",
                "--data",
            ])
            .arg(folder.join("data"))
            .arg("--port-file")
            .arg(&port_file)
            .args(["--parent-pid", &std::process::id().to_string()])
            .env("PLIMSOLL_ADMIN_TOKEN", ADMIN_TOKEN)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        wait_until(
            Duration::from_secs(30),
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
        Self { child, address }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it in the middle of whatever it does. What it has written is still with the system,
    /// flushed or not: unlike a power failure, this doesn't show whether it flushes.
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

/// A connection that is kept, with the credentials that its requests bear.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<TcpStream>,
    authorization: String,
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

impl Client {
    /// Connects as a user.
    ///
    /// # Errors
    /// When nobody accepts the connection.
    pub fn user(address: SocketAddr, name: &str, password: &str) -> io::Result<Self> {
        let secret = BASE64_STANDARD.encode(format!("{name}:{password}"));
        Self::connect(address, format!("Basic {secret}"))
    }

    /// Connects as the admin.
    ///
    /// # Errors
    /// When nobody accepts the connection.
    pub fn admin(address: SocketAddr) -> io::Result<Self> {
        Self::connect(address, format!("Bearer {ADMIN_TOKEN}"))
    }

    fn connect(address: SocketAddr, authorization: String) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Self {
            stream: BufReader::new(stream),
            authorization,
        })
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

    fn read_answer(&mut self) -> io::Result<Answer> {
        let status = self
            .read_line()?
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok());
        let status = status.ok_or(io::ErrorKind::UnexpectedEof)?;
        let (mut length, mut location) = (0, None);
        loop {
            let line = self.read_line()?;
            match line.trim_end().split_once(": ") {
                Some(("content-length", value)) => {
                    length = value.parse().map_err(io::Error::other)?;
                }
                Some(("location", value)) => location = Some(value.to_owned()),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&body)?
        };
        Ok(Answer {
            status,
            location,
            body,
        })
    }

    /// A whole line: an end of the connection within one is an error, not a shorter line.
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
