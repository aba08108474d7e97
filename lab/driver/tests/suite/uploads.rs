//! Bodies with the content of files over real sockets: byte for byte, also if a redirect or a retry sends them again.

use lab_driver::Assignment;
use lab_workload::{Attached, Body, Piece, Retry, Wait};

use crate::common::{Make, Seen, Server, ms, ok, run_until};

/// Returns bytes that are no text, more than a write turn and a socket's buffer take.
pub(crate) fn file(name: &str, bytes: usize) -> Attached {
    let content: Vec<u8> = (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect();
    Attached::read(name, &content, 1 << 30).unwrap()
}

/// Adds a step whose request's body is text, a large file, an empty one, a small one twice, and text.
pub(crate) fn upload(mut make: Make, request: &str) -> Make {
    make.workload.files = vec![file("large", 3 << 20), file("empty", 0), file("small", 5)];
    make.step_with(Wait::Constant(ms(2)), request, |mut request, make| {
        request.body = Body::Pieces(vec![
            Piece::Text(make.template("user {{ index }} ä\r\n\r\n")),
            Piece::File(0),
            Piece::File(1),
            Piece::File(2),
            Piece::File(2),
            Piece::Text(make.template("end")),
        ]);
        request
    })
}

/// Returns that body, of the user with this number.
pub(crate) fn body(index: u32) -> Vec<u8> {
    let (large, small) = (file("large", 3 << 20), file("small", 5));
    let mut body = format!("user {index} ä\r\n\r\n").into_bytes();
    for file in [&large, &small, &small] {
        body.extend_from_slice(file.content());
    }
    body.extend_from_slice(b"end");
    body
}

fn bodies(server: &Server, line: &str) -> Vec<Seen> {
    let seen = server.seen().into_iter();
    seen.filter(|seen| seen.line == line).collect()
}

fn drive(server: &Server, users: u32, follow: u32) -> Assignment {
    let mut make = upload(Make::new(&[]), "POST /up/{{ index }}");
    make.workload.session.steps[0].requests[0].follow = follow;
    let mut drive = make.drive(&server.base());
    drive.users = users;
    drive
}

#[test]
fn files_go_out_byte_for_byte() {
    let server = Server::answering(|_| ok("taken"));
    let of = |index| bodies(&server, &format!("POST /up/{index}"));
    let observed = run_until(drive(&server, 2, 0), |observed| {
        observed.done() >= 6 && (0..2).all(|index| !of(index).is_empty())
    });
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    for index in 0..2 {
        let seen = of(index);
        assert!(!seen.is_empty());
        for one in seen {
            assert!(one.bytes == body(index), "of user {index}");
        }
    }
}

#[test]
fn a_redirect_takes_files_along_or_leaves_them() {
    let to = |status: u16, to: &str| {
        format!("HTTP/1.1 {status} X\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
    };
    let server = Server::answering(move |seen| match seen.line.as_str() {
        "POST /up/0" => to(307, "/elsewhere"),
        "POST /elsewhere" => to(303, "/done"),
        _ => ok("taken"),
    });
    let observed = run_until(drive(&server, 1, 5), |observed| observed.done() >= 3);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let again = bodies(&server, "POST /elsewhere");
    assert!(again.iter().all(|seen| seen.bytes == body(0)) && !again.is_empty());
    let done = bodies(&server, "GET /done");
    assert!(done.iter().all(|seen| seen.bytes.is_empty()) && !done.is_empty());
}

#[test]
fn a_retry_sends_the_same_bytes() {
    let server = Server::answering(|seen| match seen.line.as_str() {
        "POST /up/0" if seen.connection == 0 => {
            "HTTP/1.1 503 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
        _ => ok("taken"),
    });
    let mut make = upload(Make::new(&[]), "POST /up/0");
    make.workload.session.steps[0].retry = Some(Retry::new(2, Wait::None));
    let observed = run_until(make.drive(&server.base()), |observed| observed.done() >= 3);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let seen = server.seen();
    assert!(seen.len() >= 3 && seen.iter().all(|seen| seen.bytes == body(0)));
}
