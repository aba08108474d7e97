//! The conductor's side: starts generators, sends them their parts and orders, and passes what they
//! report to the merger as if their workers were threads of this program.
//!
//! Of each generator three threads wait for a pipe: one for its reports, one for its last words, and
//! one to hand orders on. None does anything per request.

use std::io::{BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use lab_workload::Message;
use tokio::sync::watch;

use super::error::MessageError;
use super::message::{FromGenerator, Start, ToGenerator, WireDrive, WireOrder, read, write};
use crate::clock::Clock;
use crate::control::{Control, Order};
use crate::crew::WorkerThread;
use crate::crew::spawn;
use crate::drive::{Drive, Part};
use crate::error::DriverError;
use crate::report::Report;
use crate::script::Script;

/// How long a generator may take to say that its workers are there.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long a generator may live after its reports have ended.
const END_WITHIN: Duration = Duration::from_secs(5);
/// How much of a generator's last words is kept.
const LAST_WORDS: usize = 2000;

/// Which program generates, and how many times.
#[derive(Debug, Clone)]
pub struct Generators {
    /// A program that calls [`crate::remote::generate`] with its standard input and output.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// How many; user i belongs to generator i modulo this.
    pub count: u32,
}

/// Running generators.
#[derive(Debug)]
pub(crate) struct Links {
    links: Vec<Link>,
    /// Worker threads of each.
    workers: usize,
}

#[derive(Debug)]
struct Link {
    index: u32,
    child: Arc<Mutex<Child>>,
    ready: Receiver<Result<Vec<i32>, String>>,
    /// How the generator ended; none when well.
    reports: JoinHandle<Option<String>>,
    orders: JoinHandle<()>,
}

impl Links {
    /// Starts the generators. Those that are there end when this is dropped.
    pub(crate) fn open(
        drive: &Drive,
        generators: &Generators,
        script: &Arc<Script>,
        clock: Clock,
        control: &Control,
        queue: &SyncSender<(usize, Report)>,
    ) -> Result<Self, DriverError> {
        if generators.count == 0 {
            return Err(DriverError::Drive("it has no generators"));
        }
        let count = generators.count as usize;
        let workload = Message::new(&drive.workload).map_err(|e| unsendable(e.into()))?;
        let mut links = Self {
            links: Vec::new(),
            workers: (drive.cores.len() / count).max(1),
        };
        for index in 0..generators.count {
            let part = part(drive, &workload, (index, generators.count), links.workers);
            let start = Start::new(&part).map_err(unsendable)?;
            let inbox = Inbox {
                script: Arc::clone(script),
                first: index as usize * links.workers,
                workers: links.workers,
                ended: 0,
                queue: queue.clone(),
            };
            let link = Link::open(
                (index, generators),
                start,
                inbox,
                clock,
                control.subscribe(),
            )?;
            links.links.push(link);
        }
        Ok(links)
    }

    /// Workers over all generators.
    pub(crate) fn workers(&self) -> usize {
        self.links.len() * self.workers
    }

    /// Awaits that all workers are there.
    pub(crate) fn threads(&self) -> Result<Vec<WorkerThread>, DriverError> {
        let mut threads = Vec::new();
        for link in &self.links {
            let fail = |detail| DriverError::Generator {
                index: link.index,
                detail,
            };
            let tids = match link.ready.recv_timeout(READY_WITHIN) {
                Ok(ready) => ready.map_err(fail)?,
                Err(_) => return Err(fail("did not say that it is ready".to_owned())),
            };
            let pid = lock(&link.child).id();
            threads.extend(tids.into_iter().map(|tid| WorkerThread { pid, tid }));
        }
        Ok(threads)
    }

    /// Awaits the end of all generators; their workers have ended, or been told to.
    pub(crate) fn close(mut self) -> Result<(), DriverError> {
        let mut failed = None;
        for link in self.links.drain(..) {
            let index = link.index;
            let ended = link.reports.join().map_err(|_| DriverError::Panicked)?;
            link.orders.join().map_err(|_| DriverError::Panicked)?;
            if let Some(detail) = ended {
                failed.get_or_insert(DriverError::Generator { index, detail });
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        for link in &self.links {
            // One that has ended, and has been waited for, is left alone.
            let _gone = lock(&link.child).kill();
        }
    }
}

fn lock(child: &Mutex<Child>) -> std::sync::MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unsendable(error: MessageError) -> DriverError {
    DriverError::Message(Box::new(error))
}

/// What generator `index` is told to drive. Generators have equally many workers, and share cores
/// where there are fewer of them.
fn part(drive: &Drive, workload: &Message, (index, of): (u32, u32), workers: usize) -> WireDrive {
    let part = Part { index, of };
    let first = index as usize * workers;
    let core = |worker| drive.cores[(first + worker) % drive.cores.len()];
    let cores = if drive.cores.is_empty() { 0 } else { workers };
    let extra = drive.user_extra.iter().skip(index as usize);
    WireDrive {
        workload: workload.clone(),
        base: drive.base.to_string(),
        tls: drive.tls.clone(),
        resolve: drive.resolve.clone(),
        kind: drive.kind,
        users: drive.users,
        part,
        user_extra: extra.step_by(part.of as usize).cloned().collect(),
        seed: drive.seed,
        block: drive.block,
        base_date: drive.base_date,
        cores: (0..cores).map(core).collect(),
        own_cores: drive.own_cores,
        ramp: drive.ramp,
        hold: drive.hold,
        window: drive.window,
        limits: drive.limits.clone(),
    }
}

impl Link {
    fn open(
        (index, generators): (u32, &Generators),
        start: Start,
        inbox: Inbox,
        clock: Clock,
        orders: watch::Receiver<Order>,
    ) -> Result<Self, DriverError> {
        let mut command = Command::new(&generators.program);
        command
            .args(&generators.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C is for the conductor, which then ends the generators in order.
            .process_group(0);
        let mut child = command.spawn().map_err(|source| DriverError::Spawn {
            program: generators.program.clone(),
            source,
        })?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(DriverError::Panicked);
        };
        let child = Arc::new(Mutex::new(child));
        let (say, ready) = sync_channel(1);
        let (last, words) = sync_channel(1);
        spawn(format!("words-{index}"), move || keep_words(stderr, &last))?;
        let watched = Arc::clone(&child);
        let reports = spawn(format!("reports-{index}"), move || {
            listen(stdout, inbox, &say, &watched, &words)
        })?;
        let orders = spawn(format!("orders-{index}"), move || {
            hand_on(stdin, start, orders, clock);
        })?;
        Ok(Self {
            index,
            child,
            ready,
            reports,
            orders,
        })
    }
}

/// Sends the part to drive, then each new order, until the last. A generator that is gone is noticed
/// by whoever reads its reports.
fn hand_on(mut stdin: ChildStdin, start: Start, mut orders: watch::Receiver<Order>, clock: Clock) {
    let start = ToGenerator::Start(Box::new(start));
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else {
        return;
    };
    if write(&mut stdin, &start).is_err() {
        return;
    }
    drop(start);
    loop {
        let order = *orders.borrow_and_update();
        let wire = WireOrder {
            setup_step: order.setup_step,
            zero_ns: order.zero.map(|zero| clock.to_shared(zero)),
            stop: order.stop,
        };
        if write(&mut stdin, &ToGenerator::Order(wire)).is_err() || order.stop {
            return;
        }
        if runtime.block_on(orders.changed()).is_err() {
            return;
        }
    }
}

/// Where the reports of one generator go.
struct Inbox {
    script: Arc<Script>,
    /// Number of its first worker among all.
    first: usize,
    workers: usize,
    /// Workers that have ended.
    ended: usize,
    queue: SyncSender<(usize, Report)>,
}

impl Inbox {
    /// Passes a report on, if it can be one of this generator's.
    fn pass(&mut self, worker: usize, report: Report) -> Result<(), MessageError> {
        let sound = match &report {
            Report::Window { window, .. } => window.steps.len() == self.script.recorded_steps(),
            Report::Example(example) if example.setup => example.step < self.script.setup.len(),
            Report::Example(example) => example.step < self.script.recorded_steps(),
            Report::Setup(_) | Report::SetupStepDone(_) => !self.script.setup.is_empty(),
            Report::Ended { .. } => self.ended < self.workers,
        };
        if worker >= self.workers || !sound {
            return Err(MessageError::Nonsense(
                "a report of what is not there".to_owned(),
            ));
        }
        self.ended += usize::from(matches!(report, Report::Ended { .. }));
        // The merger ends before its time only with the drive.
        let _gone = self.queue.send((self.first + worker, report));
        Ok(())
    }

    /// The workers of a generator that is gone have ended.
    fn give_up(&mut self) {
        for worker in self.ended..self.workers {
            let report = Report::Ended { cut: false };
            let _gone = self.queue.send((self.first + worker, report));
        }
        self.ended = self.workers;
    }
}

/// Passes the reports on until they end; then says how the generator ended, unless well.
fn listen(
    stdout: ChildStdout,
    mut inbox: Inbox,
    ready: &SyncSender<Result<Vec<i32>, String>>,
    child: &Mutex<Child>,
    words: &Receiver<String>,
) -> Option<String> {
    let mut from = BufReader::new(stdout);
    let mut said = false;
    let wrong = loop {
        match read(&mut from) {
            Ok(Some(FromGenerator::Ready { threads })) => {
                if threads.len() != inbox.workers || ready.try_send(Ok(threads)).is_err() {
                    break Some("has not the workers that it should have".to_owned());
                }
            }
            Ok(Some(FromGenerator::Report { worker, report })) => {
                let passed = report.into_report().and_then(|r| inbox.pass(worker, r));
                if let Err(error) = passed {
                    break Some(format!("is not understood: {error}"));
                }
            }
            Ok(Some(FromGenerator::Failed { detail })) => {
                said = true;
                break Some(format!("failed: {detail}"));
            }
            Ok(None) => break None,
            Err(MessageError::Io(_)) => break None,
            Err(error) => break Some(format!("is not understood: {error}")),
        }
    };
    let whole = inbox.ended == inbox.workers;
    let (status, words) = end(child, words, wrong.is_some() && !said);
    let why = match wrong {
        Some(wrong) => Some(wrong),
        None if whole && status.is_some_and(|s| s.success()) => None,
        None => Some(ended_by(status)),
    };
    let why = why.map(|why| match words.trim() {
        // It said the same in order.
        _ if said => why,
        "" => why,
        words => format!("{why}; its last words: {words}"),
    });
    if let Some(why) = &why {
        // Only before it was ready does anybody listen.
        let _late = ready.try_send(Err(why.clone()));
    }
    inbox.give_up();
    why
}

fn ended_by(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("ended early with exit code {code}"),
        Some((_, Some(signal))) => format!("was ended by signal {signal}"),
        _ => "ended early".to_owned(),
    }
}

/// Awaits the end of a generator whose reports have ended, and ends it if it does not end.
fn end(
    child: &Mutex<Child>,
    words: &Receiver<String>,
    at_once: bool,
) -> (Option<ExitStatus>, String) {
    let patience = if at_once { Duration::ZERO } else { END_WITHIN };
    // Its errors end with it.
    let early = words.recv_timeout(patience);
    let mut child = lock(child);
    if early.is_err() {
        let _gone = child.kill();
    }
    let status = child.wait().ok();
    drop(child);
    let words = match early {
        Ok(words) => words,
        Err(RecvTimeoutError::Timeout) => words.recv_timeout(END_WITHIN).unwrap_or_default(),
        Err(RecvTimeoutError::Disconnected) => String::new(),
    };
    (status, words)
}

/// Reads what a generator says to nobody, and keeps the end of it.
fn keep_words(mut stderr: ChildStderr, last: &SyncSender<String>) {
    let mut kept = Vec::new();
    let mut bytes = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut bytes) {
        kept.extend_from_slice(&bytes[..count]);
        let over = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..over);
    }
    let _nobody = last.try_send(String::from_utf8_lossy(&kept).into_owned());
}
