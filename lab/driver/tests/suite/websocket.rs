//! WebSocket over real sockets, with tungstenite's server on the other side.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;

use lab_counts::Hist;
use lab_driver::ErrorClass;
use lab_workload::{Events, Expectation, ProtocolRequest, Request, Speech, Template, Wait};
use tungstenite::handshake::server::{ErrorResponse, Request as Head, Response};
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket, accept, accept_hdr};

use crate::common::{Make, Observed, Peer, Server, ms, pass, run_until};

/// Runs a server that handles each connection by itself.
fn server(talk: impl Fn(WebSocket<TcpStream>) + Send + Sync + 'static) -> Server {
    Server::start(move |peer: Peer<TcpStream>| {
        if let Ok(socket) = accept(peer.stream) {
            talk(socket);
        }
    })
}

/// Responds to each message with these.
fn answering(answers: &'static [&'static str]) -> Server {
    server(move |mut socket| {
        while let Ok(message) = socket.read() {
            if !(message.is_text() || message.is_binary()) {
                continue;
            }
            for answer in answers {
                pass(ms(20));
                if socket.send(Message::text(*answer)).is_err() {
                    return;
                }
            }
        }
    })
}

fn speaking(mut make: Make, subprotocol: Option<&str>) -> Make {
    make.workload.speech = Speech::WebSocket {
        path: Template::literal("/chat?room=1"),
        headers: vec![("X-Room".to_owned(), Template::literal("one"))],
        subprotocol: subprotocol.map(str::to_owned),
    };
    make
}

fn saying(
    text: &str,
    events: Option<Events>,
    contains: Option<&str>,
) -> impl FnOnce(Request) -> Request {
    let said = ProtocolRequest::Message {
        text: Some(Template::literal(text)),
        binary: false,
    };
    let answer: Vec<Expectation> = contains
        .map(|text| Expectation::Contains(Template::literal(text)))
        .into_iter()
        .collect();
    move |request| Request {
        said: Some(Box::new(said)),
        target: Template::literal(""),
        expect: vec![0..=u16::MAX],
        events,
        answer,
        ..request
    }
}

fn until(text: Option<&str>, count: Option<u32>) -> Option<Events> {
    Some(Events {
        until: text.map(Template::literal),
        named: None,
        count,
        at_most: 10,
    })
}

fn run(server: &Server, enough: u64, say: impl FnOnce(Request) -> Request) -> Observed {
    let make = Make::new(&[]).step_with(Wait::Constant(ms(1)), "GET /", |one, _| say(one));
    let drive = speaking(make, None).drive(&server.base());
    run_until(drive, |observed| observed.done() >= enough)
}

fn times(observed: &Observed, which: usize) -> Hist {
    let mut sum = Hist::<3>::default();
    for window in &observed.windows {
        sum.add(&window.steps[0].times.events[which]).unwrap();
    }
    sum
}

#[test]
fn a_message_and_its_answer_are_a_transaction_on_one_connection() {
    let server = answering(&["{\"pong\": 1}"]);
    let observed = run(&server, 10, saying("ping", None, Some("pong")));
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(observed.summary.connects, 1);
    assert!(
        observed.times(0).min() >= 19_000,
        "{}",
        observed.times(0).min()
    );
    assert_eq!(times(&observed, 0).len(), observed.transactions(0));
}

#[test]
fn each_message_has_its_moment_until_the_last_that_is_wanted() {
    let server = answering(&["one", "two", "done", "never awaited"]);
    let observed = run(
        &server,
        3,
        saying("go", until(Some("done"), None), Some("two")),
    );
    let (first, between) = (times(&observed, 0), times(&observed, 1));
    assert!(observed.summary.errors <= 1, "{:?}", observed.examples);
    assert!(first.len() >= 3 && between.len() >= 2 * 2, "{first:?}");
}

#[test]
fn messages_can_be_counted_and_need_no_answer() {
    let server = answering(&["a", "b"]);
    let observed = run(&server, 3, saying("go", until(None, Some(2)), Some("a\nb")));
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(times(&observed, 1).len(), observed.transactions(0));
    let silent = server_that_only_hears();
    let observed = run(&silent, 20, saying("tell", until(None, Some(0)), None));
    assert_eq!((observed.summary.errors, observed.summary.connects), (0, 1));
    assert!(times(&observed, 0).is_empty());
}

fn server_that_only_hears() -> Server {
    server(|mut socket| while socket.read().is_ok() {})
}

#[test]
fn what_is_said_between_requests_is_kept_and_pings_are_answered() {
    let server = server(|mut socket| {
        loop {
            match socket.read() {
                Ok(Message::Text(_)) => {
                    // The response, then an unrequested message while the user thinks.
                    let sent = socket.send(Message::text("answer"));
                    let sent = sent.and_then(|()| socket.send(Message::Ping("p".into())));
                    if sent.is_err() {
                        return;
                    }
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    });
    let make = Make::new(&[]).step_with(Wait::Constant(ms(20)), "GET /", |one, _| {
        saying("ask", None, Some("answer"))(one)
    });
    let drive = speaking(make, None).drive(&server.base());
    let observed = run_until(drive, |observed| observed.done() >= 10);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(observed.summary.connects, 1, "a ping is no reason to leave");
}

/// A server without a pong ends the connection, however long its users think.
#[test]
fn a_ping_is_answered_while_the_user_thinks() {
    let is_answered = Arc::new(AtomicBool::new(false));
    let told_by = Arc::clone(&is_answered);
    let server = server(move |mut socket| {
        let Ok(Message::Text(_)) = socket.read() else {
            return;
        };
        let _sent = socket.send(Message::text("answer"));
        let _sent = socket.send(Message::text("unasked"));
        let _sent = socket.send(Message::Ping("p".into()));
        while let Ok(message) = socket.read() {
            if matches!(&message, Message::Pong(what) if **what == *b"p") {
                told_by.store(true, Relaxed);
            }
        }
    });
    let make = Make::new(&[])
        .step_with(Wait::Constant(ms(1)), "GET /", |one, _| {
            saying("ask", None, Some("answer"))(one)
        })
        .step_with(Wait::Constant(ms(3_600_000)), "GET /", |one, _| {
            saying("never said", None, None)(one)
        });
    let drive = speaking(make, None).drive(&server.base());
    let observed = run_until(drive, |_| is_answered.load(Relaxed));
    assert!(is_answered.load(Relaxed));
    assert_eq!((observed.transactions(0), observed.transactions(1)), (1, 0));
}

/// Responds, sends more, and closes.
fn leaving() -> Server {
    server(|mut socket| {
        let Ok(Message::Text(_)) = socket.read() else {
            return;
        };
        for text in ["answer", "first", "last"] {
            let _sent = socket.send(Message::text(text));
        }
        let why = CloseFrame {
            code: CloseCode::Policy,
            reason: "not today".into(),
        };
        let _closed = socket.close(Some(why));
        while socket.read().is_ok() {}
    })
}

/// Returns the events of a load with a request behind one that [`leaving`] serves.
fn behind_the_close(
    then: impl FnOnce(Request) -> Request,
    enough: impl Fn(&Observed) -> bool,
) -> Observed {
    let server = leaving();
    let make = Make::new(&[])
        .step_with(Wait::Constant(ms(1)), "GET /", |one, _| {
            saying("ask", None, Some("answer"))(one)
        })
        .step_with(Wait::Constant(ms(50)), "GET /", |one, _| then(one));
    let drive = speaking(make, None).drive(&server.base());
    run_until(drive, enough)
}

fn listening(text: &str, contains: &str) -> impl FnOnce(Request) -> Request {
    let say = saying("", until(Some(text), None), Some(contains));
    |request| Request {
        said: None,
        ..say(request)
    }
}

/// The connection may still be open or not.
#[test]
fn what_was_said_before_a_close_is_heard_by_who_listens() {
    let observed = behind_the_close(listening("last", "first\nlast"), |observed| {
        observed.transactions(1) >= 1
    });
    assert!(observed.transactions(1) >= 1, "{:?}", observed.examples);
    let observed = behind_the_close(listening("never said", "first"), |observed| {
        observed.done() >= 4
    });
    assert_eq!(observed.transactions(1), 0);
    let is_told = |text: &str| text.contains("closed after 2 messages: not today");
    assert!(
        observed.examples.iter().any(|(_, text, ..)| is_told(text)),
        "{:?}",
        observed.examples
    );
}

#[test]
fn a_request_after_a_close_is_said_on_another_connection() {
    let more = saying("more", until(None, Some(2)), Some("answer\nfirst"));
    let observed = behind_the_close(more, |observed| observed.transactions(1) >= 1);
    assert!(observed.transactions(1) >= 1, "{:?}", observed.examples);
}

#[test]
fn messages_between_requests_are_heard_by_the_next() {
    let server = server(|mut socket| {
        let Ok(Message::Text(_)) = socket.read() else {
            return;
        };
        for text in ["answer", "first", "second"] {
            let _sent = socket.send(Message::text(text));
        }
        // A client that responded to this has read the earlier messages.
        let _sent = socket.send(Message::Ping("p".into()));
        while let Ok(message) = socket.read() {
            if message.is_text() && socket.send(Message::text("third")).is_err() {
                return;
            }
        }
    });
    let make = Make::new(&[])
        .step_with(Wait::Constant(ms(1)), "GET /", |one, _| {
            saying("ask", None, Some("answer"))(one)
        })
        .step_with(Wait::Constant(ms(50)), "GET /", |one, _| {
            saying(
                "more",
                until(Some("third"), None),
                Some("first\nsecond\nthird"),
            )(one)
        });
    let drive = speaking(make, None).drive(&server.base());
    let observed = run_until(drive, |observed| observed.done() >= 2);
    assert!(observed.transactions(1) >= 1, "{:?}", observed.examples);
}

#[test]
fn a_server_that_closes_refuses_and_is_asked_anew() {
    let server = server(|mut socket| {
        let _heard = socket.read();
        let why = CloseFrame {
            code: CloseCode::Policy,
            reason: "not today".into(),
        };
        let _closed = socket.close(Some(why));
        while socket.read().is_ok() {}
    });
    let observed = run(&server, 3, saying("ask", None, None));
    assert_eq!(observed.errors(ErrorClass::Status), observed.done());
    let text = &observed.examples[0].1;
    assert!(
        text.contains("closed after 0 messages") && text.contains("not today"),
        "{text}"
    );
    assert!(observed.summary.connects >= observed.done());
}

#[test]
fn a_user_who_closes_is_answered_and_comes_again() {
    let (tell, told_codes) = sync_channel(1_000);
    let server = server(move |mut socket| {
        loop {
            match socket.read() {
                Ok(Message::Text(_)) => {
                    // An unexpected message is in transit when the user closes.
                    let _sent = socket.send(Message::text("answer"));
                    let _sent = socket.send(Message::text("one more"));
                }
                Ok(Message::Close(frame)) => {
                    let _full = tell.try_send(frame.map(|frame| u16::from(frame.code)));
                }
                Ok(_) => {}
                Err(_) => return,
            }
        }
    });
    let make = Make::new(&[])
        .step_with(Wait::Constant(ms(1)), "GET /", |one, _| {
            saying("ask", None, Some("answer"))(one)
        })
        .step_with(Wait::Constant(ms(1)), "GET /", |one, _| Request {
            said: Some(Box::new(ProtocolRequest::Close(4_000))),
            ..saying("", None, None)(one)
        });
    let drive = speaking(make, None).drive(&server.base());
    let observed = run_until(drive, |observed| observed.transactions(1) >= 5);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let sessions = observed.transactions(1);
    assert!((sessions..=sessions + 1).contains(&observed.summary.connects));
    assert_eq!(told_codes.recv(), Ok(Some(4_000)));
}

#[test]
fn a_handshake_that_is_refused_is_no_connection() {
    let refusing =
        Server::answering(|_| "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_owned());
    let observed = run(&refusing, 2, saying("ask", None, None));
    assert_eq!(observed.errors(ErrorClass::Connect), observed.done());
    assert!(
        observed.examples[0].1.contains("status 403"),
        "{:?}",
        observed.examples
    );
    let seen = &refusing.seen()[0];
    assert_eq!(seen.line, "GET /chat?room=1");
    assert_eq!(seen.header("x-room"), Some("one"));
    assert_eq!(seen.header("sec-websocket-extensions"), None);
    let strange = Server::answering(|_| {
        "HTTP/1.1 101 Ok\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: no\r\n\r\n".to_owned()
    });
    let observed = run(&strange, 2, saying("ask", None, None));
    assert!(
        observed.examples[0].1.contains("not accepted"),
        "{:?}",
        observed.examples
    );
}

#[test]
fn a_subprotocol_is_asked_for_and_needed() {
    let speaks = |spoken: &'static str| {
        Server::start(move |peer: Peer<TcpStream>| {
            #[allow(clippy::result_large_err, reason = "the refusal is tungstenite's")]
            let choose = |head: &Head, mut answer: Response| -> Result<Response, ErrorResponse> {
                assert_eq!(head.headers()["sec-websocket-protocol"], "chat.v2");
                let name = "sec-websocket-protocol".parse::<tungstenite::http::HeaderName>();
                answer
                    .headers_mut()
                    .insert(name.unwrap(), spoken.parse().unwrap());
                Ok(answer)
            };
            if let Ok(mut socket) = accept_hdr(peer.stream, choose) {
                while let Ok(message) = socket.read() {
                    if message.is_text() && socket.send(message).is_err() {
                        return;
                    }
                }
            }
        })
    };
    let observed = |server: &Server| {
        let make = Make::new(&[]).step_with(Wait::Constant(ms(1)), "GET /", |one, _| {
            saying("hello", None, Some("hello"))(one)
        });
        let drive = speaking(make, Some("chat.v2")).drive(&server.base());
        run_until(drive, |observed| observed.done() >= 2)
    };
    assert_eq!(observed(&speaks("chat.v2")).summary.errors, 0);
    let other = observed(&speaks("chat.v1"));
    assert!(
        other.examples[0].1.contains("doesn't speak `chat.v2`"),
        "{:?}",
        other.examples
    );
}

#[test]
fn what_is_no_frame_ends_the_connection() {
    let server = Server::start(|mut peer: Peer<TcpStream>| {
        let Some(seen) = peer.request() else { return };
        let key = seen.header("sec-websocket-key").unwrap();
        let accept = tungstenite::handshake::derive_accept_key(key.as_bytes());
        let head = format!(
            "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        // A frame with a reserved bit.
        peer.send([head.as_bytes(), b"\xc1\x05hello"].concat());
        pass(ms(200));
    });
    let observed = run(&server, 2, saying("ask", None, None));
    assert_eq!(
        observed.errors(ErrorClass::Check),
        observed.done(),
        "{:?}",
        observed.examples
    );
    assert!(
        observed.examples[0].1.contains("no WebSocket"),
        "{:?}",
        observed.examples
    );
}

#[test]
fn interim_responses_come_before_the_handshakes_answer() {
    let server = Server::start(|mut peer: Peer<TcpStream>| {
        let Some(seen) = peer.request() else { return };
        let key = seen.header("sec-websocket-key").unwrap();
        let accept = tungstenite::handshake::derive_accept_key(key.as_bytes());
        peer.send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 100 ");
        peer.send("Continue\r\n\r\n");
        peer.send(format!(
            "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        ));
        let role = tungstenite::protocol::Role::Server;
        let mut socket = WebSocket::from_raw_socket(peer.stream, role, None);
        while let Ok(message) = socket.read() {
            if message.is_text() && socket.send(Message::text("answer")).is_err() {
                return;
            }
        }
    });
    let observed = run(&server, 2, saying("ask", None, Some("answer")));
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
}
