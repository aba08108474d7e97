//! Plain TCP and UDP: memcached, and socat as an echo server.

use std::time::Duration;

use lab_client::ErrorClass;
use lab_dialogues::Raw;
use lab_workload::{
    AnswerEnd, Expectation, LengthField, ProtocolRequest, RawBytes, RawRequest, Request, Speech,
};

use super::{Playing, free_port, literal, request, run, sends, start};

fn text(send: &str, until: AnswerEnd) -> ProtocolRequest {
    let send = (!send.is_empty()).then(|| RawBytes::Text(literal(send)));
    ProtocolRequest::Raw(RawRequest { send, until })
}

fn hex(send: &str, until: AnswerEnd) -> ProtocolRequest {
    let send = Some(RawBytes::Hex(literal(send)));
    ProtocolRequest::Raw(RawRequest { send, until })
}

#[test]
fn memcached_answers_lines_frames_and_nothing() {
    let port = free_port();
    let at = port.to_string();
    let arguments = ["-l", "127.0.0.1", "-u", "nobody", "-U", "0", "-p", &at];
    let Some(_running) = start("memcached", &arguments, Some(port)) else {
        return;
    };
    let end = || AnswerEnd::pattern(r"END\r\n").unwrap();
    let requests = vec![
        text("set k 0 0 5\r\nhello\r\n", AnswerEnd::Line),
        text("get k\r\n", end()),
        text("set n 0 0 1 noreply\r\n1\r\n", AnswerEnd::Nothing),
        text("get n\r\nget k\r\n", end()),
        text("", end()),
        text("quit\r\n", AnswerEnd::Close),
        text("get k\r\n", AnswerEnd::Bytes(5)),
    ];
    run(async {
        let mut user = Playing::new(port, Speech::Tcp, requests, Raw::new);
        assert_eq!(user.play(0).await.unwrap(), "STORED\r\n");
        assert_eq!(
            user.play(1).await.unwrap(),
            "VALUE k 0 5\r\nhello\r\nEND\r\n"
        );
        assert_eq!(user.play(2).await.unwrap(), "");
        assert_eq!(user.play(3).await.unwrap(), "VALUE n 0 1\r\n1\r\nEND\r\n");
        // The second answer has arrived with the first one, or arrives now.
        assert_eq!(
            user.play(4).await.unwrap(),
            "VALUE k 0 5\r\nhello\r\nEND\r\n"
        );
        assert_eq!(user.play(5).await.unwrap(), "");
        // The next request opens another connection.
        assert_eq!(user.play(6).await.unwrap(), "VALUE");
    });
    let field = LengthField {
        at: 8,
        width: 4,
        little: false,
        plus: 12,
    };
    let version = hex(
        "800b 0000 00 00 0000 00000000 00000000 0000000000000000",
        AnswerEnd::Length(field),
    );
    run(async {
        let mut user = Playing::new(port, Speech::Tcp, vec![version], Raw::new);
        let answer = user.play(0).await.unwrap();
        assert!(answer.contains("1.6."), "{answer:?}");
    });
}

#[test]
fn an_echo_ends_by_silence_or_an_error() {
    let port = free_port();
    let listen = format!("TCP-LISTEN:{port},fork,reuseaddr,bind=127.0.0.1");
    let Some(_running) = start("socat", &[&listen, "EXEC:cat"], Some(port)) else {
        return;
    };
    let silence = AnswerEnd::Silence(Duration::from_millis(50));
    run(async {
        let mut user = Playing::new(port, Speech::Tcp, vec![text("a\n\nb", silence)], Raw::new);
        assert_eq!(user.play(0).await.unwrap(), "a\n\nb");
        assert_eq!(user.play(0).await.unwrap(), "a\n\nb");
    });
    let port = free_port();
    let listen = format!("TCP-LISTEN:{port},fork,reuseaddr,bind=127.0.0.1");
    let Some(_running) = start("socat", &[&listen, "EXEC:head -n 1"], Some(port)) else {
        return;
    };
    let requests = vec![
        text("a\n", AnswerEnd::Close),
        text("b\n", AnswerEnd::Bytes(9)),
    ];
    run(async {
        let mut user = Playing::new(port, Speech::Tcp, requests, Raw::new);
        assert_eq!(user.play(0).await.unwrap(), "a\n");
        assert_eq!(user.play(0).await.unwrap(), "a\n");
        let (class, why) = user.play(1).await.unwrap_err();
        assert_eq!(class, ErrorClass::Reset, "{why}");
    });
}

#[test]
fn datagrams_are_answers_or_errors() {
    let port = free_port();
    let at = port.to_string();
    let arguments = ["-l", "127.0.0.1", "-u", "nobody", "-p", "0", "-U", &at];
    let Some(_running) = start("memcached", &arguments, None) else {
        return;
    };
    // A frame is before each message: number, part, parts, reserved.
    let version = |until| hex("0007 0000 0001 0000 76657273696f6e0d0a", until);
    let requests = || {
        vec![
            version(AnswerEnd::Datagram),
            version(AnswerEnd::Silence(Duration::from_millis(30))),
            version(AnswerEnd::Nothing),
            text(&"x".repeat(65_508), AnswerEnd::Datagram),
        ]
    };
    run(async {
        let mut user = Playing::new(port, Speech::Udp, requests(), Raw::new);
        // No connection shows that the server listens: it refuses until then.
        while user.play(0).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for request in [0, 1, 0] {
            let answer = user.play(request).await.unwrap();
            assert!(answer.contains("VERSION 1.6."), "{answer:?}");
        }
        assert_eq!(user.play(2).await.unwrap(), "");
        let answer = user.play(0).await.unwrap();
        assert!(answer.contains("VERSION 1.6."), "{answer:?}");
        let mut user = Playing::new(free_port(), Speech::Udp, requests(), Raw::new);
        let (class, why) = user.play(0).await.unwrap_err();
        assert!(
            class == ErrorClass::Reset && why.contains("refused"),
            "{why}"
        );
    });
}

#[test]
fn failed_check_leaves_no_rest_for_the_next_request() {
    let port = sends(&[&[b"VALUE k 0 5\r\nhello\r\nEND\r\n"], &[b"END\r\n"]]);
    let expecting = Request {
        answer: vec![Expectation::Contains(literal("END"))],
        ..request(text("get k\r\n", AnswerEnd::Line))
    };
    run(async {
        let mut user = Playing::of(port, Speech::Tcp, vec![expecting], Raw::new);
        let (class, why) = user.play(0).await.unwrap_err();
        assert_eq!(class, ErrorClass::Check, "{why}");
        assert_eq!(user.play(0).await.unwrap(), "END\r\n");
        assert_eq!(user.client_connects(), 2);
    });
}

#[test]
fn silence_ends_an_answer_before_the_server_closes() {
    let port = sends(&[&[b"whois"]]);
    let long = AnswerEnd::Silence(Duration::from_secs(60));
    run(async {
        let mut user = Playing::new(port, Speech::Tcp, vec![text("a\n", long)], Raw::new);
        assert_eq!(user.play(0).await.unwrap(), "whois");
    });
}

#[test]
fn refusal_between_requests_fails_the_next_one() {
    let requests = vec![text("x", AnswerEnd::Nothing)];
    run(async {
        let mut user = Playing::new(free_port(), Speech::Udp, requests, Raw::new);
        assert_eq!(user.play(0).await.unwrap(), "");
        tokio::time::sleep(Duration::from_millis(20)).await;
        let (class, why) = user.play(0).await.unwrap_err();
        assert!(
            class == ErrorClass::Reset && why.contains("refused"),
            "{why}"
        );
    });
}
