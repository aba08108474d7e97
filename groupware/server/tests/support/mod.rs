//! A small HTTP client and a server for tests. Each test program uses a part of it.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use groupware_server::{Config, Data, Server, TlsFiles};
use serde_json::Value;

pub(crate) const TOKEN: &str = "test-admin-token-0123456789";

/// A configuration for tests: in memory, with a known admin token.
pub(crate) fn config() -> Config {
    let mut config = Config::new(Data::Memory);
    config.admin_token = Some(TOKEN.into());
    config.http_threads = Some(2);
    // Responses to slow requests carry an id, and a busy machine makes any request slow.
    config.log.slow_request = Duration::from_secs(3600);
    config
}

pub(crate) fn start() -> Server {
    Server::start(config()).unwrap()
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&self.body));
        })
    }

    /// The cookie that the response sets, as a `Cookie` header's value.
    pub(crate) fn cookie(&self) -> String {
        self.header("set-cookie")
            .unwrap()
            .split(';')
            .next()
            .unwrap()
            .to_owned()
    }
}

/// Sends one request on a connection of its own.
pub(crate) fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Reply {
    let stream = connect(address);
    exchange(stream, method, path, headers, body)
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(120)))
        .unwrap();
    stream
}

/// Sends one request on a stream and reads its response.
pub(crate) fn exchange(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Reply {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() || method == "POST" || method == "PUT" {
        head += &format!("content-length: {}\r\n", body.len());
    }
    head += "\r\n";
    // The server may respond, and close the connection, before it has read everything.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
    let reply = match method {
        "HEAD" => read_head(&mut BufReader::new(stream)),
        _ => read_reply(&mut stream),
    };
    reply.expect("the server answers")
}

/// Reads one response; `None` if the connection ends before it.
pub(crate) fn read_reply(stream: impl Read) -> Option<Reply> {
    let mut reader = BufReader::new(stream);
    let mut reply = read_head(&mut reader)?;
    let length = reply
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    reply.body.resize(length, 0);
    reader.read_exact(&mut reply.body).ok()?;
    Some(reply)
}

/// Reads a response without its body.
fn read_head(reader: &mut impl BufRead) -> Option<Reply> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_owned(), value.to_owned())),
            None => break,
        }
    }
    Some(Reply {
        status,
        headers,
        body: Vec::new(),
    })
}

pub(crate) fn basic(user: &str, password: &str) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {text}")
}

/// Calls the admin interface.
pub(crate) fn admin(server: &Server, method: &str, path: &str, body: Value) -> Reply {
    let bearer = format!("Bearer {TOKEN}");
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    send(
        server.address(),
        method,
        path,
        &[("authorization", &bearer)],
        body.as_bytes(),
    )
}

/// Registers users and returns their application passwords.
pub(crate) fn register(server: &Server, names: &[&str]) -> Vec<String> {
    let users: Vec<_> = names
        .iter()
        .map(|name| serde_json::json!({ "name": name }))
        .collect();
    let body = serde_json::json!({ "users": users, "app_passwords": true });
    let reply = admin(server, "POST", "/admin/users", body);
    assert_eq!(reply.status, 200, "{reply:?}");
    let users = reply.json()["users"].as_array().unwrap().clone();
    users
        .iter()
        .map(|user| user["app_password"].as_str().unwrap().to_owned())
        .collect()
}

/// Asserts an error in Domino's shape.
pub(crate) fn assert_error(reply: &Reply, status: u16) {
    assert_eq!(reply.status, status, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let body = reply.json();
    assert_eq!(body["code"], status);
    assert_eq!(body["type"], "text");
    assert!(
        body["text"].as_str().is_some_and(|text| !text.is_empty()),
        "{body}"
    );
    assert!(
        body["message"]
            .as_str()
            .is_some_and(|text| text.ends_with('.')),
        "{body}"
    );
}

/// Polls until the condition holds.
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    #[allow(clippy::disallowed_methods, reason = "a deadline for a test")]
    let now = std::time::Instant::now;
    let deadline = now() + Duration::from_secs(120);
    while !condition() {
        assert!(now() < deadline, "waited too long for {what}");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

/// A self-signed certificate for `localhost`, in temporary files.
pub(crate) struct Certified {
    made: rcgen::CertifiedKey<rcgen::KeyPair>,
    folder: tempfile::TempDir,
}

pub(crate) fn certified() -> Certified {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certified = Certified {
        made,
        folder: tempfile::tempdir().unwrap(),
    };
    let TlsFiles { cert, key } = certified.files();
    std::fs::write(cert, certified.made.cert.pem()).unwrap();
    std::fs::write(key, certified.made.signing_key.serialize_pem()).unwrap();
    certified
}

impl Certified {
    /// The server's configuration.
    pub(crate) fn files(&self) -> TlsFiles {
        TlsFiles {
            cert: self.folder.path().join("cert.pem"),
            key: self.folder.path().join("key.pem"),
        }
    }

    /// A client configuration that trusts it.
    pub(crate) fn client(&self) -> rustls::ClientConfig {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.made.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }

    /// The client's side of a connection to a server with it.
    pub(crate) fn session(&self) -> rustls::ClientConnection {
        let name = "localhost".try_into().unwrap();
        rustls::ClientConnection::new(Arc::new(self.client()), name).unwrap()
    }
}
