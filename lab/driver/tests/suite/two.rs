//! HTTP/2 over real sockets: streams counted to the request, limits kept, and every end of a stream reported with its
//! class.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use lab_client::PemFile;
use lab_driver::{Assignment, BaseUrl, ErrorClass, Offer, Phase, Protocol, TlsOptions};
use lab_workload::{Body, Wait};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{LocalSet, spawn_local};

use crate::common::{Make, Observed, Server, ms, run_until};
use crate::uploads::{body, upload};

/// A handler of a request.
pub(crate) type Takes =
    fn(Request<RecvStream>, SendResponse<Bytes>) -> Pin<Box<dyn Future<Output = ()>>>;

/// A server's action on a request.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// Runs this handler.
    By(Takes),
    /// The same, and announces that it closes the connection.
    LeavesBy(Takes),
    /// Responds with this number of bytes, after a delay.
    Answers(usize, Duration),
    /// Responds with a header of this number of bytes.
    Header(usize),
    /// Resets the stream.
    Resets(Reason),
    /// Responds, and announces that it closes the connection.
    Leaves,
    /// Sends nothing.
    Hangs,
    /// Sends half a response and ends the connection.
    Breaks,
}

/// The server's records.
#[derive(Default)]
struct Records {
    connections: AtomicUsize,
    requests: Mutex<Vec<(String, usize)>>,
    bodies: Mutex<Vec<Vec<u8>>>,
    under_way: AtomicUsize,
    most: AtomicUsize,
}

/// A server that speaks HTTP/2; ends when dropped.
pub(crate) struct Two {
    port: u16,
    saw: Arc<Records>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    pem: Option<PemFile>,
}

type Plan = Arc<dyn Fn(usize, &str) -> Action + Send + Sync>;

impl Two {
    /// Starts a server without TLS; `plan` returns the action by the request's number and path.
    pub(crate) fn start(
        builder: Builder,
        plan: impl Fn(usize, &str) -> Action + Send + Sync + 'static,
    ) -> Self {
        Self::with(builder, Arc::new(plan), None)
    }

    /// Starts a server with TLS, and these protocols of ALPN.
    pub(crate) fn secure(
        alpn: &[&str],
        plan: impl Fn(usize, &str) -> Action + Send + Sync + 'static,
    ) -> Self {
        Self::with(Builder::new(), Arc::new(plan), Some(alpn))
    }

    fn with(builder: Builder, plan: Plan, alpn: Option<&[&str]>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let (saw, stop) = (Arc::<Records>::default(), Arc::<AtomicBool>::default());
        let tls = alpn.map(certified);
        let pem = tls.as_ref().map(|(pem, _)| pem.clone());
        let acceptor = tls.map(|(_, acceptor)| acceptor);
        let (seen, ended) = (Arc::clone(&saw), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            LocalSet::new().block_on(&runtime, async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    if ended.load(Ordering::SeqCst) {
                        return;
                    }
                    stream.set_nodelay(true).unwrap();
                    let served = (builder.clone(), Arc::clone(&plan), Arc::clone(&seen));
                    match &acceptor {
                        None => drop(spawn_local(serve(stream, served))),
                        Some(acceptor) => {
                            let accepted = acceptor.accept(stream);
                            spawn_local(async move {
                                if let Ok(stream) = accepted.await {
                                    serve(stream, served).await;
                                }
                            });
                        }
                    }
                }
            });
        });
        Self {
            port,
            saw,
            stop,
            thread: Some(thread),
            pem,
        }
    }

    pub(crate) fn base(&self) -> BaseUrl {
        let text = match &self.pem {
            None => format!("http://127.0.0.1:{}", self.port),
            Some(_) => format!("https://localhost:{}", self.port),
        };
        text.parse().unwrap()
    }

    pub(crate) fn connections(&self) -> usize {
        self.saw.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<(String, usize)> {
        self.saw.requests.lock().unwrap().clone()
    }

    /// Returns the maximum number of concurrent requests.
    pub(crate) fn most(&self) -> usize {
        self.saw.most.load(Ordering::SeqCst)
    }

    /// Returns a load with HTTP/2 to this server.
    pub(crate) fn drive(&self, make: Make) -> Assignment {
        let mut drive = make.drive(&self.base());
        drive.protocol.offer = Offer::Two;
        drive.tls = self.trusted();
        drive
    }

    pub(crate) fn trusted(&self) -> TlsOptions {
        TlsOptions {
            authorities: self.pem.iter().cloned().collect(),
            ..TlsOptions::default()
        }
    }
}

impl Drop for Two {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _wake = std::net::TcpStream::connect(("127.0.0.1", self.port));
        let ended = self.thread.take().map(std::thread::JoinHandle::join);
        assert!(
            ended.is_none_or(|ended| ended.is_ok()) || std::thread::panicking(),
            "a test server failed"
        );
    }
}

fn certified(alpn: &[&str]) -> (PemFile, tokio_rustls::TlsAcceptor) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = rustls_pki_types::PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let pem = PemFile {
        name: "certificate.pem".to_owned(),
        text: made.cert.pem(),
    };
    (pem, Arc::new(config).into())
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    stream: S,
    (builder, plan, saw): (Builder, Plan, Arc<Records>),
) {
    saw.connections.fetch_add(1, Ordering::SeqCst);
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else {
        return;
    };
    let broken = Arc::new(tokio::sync::Notify::new());
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            () = broken.notified() => return,
        };
        let Some(Ok((request, respond))) = accepted else {
            return;
        };
        let number = saw.requests.lock().unwrap().len();
        let path = request.uri().path().to_owned();
        let does = plan(number, &path);
        if matches!(does, Action::Leaves | Action::LeavesBy(_)) {
            connection.graceful_shutdown();
        }
        let at_once = saw.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        saw.most.fetch_max(at_once, Ordering::SeqCst);
        saw.requests.lock().unwrap().push((path, number));
        let (saw, broken) = (Arc::clone(&saw), Arc::clone(&broken));
        spawn_local(async move {
            let got = answer(request, respond, does, &broken).await;
            saw.requests.lock().unwrap()[number].1 = got.len();
            saw.bodies.lock().unwrap().push(got);
            saw.under_way.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// Performs the action. Returns the request's body.
async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    does: Action,
    broken: &tokio::sync::Notify,
) -> Vec<u8> {
    if let Action::By(by) | Action::LeavesBy(by) = does {
        by(request, respond).await;
        return Vec::new();
    }
    let mut body = request.into_body();
    let mut got = Vec::new();
    while let Some(Ok(data)) = body.data().await {
        got.extend_from_slice(&data);
        let _released = body.flow_control().release_capacity(data.len());
    }
    let head = || Response::builder().header("x-two", "yes").body(()).unwrap();
    match does {
        Action::By(_) | Action::LeavesBy(_) => {}
        Action::Answers(0, after) => {
            tokio::time::sleep(after).await;
            let _gone = respond.send_response(head(), true);
        }
        Action::Answers(bytes, after) => {
            tokio::time::sleep(after).await;
            if let Ok(mut stream) = respond.send_response(head(), false) {
                let _gone = stream.send_data(vec![b'x'; bytes].into(), false);
                let _gone = stream.send_trailers(HeaderMap::new());
            }
        }
        Action::Leaves => {
            let _gone = respond.send_response(head(), true);
        }
        Action::Header(bytes) => {
            let mut head = head();
            let value = HeaderValue::from_bytes(&vec![b'v'; bytes]).unwrap();
            head.headers_mut().insert("x-large", value);
            let _gone = respond.send_response(head, true);
        }
        Action::Resets(reason) => respond.send_reset(reason),
        Action::Hangs => std::future::pending().await,
        Action::Breaks => {
            let mut stream = respond.send_response(head(), false).unwrap();
            let _gone = stream.send_data(vec![b'x'; 5].into(), false);
            tokio::time::sleep(ms(20)).await;
            broken.notify_one();
            // The stream itself is not ended.
            std::future::pending::<()>().await;
        }
    }
    got
}

fn at_once(_: usize, _: &str) -> Action {
    Action::Answers(10, Duration::ZERO)
}

pub(crate) fn phase(observed: &Observed, phase: Phase) -> u64 {
    let windows = observed.windows.iter();
    windows
        .map(|w| w.steps[0].times.phases[phase as usize].len())
        .sum()
}

/// Compares the server's requests with the load's counts, allowing for one truncated at the end.
#[track_caller]
pub(crate) fn counted(server: &Two, observed: &Observed, users: usize) {
    let had = server.requests().len() as u64;
    let sum = &observed.summary;
    let sent = sum.transactions + sum.errors + sum.stale_retries;
    assert!(
        (sent..=sent + users as u64).contains(&had),
        "{had} came, {sent} counted"
    );
}

#[test]
fn each_user_has_a_connection_and_every_request_counts() {
    let server = Two::start(Builder::new(), at_once);
    let make =
        Make::new(&["seen"]).step_with(Wait::Constant(ms(2)), "GET /a?b=c", |mut r, make| {
            let source = lab_workload::CaptureSource::Header("x-two".to_owned());
            r.captures = vec![make.capture("seen", source)];
            r
        });
    let mut drive = server.drive(make.step(Wait::None, "GET /{{ seen }}"));
    drive.users = 3;
    let observed = run_until(drive, |observed| observed.done() >= 60);
    assert_eq!((observed.summary.errors, server.connections()), (0, 3));
    assert_eq!(
        (observed.summary.connects, observed.summary.http2_connects),
        (3, 3)
    );
    counted(&server, &observed, 3);
    assert_eq!(phase(&observed, Phase::Connect), 3);
    assert_eq!(phase(&observed, Phase::Blocked), 0);
    assert_eq!(phase(&observed, Phase::Wait), observed.transactions(0));
    let paths: Vec<String> = server
        .requests()
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    assert!(paths.iter().any(|path| path == "/yes"), "{paths:?}");
    let bytes: u64 = observed
        .windows
        .iter()
        .map(|w| w.steps[0].counts.bytes)
        .sum();
    assert_eq!(bytes, 10 * observed.transactions(0));
}

#[test]
fn bodies_both_ways_are_larger_than_any_window() {
    let mut builder = Builder::new();
    builder
        .initial_window_size(1_000)
        .initial_connection_window_size(70_000);
    let server = Two::start(builder, |_, _| Action::Answers(17_000_000, Duration::ZERO));
    let make = Make::new(&[]).step_with(Wait::None, "POST /large", |mut request, make| {
        request.body = Body::Text(make.template(&"b".repeat(300_000)));
        request
    });
    let observed = run_until(server.drive(make), |observed| observed.done() >= 3);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let whole = server
        .requests()
        .iter()
        .filter(|(_, got)| *got == 300_000)
        .count() as u64;
    assert!(whole >= observed.transactions(0), "{whole}");
    let bytes: u64 = observed
        .windows
        .iter()
        .map(|w| w.steps[0].counts.bytes)
        .sum();
    assert_eq!(bytes, 17_000_000 * observed.transactions(0));
}

#[test]
fn files_go_out_byte_for_byte() {
    let mut builder = Builder::new();
    builder.initial_window_size(100_000);
    let server = Two::start(builder, at_once);
    let make = upload(Make::new(&[]), "POST /up");
    let observed = run_until(server.drive(make), |observed| observed.done() >= 3);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let bodies = server.saw.bodies.lock().unwrap();
    let whole = bodies.iter().filter(|bytes| **bytes == body(0)).count();
    assert!(whole as u64 >= observed.transactions(0), "{whole}");
}

#[test]
fn shared_connections_carry_as_much_as_the_server_allows_and_no_more() {
    let mut builder = Builder::new();
    builder.max_concurrent_streams(4);
    let server = Two::start(builder, |_, _| Action::Answers(0, ms(5)));
    let mut drive = server.drive(Make::new(&[]).step(Wait::None, "GET /"));
    drive.users = 20;
    drive.protocol.shared = Some(2);
    let observed = run_until(drive, |observed| observed.done() >= 200);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(
        (server.connections(), observed.summary.http2_connects),
        (2, 2)
    );
    assert_eq!(server.most(), 8);
    counted(&server, &observed, 20);
    // Ten users per connection that allows four: most requests wait, and the wait is a phase of its own.
    let blocked = phase(&observed, Phase::Blocked);
    assert!(blocked * 2 > observed.transactions(0), "{blocked}");
    let mut waited = lab_counts::Hist::<2>::default();
    for window in &observed.windows {
        waited
            .add(&window.steps[0].times.phases[Phase::Wait as usize])
            .unwrap();
    }
    // The client's waits are not part of the server's own time.
    let whole = observed.times(0);
    assert!(
        waited.mean() < 0.75 * whole.mean(),
        "{} of {}",
        waited.mean(),
        whole.mean()
    );
}

#[test]
fn what_the_server_did_nothing_with_is_sent_again_once() {
    // Every other attempt is refused.
    let refuses = |number, _: &str| match number % 2 {
        0 => Action::Resets(Reason::REFUSED_STREAM),
        _ => Action::Answers(0, Duration::ZERO),
    };
    let server = Two::start(Builder::new(), refuses);
    let drive = server.drive(Make::new(&[]).step(Wait::Constant(ms(1)), "POST /"));
    let observed = run_until(drive, |observed| observed.done() >= 10);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let (done, again) = (
        observed.summary.transactions,
        observed.summary.stale_retries,
    );
    assert!(again == done || again == done + 1, "{again} of {done}");
    assert_eq!(server.connections(), 1);

    let server = Two::start(Builder::new(), |_, _| {
        Action::Resets(Reason::REFUSED_STREAM)
    });
    let drive = server.drive(Make::new(&[]).step(Wait::Constant(ms(1)), "POST /"));
    let observed = run_until(drive, |observed| observed.done() >= 3);
    assert_eq!(observed.errors(ErrorClass::Reset), observed.done());
    assert!(
        observed.examples[0].1.contains("REFUSED_STREAM"),
        "{:?}",
        observed.examples
    );
    counted(&server, &observed, 1);
}

#[test]
fn a_server_that_leaves_loses_nothing() {
    let leaves = |number, _: &str| match number % 5 {
        4 => Action::Leaves,
        _ => Action::Answers(10, Duration::ZERO),
    };
    for shared in [None, Some(1)] {
        let server = Two::start(Builder::new(), leaves);
        let mut drive = server.drive(Make::new(&[]).step(Wait::Constant(ms(1)), "POST /"));
        drive.users = 4;
        drive.protocol.shared = shared;
        let observed = run_until(drive, |observed| observed.done() >= 60);
        assert_eq!(
            observed.summary.errors, 0,
            "{shared:?} {:?}",
            observed.examples
        );
        assert!(server.connections() > 4, "{}", server.connections());
        counted(&server, &observed, 4);
    }
}

/// Frames by hand: a server that accepts a request and reports by GOAWAY that it did not process it.
#[test]
fn a_stream_beyond_the_last_is_sent_again_by_any_method() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let mut asked = 0;
        for stream in listener.incoming().take(2) {
            let mut stream = stream.unwrap();
            let mut space = [0; 4096];
            // The preface and settings, then the request.
            let mut got = 0;
            stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
            while got < 100 {
                got += stream.read(&mut space).unwrap();
            }
            asked += 1;
            let went_away = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            stream.write_all(&went_away).unwrap();
            while stream.read(&mut space).is_ok_and(|count| count > 0) {}
        }
        asked
    });
    let base = format!("http://{address}").parse().unwrap();
    let mut drive = Make::new(&[]).step(Wait::None, "POST /once").drive(&base);
    drive.protocol.offer = Offer::Two;
    let observed = run_until(drive, |observed| observed.done() >= 1);
    assert_eq!(
        (
            observed.errors(ErrorClass::Reset),
            observed.summary.stale_retries
        ),
        (1, 1)
    );
    assert!(
        observed.examples[0].1.contains("closes the connection"),
        "{:?}",
        observed.examples
    );
    assert_eq!(thread.join().unwrap(), 2);
}

#[track_caller]
fn fails(does: Action, class: ErrorClass, text: &str) -> Observed {
    let server = Two::start(Builder::new(), move |_, _| does.clone());
    let mut drive = server.drive(Make::new(&[]).step(Wait::Constant(ms(1)), "POST /"));
    let is_late = class == ErrorClass::Timeout;
    if is_late {
        drive.limits.request_timeout = ms(200);
    }
    let observed = run_until(drive, |observed| {
        observed.done() >= 2 && !server.requests().is_empty()
    });
    assert_eq!(
        observed.errors(class),
        observed.done(),
        "{:?}",
        observed.examples
    );
    assert!(
        observed.examples[0].1.contains(text),
        "{:?}",
        observed.examples
    );
    assert_eq!(observed.summary.stale_retries, 0);
    // A server that is later than the request's timeout may never read the request.
    if !is_late {
        counted(&server, &observed, 1);
    }
    assert!(Phase::ALL.iter().all(|of| phase(&observed, *of) == 0));
    observed
}

#[test]
fn every_end_of_a_stream_is_told_as_what_it_is() {
    let reset = ErrorClass::Reset;
    fails(
        Action::Resets(Reason::INTERNAL_ERROR),
        reset,
        "reset the stream",
    );
    fails(
        Action::Resets(Reason::HTTP_1_1_REQUIRED),
        reset,
        "`http: 1`",
    );
    fails(Action::Breaks, reset, "before the answer was whole");
    fails(Action::Header(100_000), ErrorClass::Check, "a limit");
    let observed = fails(
        Action::Hangs,
        ErrorClass::Timeout,
        "no whole answer from / in time",
    );
    // A silent connection isn't reused.
    assert!(observed.summary.connects >= observed.done());
}

#[test]
fn a_stream_that_hangs_holds_up_no_other_and_no_place_for_long() {
    let mut builder = Builder::new();
    builder.max_concurrent_streams(2);
    let hangs = |_: usize, path: &str| match path {
        "/hangs" => Action::Hangs,
        _ => Action::Answers(0, Duration::ZERO),
    };
    let server = Two::start(builder, hangs);
    let make = Make::new(&[]).step(Wait::None, "GET /hangs");
    let mut drive = server.drive(make.step(Wait::Constant(ms(1)), "GET /fine"));
    drive.users = 5;
    drive.protocol.shared = Some(1);
    drive.limits.request_timeout = ms(100);
    // On a busy machine, others take as long as the hanging requests.
    let observed = run_until(drive, |observed| {
        observed.errors(ErrorClass::Timeout) >= 3 && observed.transactions(1) >= 3
    });
    let timeouts = observed.errors(ErrorClass::Timeout);
    assert_eq!(observed.summary.errors, timeouts, "{:?}", observed.examples);
}

#[test]
fn who_allows_nothing_is_named_as_the_cause() {
    let mut builder = Builder::new();
    builder.max_concurrent_streams(0);
    let server = Two::start(builder, at_once);
    let mut drive = server.drive(Make::new(&[]).step(Wait::Constant(ms(1)), "GET /"));
    drive.limits.request_timeout = ms(100);
    // A server whose settings are late is silent.
    let named = |observed: &Observed| {
        let mut all = observed.examples.iter();
        all.any(|(_, why)| why.contains("allows 0 requests at once"))
    };
    let observed = run_until(drive, |observed| observed.done() >= 2 && named(observed));
    assert_eq!(observed.errors(ErrorClass::Timeout), observed.done());
    assert!(named(&observed), "{:?}", observed.examples);
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn who_speaks_no_http_2_is_said_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let mut drive = Make::new(&[]).step(Wait::None, "GET /").drive(&base);
    drive.protocol.offer = Offer::Two;
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut space = [0; 1024];
        let _preface = stream.read(&mut space).unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
        while stream.read(&mut space).is_ok_and(|count| count > 0) {}
    });
    let observed = run_until(drive, |observed| observed.done() >= 1);
    let (class, text) = &observed.examples[0];
    assert_eq!(*class, ErrorClass::Connect, "{text}");
    assert!(
        text.contains("doesn't speak HTTP/2") && text.contains("`http: 1`"),
        "{text}"
    );
    thread.join().unwrap();
}

#[test]
fn over_tls_the_server_chooses() {
    let check = |alpn: &[&str], offer: Offer| {
        let server = Two::secure(alpn, at_once);
        let mut drive = server.drive(Make::new(&[]).step(Wait::Constant(ms(1)), "GET /"));
        drive.protocol = Protocol {
            offer,
            shared: None,
        };
        run_until(drive, |observed| observed.done() >= 5)
    };
    for offer in [Offer::Two, Offer::Auto] {
        let observed = check(&["h2", "http/1.1"], offer);
        assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
        assert_eq!(
            (observed.summary.connects, observed.summary.http2_connects),
            (1, 1)
        );
    }
    let observed = check(&["http/1.1"], Offer::Two);
    assert_eq!(observed.errors(ErrorClass::Connect), observed.done());
    assert!(
        observed.examples[0].1.contains("say `http: auto`"),
        "{:?}",
        observed.examples
    );
    // A server without ALPN.
    let observed = check(&[], Offer::Two);
    assert!(
        observed.examples[0].1.contains("say `http: auto`"),
        "{:?}",
        observed.examples
    );
}

#[test]
fn auto_speaks_http_1_where_that_is_all_there_is() {
    let server = Server::answering(|_| crate::common::ok("body"));
    let mut drive = Make::new(&[])
        .step(Wait::Constant(ms(1)), "GET /")
        .drive(&server.base());
    drive.protocol.offer = Offer::Auto;
    let observed = run_until(drive, |observed| observed.done() >= 5);
    assert_eq!((observed.summary.errors, observed.summary.connects), (0, 1));
    assert_eq!(observed.summary.http2_connects, 0);
}
