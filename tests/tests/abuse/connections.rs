//! Abuse by connections: many, slow, and with heads that go on.

use std::io::Write;

use crate::Row;
use crate::stage::{Stage, read_all, stranger_at};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("heads that are never finished", half_sent_heads),
        Row::new("heads as large as they get", large_heads),
        Row::new("more headers than fit", header_bombs),
        Row::new("idle connections", idle),
        Row::new("requests in a row, no answer read", pipelined),
        Row::new("SMTP connections that say nothing", silent_smtp),
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

/// Each is one byte short of what is refused, and of its end.
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
            // The server may hang up before all of it is sent.
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
    let count = stage.size(1500, 20_000);
    let held = stage.strangers(count, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stage.let_the_neighbour_work();
    drop(held);
}

fn pipelined(stage: &Stage) {
    let request = b"GET /sign-in HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let many = request.repeat(stage.size(10_000, 100_000));
    let held: Vec<_> = (0..4)
        .filter_map(|_| {
            let mut stream = stage.stranger(b"")?;
            stream.set_nonblocking(true).ok()?;
            // As much as the server takes while nothing of what it answers is read.
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
