//! Compressed responses, and the `Host` header, over real sockets.

use std::io::Write;

use crate::common::{Make, Observed, Peer, Server, ms, run_until};
use flate2::Compression;
use flate2::write::GzEncoder;
use lab_driver::ErrorClass;
use lab_workload::Wait;

const TEXT: &str =
    r#"{"token":"abc","more":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#;

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Sends this body in two pieces, whatever the request accepts; the path `/wrong` gets the status 500.
fn server(coding: &'static str, body: Vec<u8>) -> Server {
    Server::start(move |mut peer: Peer<_>| {
        while let Some(seen) = peer.request() {
            let status = match seen.line.contains("/wrong") {
                true => "500 Wrong",
                false => "200 OK",
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Encoding: {coding}\r\nContent-Length: {length}\r\n\r\n"
            );
            let (first, second) = body.split_at(length / 2);
            if !(peer.send([head.as_bytes(), first].concat()) && peer.send(second)) {
                break;
            }
        }
    })
}

/// Captures a token, and sends it on.
fn drive(server: &Server, compressed: bool) -> Observed {
    let make = Make::new(&["token"]);
    let drive = make
        .step_with(Wait::Constant(ms(5)), "GET /first", |mut request, make| {
            request.captures = vec![make.json("token", "$.token")];
            request.compressed = compressed;
            request
        })
        .step(Wait::None, "GET /then?token={{ token }}")
        .drive(&server.base());
    run_until(drive, |observed| observed.done() >= 6)
}

fn sizes(observed: &Observed, step: usize) -> (u64, u64) {
    let of = |window: &lab_driver::Window| {
        let step = &window.steps[step];
        (step.counts.bytes, step.counts.decoded_bytes())
    };
    let all = observed.windows.iter().map(of);
    all.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
}

#[test]
fn an_answer_that_was_asked_for_compressed_is_read_and_counted_twice() {
    let body = gzip(TEXT.as_bytes());
    let length = body.len() as u64;
    let server = server("gzip", body);
    let observed = drive(&server, true);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let seen = server.seen();
    assert_eq!(seen[0].header("accept-encoding"), Some("gzip, br, zstd"));
    assert_eq!(seen[1].line, "GET /then?token=abc");
    assert_eq!(seen[1].header("accept-encoding"), None);
    let count = observed.transactions(0);
    assert_eq!(
        sizes(&observed, 0),
        (count * length, count * TEXT.len() as u64)
    );
    // This request accepts no coding, and nothing reads the body.
    let count = observed.transactions(1);
    assert_eq!(sizes(&observed, 1), (count * length, count * length));
}

#[test]
fn an_encoded_answer_is_decoded_unasked_where_a_capture_reads_it() {
    for (coding, body) in [
        ("gzip", gzip(TEXT.as_bytes())),
        ("gzip, x-gzip", gzip(&gzip(TEXT.as_bytes()))),
        ("UTF-8", TEXT.into()),
        ("none", TEXT.into()),
    ] {
        let server = server(coding, body);
        let observed = drive(&server, false);
        assert_eq!(
            observed.summary.errors, 0,
            "{coding}: {:?}",
            observed.examples
        );
        assert_eq!(server.seen()[1].line, "GET /then?token=abc");
    }
}

#[test]
fn a_body_that_is_damaged_unknown_or_too_large_is_an_error() {
    let mut cut = gzip(TEXT.as_bytes());
    cut.truncate(40);
    let bomb = gzip(&vec![b' '; (64 << 20) + 1]);
    for (coding, body, expected) in [
        ("gzip", cut, "the answer's gzip can't be decoded"),
        (
            "gzip",
            bomb,
            "the answer's gzip decodes to more than 67108864 bytes",
        ),
        (
            "rot13",
            b"nopq".to_vec(),
            "(read as it came: its content-encoding is not known here)",
        ),
    ] {
        let observed = drive(&server(coding, body), true);
        assert!(observed.errors(ErrorClass::Check) >= 1);
        let said = &observed.examples[0].1;
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn an_unexpected_answer_is_shown_decoded() {
    let server = server("gzip", gzip(b"the database is away"));
    let drive = Make::new(&[])
        .step(Wait::Constant(ms(5)), "GET /wrong")
        .drive(&server.base());
    let observed = run_until(drive, |observed| observed.done() >= 1);
    assert_eq!(observed.examples[0].1, "status 500: the database is away");
}

#[test]
fn the_host_header_is_as_the_workload_says() {
    let server = Server::answering(|_| {
        "HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Domain=example.org\r\nContent-Length: 0\r\n\r\n"
            .to_owned()
    });
    let make = Make::new(&["shop"]).user("shop", "shop{{ index }}.example.org");
    let host = |value: &str, make: &Make| vec![("Host".to_owned(), make.template(value))];
    let drive = make
        .step_with(Wait::Constant(ms(5)), "GET /said", |mut request, make| {
            request.headers = host("www.example.org:8443", make);
            request
        })
        .step_with(Wait::None, "GET /varies", |mut request, make| {
            request.headers = host("{{ shop }}", make);
            request
        })
        .step(Wait::None, "GET /own")
        .drive(&server.base());
    let observed = run_until(drive, |observed| observed.done() >= 3);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let seen = server.seen();
    let hosts: Vec<_> = seen
        .iter()
        .take(3)
        .map(|seen| seen.header("host"))
        .collect();
    let own = server.base().authority();
    let expected = [
        Some("www.example.org:8443"),
        Some("shop0.example.org"),
        Some(&*own),
    ];
    assert_eq!(hosts, expected);
    let once = |seen: &&crate::common::Seen| {
        let hosts = seen
            .headers
            .iter()
            .filter(|line| line.to_ascii_lowercase().starts_with("host:"));
        hosts.count() == 1
    };
    assert!(seen.iter().all(|seen| once(&seen)));
    // Its cookie belongs to the requested name.
    assert_eq!(seen[1].header("cookie"), Some("a=1"));
}
