//! An agent's machine, as a run has it for the trials of a system: told by orders, and left as it was when
//! whoever gives them is not heard any more. It knows no network and no lease.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lab_driver::remote::{FrameSink, FrameSource, MessageError};
use lab_host::clock::shared;
use lab_host::disk::{Disk, DiskFacts};
use lab_host::journal::{Gone, restore};
use lab_host::kernel::Kernel;
use lab_monitor::{Monitor, MonitorSpec, Roots};
use lab_study::{Cpus, FilesystemSpec, HostSpec};

use crate::allow::Allowed;
use crate::error::{Failed, MachineError};
use crate::local::Local;
use crate::machine::Machine;
use crate::message::{
    Counting, MOST_ORDER, MOST_USERS, Order, PIECE, Report, Setup, decode_order, encode,
    encode_piece,
};
use crate::output;
use crate::schedule::next_due;
use crate::scratch::{Scratch, Work};
use crate::start::Start;
use crate::state::State;
use crate::surroundings::{Files, Look, Surroundings};
use crate::watched::Watched;

/// What counters of the system are called by.
const SYSTEM: &str = "system";
/// Locked by the agent that has the folder.
const LOCK: &str = "systems.lock";
/// Orders that may wait, each of at most [`MOST_ORDER`] bytes.
const QUEUE: usize = 4;
/// Longest wait between two looks at the system.
const LOOK: Duration = Duration::from_millis(50);

/// Counters are read no more often: it would load the machine.
const AT_LEAST: Duration = Duration::from_millis(10);

/// What a machine is to runs that have their system on it.
#[derive(Debug)]
pub struct Station {
    allowed: Allowed,
    /// The `plimsoll` binary.
    program: PathBuf,
    /// The folder of the agent's journal of kernel settings.
    state: PathBuf,
    /// Cores that systems may have.
    cores: Vec<u32>,
    /// Locked for as long as it lives: another one would take its trial for one that was left behind.
    _alone: File,
    /// One after the other: the machine is as it was before the next one has it.
    turn: Mutex<()>,
}

impl Station {
    /// Puts back what an agent that was killed left changed.
    ///
    /// # Errors
    /// When that can't be done; when another agent has this folder.
    pub fn new(
        allowed: Allowed,
        program: PathBuf,
        state: PathBuf,
        cores: Vec<u32>,
    ) -> Result<Self, MachineError> {
        let station = Self {
            _alone: alone(&state)?,
            allowed,
            program,
            state,
            cores,
            turn: Mutex::new(()),
        };
        put_back(&station.state)?;
        for folder in station.allowed.folders() {
            // Made and dropped: what was left there is removed.
            drop(station.work(folder)?);
        }
        Ok(station)
    }

    fn work(&self, folder: &Path) -> Result<Work, MachineError> {
        Work::in_storage(&folder.to_string_lossy(), &self.state)
    }

    /// Does what it is told until the orders end, and leaves the machine as it was.
    ///
    /// # Errors
    /// In words, when the machine can't be left as it was, or what is said can't be understood.
    pub fn serve(
        &self,
        orders: impl FrameSource + Send + 'static,
        mut reports: impl FrameSink,
    ) -> Result<(), String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = Arc::new(AtomicBool::new(false));
        let orders = listen(orders, Arc::clone(&gone)).map_err(|error| error.to_string())?;
        let mut post = Post {
            station: self,
            gone: &gone,
            held: None,
            watched: None,
            counter: None,
            looked: None,
            around: None,
        };
        let served = post.serve(&orders, &mut reports);
        let closed = post.close();
        // Who does not listen any more has no wish for more.
        let served = match served {
            Err(MessageError::Io(_)) => Ok(()),
            served => served.map_err(|error| error.to_string()),
        };
        closed.map_err(|error| error.to_string()).and(served)
    }
}

/// Puts back what an agent that was killed left changed, whatever its next start is allowed to change.
///
/// # Errors
/// When that can't be done.
pub fn put_back(state: &Path) -> Result<(), MachineError> {
    restore(state, Gone::Keep)?;
    Ok(())
}

/// Takes the folder of an agent for as long as the file is open.
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

/// Hears orders on a thread of its own, so that their end is known at once.
fn listen(
    mut orders: impl FrameSource + Send + 'static,
    gone: Arc<AtomicBool>,
) -> io::Result<Receiver<Vec<u8>>> {
    let (sender, heard) = sync_channel(QUEUE);
    let thread = std::thread::Builder::new().name("orders".to_owned());
    thread.spawn(move || {
        hear(&mut orders, &sender);
        gone.store(true, Ordering::Relaxed);
    })?;
    Ok(heard)
}

fn hear(orders: &mut impl FrameSource, into: &SyncSender<Vec<u8>>) {
    while let Ok(Some(mut order)) = orders.receive() {
        // One that is too long is refused by its first bytes.
        order.truncate(MOST_ORDER + 1);
        order.shrink_to_fit();
        // Who awaits answers never has so many wait, and who waits here would not hear that the orders end.
        if into.try_send(order).is_err() {
            return;
        }
    }
}

/// One who is at work.
struct Post<'a> {
    station: &'a Station,
    /// Nobody gives orders any more.
    gone: &'a AtomicBool,
    held: Option<Held>,
    /// One that ran before, and runs on.
    watched: Option<Watched>,
    counter: Option<Counter>,
    /// Before the system started, or was looked after.
    looked: Option<Look>,
    around: Option<Surroundings>,
}

/// A trial's system, with all that is to be undone after it, in this order.
struct Held {
    machine: Local,
    /// Whether it runs, as far as is known.
    runs: bool,
    output: PathBuf,
    setup: Setup,
    scratch: Scratch,
    _work: Work,
    kernel: Kernel,
}

/// Counters that are read at regular times.
struct Counter {
    monitor: Monitor,
    counting: Counting,
    due: Duration,
}

impl Counter {
    /// Time after the trial's 0.
    fn now(&self) -> Duration {
        Duration::from_nanos(shared().saturating_sub(self.counting.zero))
    }

    /// Counters, if it is time for them.
    fn row(&mut self) -> Option<Report> {
        let now = self.now();
        let before_zero = shared() < self.counting.zero;
        let end = Duration::from_nanos(self.counting.end_ns);
        if before_zero || now < self.due || now > end {
            return None;
        }
        let every = Duration::from_nanos(self.counting.every_ns).max(AT_LEAST);
        self.due = next_due(self.due, every, now, end);
        let at = self.counting.zero.saturating_add(now.as_nanos() as u64);
        let values = self.monitor.sample(now);
        Some(Report::Row { at, values })
    }

    fn wait(&self) -> Duration {
        let to_zero = self.counting.zero.saturating_sub(shared());
        let (now, end) = (self.now(), Duration::from_nanos(self.counting.end_ns));
        match now > end {
            true => LOOK,
            false => self
                .due
                .saturating_sub(now)
                .saturating_add(Duration::from_nanos(to_zero)),
        }
    }
}

impl Post<'_> {
    fn serve(
        &mut self,
        orders: &Receiver<Vec<u8>>,
        reports: &mut impl FrameSink,
    ) -> Result<(), MessageError> {
        loop {
            match orders.recv_timeout(self.wait()) {
                Ok(order) => {
                    let order = decode_order(&order);
                    let order = order.map_err(|error| MessageError::Nonsense(error.to_string()))?;
                    if matches!(order, Order::Stop) {
                        // A system that has ended by now did not end because it was told to.
                        self.tell(reports)?;
                    }
                    reports.send(&self.obey(order))?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            self.tell(reports)?;
        }
    }

    fn tell(&mut self, reports: &mut impl FrameSink) -> Result<(), MessageError> {
        for report in self.due() {
            reports.send(&encode(&report))?;
        }
        Ok(())
    }

    fn wait(&self) -> Duration {
        self.counter.as_ref().map_or(LOOK, Counter::wait).min(LOOK)
    }

    /// What is to be said without an order.
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

    /// The answer to an order.
    fn obey(&mut self, order: Order) -> Vec<u8> {
        let report = match order {
            Order::Check { setup } => self.check(&setup),
            Order::Start { setup } => self.start(*setup),
            Order::Users { after, piece } => self.users(after, &piece),
            Order::Prepare { at } => self.prepare(at),
            Order::Watch { port, pid } => self.watch(port, pid),
            Order::State { touched } => {
                let data = self.held.as_ref().map(|held| held.scratch.data());
                // A study may name any file: reading some of them waits for ever.
                let allowed = &self.station.allowed;
                let touched = touched.iter().filter(|setting| allowed.reads(setting));
                let state = State::read(&data.unwrap_or_default(), touched);
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

    /// Looks after a server that runs already. One that nobody finds has no counters of its own.
    fn watch(&mut self, port: u16, pid: Option<u32>) -> Result<Report, Failed> {
        self.close()?;
        let listens = || lab_monitor::listener(port).map(|found| found.pid);
        self.watched = pid.or_else(listens).and_then(Watched::find);
        self.looked = Some(Look::now());
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
        let before = self.looked.take().unwrap_or_else(Look::now);
        self.around = Some(Surroundings::begin(&before, &self.processes()));
        Report::LooksAround
    }

    fn looked_around(&mut self) -> Result<Report, Failed> {
        let around = self.around.take();
        let around = around.ok_or_else(|| {
            Failed::Lost("was not told to look at what surrounds the system".to_owned())
        })?;
        let mut surrounded = around.end(&self.processes());
        if !surrounded.knows_system {
            // The server that is measured would be told as one that competes with it.
            surrounded.others_before.clear();
            surrounded.others_during.clear();
        }
        if let Some(held) = &self.held {
            surrounded.system_cores = held.machine.cores();
        }
        if let Some(Counter { monitor, .. }) = &self.counter {
            surrounded.system_files = monitor.nearest_files(SYSTEM).map(Files::from);
            surrounded.all_files = monitor.all_files().map(Files::from);
        }
        Ok(Report::LookedAround(Box::new(surrounded)))
    }

    /// Those of the system, as far as they are known.
    fn processes(&self) -> Vec<u32> {
        match &self.held {
            Some(held) => held.machine.processes(),
            None => self.watched.iter().map(|watched| watched.pid).collect(),
        }
    }

    /// Ends what was started; what ran before runs on.
    fn stop(&mut self) -> Report {
        self.counter = None;
        self.watched = None;
        let note = self.held.as_mut().and_then(|held| held.stop(self.gone));
        Report::Stopped { note }
    }

    fn check(&mut self, setup: &Setup) -> Result<Report, Failed> {
        let station = self.station;
        let mut problems = station.allowed.refused(setup, &station.cores);
        if let (Some(spec), true) = (&setup.host.filesystem, problems.is_empty()) {
            self.close()?;
            problems.extend(station.try_disk(&setup.host, spec)?);
        }
        Ok(Report::Checked { problems })
    }

    /// Makes the machine ready for the trial, and starts its system. What is asked for is judged again: nobody
    /// is obliged to ask before.
    fn start(&mut self, setup: Setup) -> Result<Report, Failed> {
        self.close()?;
        let station = self.station;
        let refused = station.allowed.refused(&setup, &station.cores);
        if !refused.is_empty() {
            return Err(Failed::Lost(refused.join("; ")));
        }
        self.looked = Some(Look::now());
        let held = self.held.insert(station.hold(setup, self.gone)?);
        let kernel = held.kernel.apply(&held.setup.host.kernel);
        let kernel = kernel.map_err(MachineError::from)?;
        let started = Box::new(held.machine.start(self.gone)?);
        held.runs = true;
        let storage = held.storage();
        Ok(Report::Started {
            started,
            kernel,
            storage,
        })
    }

    /// Runs a command that prepares the system. It is one of those that were judged before the start.
    fn prepare(&mut self, at: usize) -> Result<Report, Failed> {
        let held = self.held.as_mut().ok_or_else(no_system)?;
        let users = held.scratch.users();
        held.machine.prepare(at, &users, self.gone)?;
        Ok(Report::Prepared)
    }

    /// Keeps a piece of the list of users.
    fn users(&mut self, after: u64, piece: &str) -> Result<Report, Failed> {
        let held = self.held.as_ref().ok_or_else(no_system)?;
        let kept = keep_users(&held.scratch.users(), after, piece);
        let refused =
            |error: io::Error| Failed::Lost(format!("the list of users can't be kept: {error}"));
        let bytes = kept.map_err(refused)?;
        Ok(Report::HasUsers { bytes })
    }

    /// A piece of what the system printed; empty at its end.
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

    /// Ends the system, if it still runs, and leaves the machine as it was.
    fn close(&mut self) -> Result<(), MachineError> {
        (self.counter, self.watched) = (None, None);
        (self.looked, self.around) = (None, None);
        let Some(mut held) = self.held.take() else {
            return Ok(());
        };
        held.stop(self.gone);
        let Held {
            machine,
            scratch,
            kernel,
            ..
        } = held;
        drop(machine);
        // Before the data, which may take longer to remove than an agent waits that is ended. One that fails does not
        // keep the other.
        let put_back = kernel.put_back().and_then(|()| kernel.finish());
        let closed = scratch.close();
        put_back?;
        match closed? {
            Some(left) => Err(MachineError::Unremoved(left)),
            None => Ok(()),
        }
    }
}

impl Station {
    /// The folder that trials of such a machine have theirs in.
    fn work_of(&self, host: &HostSpec) -> Result<Work, MachineError> {
        // Named by whoever judged it: it is one of those that are allowed.
        self.work(self.allowed.folder(host).unwrap_or(&self.state))
    }

    /// Makes a file system as trials will have it, and takes it away: why that can't be done, if it can't.
    fn try_disk(
        &self,
        host: &HostSpec,
        spec: &FilesystemSpec,
    ) -> Result<Option<String>, MachineError> {
        let work = self.work_of(host)?;
        let whole = work.whole()?;
        let free = lab_host::machine::free_bytes(&whole).unwrap_or(u64::MAX);
        if free < spec.bytes {
            let megabytes = |bytes: u64| bytes / 1_000_000;
            return Ok(Some(format!(
                "a file system of {} MB is wanted in a folder with {} MB free",
                megabytes(spec.bytes),
                megabytes(free)
            )));
        }
        let journal = Kernel::of(&self.state, std::iter::empty(), vec![whole.clone()])?;
        let tried = Disk::try_out(spec, &whole.join("try"));
        journal.finish()?;
        Ok(tried.err().map(|error| error.to_string()))
    }

    /// Makes the folder of a trial, with a file system of its own if it is to have one. What its kernel settings were is
    /// written down before, and where a file system is made.
    fn hold(&self, setup: Setup, gone: &AtomicBool) -> Result<Held, MachineError> {
        // What an earlier trial could not put back: no other one begins before that is done.
        put_back(&self.state)?;
        let work = self.work_of(&setup.host)?;
        let made = setup.host.filesystem.as_ref();
        let disks = made.map(|_| work.whole()).into_iter();
        let disks = disks.collect::<Result<_, _>>()?;
        let kernel = Kernel::of(&self.state, setup.host.kernel.iter(), disks)?;
        let scratch = work.fresh_on(made, setup.trial, gone)?;
        let output = scratch.file("output");
        let start = Start {
            program: self.program.clone(),
            secure: setup.secure,
            address: self.allowed.address,
            only_there: true,
            cores: chosen(setup.host.cpus.as_ref(), &self.cores),
            folder: scratch.folder().to_path_buf(),
            output: output.clone(),
        };
        let machine = Local::new(start, self.allowed.settled(&setup.spec));
        Ok(Held {
            machine,
            runs: false,
            output,
            setup,
            scratch,
            _work: work,
            kernel,
        })
    }
}

impl Held {
    /// What is told of the file system that was made for it.
    fn storage(&self) -> Vec<(String, String)> {
        let folder = self.setup.host.storage.as_deref();
        let told = |disk: &DiskFacts| disk.told(Some(folder.unwrap_or("the agent's folder")));
        self.scratch
            .disk()
            .map(told)
            .into_iter()
            .flatten()
            .collect()
    }

    fn counted(&self) -> MonitorSpec {
        let counted = self.machine.counted();
        let processes = counted.iter().map(|one| (SYSTEM.to_owned(), one.pid));
        let hold = counted.and_then(|one| one.hold);
        let holds = hold.map(|hold| (SYSTEM.to_owned(), hold.clone()));
        MonitorSpec {
            data_dir: Some(self.scratch.data()),
            processes: processes.collect(),
            holds: holds.into_iter().collect(),
            remote: false,
            roots: Roots::default(),
        }
    }

    /// Ends the system, and leaves of its output what may be sent; a sentence about what did not go well, or is
    /// left out.
    fn stop(&mut self, gone: &AtomicBool) -> Option<String> {
        self.runs = false;
        let ended = self.machine.end(gone);
        let shortened = output::shorten(&self.output).unwrap_or_default();
        let notes: Vec<String> = ended.into_iter().chain(shortened).collect();
        (!notes.is_empty()).then(|| notes.join(" "))
    }
}

fn no_system() -> Failed {
    Failed::Lost("no system was started here".to_owned())
}

/// Appends a piece of the list of users, which may have passwords; how long the list is then. The first piece begins it
/// anew.
fn keep_users(path: &Path, after: u64, piece: &str) -> io::Result<u64> {
    let mut options = OpenOptions::new();
    let options = options.create(true).append(true).mode(0o600);
    let mut file = options.open(path)?;
    if after == 0 {
        file.set_len(0)?;
    }
    if file.metadata()?.len() != after {
        return Err(io::Error::other("a piece of it is missing"));
    }
    let bytes = after + piece.len() as u64;
    if bytes > MOST_USERS {
        let gigabytes = MOST_USERS >> 30;
        return Err(io::Error::other(format!("it has over {gigabytes} GB")));
    }
    file.write_all(piece.as_bytes())?;
    Ok(bytes)
}

/// Those that a study wants of the agent's.
fn chosen(cpus: Option<&Cpus>, cores: &[u32]) -> Vec<u32> {
    match cpus {
        None => cores.to_vec(),
        Some(Cpus::List(list)) => list.clone(),
        Some(Cpus::Count(count)) => cores.iter().copied().take(*count as usize).collect(),
    }
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
