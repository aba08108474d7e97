//! A client with access to the hub that speaks in the name of others. It speaks the protocol of NATS itself, so that
//! our code keeps it from no violation.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

/// The prefix of a token.
const PREFIX: &str = "plimsoll-join-1.";
/// Longer than any answer takes.
const DEADLINE: Duration = Duration::from_secs(120);

/// A version of messages that does not exist yet.
const LATER: u8 = 9;

/// The maximum bytes of the hub's greeting.
const MOST_INFO: usize = 64 << 10;

/// Messages that would end an agent, greet in its name, and end its trial.
const FORGED: [(&str, &[u8]); 4] = [
    (
        "plimsoll.3.a.agent-0.ask",
        b"\x04{\"instance\":\"\",\"ask\":{\"stop\":{\"force\":true}}}",
    ),
    (
        "plimsoll.hello.agent-0",
        b"\x04{\"name\":\"agent-0\",\"versions\":[4,4],\"program\":\"0\"}",
    ),
    (
        "plimsoll.3.a.agent-0.down",
        b"\x04\x02\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0",
    ),
    (
        "plimsoll.3.c.conductor.run.agent-0.up",
        b"\x04\x05\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0",
    ),
];

/// Parses a token.
pub(crate) fn read_token(token: &str) -> Value {
    let json = token.trim().strip_prefix(PREFIX).expect("a token");
    let json = BASE64_URL_SAFE_NO_PAD.decode(json).expect("base64");
    serde_json::from_slice(&json).expect("JSON")
}

/// Formats a token.
pub(crate) fn write_token(token: &Value) -> String {
    let json = BASE64_URL_SAFE_NO_PAD.encode(token.to_string());
    format!("{PREFIX}{json}")
}

/// Publishes in others' names; returns the subjects on which the hub let that pass.
///
/// # Errors
/// When the hub is not there, or closes the connection.
pub(crate) fn forge(hub: SocketAddr, token: &Value) -> io::Result<Vec<&'static str>> {
    let mut tls = connect(hub, token)?;
    for (subject, payload) in FORGED {
        write!(tls, "PUB {subject} {}\r\n", payload.len())?;
        tls.write_all(payload)?;
        tls.write_all(b"\r\n")?;
    }
    tls.write_all(b"PING\r\n")?;
    let said = until_pong(&mut tls)?;
    let is_refused = |subject: &str| said.contains(&format!("Publish to \"{subject}\""));
    let subjects = FORGED.iter().map(|(subject, _)| *subject);
    Ok(subjects.filter(|subject| !is_refused(subject)).collect())
}

/// Greets by an agent's token as an agent of a later version would.
///
/// # Errors
/// When the hub is not there, or closes the connection.
pub(crate) fn greet_later(hub: SocketAddr, token: &Value) -> io::Result<()> {
    let mut tls = connect(hub, token)?;
    let name = token["name"].as_str().unwrap_or_default();
    let hello = json!({
        "name": name, "versions": [LATER, LATER], "program": "9.9.9", "instance": "later", "news": true,
    });
    let hello = [&[LATER], hello.to_string().as_bytes()].concat();
    write!(tls, "PUB plimsoll.hello.{name} {}\r\n", hello.len())?;
    tls.write_all(&hello)?;
    tls.write_all(b"\r\nPING\r\n")?;
    let said = until_pong(&mut tls)?;
    assert!(
        !said.contains("Permissions Violation"),
        "it may greet: {said}"
    );
    Ok(())
}

type Tls = StreamOwned<ClientConnection, TcpStream>;

fn connect(hub: SocketAddr, token: &Value) -> io::Result<Tls> {
    let tcp = TcpStream::connect(hub)?;
    tcp.set_read_timeout(Some(DEADLINE))?;
    // No byte after the line: TLS follows.
    let mut info = Vec::new();
    while !info.ends_with(b"\n") && info.len() < MOST_INFO {
        let mut byte = [0];
        (&tcp).read_exact(&mut byte)?;
        info.push(byte[0]);
    }
    let info = String::from_utf8_lossy(&info).into_owned();
    let info = info.trim().strip_prefix("INFO ").unwrap_or_default();
    let info: Value = serde_json::from_str(info)?;
    let text = |key: &str| token[key].as_str().unwrap_or_default();
    let pair = nkeys::KeyPair::from_seed(text("seed")).map_err(unusable)?;
    let nonce = info["nonce"].as_str().unwrap_or_default();
    let signed = pair.sign(nonce.as_bytes()).map_err(unusable)?;
    let hello = json!({
        "verbose": false, "pedantic": false, "tls_required": true, "lang": "none", "version": "0",
        "protocol": 1, "nkey": pair.public_key(), "sig": BASE64_URL_SAFE_NO_PAD.encode(signed),
    });
    let mut tls = StreamOwned::new(client(text("authority"))?, tcp);
    write!(tls, "CONNECT {hello}\r\nPING\r\n")?;
    until_pong(&mut tls)?;
    Ok(tls)
}

/// The error of an unusable key.
fn unusable(error: nkeys::error::Error) -> io::Error {
    io::Error::other(error.to_string())
}

fn client(authority: &str) -> io::Result<ClientConnection> {
    let authority = BASE64_STANDARD.decode(authority);
    let authority = authority.map_err(io::Error::other)?;
    let mut roots = RootCertStore::empty();
    roots.add(authority.into()).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions();
    let config = config.map_err(io::Error::other)?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = "127.0.0.1".try_into().map_err(io::Error::other)?;
    ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)
}

/// Returns all that the hub sends until it has handled the requests.
fn until_pong(tls: &mut Tls) -> io::Result<String> {
    let mut said = String::new();
    let mut lines = BufReader::new(tls);
    loop {
        let begun = said.len();
        if lines.read_line(&mut said)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, said));
        }
        if said[begun..].starts_with("PONG") {
            return Ok(said);
        }
    }
}
