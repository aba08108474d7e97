//! Every framing of a body over real sockets, split at every byte, read as it was sent.

use crate::common::{Make, Peer, Server, ms, ok, pass, run_until};
use lab_driver::ErrorClass;
use lab_workload::{CaptureSource, Wait};
use std::net::TcpStream;
use std::time::Duration;

/// Fetches a response and requests the path in its body, so that the server receives what the client parsed.
fn echo() -> Make {
    let body = |make: &Make| {
        let regex = lab_workload::Pattern::parse("(?s)^(.*)$").unwrap();
        make.capture("body", CaptureSource::Regex(Box::new(regex)))
    };
    Make::new(&["body"])
        .step_with(Wait::None, "GET /get", |mut request, make| {
            request.captures.push(body(make));
            request
        })
        .step(Wait::None, "GET /echo/{{ body }}")
}

/// Sends `answers` in turn to `GET /get`, with `send`.
fn serve(
    answers: Vec<String>,
    send: impl Fn(&mut Peer<TcpStream>, usize, &str) + Send + Sync + 'static,
) -> Server {
    let next = std::sync::atomic::AtomicUsize::new(0);
    Server::start(move |mut peer| {
        while let Some(seen) = peer.request() {
            if seen.line != "GET /get" {
                peer.ok("");
                continue;
            }
            let at = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let Some(answer) = answers.get(at) else {
                return;
            };
            send(&mut peer, at, answer);
            if !answer.contains("ontent-") && !answer.contains("chunked")
                || answer.contains("Connection: close")
            {
                return;
            }
        }
    })
}

const FRAMINGS: [&str; 7] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nX-Fold: a\r\n b\r\nX-Odd : a\r\nX(Odd): b\r\nTransfer-Encoding: identity\r\n\
     Content-Length: 5\r\n\r\nhello",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n\
     HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
];

#[test]
fn each_framing_is_read_as_sent() {
    for framing in FRAMINGS {
        let server = serve(vec![framing.to_owned()], |peer, _, answer| {
            peer.send(answer);
        });
        let observed = run_until(echo().drive(&server.base()), |observed| {
            observed.transactions(1) > 0
        });
        assert_eq!(
            server.lines()[..2],
            ["GET /get", "GET /echo/hello"],
            "{framing:?}"
        );
        assert_eq!(
            observed
                .windows
                .iter()
                .map(|w| w.steps[0].counts.bytes)
                .sum::<u64>(),
            5,
            "{framing:?}"
        );
    }
}

#[test]
fn any_split_in_two_gives_the_same() {
    for framing in FRAMINGS {
        let splits = framing.len() - 1;
        let server = serve(vec![framing.to_owned(); splits], |peer, at, answer| {
            let (first, second) = answer.as_bytes().split_at(at + 1);
            peer.send(first);
            // Long enough for the first part to be read alone, nearly always.
            pass(Duration::from_micros(700));
            peer.send(second);
        });
        let observed = run_until(echo().drive(&server.base()), |observed| {
            observed.transactions(1) >= splits as u64
        });
        let echoes = server
            .lines()
            .iter()
            .filter(|line| *line == "GET /echo/hello")
            .count();
        assert!(
            echoes >= splits,
            "{framing:?}: {echoes} of {splits}, {:?}",
            observed.examples
        );
        // After its last response the server closes the connection on further requests.
        assert!(
            observed
                .examples
                .iter()
                .all(|(class, _)| *class == ErrorClass::Reset)
        );
    }
}

#[test]
fn answers_without_a_body_leave_the_connection_in_step() {
    let server = Server::answering(|seen| match seen.line.as_str() {
        "HEAD /head" => "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n".to_owned(),
        "GET /none" => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        "GET /same" => "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n".to_owned(),
        _ => ok(""),
    });
    let make = Make::new(&[])
        .step(Wait::None, "HEAD /head")
        .step(Wait::None, "GET /none")
        .step_with(Wait::None, "GET /same", |mut request, _| {
            request.expect = vec![304..=304];
            request
        })
        .step(Wait::None, "GET /empty");
    let observed = run_until(make.drive(&server.base()), |observed| {
        observed.transactions(3) > 2
    });
    assert_eq!((observed.summary.errors, observed.summary.connects), (0, 1));
}

#[test]
fn a_large_body_in_many_pieces_is_counted_whole() {
    let body = "0123456789abcdef".repeat(20_000);
    let length = body.len() as u64;
    let server = Server::start(move |mut peer| {
        while peer.request().is_some() {
            peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            for chunk in body.as_bytes().chunks(7_919) {
                peer.send(format!("{:X}\r\n", chunk.len()));
                peer.send(chunk);
                peer.send("\r\n");
            }
            peer.send("0\r\n\r\n");
        }
    });
    let make = Make::new(&[]).step(Wait::Constant(ms(5)), "GET /large");
    let observed = run_until(make.drive(&server.base()), |observed| {
        observed.transactions(0) > 2
    });
    let bytes: u64 = observed
        .windows
        .iter()
        .map(|w| w.steps[0].counts.bytes)
        .sum();
    assert_eq!(bytes, observed.transactions(0) * length);
    assert_eq!(observed.summary.errors, 0);
}
