//! Tiny servers over real sockets, small workloads, and a way to run a load until a condition holds.

#![allow(dead_code, reason = "each test program uses its part of it")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use lab_counts::Hist;
use lab_driver::{
    Assignment, BaseUrl, Driver, DriverEvent, DriverSummary, ErrorClass, Limits, Part, TlsOptions,
    Window,
};
use lab_workload::LoadKind;
use lab_workload::Template;
use lab_workload::{Capture, CaptureSource, DEFAULT_DATES_FROM, Request, Step, Wait, Workload};

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Waits in a server that simulates slowness.
pub(crate) fn pass(time: Duration) {
    let (_kept, nothing) = sync_channel::<()>(1);
    nothing.recv_timeout(time).unwrap_err();
}

/// A request as a server receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Method and target.
    pub(crate) line: String,
    /// The lines as received.
    pub(crate) headers: Vec<String>,
    /// The text, decoded as far as possible.
    pub(crate) body: String,
    /// The bytes as received.
    pub(crate) bytes: Vec<u8>,
    /// Number of the connection, from 0.
    pub(crate) connection: usize,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// One connection of a test server.
pub(crate) struct Peer<S> {
    pub(crate) stream: S,
    pub(crate) number: usize,
    log: Arc<Mutex<Vec<Seen>>>,
}

impl<S: Read + Write> Peer<S> {
    pub(crate) fn new(stream: S, number: usize, log: Arc<Mutex<Vec<Seen>>>) -> Self {
        Self {
            stream,
            number,
            log,
        }
    }

    /// Returns the next request; none when the client closes.
    pub(crate) fn request(&mut self) -> Option<Seen> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            match self.stream.read(&mut byte) {
                Ok(1) => head.push(byte[0]),
                _ => return None,
            }
        }
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().split("\r\n").map(str::to_owned);
        let line = lines.next().unwrap();
        let line = line.strip_suffix(" HTTP/1.1").expect("HTTP/1.1").to_owned();
        let mut seen = Seen {
            line,
            headers: lines.collect(),
            body: String::new(),
            bytes: Vec::new(),
            connection: self.number,
        };
        let length = seen
            .header("content-length")
            .map_or(0, |n| n.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        seen.body = String::from_utf8_lossy(&body).into_owned();
        seen.bytes = body;
        self.log.lock().unwrap().push(seen.clone());
        Some(seen)
    }

    /// Sends text. Returns false if the client has closed, which is not an error.
    pub(crate) fn send(&mut self, text: impl AsRef<[u8]>) -> bool {
        self.stream
            .write_all(text.as_ref())
            .and_then(|()| self.stream.flush())
            .is_ok()
    }

    /// Sends 200 with this body.
    pub(crate) fn ok(&mut self, body: &str) -> bool {
        self.send(ok(body))
    }
}

pub(crate) fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A server on a port of its own; ends when dropped.
pub(crate) struct Server {
    port: u16,
    pub(crate) log: Arc<Mutex<Vec<Seen>>>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    stop: Arc<AtomicBool>,
    accepts: Option<JoinHandle<()>>,
}

impl Server {
    /// Runs `handle` for each connection in a thread of its own.
    pub(crate) fn start(handle: impl Fn(Peer<TcpStream>) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut server = Self {
            port: listener.local_addr().unwrap().port(),
            log: Arc::default(),
            open: Arc::default(),
            stop: Arc::default(),
            accepts: None,
        };
        let (log, open, stop) = (
            Arc::clone(&server.log),
            Arc::clone(&server.open),
            Arc::clone(&server.stop),
        );
        let handle = Arc::new(handle);
        server.accepts = Some(std::thread::spawn(move || {
            let mut threads = Vec::new();
            for (number, stream) in listener.incoming().flatten().enumerate() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                stream.set_nodelay(true).unwrap();
                open.lock().unwrap().push(stream.try_clone().unwrap());
                let (handle, log, open) =
                    (Arc::clone(&handle), Arc::clone(&log), Arc::clone(&open));
                threads.push(std::thread::spawn(move || {
                    let address = stream.peer_addr();
                    handle(Peer::new(stream, number, log));
                    // The other handle would keep the connection open.
                    open.lock()
                        .unwrap()
                        .retain(|s| s.peer_addr().ok() != address.as_ref().ok().copied());
                }));
            }
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        }));
        server
    }

    /// Responds to each request with the result of `answer`.
    pub(crate) fn answering(answer: impl Fn(&Seen) -> String + Send + Sync + 'static) -> Self {
        Self::start(move |mut peer| {
            while let Some(seen) = peer.request() {
                if !peer.send(answer(&seen)) {
                    break;
                }
            }
        })
    }

    pub(crate) fn base(&self) -> BaseUrl {
        format!("http://127.0.0.1:{}", self.port).parse().unwrap()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.log.lock().unwrap().clone()
    }

    /// Returns methods and targets in the order received.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _wake = TcpStream::connect(("127.0.0.1", self.port));
        for stream in self.open.lock().unwrap().drain(..) {
            let _closed = stream.shutdown(Shutdown::Both);
        }
        if let Some(thread) = self.accepts.take() {
            let ended = thread.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "a test server failed"
            );
        }
    }
}

/// A workload under construction.
pub(crate) struct Make {
    pub(crate) workload: Workload,
}

impl Make {
    /// Returns a workload without steps; `variables` are the names for `user`, captures, and templates.
    pub(crate) fn new(variables: &[&str]) -> Self {
        let variables: Vec<String> = variables.iter().map(|&v| v.to_owned()).collect();
        Self {
            workload: Workload {
                variables: variables.into(),
                ..Workload::of("test", Vec::new())
            },
        }
    }

    pub(crate) fn template(&self, text: &str) -> Template {
        Template::parse(text, &self.workload.variables).unwrap()
    }

    pub(crate) fn user(mut self, name: &str, text: &str) -> Self {
        self.workload
            .user
            .push((name.to_owned(), self.template(text)));
        self
    }

    pub(crate) fn pace(mut self, pace: Duration) -> Self {
        self.workload.session.pace = Some(pace);
        self
    }

    /// Returns a request from `METHOD target`.
    pub(crate) fn request(&self, text: &str) -> Request {
        let (method, target) = text.split_once(' ').unwrap();
        Request {
            method: method.to_owned(),
            ..Request::get(self.template(target))
        }
    }

    /// Adds a step of one request.
    pub(crate) fn step(self, wait: Wait, request: &str) -> Self {
        self.step_with(wait, request, |request, _| request)
    }

    pub(crate) fn step_with(
        mut self,
        wait: Wait,
        request: &str,
        change: impl FnOnce(Request, &Self) -> Request,
    ) -> Self {
        let request = change(self.request(request), &self);
        self.workload.session.steps.push(one(request, wait));
        self
    }

    pub(crate) fn setup(mut self, request: &str) -> Self {
        let request = self.request(request);
        self.workload.setup.push(one(request, Wait::None));
        self
    }

    pub(crate) fn capture(&self, variable: &str, source: CaptureSource) -> Capture {
        let slot = self
            .workload
            .variables
            .iter()
            .position(|v| v == variable)
            .unwrap();
        Capture {
            variable: variable.to_owned(),
            slot: slot as u16,
            source,
        }
    }

    pub(crate) fn json(&self, variable: &str, path: &str) -> Capture {
        let path = lab_workload::JsonPath::parse(path).unwrap();
        self.capture(variable, CaptureSource::JsonPath(Box::new(path)))
    }

    pub(crate) fn drive(self, server: &BaseUrl) -> Assignment {
        Assignment {
            population: String::new(),
            first: 0,
            workload: Arc::new(self.workload),
            base: server.clone(),
            tls: TlsOptions::default(),
            resolve: Vec::new(),
            sources: Vec::new(),
            protocol: lab_driver::Protocol::default(),
            kind: LoadKind::Users,
            users: 1,
            part: Part::whole(),
            user_extra: Vec::new(),
            seed: 7,
            block: 0,
            base_date: DEFAULT_DATES_FROM,
            cores: Vec::new(),
            own_cores: false,
            ramp: Duration::ZERO,
            hold: Duration::from_secs(600),
            stages: Vec::new(),
            timeline: None,
            window: ms(10),
            limits: Limits::default(),
        }
    }
}

fn one(request: Request, wait: Wait) -> Step {
    let name = request.target.source().to_owned();
    Step {
        wait,
        ..Step::of(&name, vec![request])
    }
}

/// The events of a load.
#[derive(Default)]
pub(crate) struct Observed {
    pub(crate) windows: Vec<Window>,
    /// Class and detail.
    pub(crate) examples: Vec<(ErrorClass, String)>,
    /// The ids of the traces that these requests began.
    pub(crate) traces: Vec<String>,
    pub(crate) setup: Option<(u64, u64, u64)>,
    pub(crate) summary: DriverSummary,
}

impl Observed {
    /// Returns the number of successful requests of a step.
    pub(crate) fn transactions(&self, step: usize) -> u64 {
        self.windows
            .iter()
            .map(|w| w.steps[step].transactions())
            .sum()
    }

    pub(crate) fn errors(&self, class: ErrorClass) -> u64 {
        let of = |w: &Window| w.steps.iter().map(|s| s.counts.errors[class]).sum::<u64>();
        self.windows.iter().map(of).sum()
    }

    pub(crate) fn skipped(&self, step: usize) -> u64 {
        self.windows
            .iter()
            .map(|w| w.steps[step].counts.skipped)
            .sum()
    }

    /// Returns the number of results of any kind, skips included.
    pub(crate) fn done(&self) -> u64 {
        let of = |w: &Window| {
            w.steps
                .iter()
                .map(|s| s.transactions() + s.failed() + s.counts.skipped)
                .sum::<u64>()
        };
        self.windows.iter().map(of).sum()
    }

    /// Returns the response times of a step's transactions.
    pub(crate) fn times(&self, step: usize) -> Hist {
        let mut sum = Hist::default();
        self.windows
            .iter()
            .for_each(|w| sum.add(&w.steps[step].times.ok).unwrap());
        sum
    }
}

/// Runs the load until `enough` holds for the events so far, or the hold ends.
pub(crate) fn run_until(drive: Assignment, enough: impl Fn(&Observed) -> bool) -> Observed {
    let (sender, events) = sync_channel(16);
    let driver = Driver::start(drive, sender).unwrap();
    let mut observed = Observed::default();
    for event in events {
        match event {
            DriverEvent::SetupDone {
                transactions,
                errors,
                skipped,
                ..
            } => {
                observed.setup = Some((transactions, errors, skipped));
                driver.begin().unwrap();
            }
            DriverEvent::SetupProgress { .. } | DriverEvent::Script(_) => {}
            DriverEvent::Window(window) => {
                observed.windows.push(*window);
                if enough(&observed) {
                    driver.stop();
                }
            }
            DriverEvent::ErrorExample {
                class,
                detail,
                trace,
                ..
            } => {
                observed.examples.push((class, detail));
                observed.traces.extend(trace);
            }
            DriverEvent::Done => break,
        }
    }
    observed.summary = driver.join().unwrap();
    observed
}

/// Runs the load to the end of the hold.
pub(crate) fn run(drive: Assignment) -> Observed {
    run_until(drive, |_| false)
}
