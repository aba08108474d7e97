//! gRPC over real sockets, with a server of `h2`'s streams and messages by the same descriptors.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::LazyLock;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Request as Head, Response};
use lab_counts::Hist;
use lab_dialogues::GrpcMessages;
use lab_driver::ErrorClass;
use lab_workload::{
    Call, Descriptors, Events, Expectation, JsonPath, Method, ProtocolRequest, Request, Speech,
    Template, Wait,
};
use protox::Compiler;
use protox::file::{File, FileResolver};

use crate::common::{Make, Observed, Peer, Server, ms, run_until};
use crate::two::{Action, Two};

const NOTES: &str = r#"
    syntax = "proto3";
    package notes;
    message Note { string text = 1; int64 number = 2; repeated Note notes = 3; }
    service Notes {
        rpc Say(Note) returns (Note);
        rpc Count(Note) returns (stream Note);
        rpc Sum(stream Note) returns (Note);
        rpc Talk(stream Note) returns (stream Note);
    }
"#;

/// The number of notes of 10 kB in a flood: twice the unread bytes allowed for one user.
const FLOOD: usize = 210;

static DESCRIPTORS: LazyLock<Descriptors> = LazyLock::new(|| {
    struct Only;
    impl FileResolver for Only {
        fn open_file(&self, name: &str) -> Result<File, protox::Error> {
            File::from_source(name, NOTES)
        }
    }
    let mut compiler = Compiler::with_file_resolver(Only);
    compiler.open_file("notes.proto").unwrap();
    Descriptors::parse(&compiler.encode_file_descriptor_set()).unwrap()
});

fn method(name: &str) -> Method {
    DESCRIPTORS.method(&format!("notes.Notes/{name}")).unwrap()
}

/// Returns a note in its wire form.
fn framed(json: &str) -> Bytes {
    let mut content = Vec::new();
    method("Say").says.encode(json, &mut content).unwrap();
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&[0], &length[..], &content].concat().into()
}

/// The received messages of a call.
struct ReceivedMessages {
    body: RecvStream,
    messages: GrpcMessages,
}

impl ReceivedMessages {
    async fn next(&mut self) -> Option<serde_json::Value> {
        loop {
            if let Some(message) = self.messages.take().unwrap() {
                let mut json = Vec::new();
                method("Say").says.decode(message, &mut json).unwrap();
                return serde_json::from_slice(&json).ok();
            }
            let data = self.body.data().await?.ok()?;
            let _released = self.body.flow_control().release_capacity(data.len());
            self.messages.hear(&data);
        }
    }
}

fn head(kind: &str) -> Response<()> {
    let head = Response::builder().header("content-type", kind);
    head.body(()).unwrap()
}

fn end(mut stream: SendStream<Bytes>, code: &str, words: &str) {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.parse().unwrap());
    trailers.insert("grpc-message", words.parse().unwrap());
    let _gone = stream.send_trailers(trailers);
}

/// A service whose behaviour depends on its methods' names and its notes' texts.
pub(crate) fn notes(
    head: Head<RecvStream>,
    respond: SendResponse<Bytes>,
) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        let path = head.uri().path().to_owned();
        let headers = head.headers().clone();
        let mut heard = ReceivedMessages {
            body: head.into_body(),
            messages: GrpcMessages::default(),
        };
        match path.as_str() {
            "/notes.Notes/Say" => say(&headers, &mut heard, respond).await,
            "/notes.Notes/Count" => count(&mut heard, respond).await,
            "/notes.Notes/Sum" => sum(&mut heard, respond).await,
            _ => talk(&mut heard, respond).await,
        }
    })
}

async fn say(headers: &HeaderMap, heard: &mut ReceivedMessages, mut respond: SendResponse<Bytes>) {
    let Some(note) = heard.next().await else {
        return;
    };
    let text = note["text"].as_str().unwrap();
    let mut refused = head("application/grpc");
    if text == "late" {
        tokio::time::sleep(ms(300)).await;
    }
    match text {
        "reset" => return respond.send_reset(Reason::REFUSED_STREAM),
        "hang" => return std::future::pending().await,
        "refuse" => {
            let status = [("grpc-status", "5"), ("grpc-message", "no%20such note")];
            for (name, value) in status {
                refused
                    .headers_mut()
                    .insert(name, HeaderValue::from_static(value));
            }
        }
        "unavailable" => *refused.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE,
        "page" => refused = head("text/html"),
        "speechless" => {}
        _ => {
            let Ok(mut stream) = respond.send_response(head("application/grpc+proto"), false)
            else {
                return;
            };
            let said = headers
                .get("x-who")
                .map_or("nobody", |who| who.to_str().unwrap());
            let back =
                serde_json::json!({ "text": format!("{said}: {text}"), "number": text.len() });
            let data = match text {
                "compressed" => Bytes::from_static(&[1, 0, 0, 0, 0]),
                "strange" => Bytes::from_static(&[0, 0, 0, 0, 1, 0xff]),
                _ => framed(&back.to_string()),
            };
            stream.reserve_capacity(data.len());
            let _gone = stream.send_data(data, false);
            return end(stream, "0", "");
        }
    }
    let _gone = respond.send_response(refused, true);
}

async fn count(heard: &mut ReceivedMessages, mut respond: SendResponse<Bytes>) {
    let Some(note) = heard.next().await else {
        return;
    };
    let mut stream = respond
        .send_response(head("application/grpc"), false)
        .unwrap();
    for number in 1..=note["number"].as_i64().unwrap() {
        tokio::time::sleep(ms(20)).await;
        let note = serde_json::json!({ "number": number });
        if stream.send_data(framed(&note.to_string()), false).is_err() {
            return;
        }
    }
    end(stream, "0", "");
}

async fn sum(heard: &mut ReceivedMessages, mut respond: SendResponse<Bytes>) {
    let mut sum = 0;
    while let Some(note) = heard.next().await {
        sum += note["number"].as_i64().unwrap();
    }
    let mut stream = respond
        .send_response(head("application/grpc"), false)
        .unwrap();
    let _gone = stream.send_data(framed(&format!("{{\"number\": {sum}}}")), false);
    end(stream, "0", "");
}

async fn talk(heard: &mut ReceivedMessages, mut respond: SendResponse<Bytes>) {
    let mut stream = respond
        .send_response(head("application/grpc"), false)
        .unwrap();
    while let Some(note) = heard.next().await {
        if note["text"] == "enough" {
            return end(stream, "8", "that was enough");
        }
        if note["text"] == "flood" {
            let much = serde_json::json!({ "text": "x".repeat(10_000) });
            let much = framed(&much.to_string());
            (0..FLOOD).for_each(|_| {
                let _gone = stream.send_data(much.clone(), false);
            });
        }
        let _gone = stream.send_data(framed(&note.to_string()), false);
    }
    end(stream, "0", "");
}

pub(crate) fn by_notes(_: usize, _: &str) -> Action {
    Action::By(notes)
}

pub(crate) fn make(variables: &[&str]) -> Make {
    let mut make = Make::new(variables);
    make.workload.speech = Speech::Grpc {
        descriptors: DESCRIPTORS.clone(),
        metadata: vec![("x-who".to_owned(), Template::literal("user"))],
    };
    make
}

/// Returns a call that sends these messages.
pub(crate) fn saying(make: &Make, method: &str, messages: &[&str]) -> Request {
    let call = Call {
        messages: messages.iter().map(|text| make.template(text)).collect(),
        ..Call::of(&format!("notes.Notes/{method}"))
    };
    Request {
        target: Template::literal(""),
        expect: vec![0..=0],
        said: Some(Box::new(ProtocolRequest::Call(call))),
        ..make.request("POST /")
    }
}

pub(crate) fn changed(mut request: Request, change: impl FnOnce(&mut Call)) -> Request {
    if let Some(ProtocolRequest::Call(call)) = request.said.as_deref_mut() {
        change(call);
    }
    request
}

pub(crate) fn holds(path: &str, value: &str) -> Vec<Expectation> {
    vec![Expectation::Json {
        path: Box::new(JsonPath::parse(path).unwrap()),
        value: Template::literal(value),
    }]
}

/// Runs one user that repeats this request.
fn observed(server: &Two, enough: u64, request: impl FnOnce(&Make) -> Request) -> Observed {
    let make = make(&[]).step_with(Wait::Constant(ms(1)), "GET /", |_, make| request(make));
    run_until(make.drive(&server.base()), |observed| {
        observed.done() >= enough
    })
}

fn times(observed: &Observed, which: usize) -> Hist {
    let mut sum = Hist::<3>::default();
    for window in &observed.windows {
        sum.add(&window.steps[0].times.events[which]).unwrap();
    }
    sum
}

/// Asserts that all fail with this class and these words.
#[track_caller]
fn fails(server: &Two, text: &str, class: ErrorClass, words: &str) -> Observed {
    let text = format!("{{\"text\": \"{text}\"}}");
    let observed = observed(server, 2, |make| saying(make, "Say", &[&text]));
    assert_eq!(
        observed.errors(class),
        observed.done(),
        "{:?}",
        observed.examples
    );
    assert!(
        observed.examples[0].1.contains(words),
        "{:?}",
        observed.examples
    );
    observed
}

#[test]
fn a_call_and_its_answer_are_a_transaction_on_one_connection() {
    let server = Two::start(Builder::new(), by_notes);
    let make = make(&["kept"])
        .step_with(Wait::Constant(ms(1)), "GET /", |_, make| Request {
            captures: vec![make.json("kept", "$.text")],
            answer: holds("$.number", "2"),
            ..saying(make, "Say", &[r#"{"text": "hi"}"#])
        })
        .step_with(Wait::None, "GET /", |_, make| Request {
            answer: holds("$.text", "user: user: hi"),
            ..saying(make, "Say", &[r#"{"text": "{{ kept }}"}"#])
        });
    let mut drive = make.drive(&server.base());
    drive.users = 2;
    let observed = run_until(drive, |observed| observed.done() >= 30);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!((observed.summary.connects, server.connections()), (2, 2));
    let had = server.requests().len() as u64;
    assert!(
        (observed.done()..=observed.done() + 2).contains(&had),
        "{had}"
    );
}

#[test]
fn each_message_of_a_stream_has_its_moment() {
    let server = Two::start(Builder::new(), by_notes);
    let all = observed(&server, 4, |make| Request {
        events: Some(listening(None, None)),
        answer: holds("$[2].number", "3"),
        ..saying(make, "Count", &[r#"{"number": 3}"#])
    });
    assert_eq!(all.summary.errors, 0, "{:?}", all.examples);
    assert!(times(&all, 0).min() >= 19_000, "{}", times(&all, 0).min());
    assert_eq!(times(&all, 1).len(), 2 * all.transactions(0));
    // After the wanted messages, the rest is not waited for, and the connection is reused.
    for last in [
        listening(Some("\"number\":2"), None),
        listening(None, Some(2)),
    ] {
        let some = observed(&server, 4, |make| Request {
            events: Some(last),
            ..saying(make, "Count", &[r#"{"number": "1000"}"#])
        });
        assert_eq!(some.summary.errors, 0, "{:?}", some.examples);
        assert_eq!(some.summary.connects, 1);
        assert_eq!(times(&some, 1).len(), some.transactions(0));
    }
}

pub(crate) fn listening(until: Option<&str>, count: Option<u32>) -> Events {
    Events {
        until: until.map(Template::literal),
        named: None,
        count,
        at_most: 10,
    }
}

#[test]
fn a_stream_that_ends_before_the_last_message_refuses() {
    let server = Two::start(Builder::new(), by_notes);
    let short = observed(&server, 2, |make| Request {
        events: Some(listening(Some("never"), None)),
        ..saying(make, "Count", &[r#"{"number": 2}"#])
    });
    assert_eq!(short.errors(ErrorClass::Status), short.done());
    assert!(
        short.examples[0].1.contains("ended the call after 2"),
        "{:?}",
        short.examples
    );
    let long = observed(&server, 2, |make| Request {
        events: Some(listening(Some("never"), None)),
        ..saying(make, "Count", &[r#"{"number": 12}"#])
    });
    assert_eq!(long.errors(ErrorClass::Check), long.done());
    assert!(
        long.examples[0].1.contains("at_most"),
        "{:?}",
        long.examples
    );
}

#[test]
fn a_stream_of_messages_is_answered_once() {
    let server = Two::start(Builder::new(), by_notes);
    let three = [
        r#"{"number": 1}"#,
        r#"{"number": 20}"#,
        r#"{"number": 300}"#,
    ];
    let observed = observed(&server, 5, |make| Request {
        answer: holds("$.number", "321"),
        ..saying(make, "Sum", &three)
    });
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
}

#[test]
fn a_call_that_stays_open_goes_on_with_the_next_request() {
    let server = Two::start(Builder::new(), by_notes);
    let open = |make: &Make, text: &str, stays_open| {
        let text = format!("{{\"text\": \"{text}\"}}");
        let request = saying(make, "Talk", &[&text]);
        changed(request, |call| call.stays_open = stays_open)
    };
    let make = make(&[])
        .step_with(Wait::Constant(ms(2)), "GET /1", |_, make| Request {
            answer: holds("$[0].text", "one"),
            ..open(make, "one", true)
        })
        .step_with(Wait::Constant(ms(2)), "GET /2", |_, make| Request {
            answer: holds("$[0].text", "two"),
            ..open(make, "two", true)
        })
        .step_with(Wait::Constant(ms(2)), "GET /3", |_, make| Request {
            answer: holds("$[0].text", "three"),
            ..open(make, "three", false)
        });
    let observed = run_until(make.drive(&server.base()), |observed| {
        observed.transactions(2) >= 5
    });
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(observed.summary.connects, 1);
    let calls = server.requests().len() as u64;
    let sessions = observed.transactions(2);
    assert!(
        (sessions..=sessions + 1).contains(&calls),
        "{calls} calls in {sessions} sessions"
    );
}

#[test]
fn an_open_call_that_the_server_ends_refuses_and_is_begun_anew() {
    let server = Two::start(Builder::new(), by_notes);
    let observed = observed(&server, 4, |make| {
        let request = saying(make, "Talk", &[r#"{"text": "enough"}"#]);
        changed(request, |call| call.stays_open = true)
    });
    assert_eq!(
        observed.errors(ErrorClass::Status),
        observed.done(),
        "{:?}",
        observed.examples
    );
    assert!(
        observed.examples[0]
            .1
            .contains("RESOURCE_EXHAUSTED: that was enough")
    );
    assert_eq!(observed.summary.connects, 1);
}

#[test]
fn every_end_of_a_call_is_told_as_what_it_is() {
    let server = Two::start(Builder::new(), by_notes);
    let refused = fails(
        &server,
        "refuse",
        ErrorClass::Status,
        "NOT_FOUND: no such note",
    );
    assert_eq!(
        refused.summary.connects, 1,
        "a refusal is no reason to leave"
    );
    fails(
        &server,
        "reset",
        ErrorClass::Status,
        "UNAVAILABLE: the server resets the call",
    );
    fails(
        &server,
        "unavailable",
        ErrorClass::Status,
        "UNAVAILABLE: the answer is HTTP's 503",
    );
    fails(
        &server,
        "page",
        ErrorClass::Status,
        "`text/html`, which is no gRPC",
    );
    fails(
        &server,
        "speechless",
        ErrorClass::Check,
        "neither messages nor a `grpc-status`",
    );
    fails(&server, "compressed", ErrorClass::Check, "compressed");
    let meant = observed(&server, 2, |make| Request {
        expect: vec![5..=5],
        ..saying(make, "Say", &[r#"{"text": "refuse"}"#])
    });
    assert_eq!(meant.summary.errors, 0, "{:?}", meant.examples);
}

#[test]
fn only_what_is_wanted_of_an_answer_is_read() {
    let server = Two::start(Builder::new(), by_notes);
    let strange = |answer: Vec<Expectation>| {
        observed(&server, 2, |make| Request {
            answer,
            ..saying(make, "Say", &[r#"{"text": "strange"}"#])
        })
    };
    assert_eq!(strange(Vec::new()).summary.errors, 0);
    let read = strange(holds("$.text", "x"));
    assert_eq!(read.errors(ErrorClass::Check), read.done());
    assert!(
        read.examples[0].1.contains("no notes.Note"),
        "{:?}",
        read.examples
    );
}

#[test]
fn a_deadline_ends_a_call_that_hangs() {
    let server = Two::start(Builder::new(), by_notes);
    let make = make(&[]).step_with(Wait::Constant(ms(1)), "GET /", |_, make| {
        let request = saying(make, "Say", &[r#"{"text": "hang"}"#]);
        changed(request, |call| call.deadline = Some(ms(300)))
    });
    // A slow connection attempt is a different error.
    let observed = run_until(make.drive(&server.base()), |observed| {
        observed.errors(ErrorClass::Timeout) >= 3
    });
    assert_eq!(observed.summary.transactions, 0, "{:?}", observed.examples);
    // There is more than one connection only if opening one took that long.
    let connects = observed.summary.connects;
    let late = observed.errors(ErrorClass::Connect);
    assert!((1..=1 + late).contains(&connects), "{connects} connections");
}

#[test]
fn a_late_answer_is_no_other_calls() {
    let server = Two::start(Builder::new(), by_notes);
    let make = make(&[])
        .step_with(Wait::None, "GET /", |_, make| {
            let request = saying(make, "Say", &[r#"{"text": "late"}"#]);
            changed(request, |call| call.deadline = Some(ms(200)))
        })
        .step_with(Wait::Constant(ms(100)), "GET /", |_, make| Request {
            answer: holds("$.text", "user: hi"),
            ..saying(make, "Say", &[r#"{"text": "hi"}"#])
        });
    let observed = run_until(make.drive(&server.base()), |observed| {
        observed.transactions(1) >= 2 && observed.errors(ErrorClass::Timeout) >= 2
    });
    let no_connection = observed.errors(ErrorClass::Connect);
    let late = observed.errors(ErrorClass::Timeout) + no_connection;
    assert_eq!(observed.summary.errors, late, "{:?}", observed.examples);
    assert!(observed.transactions(1) >= 2, "{:?}", observed.summary);
    let connects = observed.summary.connects;
    assert!((1..=1 + no_connection).contains(&connects), "{connects}");
}

#[test]
fn a_connection_on_which_nothing_is_heard_is_replaced() {
    let server = Server::start(|peer: Peer<TcpStream>| {
        let mut stream = peer.stream;
        // The server sends only its settings.
        let _sent = stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        let _end = io::copy(&mut stream, &mut io::sink());
    });
    let make = make(&[]).step_with(Wait::None, "GET /", |_, make| {
        let request = saying(make, "Say", &[r#"{"text": "hi"}"#]);
        changed(request, |call| call.deadline = Some(ms(50)))
    });
    let mut drive = make.drive(&server.base());
    drive.limits.request_timeout = ms(200);
    let observed = run_until(drive, |observed| observed.errors(ErrorClass::Timeout) >= 12);
    assert!(observed.summary.connects >= 2, "{:?}", observed.summary);
    assert_eq!(observed.summary.transactions, 0);
}

#[test]
fn a_server_that_leaves_is_come_back_to() {
    let server = Two::start(Builder::new(), |number, _| match number % 3 {
        2 => Action::LeavesBy(notes),
        _ => Action::By(notes),
    });
    let observed = observed(&server, 12, |make| {
        saying(make, "Say", &[r#"{"text": "hi"}"#])
    });
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert!(
        observed.summary.connects >= 3,
        "{}",
        observed.summary.connects
    );
}

#[test]
fn messages_are_larger_than_any_window() {
    let mut builder = Builder::new();
    builder
        .initial_window_size(1_000)
        .initial_connection_window_size(70_000);
    let server = Two::start(builder, by_notes);
    let text = format!("{{\"text\": \"{}\"}}", "x".repeat(300_000));
    let observed = observed(&server, 3, |make| Request {
        answer: holds("$.number", "300000"),
        ..saying(make, "Say", &[&text])
    });
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
}

#[test]
fn over_tls_it_is_spoken_where_alpn_says_so() {
    let server = Two::secure(&["h2"], by_notes);
    let make = make(&[]).step_with(Wait::Constant(ms(1)), "GET /", |_, make| {
        saying(make, "Say", &[r#"{"text": "hi"}"#])
    });
    let mut drive = make.drive(&server.base());
    drive.tls = server.trusted();
    let observed = run_until(drive, |observed| observed.done() >= 5);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
}

#[test]
fn what_speaks_http_1_is_no_server_of_calls() {
    let server = Server::start(|mut peer: Peer<TcpStream>| {
        let heard = peer.stream.read(&mut [0; 64]);
        assert!(heard.is_ok_and(|count| count > 0));
        peer.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        // Until the client has read that and has closed.
        while peer.stream.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
    });
    let make = make(&[]).step_with(Wait::Constant(ms(1)), "GET /", |_, make| {
        saying(make, "Say", &[r#"{"text": "hi"}"#])
    });
    let observed = run_until(make.drive(&server.base()), |observed| observed.done() >= 2);
    assert_eq!(
        observed.errors(ErrorClass::Connect),
        observed.done(),
        "{:?}",
        observed.examples
    );
    assert!(
        observed.examples[0].1.contains("speaks no HTTP/2"),
        "{:?}",
        observed.examples
    );
}
