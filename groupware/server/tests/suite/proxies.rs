//! Connections that a proxy forwards: which proxies are trusted, and the limits of their clients.

use std::io::{Read, Write};
use std::net::TcpStream;

use groupware_net::Networks;
use groupware_server::{Config, Server, SmtpRole};
use serde_json::json;

use crate::support::*;

/// Headers of a connection for a client at 192.0.2.1, in both versions.
const FIRST: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.1 4000 25\r\n";
const SECOND: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0C\xC0\0\x02\x01\xC6\x33\x64\x01\x0F\xA0\0\x19";
/// A health check of the proxy.
const HEALTH: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";

/// A server that accepts headers from proxies at loopback, where it also has other clients.
fn start_with(change: impl FnOnce(&mut Config)) -> Server {
    let mut config = config();
    config.proxies = Networks::loopback();
    config.proxies_say = true;
    config.smtp_listen = Some(([127, 0, 0, 1], 0).into());
    config.smtp_limits.proxies_say = vec![SmtpRole::Receive];
    change(&mut config);
    Server::start(config).unwrap()
}

fn proxied(server: &Server, header: &[u8]) -> TcpStream {
    let mut stream = connect(server.address());
    stream.write_all(header).unwrap();
    stream
}

/// Reads until the server closes the connection.
fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn who_comes_by_a_proxy_over_http_is_not_of_this_machine() {
    let server = start_with(|_| {});
    for header in [FIRST, SECOND, HEALTH] {
        let get = |path| exchange(proxied(&server, header), "GET", path, &[], b"").status;
        assert_eq!(get("/healthz"), 200);
        // What local clients may see and do.
        assert_eq!(get("/metrics"), 401);
        let record = json!({ "type": "host", "host-name": "a" }).to_string();
        let kind = [("content-type", "application/json")];
        let stream = proxied(&server, header);
        let made = exchange(stream, "POST", "/lookup/records", &kind, record.as_bytes());
        assert_eq!(made.status, 401);
    }
}

#[test]
fn a_proxy_that_is_to_say_who_comes_and_does_not_is_not_served() {
    let server = start_with(|_| {});
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(rest(proxied(&server, request)), "");
    let cut = b"PROXY TCP4 192.0.2.1 198.51.100.1 4000\r\n";
    assert_eq!(rest(proxied(&server, cut)), "");
    assert_eq!(
        exchange(proxied(&server, FIRST), "GET", "/healthz", &[], b"").status,
        200
    );
}

#[test]
fn the_header_comes_before_the_handshake() {
    let certified = certified();
    let server = start_with(|config| config.tls = Some(certified.files()));
    let stream = rustls::StreamOwned::new(certified.session(), proxied(&server, SECOND));
    assert_eq!(exchange(stream, "GET", "/metrics", &[], b"").status, 401);
}

#[test]
fn strangers_are_not_believed() {
    let server = start_with(|config| config.proxies = Networks::default());
    for header in [FIRST, SECOND] {
        let answer = rest(proxied(&server, header));
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    let smtp = server.smtp_address().unwrap();
    let mut stream = connect(smtp);
    stream.write_all(FIRST).unwrap();
    let said = rest(stream);
    let lines: Vec<_> = said.lines().collect();
    assert!(
        lines[0].starts_with("220 ") && lines[1].starts_with("554 5.7.1 "),
        "{said}"
    );
    assert_eq!(lines.len(), 2);
    let mut stream = connect(smtp);
    stream.write_all(SECOND).unwrap();
    let said = rest(stream);
    assert!(!said.contains("250 "), "{said}");
}

#[test]
fn who_comes_by_a_proxy_over_smtp_is_a_stranger_with_that_address() {
    let server = start_with(|config| config.proxies_say = false);
    register(&server, &["ann"]);
    for header in [FIRST, SECOND, b"PROXY TCP6 ::1 ::1 1 2\r\n"] {
        let mut stream = connect(server.smtp_address().unwrap());
        let talk = b"EHLO x\r\nMAIL FROM:<ann@localhost>\r\nQUIT\r\n";
        stream.write_all(&[header, talk].concat()).unwrap();
        let said = rest(stream);
        // Local programs may write as local users.
        assert!(said.contains("\r\n530 "), "{said}");
    }
    // Each address has a maximum of connections, and the proxy as many as its clients have.
    let server = start_with(|config| config.smtp_limits.connections_per_client = 1);
    let talk = |number: u8| {
        let mut stream = connect(server.smtp_address().unwrap());
        let header = format!("PROXY TCP4 192.0.2.{number} 192.0.2.9 1 2\r\n");
        stream.write_all(header.as_bytes()).unwrap();
        let mut code = [0; 3];
        stream.read_exact(&mut code).unwrap();
        (code, stream)
    };
    let held: Vec<_> = [1, 2, 3, 3].map(talk).into();
    let codes: Vec<_> = held.iter().map(|(code, _)| code).collect();
    assert_eq!(codes, [b"220", b"220", b"220", b"421"]);
}

#[test]
fn who_is_a_proxy_may_change_while_connections_come() {
    let mut config = config();
    config.proxies_say = true;
    let mut server = Server::start(config.clone()).unwrap();
    let healthy = |server: &Server| {
        let stream = proxied(server, b"");
        let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        (&stream).write_all(request).unwrap();
        rest(stream).starts_with("HTTP/1.1 200 ")
    };
    assert!(healthy(&server));
    config.proxies = Networks::loopback();
    config.trusted = Networks::default();
    let reloaded = server.reload(config).unwrap();
    assert_eq!(reloaded.changed, ["trust-client", "proxy"]);
    assert!(!healthy(&server));
    assert_eq!(
        exchange(proxied(&server, FIRST), "GET", "/healthz", &[], b"").status,
        200
    );
}
