//! Starts the workers, tells them when to begin and to stop, and collects the summary.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use lab_study::plan::LoadKind;

use crate::client::Client;
use crate::clock::Clock;
use crate::control::Control;
use crate::drive::{BaseUrl, Drive};
use crate::event::{DriveSummary, DriverEvent};
use crate::http::HttpClient;
use crate::http::tls::tls_config;
use crate::merger::{Merger, Outbox, QUEUE};
use crate::script::Script;
use crate::timers::Timers;
use crate::worker::Worker;

/// Emptied windows that may wait for their worker.
const EMPTIED: usize = 4;

/// Why a drive could not start, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The drive contradicts itself, such as no users or a window of no length.
    #[error("this load can't be driven: {0}")]
    Drive(&'static str),
    /// The server's name has no address.
    #[error("{base} has no address")]
    Resolve {
        /// The server.
        base: BaseUrl,
        /// What the resolver said.
        source: io::Error,
    },
    /// The TLS options are unusable.
    #[error("TLS can't be set up: {0}")]
    Tls(String),
    /// A worker thread, its runtime, or its timer could not be made.
    #[error("a worker can't be started")]
    Runtime(#[source] io::Error),
    /// A worker could not be pinned to its core.
    #[error("a worker can't be pinned to core {core}")]
    Pin {
        /// The core.
        core: usize,
        /// What the kernel said.
        source: io::Error,
    },
    /// A user's own variables could not be made.
    #[error("the variables of user {index} can't be made: {detail}")]
    User {
        /// Its index.
        index: u32,
        /// Why.
        detail: String,
    },
    /// A thread of the driver ended by a panic: a defect of this program.
    #[error("a thread of the driver failed")]
    Panicked,
}

/// A running drive: setup at once, ramp and hold after [`Driver::begin`].
///
/// Events must be received until [`DriverEvent::Done`], or their receiver dropped: a full queue of
/// events in the end holds up the workers. Dropping the driver stops it without awaiting it.
#[derive(Debug)]
pub struct Driver {
    clock: Clock,
    control: Arc<Control>,
    threads: Vec<i32>,
    workers: Vec<JoinHandle<()>>,
    merger: Option<JoinHandle<DriveSummary>>,
}

impl Driver {
    /// Starts the workers and, at once, setup: step by step, each step after all users are through
    /// with the one before, [`crate::Limits::setup_concurrency`] users at a time, without waits.
    ///
    /// # Errors
    /// When the drive is unusable, or a worker can't be started.
    pub fn start(drive: Drive, events: SyncSender<DriverEvent>) -> Result<Self, DriverError> {
        let addresses = resolve(&drive.base)?;
        let tls = tls_config(&drive.tls).map_err(DriverError::Tls)?;
        let make = move |drive: &Arc<Drive>, timers: &Timers| {
            Ok(HttpClient::new(
                drive,
                addresses.clone(),
                Arc::clone(&tls),
                timers.clock(),
            ))
        };
        Self::start_with(drive, events, make)
    }

    /// As `start`, with another protocol.
    pub(crate) fn start_with<C: Client>(
        drive: Drive,
        events: SyncSender<DriverEvent>,
        make: impl Fn(&Arc<Drive>, &Timers) -> Result<C, DriverError> + Clone + Send + 'static,
    ) -> Result<Self, DriverError> {
        validate(&drive)?;
        let drive = Arc::new(drive);
        let script = Arc::new(Script::new(&drive.workload));
        let clock = Clock::start();
        let control = Arc::new(Control::new());
        let mut driver = Self {
            clock,
            control: Arc::clone(&control),
            threads: Vec::new(),
            workers: Vec::new(),
            merger: None,
        };
        let count = drive.workers();
        let (queue, reports) = sync_channel(QUEUE);
        let (ready, started) = sync_channel(count);
        let mut returns = Vec::new();
        for number in 0..count {
            let (give_back, emptied) = sync_channel(EMPTIED);
            returns.push(give_back);
            let worker = Worker {
                number,
                first: drive.part.index + drive.part.of * number as u32,
                workers: drive.part.of * count as u32,
                drive: Arc::clone(&drive),
                script: Arc::clone(&script),
                clock,
                orders: control.subscribe(),
                outbox: Outbox {
                    worker: number,
                    queue: queue.clone(),
                },
                emptied,
            };
            let (make, ready, drive) = (make.clone(), ready.clone(), Arc::clone(&drive));
            let run = move || worker.run(move |timers: &Timers| make(&drive, timers), ready);
            driver.workers.push(spawn(format!("users-{number}"), run)?);
        }
        drop((queue, ready));
        let merger = Merger::new(script, clock, control, events, returns);
        driver.merger = Some(spawn("merger".to_owned(), move || merger.run(&reports))?);
        driver.threads = thread_ids(&started, count)?;
        Ok(driver)
    }

    /// Starts ramp and hold; to be called after [`DriverEvent::SetupDone`]. The trial's clock reads
    /// 0 now. A second call changes nothing.
    pub fn begin(&self) -> Clock {
        let zero = self.control.begin(self.clock.nanos());
        self.clock.shifted(std::time::Duration::from_nanos(zero))
    }

    /// The trial's clock; before [`Driver::begin`] it counts from the start of the driver.
    #[must_use]
    pub fn clock(&self) -> Clock {
        let zero = self.control.zero().unwrap_or(0);
        self.clock.shifted(std::time::Duration::from_nanos(zero))
    }

    /// Kernel thread ids of the workers, for `/proc/self/task/TID`.
    #[must_use]
    pub fn worker_threads(&self) -> Vec<i32> {
        self.threads.clone()
    }

    /// Ends the drive at once. The window under way is still told.
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Awaits the end of all workers.
    ///
    /// # Errors
    /// When a thread of the driver panicked.
    pub fn join(mut self) -> Result<DriveSummary, DriverError> {
        let workers: Vec<_> = self.workers.drain(..).map(JoinHandle::join).collect();
        let merger = self.merger.take().ok_or(DriverError::Panicked)?;
        let summary = merger.join().map_err(|_| DriverError::Panicked)?;
        if workers.iter().any(Result::is_err) {
            return Err(DriverError::Panicked);
        }
        Ok(summary)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.control.stop();
    }
}

fn validate(drive: &Drive) -> Result<(), DriverError> {
    if drive.users == 0 {
        return Err(DriverError::Drive("it has no users"));
    }
    if drive.part.index >= drive.part.of {
        return Err(DriverError::Drive(
            "its part of the users is beyond the last",
        ));
    }
    if let LoadKind::Arrival { rate_per_s, .. } = drive.kind
        && !(rate_per_s.is_finite() && rate_per_s > 0.0)
    {
        return Err(DriverError::Drive("its sessions never arrive"));
    }
    if matches!(drive.kind, LoadKind::Sequence { sessions } if sessions == 0 || drive.users != 1) {
        return Err(DriverError::Drive(
            "a sequence is at least one session of one user",
        ));
    }
    if drive.window.is_zero() {
        return Err(DriverError::Drive("its windows have no length"));
    }
    if !drive.user_extra.is_empty() && drive.user_extra.len() != drive.users as usize {
        return Err(DriverError::Drive(
            "it has variables for another number of users",
        ));
    }
    if drive.workload.session.steps.is_empty() {
        return Err(DriverError::Drive("its session has no steps"));
    }
    Ok(())
}

fn resolve(base: &BaseUrl) -> Result<Arc<[SocketAddr]>, DriverError> {
    let fail = |source| DriverError::Resolve {
        base: base.clone(),
        source,
    };
    let found = (base.host.as_str(), base.port)
        .to_socket_addrs()
        .map_err(fail)?;
    let addresses: Arc<[SocketAddr]> = found.collect();
    if addresses.is_empty() {
        return Err(fail(io::ErrorKind::NotFound.into()));
    }
    Ok(addresses)
}

fn spawn<T: Send + 'static>(
    name: String,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, DriverError> {
    std::thread::Builder::new()
        .name(name)
        .spawn(run)
        .map_err(DriverError::Runtime)
}

fn thread_ids(
    started: &Receiver<Result<i32, DriverError>>,
    count: usize,
) -> Result<Vec<i32>, DriverError> {
    (0..count)
        .map(|_| started.recv().unwrap_or(Err(DriverError::Panicked)))
        .collect()
}

#[cfg(test)]
mod tests {
    //! The engine with a client that speaks no protocol at all.

    use super::*;
    use crate::client::{ClientCounts, Exchange, RequestId};
    use crate::event::{ErrorClass, MAX_ERROR_EXAMPLES};
    use crate::timers::Timer;
    use lab_study::model::{Body, DEFAULT_DATES_FROM, Request, Session, Step, Wait, Workload};
    use lab_study::{Template, UserScope};
    use std::sync::Mutex;
    use std::time::Duration;

    /// Answers after a millisecond; request 2 fails.
    struct Silent {
        clock: Clock,
        log: Arc<Mutex<Vec<(u32, RequestId)>>>,
        forgotten: Arc<Mutex<Vec<RequestId>>>,
        panics: bool,
    }

    impl Client for Silent {
        type Session = ();

        fn session(&self) {}

        fn sibling(&self, (): &()) {}

        async fn exchange(
            &self,
            (): &mut (),
            request: RequestId,
            scope: &mut UserScope,
            deadline: &Timer,
        ) -> Exchange {
            assert!(!self.panics, "a defect");
            self.log.lock().unwrap().push((scope.index(), request));
            let sent = self.clock.nanos();
            deadline.sleep_until(sent + 1_000_000).await;
            let failure = crate::client::Failure {
                class: ErrorClass::Check,
                detail: Box::default(),
            };
            let result = if request == 2 { Err(failure) } else { Ok(()) };
            Exchange::Done {
                sent,
                ended: self.clock.nanos(),
                bytes: 0,
                result,
            }
        }

        fn forget(&self, request: RequestId, _: &mut UserScope) {
            self.forgotten.lock().unwrap().push(request);
        }

        fn take_counts(&self) -> ClientCounts {
            ClientCounts::default()
        }
    }

    fn step(requests: usize) -> Step {
        let request = Request {
            method: "GET".to_owned(),
            target: Template::literal("/"),
            headers: Vec::new(),
            body: Body::Empty,
            basic_auth: None,
            expect: vec![200..=200],
            captures: Vec::new(),
        };
        let requests = vec![request; requests];
        Step {
            name: "Step".to_owned(),
            wait: Wait::None,
            repeat: 1,
            requests,
        }
    }

    fn drive(setup: Vec<Step>, steps: Vec<Step>) -> Drive {
        let workload = Workload {
            name: "w".to_owned(),
            about: String::new(),
            user: Vec::new(),
            setup,
            session: Session {
                pace: Some(Duration::from_secs(60)),
                steps,
            },
            probe: None,
            variables: Arc::from([]),
        };
        Drive {
            workload: Arc::new(workload),
            base: "http://127.0.0.1:1".parse().unwrap(),
            tls: crate::TlsOptions::default(),
            kind: LoadKind::Users,
            users: 2,
            part: crate::Part::WHOLE,
            user_extra: Vec::new(),
            seed: 1,
            block: 0,
            base_date: DEFAULT_DATES_FROM,
            cores: Vec::new(),
            ramp: Duration::ZERO,
            hold: Duration::from_millis(100),
            window: Duration::from_millis(10),
            limits: crate::Limits::default(),
        }
    }

    type Logs = (
        Arc<Mutex<Vec<(u32, RequestId)>>>,
        Arc<Mutex<Vec<RequestId>>>,
    );

    fn run(drive: Drive, panics: bool) -> (Result<DriveSummary, DriverError>, Logs) {
        let logs = Logs::default();
        let (log, forgotten) = logs.clone();
        let make = move |_: &Arc<Drive>, timers: &Timers| {
            let (log, forgotten) = (Arc::clone(&log), Arc::clone(&forgotten));
            Ok(Silent {
                clock: timers.clock(),
                log,
                forgotten,
                panics,
            })
        };
        let (sender, events) = sync_channel(8);
        let driver = Driver::start_with(drive, sender, make).unwrap();
        driver.begin();
        let examples = events
            .iter()
            .filter(|e| matches!(e, DriverEvent::ErrorExample { .. }));
        assert!(examples.count() <= MAX_ERROR_EXAMPLES);
        (driver.join(), logs)
    }

    #[test]
    fn requests_go_by_number_and_a_failure_ends_its_step() {
        let (summary, (log, forgotten)) = run(drive(vec![step(1)], vec![step(3), step(1)]), false);
        let summary = summary.unwrap();
        let log = log.lock().unwrap();
        for user in 0..2 {
            let numbers: Vec<_> = log
                .iter()
                .filter(|(u, _)| *u == user)
                .map(|(_, r)| *r)
                .collect();
            // Setup is 0; of the first step's 1, 2, 3 the second fails; then comes 4.
            assert_eq!(numbers, [0, 1, 2, 4]);
        }
        assert_eq!(forgotten.lock().unwrap()[..], [2, 3, 2, 3]);
        assert_eq!(
            (summary.transactions, summary.errors, summary.cycles),
            (4, 2, 2)
        );
        assert_eq!(
            (summary.setup_transactions, summary.stopped_early),
            (2, false)
        );
    }

    #[test]
    fn a_defect_in_a_user_is_not_swallowed() {
        for setup in [vec![], vec![step(1)]] {
            let (summary, _) = run(drive(setup, vec![step(1)]), true);
            assert!(matches!(summary, Err(DriverError::Panicked)));
        }
    }
}
