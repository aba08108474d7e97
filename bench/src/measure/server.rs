//! Servers with known delays, and loads against them.

use std::collections::VecDeque;
use std::future::Future;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use hdrhistogram::Histogram;
use lab_counts::StepWindow;
use lab_driver::{Assignment, Clock, Driver, DriverEvent, Limits, Part, TlsOptions, Window};
use lab_workload::LoadKind;
use lab_workload::Wait;
use lab_workload::timing::TimingStream;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt as _;

use crate::error::Error;

pub(crate) const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) fn as_ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

struct OneFile<'a>(&'a str);

impl lab_study::Files for OneFile<'_> {
    fn read(&self, _path: &str) -> std::io::Result<Vec<u8>> {
        Ok(self.0.as_bytes().to_vec())
    }
}

/// Builds the load of one user, for a second.
pub(crate) fn drive(address: SocketAddr, workload: &str) -> Result<Assignment, Error> {
    let workload = lab_study::load_workload("measure.workload.yaml", &OneFile(workload));
    Ok(Assignment {
        population: String::new(),
        first: 0,
        workload: Arc::new(workload.map_err(|error| Error::Other(error.to_string()))?),
        base: format!("http://{address}")
            .parse()
            .map_err(|error| Error::Other(format!("{error}")))?,
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
        base_date: lab_workload::DEFAULT_DATES_FROM,
        cores: Vec::new(),
        own_cores: false,
        ramp: Duration::ZERO,
        hold: ms(1000),
        stages: Vec::new(),
        timeline: None,
        window: ms(10),
        limits: Limits::default(),
    })
}

/// Runs a load to its end; `begun` receives the trial's clock as soon as there is one.
pub(crate) fn windows(drive: Assignment, begun: impl Fn(Clock)) -> Result<Vec<Window>, Error> {
    let (sender, events) = sync_channel(256);
    let driver = Driver::start(drive, sender)?;
    let mut windows = Vec::new();
    for event in events {
        match event {
            DriverEvent::SetupDone { .. } => begun(driver.begin()?),
            DriverEvent::Window(window) => windows.push(*window),
            _ => {}
        }
    }
    let summary = driver.join()?;
    if (summary.errors, summary.dropped) != (0, 0) {
        return Err(Error::Other(format!("requests failed: {summary:?}")));
    }
    Ok(windows)
}

pub(crate) fn sum(
    windows: &[Window],
    step: usize,
    of: fn(&StepWindow) -> &Histogram<u64>,
) -> Histogram<u64> {
    total(windows.iter().map(|window| of(&window.steps[step])))
}

pub(crate) fn total<'a>(parts: impl Iterator<Item = &'a Histogram<u64>>) -> Histogram<u64> {
    let empty = Histogram::new(3).expect("digits are within 0..=5");
    parts.fold(empty, |mut sum, part| {
        sum += part;
        sum
    })
}

pub(crate) fn quantile_ms(histogram: &Histogram<u64>, q: f64) -> f64 {
    histogram.value_at_quantile(q) as f64 / 1e3
}

/// Reads requests from all connections in one thread, and calls `request` with each, which answers. The thread ends
/// with the program.
pub(crate) fn server<F>(
    request: impl Fn(Arc<TcpStream>) -> F + Clone + Send + 'static,
) -> Result<SocketAddr, Error>
where
    F: Future<Output = ()> + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    std::thread::spawn(move || serve(listener, request));
    Ok(address)
}

fn serve<F>(
    listener: TcpListener,
    request: impl Fn(Arc<TcpStream>) -> F + Clone + 'static,
) -> std::io::Result<()>
where
    F: Future<Output = ()> + 'static,
{
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async move {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::task::spawn_local(connection(stream, request.clone()));
        }
    })
}

async fn connection<F: Future<Output = ()>>(
    stream: tokio::net::TcpStream,
    request: impl Fn(Arc<TcpStream>) -> F,
) -> std::io::Result<()> {
    // The same socket twice: one handle to await bytes on, one to answer from any thread.
    let stream = stream.into_std()?;
    let answers = Arc::new(stream.try_clone()?);
    let mut stream = tokio::net::TcpStream::from_std(stream)?;
    let mut bytes = Vec::with_capacity(1024);
    while stream.read_buf(&mut bytes).await? > 0 {
        if bytes.ends_with(b"\r\n\r\n") {
            bytes.clear();
            request(Arc::clone(&answers)).await;
        }
    }
    Ok(())
}

/// Sends the answer; ignores a client that is gone.
pub(crate) fn answer(mut socket: &TcpStream) {
    let _gone = socket.write_all(ANSWER);
}

/// A server that answers each request after `delay`, any number at once.
pub(crate) fn slow(delay: Duration) -> Result<SocketAddr, Error> {
    server(move |socket| async move {
        // Tokio's wheel rounds up to the next millisecond, so the rest of the wait is a spin.
        let clock = Clock::start();
        tokio::time::sleep(delay.saturating_sub(ms(2))).await;
        while clock.now() < delay {
            tokio::task::yield_now().await;
        }
        answer(&socket);
    })
}

/// Returns two cores, if the machine has them: one for the driver, one for the single worker, which spins.
pub(crate) fn two_cores() -> Result<Option<[usize; 2]>, Error> {
    let all = sched_getaffinity(Pid::from_raw(0))?;
    let mut mine = (0..CpuSet::count()).filter(|core| all.is_set(*core).unwrap_or(false));
    Ok(mine.next().zip(mine.next()).map(|(a, b)| [a, b]))
}

/// One request's service by a single worker.
#[derive(Clone, Copy)]
pub(crate) struct Served {
    /// The real length, to the end of the answer.
    pub(crate) service: Duration,
    /// The time since the worker's previous look when it saw the request.
    pub(crate) unseen: Duration,
}

/// A server with one worker, FIFO, exponential service times.
///
/// It is one thread that spins, so that no request waits for a thread's wake-up: that time would be part of no service,
/// and would stay with all requests of a busy period.
pub(crate) fn single_worker(
    mean: Duration,
    core: Option<usize>,
) -> Result<(SocketAddr, Receiver<Served>), Error> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let (log, served) = sync_channel(10_000);
    std::thread::spawn(move || {
        if let Some(core) = core {
            let mut set = CpuSet::new();
            // Unpinned, it disturbs the driver, which shows in the result.
            let _refused = set
                .set(core)
                .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
        }
        Worker::new(listener, mean, log).work()
    });
    Ok((address, served))
}

struct Worker {
    listener: TcpListener,
    clock: Clock,
    wait: Wait,
    draws: TimingStream,
    log: SyncSender<Served>,
    connections: Vec<TcpStream>,
    /// Each request's connection, and the time since the previous look.
    queue: VecDeque<(usize, Duration)>,
    looked: Duration,
}

impl Worker {
    fn new(listener: TcpListener, mean: Duration, log: SyncSender<Served>) -> Self {
        let clock = Clock::start();
        Self {
            listener,
            clock,
            wait: Wait::Exponential(mean),
            draws: TimingStream::new(20, 0, 0),
            log,
            connections: Vec::new(),
            queue: VecDeque::new(),
            looked: clock.now(),
        }
    }

    /// Works until the driver closes the connections.
    fn work(mut self) -> std::io::Result<()> {
        let mut in_service: Option<(Duration, Duration)> = None;
        while self.look()? {
            let Some((at, unseen)) = self.queue.front().copied() else {
                std::thread::yield_now();
                continue;
            };
            let (begun, drawn) = match in_service {
                Some(one) => one,
                None => (self.clock.now(), self.draws.next_wait(&self.wait)),
            };
            in_service = Some((begun, drawn));
            if self.clock.now() - begun < drawn {
                continue;
            }
            (&self.connections[at]).write_all(ANSWER)?;
            let free = self.clock.now();
            let service = free - begun;
            let _nobody_counts = self.log.try_send(Served { service, unseen });
            self.queue.pop_front();
            // The next one waits no longer than for this answer.
            let next = self.queue.front().is_some();
            in_service = next.then(|| (free, self.draws.next_wait(&self.wait)));
        }
        Ok(())
    }

    /// Accepts connections and reads requests. Returns false when the driver has closed one.
    fn look(&mut self) -> std::io::Result<bool> {
        if let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
            self.connections.push(stream);
        }
        let before = std::mem::replace(&mut self.looked, self.clock.now());
        for (at, mut stream) in self.connections.iter().enumerate() {
            // Each request is one small segment.
            match stream.read(&mut [0; 4096]) {
                Ok(0) => return Ok(false),
                Ok(_) => self.queue.push_back((at, self.clock.now() - before)),
                Err(_) => {}
            }
        }
        Ok(true)
    }
}
