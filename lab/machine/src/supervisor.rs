//! An agent's machine, for the trials of a system in a run: it executes orders, and restores the machine when the
//! conductor's connection is lost. It knows no network and no lease.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lab_driver::remote::{FrameSink, FrameSource, MessageError};
use lab_host::clock::shared;
use lab_monitor::{Monitor, MonitorSpec};

use crate::allow::Allowed;
use crate::attached::AttachedProcess;
use crate::environment::{HostReadings, ProgramSnapshot, used};
use crate::error::{Failed, MachineError};
use crate::host_session::{HeldSystem, HostSession, SYSTEM, keep_users, restore_host};
use crate::machine::Machine;
use crate::message::{
    Counting, MOST_ORDER, Order, PIECE, Report, Setup, decode_order, encode, encode_piece,
};
use crate::schedule::next_due;
use crate::slots::Slot;
use crate::state::starting_state;
use crate::workspace::Workspace;

/// Locked by the agent that uses the folder.
const LOCK: &str = "systems.lock";
/// Most queued orders, each of at most [`MOST_ORDER`] bytes.
const QUEUE: usize = 4;
/// Longest wait without a system: an idle agent must not disturb the machine.
const IDLE: Duration = Duration::from_secs(1);
/// Longest wait between two checks of the system.
const SYSTEM_CHECK: Duration = Duration::from_millis(50);

/// Shortest interval between two readings of counters: more would load the machine.
const MIN_INTERVAL: Duration = Duration::from_millis(10);

/// A machine that runs systems for trials.
#[derive(Debug)]
pub struct Supervisor {
    session: HostSession,
    /// Locked while it lives: a second agent would clean up its running trial as a leftover.
    _alone: File,
    /// One run at a time: the machine is restored before the next one gets it.
    turn: Mutex<()>,
}

impl Supervisor {
    /// Restores what a killed agent left changed.
    ///
    /// # Errors
    /// When that can't be done; when another agent has this folder.
    pub fn new(
        allowed: Allowed,
        program: PathBuf,
        state: PathBuf,
        cores: Vec<u32>,
    ) -> Result<Self, MachineError> {
        let alone = alone(&state)?;
        restore_host(&state)?;
        let site = HostSession {
            allowed,
            program,
            state,
            cores,
        };
        for folder in site.allowed.folders() {
            // Made and dropped: this removes leftovers.
            drop(site.work(folder)?);
        }
        Ok(Self {
            session: site,
            _alone: alone,
            turn: Mutex::new(()),
        })
    }

    /// Executes orders until they end, and restores the machine. The orders of a duet are for two systems.
    ///
    /// # Errors
    /// In words, when the machine can't be restored, or an order can't be parsed.
    pub fn serve(
        &self,
        orders: impl FrameSource + Send + 'static,
        reports: impl FrameSink + Send,
    ) -> Result<(), String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = Shared::default();
        let [left, right] = listen(orders, Arc::clone(&shared.gone)).map_err(told)?;
        let reports = Mutex::new(reports);
        let attend = |slot: Slot, orders: Receiver<Vec<u8>>| {
            let mut post = Post::new(self, &shared, slot);
            let served = post.attend(&orders, &mut SlotSink { slot, to: &reports });
            if served.is_err() {
                shared.over.store(true, Ordering::Relaxed);
            }
            served
        };
        let attend = &attend;
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("right".to_owned());
            let right = thread.spawn_scoped(scope, move || attend(Slot::Right, right));
            let right = right.map_err(told)?;
            let left = attend(Slot::Left, left);
            let right = right
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            left.and(right)
        })
    }
}

fn told(error: io::Error) -> String {
    error.to_string()
}

/// State shared by both systems of a trial.
#[derive(Default)]
struct Shared {
    /// The orders have ended.
    gone: Arc<AtomicBool>,
    /// One system can't continue, and therefore none.
    over: AtomicBool,
    workspace: Workspace,
}

/// Sends the reports of one system.
struct SlotSink<'a, S> {
    slot: Slot,
    to: &'a Mutex<S>,
}

impl<S: FrameSink> FrameSink for SlotSink<'_, S> {
    fn send(&mut self, frame: &[u8]) -> Result<(), MessageError> {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        to.send(&self.slot.mark(frame))
    }
}

/// Locks the folder of an agent for as long as the file is open.
fn alone(state: &Path) -> Result<File, MachineError> {
    let failed = |source| MachineError::Scratch {
        path: state.to_path_buf(),
        source,
    };
    fs::create_dir_all(state).map_err(failed)?;
    let file = File::create(state.join(LOCK)).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(MachineError::Taken {
            path: state.to_path_buf(),
        }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Receives orders for both systems on its own thread, so that their end is noticed at once.
fn listen(
    mut orders: impl FrameSource + Send + 'static,
    gone: Arc<AtomicBool>,
) -> io::Result<[Receiver<Vec<u8>>; 2]> {
    let (left, for_left) = sync_channel(QUEUE);
    let (right, for_right) = sync_channel(QUEUE);
    let thread = std::thread::Builder::new().name("orders".to_owned());
    thread.spawn(move || {
        hear(&mut orders, &[left, right]);
        gone.store(true, Ordering::Relaxed);
    })?;
    Ok([for_left, for_right])
}

fn hear(orders: &mut impl FrameSource, into: &[SyncSender<Vec<u8>>; 2]) {
    while let Ok(Some(mut order)) = orders.receive() {
        // A long order is refused by its first bytes, and an order without a system by all of them.
        order.truncate(1 + MOST_ORDER + 1);
        let slot = Slot::take(&mut order).unwrap_or(Slot::Left);
        order.shrink_to_fit();
        // A client that awaits answers never fills the queue, and waiting here would miss the end of the orders.
        if into[slot.at()].try_send(order).is_err() {
            return;
        }
    }
}

/// The supervisor of one system.
struct Post<'a> {
    supervisor: &'a Supervisor,
    shared: &'a Shared,
    slot: Slot,
    held: Option<HeldSystem>,
    /// A system that was already running.
    watched: Option<AttachedProcess>,
    counter: Option<Counter>,
    /// The programs before the system was started or watched.
    looked: Option<ProgramSnapshot>,
    around: Option<HostReadings>,
}

/// Counters read at regular times.
struct Counter {
    monitor: Monitor,
    counting: Counting,
    due: Duration,
}

impl Counter {
    /// Time since the trial's 0.
    fn now(&self) -> Duration {
        Duration::from_nanos(shared().saturating_sub(self.counting.zero))
    }

    /// The counters, if due.
    fn row(&mut self) -> Option<Report> {
        let now = self.now();
        let before_zero = shared() < self.counting.zero;
        let end = Duration::from_nanos(self.counting.end_ns);
        if before_zero || now < self.due || now > end {
            return None;
        }
        let every = Duration::from_nanos(self.counting.every_ns).max(MIN_INTERVAL);
        self.due = next_due(self.due, every, now, end);
        let at = self.counting.zero.saturating_add(now.as_nanos() as u64);
        let values = self.monitor.sample(now);
        Some(Report::Row { at, values })
    }

    fn wait(&self) -> Duration {
        let to_zero = self.counting.zero.saturating_sub(shared());
        let (now, end) = (self.now(), Duration::from_nanos(self.counting.end_ns));
        match now > end {
            true => SYSTEM_CHECK,
            false => self
                .due
                .saturating_sub(now)
                .saturating_add(Duration::from_nanos(to_zero)),
        }
    }
}

impl<'a> Post<'a> {
    fn new(supervisor: &'a Supervisor, shared: &'a Shared, slot: Slot) -> Self {
        Self {
            supervisor,
            shared,
            slot,
            held: None,
            watched: None,
            counter: None,
            looked: None,
            around: None,
        }
    }

    /// Executes all orders until they end, and then restores the machine.
    fn attend(
        &mut self,
        orders: &Receiver<Vec<u8>>,
        reports: &mut impl FrameSink,
    ) -> Result<(), String> {
        let served = self.serve(orders, reports);
        let closed = self.close();
        // A closed connection needs no further reports.
        let served = match served {
            Err(MessageError::Io(_)) => Ok(()),
            served => served.map_err(|error| error.to_string()),
        };
        closed.map_err(|error| error.to_string()).and(served)
    }

    fn gone(&self) -> &'a AtomicBool {
        &self.shared.gone
    }

    fn serve(
        &mut self,
        orders: &Receiver<Vec<u8>>,
        reports: &mut impl FrameSink,
    ) -> Result<(), MessageError> {
        while !self.shared.over.load(Ordering::Relaxed) {
            match orders.recv_timeout(self.wait()) {
                Ok(order) => {
                    let order = decode_order(&order);
                    let order = order.map_err(|error| MessageError::Nonsense(error.to_string()))?;
                    if matches!(order, Order::Stop) {
                        // A system that has ended by now was not stopped by an order.
                        self.tell(reports)?;
                    }
                    reports.send(&self.obey(order))?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            self.tell(reports)?;
        }
        Ok(())
    }

    fn tell(&mut self, reports: &mut impl FrameSink) -> Result<(), MessageError> {
        for report in self.due() {
            reports.send(&encode(&report))?;
        }
        Ok(())
    }

    fn wait(&self) -> Duration {
        if self.held.is_none() && self.watched.is_none() && self.counter.is_none() {
            return IDLE;
        }
        self.counter
            .as_ref()
            .map_or(SYSTEM_CHECK, Counter::wait)
            .min(SYSTEM_CHECK)
    }

    /// The reports that are due without an order.
    fn due(&mut self) -> Vec<Report> {
        let row = self.counter.as_mut().and_then(Counter::row);
        let mut due: Vec<Report> = row.into_iter().collect();
        if let Some(end) = self.watched.and_then(|watched| watched.ended()) {
            self.watched = None;
            let why = format!("the system {end} during the trial");
            due.push(Report::Ended { why });
        }
        if let Some(held) = &mut self.held
            && held.runs
            && let Err(failed) = held.machine.look()
        {
            held.runs = false;
            due.push(Report::Ended { why: words(failed) });
        }
        due
    }

    /// Executes an order and returns the answer.
    fn obey(&mut self, order: Order) -> Vec<u8> {
        let report = match order {
            Order::Check { setup } => self.check(&setup),
            Order::Start { setup } => self.start(*setup),
            Order::Users { after, piece } => self.users(after, &piece),
            Order::Prepare { at } => self.prepare(at),
            Order::Watch { port, pid } => self.watch(port, pid),
            Order::State { touched } => {
                let data = self.held.as_ref().map(|held| held.scratch.data());
                // A study may name any file: reading some of them blocks for ever.
                let allowed = &self.supervisor.session.allowed;
                let touched = touched.iter().filter(|setting| allowed.reads(setting));
                let state = starting_state(&data.unwrap_or_default(), touched);
                Ok(Report::State(Box::new(state)))
            }
            Order::Count(counting) => Ok(self.count(counting)),
            Order::LookAround => Ok(self.look_around()),
            Order::LookedAround => self.looked_around(),
            Order::Stop => Ok(self.stop()),
            Order::Output { from } => match self.piece(from) {
                Ok(piece) => return encode_piece(&piece),
                Err(why) => Ok(Report::Refused { why }),
            },
            Order::Close => self.close().map(|()| Report::Closed).map_err(Failed::Fatal),
        };
        encode(&report.unwrap_or_else(|failed| match failed {
            Failed::System(why) => Report::Failed { why },
            failed => Report::Refused { why: words(failed) },
        }))
    }

    /// Watches a server that already runs. If none is found, it has no counters of its own.
    fn watch(&mut self, port: u16, pid: Option<u32>) -> Result<Report, Failed> {
        self.close()?;
        let listens = || lab_monitor::listener(port).map(|found| found.pid);
        self.watched = pid.or_else(listens).and_then(AttachedProcess::find);
        self.looked = Some(ProgramSnapshot::now());
        let found = self.watched.map(|watched| watched.pid);
        match (pid, found) {
            (Some(pid), None) => Err(Failed::System(format!(
                "process {pid}, which the study attaches to, is gone"
            ))),
            _ => Ok(Report::Watched { pid: found }),
        }
    }

    fn count(&mut self, counting: Counting) -> Report {
        let spec = match &self.held {
            Some(held) => held.counted(),
            None => MonitorSpec {
                processes: self
                    .watched
                    .iter()
                    .map(|one| (SYSTEM.to_owned(), one.pid))
                    .collect(),
                ..MonitorSpec::default()
            },
        };
        let monitor = Monitor::new(&spec);
        let columns = monitor.columns().to_vec();
        self.counter = Some(Counter {
            monitor,
            counting,
            due: Duration::ZERO,
        });
        let cores = lab_host::machine::cores_here();
        Report::Counts { columns, cores }
    }

    fn look_around(&mut self) -> Report {
        let before = self.looked.take().unwrap_or_else(ProgramSnapshot::now);
        self.around = Some(HostReadings::begin(&before, &self.processes()));
        Report::LooksAround
    }

    fn looked_around(&mut self) -> Result<Report, Failed> {
        let around = self.around.take();
        let around = around.ok_or_else(|| {
            Failed::Lost("was not told to look at what surrounds the system".to_owned())
        })?;
        let mut surrounded = around.end(&self.processes());
        if !surrounded.knows_system {
            // The measured server would be reported as a program that competes with it.
            surrounded.others_before.clear();
            surrounded.others_during.clear();
        }
        if let Some(held) = &self.held {
            surrounded.system_cores = held.machine.cores();
        }
        let limits = &mut surrounded.limits;
        // This process is no generator.
        limits.generator_throttled = None;
        if let Some(Counter { monitor, .. }) = &self.counter {
            limits.system_open_files = monitor.nearest_files(SYSTEM).map(used);
            limits.machine_open_files = monitor.all_files().map(used);
        }
        Ok(Report::LookedAround(Box::new(surrounded)))
    }

    /// The known processes of the system, and those of the other one.
    fn processes(&self) -> Vec<u32> {
        let own = match &self.held {
            Some(held) => held.machine.processes(),
            None => self.watched.iter().map(|watched| watched.pid).collect(),
        };
        self.shared.workspace.with_other(self.slot, own)
    }

    /// Stops a started system; a watched one runs on.
    fn stop(&mut self) -> Report {
        self.counter = None;
        self.watched = None;
        let gone = self.gone();
        let note = self.held.as_mut().and_then(|held| held.stop(gone));
        Report::Stopped { note }
    }

    fn check(&mut self, setup: &Setup) -> Result<Report, Failed> {
        let site = &self.supervisor.session;
        let mut problems = site.allowed.refused(setup, &site.cores);
        self.close()?;
        let common = self.shared.workspace.common();
        let may = problems.is_empty() && common.is_free();
        if let Some(spec) = setup.host.filesystem.as_ref().filter(|_| may) {
            problems.extend(site.try_disk(&setup.host, spec)?);
        }
        Ok(Report::Checked { problems })
    }

    /// Prepares the machine for the trial, and starts its system. The setup is checked again: a client need not ask
    /// before.
    fn start(&mut self, setup: Setup) -> Result<Report, Failed> {
        self.close()?;
        let site = &self.supervisor.session;
        let mut refused = site.allowed.refused(&setup, &site.cores);
        refused.extend(self.conflict_with_other(&setup));
        if !refused.is_empty() {
            return Err(Failed::Lost(refused.join("; ")));
        }
        self.looked = Some(ProgramSnapshot::now());
        let (shared, slot) = (self.shared, self.slot);
        let held = self
            .held
            .insert(site.hold(setup, (&shared.workspace, slot), &shared.gone)?);
        let kernel = shared.workspace.common().apply();
        let kernel = kernel.map_err(MachineError::from)?;
        let started = Box::new(held.machine.start(&shared.gone)?);
        held.runs = true;
        let storage = held.storage();
        // The other system needs to know them.
        self.processes();
        Ok(Report::Started {
            started,
            kernel,
            storage,
        })
    }

    /// Why a setup can't share the machine with the present system, if it can't.
    fn conflict_with_other(&self, setup: &Setup) -> Option<String> {
        let common = self.shared.workspace.common();
        if setup.core_sharing.is_none() && !common.is_free() {
            return Some("the trial has a system here already".to_owned());
        }
        let differs = !common.agrees(&setup.host.kernel);
        differs.then(|| "both systems of a duet have the same kernel settings".to_owned())
    }

    /// Runs a command of the preparation, which was checked before the start.
    fn prepare(&mut self, at: usize) -> Result<Report, Failed> {
        let gone = self.gone();
        let held = self.held.as_mut().ok_or_else(no_system)?;
        let users = held.scratch.users();
        held.machine.prepare(at, &users, gone)?;
        Ok(Report::Prepared)
    }

    /// Stores a piece of the list of users.
    fn users(&mut self, after: u64, piece: &str) -> Result<Report, Failed> {
        let held = self.held.as_ref().ok_or_else(no_system)?;
        let kept = keep_users(&held.scratch.users(), after, piece);
        let refused =
            |error: io::Error| Failed::Lost(format!("the list of users can't be kept: {error}"));
        let bytes = kept.map_err(refused)?;
        Ok(Report::HasUsers { bytes })
    }

    /// A piece of the system's output; empty at its end.
    fn piece(&self, from: u64) -> Result<Vec<u8>, String> {
        let Some(held) = &self.held else {
            return Err("no system was started here".to_owned());
        };
        let read = || {
            let mut file = File::open(&held.output)?;
            file.seek(SeekFrom::Start(from))?;
            let mut piece = Vec::new();
            file.take(PIECE).read_to_end(&mut piece)?;
            Ok::<_, io::Error>(piece)
        };
        match read() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read.map_err(|error| format!("the system's output can't be read: {error}")),
        }
    }

    /// Stops the system, if it still runs, and restores the machine.
    fn close(&mut self) -> Result<(), MachineError> {
        (self.counter, self.watched) = (None, None);
        (self.looked, self.around) = (None, None);
        let Some(mut held) = self.held.take() else {
            return Ok(());
        };
        held.stop(self.gone());
        let HeldSystem {
            machine, scratch, ..
        } = held;
        drop(machine);
        let workspace = &self.shared.workspace;
        // Before the data, whose removal may take longer than a stopped agent is given. A failure of one does not
        // prevent the other.
        let put_back = workspace.common().leave(self.slot);
        let closed = scratch.close();
        workspace.common().clear_if_free();
        put_back?;
        match closed? {
            Some(left) => Err(MachineError::Unremoved(left)),
            None => Ok(()),
        }
    }
}

fn no_system() -> Failed {
    Failed::Lost("no system was started here".to_owned())
}

fn words(failed: Failed) -> String {
    match failed {
        Failed::System(why) | Failed::Lost(why) => why,
        Failed::Interrupted => "whoever conducts is gone".to_owned(),
        Failed::Fatal(error) => {
            let cause = std::error::Error::source(&error);
            let cause = cause.map_or(String::new(), |cause| format!(": {cause}"));
            format!("{error}{cause}")
        }
    }
}

#[cfg(test)]
mod tests;
