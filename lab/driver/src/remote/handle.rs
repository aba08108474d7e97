//! The conductor's side: sends generators their parts and orders, and passes their reports to the merger as if their
//! workers were threads of this program. A generator's [`Place`] knows where it runs.
//!
//! Each generator has two threads: one reads its reports, and one sends it orders. Neither does anything per request.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use lab_workload::LoadKind;
use tokio::sync::watch;

use super::channel::{FrameSink, FrameSource};
use super::content;
use super::error::MessageError;
use super::inbox::Inbox;
use super::message::{FromGenerator, Start, ToGenerator, WireOrder, receive_message, send_message};
use super::peer::{End, Peer, Place};
use crate::assignment::Assignment;
use crate::clock::Clock;
use crate::control::{Control, Order};
use crate::crew::{WorkerThread, spawn};
use crate::error::DriverError;
use crate::mix::Mix;
use crate::outline::Outline;
use lab_recorder::report::Queue;
use lab_workload::part::Part;

/// Returns the timeout for a generator's ready message, with time to receive files at a MiB/s.
fn ready_within(mix: &Mix) -> Duration {
    let bytes: u64 = mix
        .assignments()
        .map(|drive| content::bytes(&drive.workload))
        .sum();
    Duration::from_secs(60 + (bytes >> 20))
}

/// The timeout for a generator's end after its workers' end: the number of checks, and the time between them.
const END_CHECKS: u32 = 3000;
const END_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Running generators.
#[derive(Debug)]
pub(crate) struct GeneratorHandles {
    handles: Vec<GeneratorHandle>,
    ready_within: Duration,
}

struct GeneratorHandle {
    place: Arc<dyn Place>,
    workers: usize,
    ready: Receiver<Result<Vec<i32>, DriverError>>,
    /// Receives the generator's confirmation of the trial's 0.
    armed: Receiver<()>,
    /// Returns why the generator failed; none if it did not.
    reports: JoinHandle<Option<DriverError>>,
    orders: JoinHandle<()>,
}

impl std::fmt::Debug for GeneratorHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with {} workers", self.place.name(), self.workers)
    }
}

/// The state that all generators of a load share.
pub(crate) struct Common<'a> {
    pub(crate) mix: &'a Mix,
    pub(crate) outline: &'a Arc<Outline>,
    pub(crate) clock: Clock,
    pub(crate) control: &'a Control,
    pub(crate) queue: &'a Queue,
}

impl GeneratorHandles {
    /// Sends the generators their load specs. They end when this is dropped.
    pub(crate) fn open(common: &Common<'_>, peers: Vec<Peer>) -> Result<Self, DriverError> {
        let weights: Vec<u32> = peers.iter().map(|peer| peer.weight).collect();
        let parts = Part::by_weights(&weights);
        let parts = parts.ok_or(DriverError::Load("its generators have no parts"))?;
        let mut handles = Self {
            handles: Vec::new(),
            ready_within: ready_within(common.mix),
        };
        let mut first = 0;
        for (peer, part) in peers.into_iter().zip(parts) {
            let drives = common.mix.assignments();
            let drives =
                drives.map(|drive| drive.for_generator(part.clone(), &peer.cores, peer.own_cores));
            let start = Start::new(&drives.collect::<Vec<_>>()).map_err(unsendable)?;
            let drive = common.mix.first();
            let workers = workers(drive, &peer);
            let inbox = Inbox::new(drive, common.outline, (first, workers), common.queue);
            first += workers;
            handles
                .handles
                .push(GeneratorHandle::open(common, peer, start, inbox)?);
        }
        Ok(handles)
    }

    /// Returns the number of workers over all generators.
    pub(crate) fn workers(&self) -> usize {
        self.handles.iter().map(|handle| handle.workers).sum()
    }

    /// Waits until all workers have started. Returns those of this machine.
    pub(crate) fn threads(&self) -> Result<Vec<WorkerThread>, DriverError> {
        let mut threads = Vec::new();
        for handle in &self.handles {
            let tids = match handle.ready.recv_timeout(self.ready_within) {
                Ok(ready) => ready?,
                Err(_) => return Err(failed(&*handle.place, "did not say that it is ready")),
            };
            if let Some(pid) = handle.place.process() {
                threads.extend(tids.into_iter().map(|tid| WorkerThread { pid, tid }));
            }
        }
        Ok(threads)
    }

    /// Returns how long before the trial's 0 the generators must know it.
    pub(crate) fn notice(&self) -> Duration {
        let notices = self.handles.iter().map(|handle| handle.place.notice());
        notices.max().unwrap_or_default()
    }

    /// Waits for the confirmations of the trial's 0, until a quarter of the notice is left; then waits until 0. Only
    /// some generators must confirm.
    pub(crate) fn arm(&self, clock: Clock, zero: Duration) -> Result<(), DriverError> {
        let must = || self.handles.iter().filter(|handle| handle.place.must_arm());
        let until = zero.saturating_sub(self.notice() / 4);
        for handle in must() {
            let left = until.saturating_sub(clock.now());
            if handle.armed.recv_timeout(left).is_err() {
                let detail = "did not say in time that it knows when the trial begins";
                return Err(DriverError::Lost {
                    name: handle.place.name(),
                    detail: detail.to_owned(),
                });
            }
        }
        while must().next().is_some() && clock.now() < zero {
            std::thread::park_timeout(zero.saturating_sub(clock.now()));
        }
        Ok(())
    }

    /// Waits for the end of all generators; their workers have ended, or been stopped.
    pub(crate) fn close(mut self) -> Result<(), DriverError> {
        let mut failed = None;
        for handle in self.handles.drain(..) {
            if !ends_in_time(&handle.reports) {
                handle.place.kill();
            }
            let ended = handle.reports.join().map_err(|_| DriverError::Panicked)?;
            handle.orders.join().map_err(|_| DriverError::Panicked)?;
            failed = failed.or(ended);
        }
        failed.map_or(Ok(()), Err)
    }
}

impl Drop for GeneratorHandles {
    fn drop(&mut self) {
        self.handles.iter().for_each(|handle| handle.place.kill());
    }
}

/// Returns true if a generator with ended workers ends in time, even with a slow machine or network.
fn ends_in_time<T>(reports: &JoinHandle<T>) -> bool {
    for _ in 0..END_CHECKS {
        if reports.is_finished() {
            return true;
        }
        std::thread::park_timeout(END_CHECK_INTERVAL);
    }
    false
}

fn unsendable(error: MessageError) -> DriverError {
    DriverError::Message(Box::new(error))
}

fn failed(place: &dyn Place, detail: &str) -> DriverError {
    DriverError::Generator {
        name: place.name(),
        detail: detail.to_owned(),
    }
}

/// Returns the number of workers that a generator has for a load spec, as it counts them itself.
fn workers(drive: &Assignment, peer: &Peer) -> usize {
    match drive.kind {
        LoadKind::Sequence { .. } => 1,
        LoadKind::Users | LoadKind::Arrival { .. } => peer.cores.len().max(1),
    }
}

impl GeneratorHandle {
    fn open(
        common: &Common<'_>,
        peer: Peer,
        start: Start,
        inbox: Inbox,
    ) -> Result<Self, DriverError> {
        let place: Arc<dyn Place> = Arc::from(peer.place);
        let name = place.name();
        let (say, ready) = sync_channel(1);
        let (arm, armed) = sync_channel(1);
        let workers = inbox.workers();
        let listener = Listener {
            place: Arc::clone(&place),
            inbox,
            ready: say,
            is_ready: false,
            armed: arm,
        };
        let source = peer.reports;
        let reports = spawn(format!("from {name}"), move || listener.listen(source))?;
        let (of, clock, orders) = (Arc::clone(&place), common.clock, common.control.subscribe());
        let first = (start, common.mix.clone());
        let hand_on = move || send_orders(peer.orders, first, orders, (clock, &*of));
        Ok(Self {
            place,
            workers,
            ready,
            armed,
            reports,
            orders: spawn(format!("to {name}"), hand_on)?,
        })
    }
}

/// Sends the part to run, then each new order, until the last. The reader of a generator's reports detects its loss.
fn send_orders(
    mut to: Box<dyn FrameSink + Send>,
    (start, mix): (Start, Mix),
    mut orders: watch::Receiver<Order>,
    (clock, place): (Clock, &dyn Place),
) {
    let start = ToGenerator::Start(Box::new(start));
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else {
        return;
    };
    let mut drives = mix.assignments();
    if send_message(&mut to, &start).is_err()
        || drives.any(|drive| content::send(&drive.workload, &mut to).is_err())
    {
        return;
    }
    drop(drives);
    drop((start, mix));
    loop {
        let order = *orders.borrow_and_update();
        let zero = order.zero.map(|zero| clock.to_shared(zero));
        let wire = WireOrder {
            setup_step: order.setup_step,
            zero_ns: zero.map(|zero| place.moment(zero)),
            stop: order.stop,
        };
        if send_message(&mut to, &ToGenerator::Order(wire)).is_err() || order.stop {
            return;
        }
        if runtime.block_on(orders.changed()).is_err() {
            return;
        }
    }
}

/// Reads the reports of one generator.
struct Listener {
    place: Arc<dyn Place>,
    inbox: Inbox,
    ready: SyncSender<Result<Vec<i32>, DriverError>>,
    is_ready: bool,
    armed: SyncSender<()>,
}

/// A failure that a generator reported, or a defect of its reports.
enum Wrong {
    Said(String),
    Seen(String),
}

impl Listener {
    /// Passes the reports on until they end. Returns why the generator failed, if it did.
    fn listen(mut self, mut from: impl FrameSource) -> Option<DriverError> {
        let wrong = self.pass_all(&mut from).err();
        let at_once = matches!(wrong, Some(Wrong::Seen(_)));
        let end = self.place.end(at_once);
        let ended = self.inbox.all_ended();
        let failure = why(wrong, end, ended).map(|(detail, lost)| {
            let name = self.place.name();
            match lost {
                true => DriverError::Lost { name, detail },
                false => DriverError::Generator { name, detail },
            }
        });
        self.inbox.give_up();
        match failure {
            // The caller that waits for the ready message receives the failure there.
            Some(failure) if !self.is_ready => {
                let _nobody_waits = self.ready.try_send(Err(failure));
                None
            }
            failure => failure,
        }
    }

    fn pass_all(&mut self, from: &mut impl FrameSource) -> Result<(), Wrong> {
        let unread = |error: MessageError| Wrong::Seen(format!("is not understood: {error}"));
        loop {
            let message = match receive_message(from) {
                Ok(Some(message)) => message,
                Ok(None) | Err(MessageError::Io(_)) => return Ok(()),
                Err(error) => return Err(unread(error)),
            };
            match message {
                FromGenerator::Ready { threads } => {
                    if self.is_ready || threads.len() != self.inbox.workers() {
                        let wrong = "has not the workers that it should have";
                        return Err(Wrong::Seen(wrong.to_owned()));
                    }
                    self.is_ready = true;
                    let _nobody_waits = self.ready.try_send(Ok(threads));
                }
                FromGenerator::Armed => {
                    // Only the first confirmation counts.
                    let _again = self.armed.try_send(());
                }
                FromGenerator::Report { worker, report } => {
                    self.inbox.pass(worker, report).map_err(unread)?;
                }
                FromGenerator::Failed { detail } => {
                    return Err(Wrong::Said(format!("failed: {detail}")));
                }
            }
        }
    }
}

/// Returns why a generator failed, and whether it was lost.
fn why(wrong: Option<Wrong>, end: End, all_ended: bool) -> Option<(String, bool)> {
    let why = match (wrong, end.wrong) {
        // The end of its error output only repeats the reported failure.
        (Some(Wrong::Said(said)), _) => return Some((said, false)),
        (Some(Wrong::Seen(seen)), _) => seen,
        (None, None) if all_ended => return None,
        (None, how) => how.unwrap_or_else(|| "ended early".to_owned()),
    };
    let why = match end.words.trim() {
        "" => why,
        words => format!("{why}; its last words: {words}"),
    };
    Some((why, end.lost))
}
