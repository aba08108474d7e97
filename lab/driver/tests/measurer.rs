//! The measurer measured: servers whose every delay is known, over real sockets, and the response
//! times that queueing theory computes from them.
//!
//! Other programs on the machine delay threads of the server and of the driver alike, which is no
//! error of the measurement. So each experiment is done up to three times, and the last attempt is
//! judged with the delays that it suffered itself: how late the driver sent, how late the server looked.

mod common;

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use common::{Make, ms};
use hdrhistogram::Histogram;
use lab_driver::{Clock, Drive, Driver, DriverEvent, StepWindow, Window, new_histogram};
use lab_study::model::Wait;
use lab_study::plan::{LoadKind, Spacing};
use lab_study::timing::{ArrivalStream, TimingStream};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;

const ATTEMPTS: u32 = 3;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The experiments would disturb each other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A drive of single GETs that arrive.
fn arrivals(address: SocketAddr, rate_per_s: f64, spacing: Spacing, slots: u32) -> Drive {
    let base = format!("http://{address}").parse().unwrap();
    // Setup opens the connections.
    let make = Make::new(&[]).setup("GET /").step(Wait::None, "GET /");
    let mut drive = make.drive(&base);
    drive.kind = LoadKind::Arrival {
        rate_per_s,
        spacing,
    };
    drive.users = slots;
    drive
}

/// Drives to the end; `begun` gets the trial's clock as soon as there is one.
fn windows(drive: Drive, begun: impl Fn(Clock)) -> Vec<Window> {
    let (sender, events) = sync_channel(256);
    let driver = Driver::start(drive, sender).unwrap();
    let mut windows = Vec::new();
    for event in events {
        match event {
            DriverEvent::SetupDone { .. } => begun(driver.begin()),
            DriverEvent::Window(window) => windows.push(*window),
            _ => {}
        }
    }
    let summary = driver.join().unwrap();
    assert_eq!((summary.errors, summary.dropped), (0, 0));
    windows
}

fn sum(windows: &[Window], of: fn(&StepWindow) -> &Histogram<u64>) -> Histogram<u64> {
    let mut sum = new_histogram();
    windows
        .iter()
        .for_each(|w| sum.add(of(&w.steps[0])).unwrap());
    sum
}

fn quantile_ms(histogram: &Histogram<u64>, q: f64) -> f64 {
    histogram.value_at_quantile(q) as f64 / 1e3
}

fn quantile(mut values: Vec<f64>, q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() as f64 * q) as usize]
}

/// Reads requests from all connections at once, in one thread, and gives each to `request`, which
/// answers. The thread ends with the test's process.
fn server<F>(request: impl Fn(Arc<TcpStream>) -> F + Clone + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                tokio::task::spawn_local(connection(stream, request.clone()));
            }
        });
    });
    address
}

async fn connection<F: Future<Output = ()>>(
    stream: tokio::net::TcpStream,
    request: impl Fn(Arc<TcpStream>) -> F,
) {
    // The same socket under two names: one to await bytes on, one to answer from any thread.
    let stream = stream.into_std().unwrap();
    let answers = Arc::new(stream.try_clone().unwrap());
    let mut stream = tokio::net::TcpStream::from_std(stream).unwrap();
    let mut bytes = Vec::with_capacity(1024);
    while let Ok(1..) = stream.read_buf(&mut bytes).await {
        if bytes.ends_with(b"\r\n\r\n") {
            bytes.clear();
            request(Arc::clone(&answers)).await;
        }
    }
}

/// Two cores, where the machine has them: one for the driver, one for the single worker, which spins.
fn two_cores() -> Option<[usize; 2]> {
    let all = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let mut mine = (0..CpuSet::count()).filter(|core| all.is_set(*core).unwrap());
    Some([mine.next()?, mine.next()?])
}

/// What a single worker did for one request.
#[derive(Clone, Copy)]
struct Served {
    /// As it really lasted, to the end of the answer.
    service: Duration,
    /// How long the worker had not looked when it saw the request.
    unseen: Duration,
}

/// A server with one worker, first come, first served, exponential service times.
///
/// It is one thread that spins, so that no request waits for a thread to be woken: that time would
/// be part of no service, and would stay with all requests of a busy period.
fn single_worker(mean: Duration, core: Option<usize>) -> (SocketAddr, Receiver<Served>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    listener.set_nonblocking(true).unwrap();
    let (log, served) = sync_channel(10_000);
    std::thread::spawn(move || {
        if let Some(core) = core {
            let mut set = CpuSet::new();
            set.set(core).unwrap();
            sched_setaffinity(Pid::from_raw(0), &set).unwrap();
        }
        work(&listener, mean, &log);
    });
    (address, served)
}

fn work(listener: &TcpListener, mean: Duration, log: &SyncSender<Served>) {
    let clock = Clock::start();
    let mut draws = TimingStream::new(20, 0, 0);
    let mut connections: Vec<TcpStream> = Vec::new();
    let mut queue = VecDeque::new();
    let mut in_service: Option<(Duration, Duration)> = None;
    let mut looked = clock.now();
    loop {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true).unwrap();
            stream.set_nodelay(true).unwrap();
            connections.push(stream);
        }
        let before = std::mem::replace(&mut looked, clock.now());
        for (at, mut stream) in connections.iter().enumerate() {
            // Each request is one small segment.
            match stream.read(&mut [0; 4096]) {
                // The driver hangs up when all is over.
                Ok(0) => return,
                Ok(_) => queue.push_back((at, clock.now() - before)),
                Err(_) => {}
            }
        }
        let Some((at, unseen)) = queue.front() else {
            std::thread::yield_now();
            continue;
        };
        let begin = || (clock.now(), draws.next_wait(&Wait::Exponential(mean)));
        let (begun, drawn) = *in_service.get_or_insert_with(begin);
        if clock.now() - begun < drawn {
            continue;
        }
        (&connections[*at]).write_all(ANSWER).unwrap();
        let free = clock.now();
        let (service, unseen) = (free - begun, *unseen);
        log.try_send(Served { service, unseen }).unwrap();
        queue.pop_front();
        // The next one waits no longer than for this answer.
        let next = queue.front();
        in_service = next.map(|_| (free, draws.next_wait(&Wait::Exponential(mean))));
    }
}

/// Lindley's recursion (1952): a request waits for what the one before it waited and was served,
/// less the time between the two. Gives waiting + service, ms.
fn lindley(arrivals: &[Duration], services: &[Duration]) -> Vec<f64> {
    let mut free_from = Duration::ZERO;
    let responses = arrivals.iter().zip(services).map(|(at, service)| {
        free_from = free_from.max(*at) + *service;
        (free_from - *at).as_secs_f64() * 1e3
    });
    responses.collect()
}

/// Median error of the measured response times, ms, and what other programs cost: the p90 of how late
/// the driver sent, and of how late the server looked. One such delay stays for the rest of a busy
/// period, so that the median error has the greater ones in it.
fn lindley_attempt(slots: u32) -> (f64, f64) {
    let (rate, mean) = (150.0, ms(4));
    let cores = two_cores();
    let (address, served) = single_worker(mean, cores.map(|cores| cores[1]));
    let mut drive = arrivals(address, rate, Spacing::Poisson, slots);
    drive.cores = cores.iter().map(|cores| cores[0]).collect();
    // One worker answers one request at a time, so that windows of 1 ms hold one answer each and
    // the histograms tell each response time.
    (drive.hold, drive.window) = (ms(6000), ms(1));
    let stream = ArrivalStream::new(
        drive.seed,
        drive.block,
        rate,
        Spacing::Poisson,
        Duration::ZERO,
    );
    let planned: Vec<_> = stream
        .map(|a| a.at)
        .take_while(|at| *at < drive.hold)
        .collect();
    let windows = windows(drive, |_| {});
    let served: Vec<Served> = served.try_iter().skip(slots as usize).collect();
    let services: Vec<_> = served.iter().map(|s| s.service).collect();
    let unseen = served.iter().map(|s| s.unseen.as_secs_f64() * 1e3);
    let measured: Vec<f64> = windows
        .iter()
        .flat_map(|w| w.steps[0].ok.iter_recorded())
        .flat_map(|v| vec![v.value_iterated_to() as f64 / 1e3; v.count_at_value() as usize])
        .collect();
    assert!(measured.len() > 700 && planned.len() - measured.len() < 100);
    let predicted = lindley(&planned, &services);
    let errors = measured.iter().zip(&predicted).map(|(m, p)| (m - p).abs());
    let mut late = new_histogram();
    windows.iter().for_each(|w| late.add(&w.lateness).unwrap());
    let (error, delay) = (
        quantile(errors.collect(), 0.5),
        quantile_ms(&late, 0.9) + quantile(unseen.collect(), 0.9),
    );
    println!(
        "{} responses, median error {error:.3} ms, delays {delay:.3} ms",
        measured.len()
    );
    (error, delay)
}

#[track_caller]
fn check_lindley(slots: u32) {
    let _alone = alone();
    let mut last = (0.0, 0.0);
    for _ in 0..ATTEMPTS {
        last = lindley_attempt(slots);
        if last.0 < 0.2 {
            return;
        }
    }
    let (error, delay) = last;
    assert!(
        error < 0.2 + 2.0 * delay,
        "median error {error} ms, where other programs cost {delay} ms"
    );
}

#[test]
fn responses_of_a_single_worker_are_those_of_lindleys_recursion() {
    check_lindley(16);
}

#[test]
fn they_are_so_too_where_requests_wait_for_a_connection() {
    check_lindley(2);
}

const PERIOD: Duration = Duration::from_secs(5);
/// In each period the server stalls from here …
const STALL_FROM: Duration = Duration::from_secs(2);
/// … to here.
const STALL_TO: Duration = Duration::from_secs(3);

/// A server that works on any number of requests at once, but stalls 1 s in every 5. It follows the
/// clock that it is given, and before that it doesn't stall.
fn stalling() -> (SocketAddr, Arc<OnceLock<Clock>>) {
    let begun = Arc::new(OnceLock::new());
    let clock: Arc<OnceLock<Clock>> = Arc::clone(&begun);
    let address = server(move |socket| {
        let clock = Arc::clone(&clock);
        async move {
            let into = clock
                .get()
                .map_or(0, |c| c.now().as_micros() % PERIOD.as_micros());
            let into = Duration::from_micros(into as u64);
            if (STALL_FROM..STALL_TO).contains(&into) {
                tokio::time::sleep(STALL_TO - into).await;
            }
            (&*socket).write_all(ANSWER).unwrap();
        }
    });
    (address, begun)
}

/// The response time at quantile `q`, ms: of all requests the share S = 1 s ÷ 5 s falls into a
/// stall, evenly, and waits for its end, so that a share of S × (1 − x ÷ 1 s) takes longer than x.
fn stalled_quantile_ms(q: f64) -> f64 {
    let stall = (STALL_TO - STALL_FROM).as_secs_f64();
    let share = stall / PERIOD.as_secs_f64();
    stall * (1.0 - (1.0 - q) / share) * 1e3
}

/// Response p90 and p99 and service p90, ms, and how long after a stall its last request was
/// answered: that long, waiting requests are still being sent and answered.
fn stall_attempt(slots: u32) -> [f64; 4] {
    let (address, begun) = stalling();
    let mut drive = arrivals(address, 1000.0, Spacing::Constant, slots);
    (drive.hold, drive.window) = (2 * PERIOD, ms(5));
    let windows = windows(drive, |clock| begun.set(clock).unwrap());
    let (response, service) = (sum(&windows, |s| &s.ok), sum(&windows, |s| &s.service));
    let unanswered: u64 = windows.iter().map(|w| w.unanswered.count).sum();
    assert_eq!(response.len(), service.len());
    assert_eq!(response.len() + unanswered, 10_000);
    let backlog = windows.iter().filter(|w| w.steps[0].ok.max() > 50_000);
    let after = backlog.map(|w| {
        let into = w.end.as_millis() % PERIOD.as_millis();
        into as f64 - STALL_TO.as_millis() as f64
    });
    let figures = [
        quantile_ms(&response, 0.90),
        quantile_ms(&response, 0.99),
        quantile_ms(&service, 0.90),
        after.fold(0.0, f64::max),
    ];
    println!("{slots} connections: {figures:.1?}");
    figures
}

/// `service_fits` judges the service p90 beside the response p90, ms.
#[track_caller]
fn check_stall(slots: u32, service_fits: fn(f64, f64) -> bool) {
    let _alone = alone();
    let expected = [0.90, 0.99].map(stalled_quantile_ms);
    assert_eq!(expected.map(f64::round), [500.0, 950.0]);
    let mut figures = [0.0; 4];
    for _ in 0..ATTEMPTS {
        figures = stall_attempt(slots);
        let [p90, p99, service, _] = figures;
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.08;
        if near(p90, expected[0]) && near(p99, expected[1]) && service_fits(p90, service) {
            return;
        }
    }
    // Too slow a machine answers what had to wait no sooner than this.
    let [p90, p99, service, after] = figures;
    for (found, expected) in [(p90, expected[0]), (p99, expected[1])] {
        assert!(
            found > expected * 0.92 && found < expected * 1.08 + after,
            "{figures:?}"
        );
    }
    assert!(service_fits(p90, service - after), "{figures:?}");
}

#[test]
fn a_stall_shows_in_response_times_with_a_connection_per_request() {
    // More connections than requests arrive in a stall: each is sent when planned.
    check_stall(1200, |response, service| service > 0.9 * response);
}

#[test]
fn a_stall_shows_in_response_times_with_few_connections() {
    // 64 requests of a stall are sent, the others wait for a connection: few services are slow.
    check_stall(64, |_, service| service < 5.0);
}
