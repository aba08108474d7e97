//! Abuse by connections: many, slow, and with endless heads.

use std::io::{Read, Write};

use crate::Row;
use crate::stage::{
    Setting, Stage, abuser, most_connections, read_all, stranger_at, stranger_from,
};

const TLS: Setting = Setting {
    is_tls: true,
    ..Setting::PLAIN
};
/// The limit of a service on old or careful systems.
const FEW_DESCRIPTORS: Setting = Setting {
    descriptors: Some(1024),
    ..Setting::PLAIN
};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("heads that are never finished", half_sent_heads),
        Row::new("heads as large as they get", large_heads),
        Row::new("more headers than fit", header_bombs),
        Row::new("idle connections", idle),
        Row::new("idle connections, all descriptors", descriptors).on(FEW_DESCRIPTORS),
        Row::new("a connection each from very many addresses", addresses),
        Row::new("TLS handshakes that are never finished", half_shaken).on(TLS),
        Row::new("TLS handshakes, one after the other", handshakes).on(TLS),
        Row::new("requests in a row, no answer read", pipelined),
        Row::new("SMTP connections that say nothing", silent_smtp),
        Row::new("wrong passwords from very many addresses", wrong_passwords),
    ]
}

fn half_sent_heads(stage: &Stage) {
    let count = stage.size(500, 5000);
    let held = stage.strangers(
        count,
        b"GET /mail/ada/api/mail/inbox HTTP/1.1\r\nhost: localhost",
    );
    stage.let_the_neighbour_work();
    drop(held);
}

/// Each is one byte short of the limit, and of its end.
fn large_heads(stage: &Stage) {
    let filler = "x".repeat(31 << 10);
    let head = format!("GET / HTTP/1.1\r\nhost: localhost\r\nfiller: {filler}\r\n");
    let held = stage.strangers(stage.size(500, 5000), head.as_bytes());
    stage.let_the_neighbour_work();
    drop(held);
}

fn header_bombs(stage: &Stage) {
    let many = "a: b\r\n".repeat(100_000);
    let long = "x".repeat(8 << 20);
    for _ in 0..stage.size(5, 100) {
        for rest in [&many, &long] {
            let head = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{rest}\r\n\r\n");
            // The server may close the connection before all of it is sent.
            if let Some(mut stream) = stage.stranger(head.as_bytes()) {
                let answer = read_all(&mut stream);
                assert!(
                    answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
                    "{answer}"
                );
            }
        }
    }
    stage.let_the_neighbour_work();
}

fn idle(stage: &Stage) {
    let count = stage.size(1500, 20_000).min(most_connections());
    let held = stage.strangers(count, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stage.let_the_neighbour_work();
    drop(held);
}

/// As many as are accepted: strangers' from many addresses, a user's, and those of SMTP.
fn descriptors(stage: &Stage) {
    let head = stage.head("GET", "/mail/mallory/api/mail/inbox") + "\r\n";
    let (http, smtp) = (stage.address(), stage.smtp);
    let users = (0..400).filter_map(|_| stage.stranger(head.as_bytes()));
    let mut held: Vec<_> = users.collect();
    held.extend((0..1500).filter_map(|number| stranger_from(abuser(number), http, b"GET")));
    held.extend((0..1500).filter_map(|number| stranger_from(abuser(number), smtp, b"EH")));
    stage.let_the_neighbour_work();
    drop(held);
}

/// No address has many.
fn addresses(stage: &Stage) {
    let head = b"GET /sign-in HTTP/1.1\r\nhost: localhost";
    let made = (0..stage.size(2500, 15_000).min(most_connections()))
        .filter_map(|number| stranger_from(abuser(number), stage.address(), head));
    let held: Vec<_> = made.collect();
    stage.let_the_neighbour_work();
    drop(held);
}

fn half_shaken(stage: &Stage) {
    let hello = stage.client_hello();
    let held: Vec<_> = (0..stage.size(600, 5000))
        .filter_map(|number| stage.stranger(&hello[..[5, hello.len()][number % 2]]))
        .collect();
    stage.let_the_neighbour_work();
    drop(held);
}

/// Each costs the server more than the client.
fn handshakes(stage: &Stage) {
    let hello = stage.client_hello();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..stage.size(25, 1000) {
                    let shaken = stage.stranger(&hello).map(|mut stream| {
                        // The certificate, and the proof of its key.
                        let _ = stream.read(&mut [0; 4096]);
                    });
                    assert!(shaken.is_some(), "it is let in");
                }
            });
        }
        stage.let_the_neighbour_work();
    });
}

fn pipelined(stage: &Stage) {
    let request = b"GET /sign-in HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let many = request.repeat(stage.size(10_000, 100_000));
    let held: Vec<_> = (0..4)
        .filter_map(|_| {
            let mut stream = stage.stranger(b"")?;
            stream.set_nonblocking(true).ok()?;
            // As many as the server reads while its answers are not read.
            let _ = stream.write_all(&many);
            Some(stream)
        })
        .collect();
    stage.let_the_neighbour_work();
    drop(held);
}

fn silent_smtp(stage: &Stage) {
    let count = stage.size(500, 3000);
    let held: Vec<_> = (0..count)
        .filter_map(|_| stranger_at(stage.smtp, b"EH"))
        .collect();
    stage.let_the_neighbour_work();
    drop(held);
}

/// Each is hashed before it is known to be wrong, and from an address without earlier guesses.
fn wrong_passwords(stage: &Stage) {
    let guess = |number: usize| {
        let body = format!("username=bob&password=guess-{number}");
        format!(
            "POST /login HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    for round in 0..stage.size(1, 5) {
        let first = round * 1000;
        let held: Vec<_> = (first..first + stage.size(100, 1000))
            .filter_map(|number| {
                let text = guess(number);
                stranger_from(abuser(number), stage.address(), text.as_bytes())
            })
            .collect();
        stage.let_the_neighbour_work();
        for mut stream in held {
            let answer = read_all(&mut stream);
            let is_refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
            let is_busy = answer.starts_with("HTTP/1.1 503");
            assert!(is_refused || is_busy, "{answer}");
        }
    }
}
