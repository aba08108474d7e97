//! A remote machine of a system, reached by its agent: the conductor's counterpart of [`crate::Supervisor`]. It knows no
//! network; the transport reports why a connection was lost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use lab_archive::{StartingState, SystemHost};
use lab_driver::remote::{FrameSink, FrameSource, Peer, Place};
use lab_host::clock::{Stopwatch, shared};
use lab_study::{CommandSpec, KernelSetting};

use crate::error::{Failed, MachineError};
use crate::machine::{Counted, Counts, Machine, Row, Started};
use crate::message::{
    Counting, MOST_ORDER, MOST_REPORT, MOST_STARTED, Order, Received, Report, Setup, USERS_PIECE,
    Unreadable, decode_received, encode,
};
use crate::preparing;
use crate::runner::RESET_DEADLINE;
use crate::slots::Slot;

/// Longest wait for an answer, in addition to the time a system may take to start or stop.
const ANSWER: Duration = Duration::from_secs(120);
/// Longest run time of the programs that make a file system.
const MAKE_TIMEOUT: Duration = Duration::from_secs(600);
/// Bytes that even a slow disk writes in a second.
const WRITES: u64 = 10_000_000;
/// Interval between two checks of the interrupt.
const INTERRUPT_CHECK: Duration = Duration::from_millis(50);
/// Most reports queued for the conductor, each of at most a megabyte, except the answer to a start.
const QUEUE: usize = 64;
/// Most output that is read: the agent keeps 32 MB and a line.
const MOST_OUTPUT: u64 = 40 << 20;

/// An agent's machine, for one trial.
pub struct RemoteMachine {
    place: Box<dyn Place>,
    /// Which of the trial's systems runs there.
    slot: Slot,
    orders: Box<dyn FrameSink + Send>,
    reports: Receiver<Result<Received, Unreadable>>,
    /// True while a long report is expected.
    awaits_long: Arc<AtomicBool>,
    /// The system to start; `None` if it already runs.
    setup: Option<Setup>,
    /// The file for the system's output, written after it has ended.
    output: PathBuf,
    rows: VecDeque<(u64, Vec<Option<f64>>)>,
    /// Why the system ended.
    ended: Option<String>,
    kernel: BTreeMap<String, String>,
    storage: Vec<(String, String)>,
    /// The trial's 0, by this machine's clock.
    zero: u64,
    /// The agent has reported that its machine is restored.
    closed: bool,
}

impl RemoteMachine {
    /// Takes the connection to an agent that waits for orders; `hand` is the system's place, left if there is one.
    ///
    /// # Errors
    /// When the receiving thread can't be started.
    pub fn new(
        (peer, slot): (Peer, Slot),
        setup: Option<Setup>,
        output: PathBuf,
    ) -> io::Result<Self> {
        let (sender, heard) = sync_channel(QUEUE);
        let mut reports = peer.reports;
        let thread = std::thread::Builder::new().name("machine".to_owned());
        let awaits_long = Arc::new(AtomicBool::new(false));
        let awaits = Arc::clone(&awaits_long);
        thread.spawn(move || hear(&mut *reports, &sender, &awaits))?;
        Ok(Self {
            place: peer.place,
            slot,
            orders: peer.orders,
            reports: heard,
            awaits_long,
            setup,
            output,
            rows: VecDeque::new(),
            ended: None,
            kernel: BTreeMap::new(),
            storage: Vec::new(),
            zero: 0,
            closed: false,
        })
    }

    /// What the agent refuses of these setups, one sentence each. The connection takes no order afterwards.
    ///
    /// # Errors
    /// When the connection is lost; when `interrupt` becomes true.
    pub fn check(
        &mut self,
        setups: &[Setup],
        interrupt: &AtomicBool,
    ) -> Result<Vec<String>, Failed> {
        let mut all: Vec<String> = Vec::new();
        for setup in setups {
            // The agent makes the file system and removes it.
            let within = ANSWER + Self::making_of(setup);
            let setup = Box::new(setup.clone());
            let problems = match self.ask(&Order::Check { setup }, within, interrupt)? {
                Report::Checked { problems } => problems,
                other => return Err(self.unfit(&other)),
            };
            all.extend(problems);
        }
        self.close(interrupt)?;
        let mut seen = BTreeSet::new();
        all.retain(|problem| seen.insert(problem.clone()));
        Ok(all)
    }

    /// Has the machine restored; no order follows.
    fn close(&mut self, interrupt: &AtomicBool) -> Result<(), Failed> {
        match self.ask(&Order::Close, self.stop_within(), interrupt)? {
            Report::Closed => self.closed = true,
            Report::Refused { why } => {
                let agent = self.place.name();
                return Err(Failed::Fatal(MachineError::Left { agent, why }));
            }
            other => return Err(self.unfit(&other)),
        }
        Ok(())
    }

    /// Watches a system that already runs, found by its process or its listening port. Returns true if there is one
    /// that the agent may watch.
    ///
    /// # Errors
    /// When there is no such process, or the machine is lost; when `interrupt` becomes true.
    pub fn watch(
        &mut self,
        port: u16,
        pid: Option<u32>,
        interrupt: &AtomicBool,
    ) -> Result<bool, Failed> {
        match self.ask(&Order::Watch { port, pid }, ANSWER, interrupt)? {
            Report::Watched { pid } => Ok(pid.is_some()),
            other => Err(self.unfit(&other)),
        }
    }

    /// Sends an order and waits for its answer.
    fn ask(
        &mut self,
        order: &Order,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Report, Failed> {
        match self.answer(order, within, interrupt)? {
            Received::Report(report) => Ok(report),
            Received::Piece(_) => Err(self.lost_by("answers what it was not asked")),
        }
    }

    fn answer(
        &mut self,
        order: &Order,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Received, Failed> {
        let order = encode(order);
        if order.len() > MOST_ORDER {
            let (agent, megabytes) = (self.place.name(), MOST_ORDER >> 20);
            let why =
                format!("its files and texts have over {megabytes} MB: name files that are there");
            return Err(Failed::Fatal(MachineError::Refused { agent, why }));
        }
        if self.orders.send(&self.slot.mark(&order)).is_err() {
            return Err(self.lost());
        }
        let began = Stopwatch::start();
        loop {
            match self.reports.recv_timeout(INTERRUPT_CHECK) {
                Ok(heard) => {
                    if let Some(answer) = self.keep(heard)? {
                        return Ok(answer);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.lost()),
            }
            if interrupt.load(Ordering::Relaxed) {
                return Err(Failed::Interrupted);
            }
            if began.elapsed() > within {
                let seconds = within.as_secs();
                return Err(self.lost_by(&format!("did not answer within {seconds} s")));
            }
        }
    }

    /// Sends a frame that no program of ours sends.
    #[cfg(test)]
    pub(crate) fn ask_raw(&mut self, frame: &[u8]) -> Result<(), lab_driver::remote::MessageError> {
        self.orders.send(frame)
    }

    /// Stores a report that is not an answer; returns any other.
    fn keep(&mut self, heard: Result<Received, Unreadable>) -> Result<Option<Received>, Failed> {
        match heard {
            Ok(Received::Report(Report::Row { at, values })) => self.rows.push_back((at, values)),
            Ok(Received::Report(Report::Ended { why })) => self.ended = Some(why),
            Ok(answer) => return Ok(Some(answer)),
            Err(error) => return Err(self.lost_by(&format!("can't be understood: {error}"))),
        }
        Ok(None)
    }

    /// Longest time to make or remove the file system of a system.
    fn making_of(setup: &Setup) -> Duration {
        let made = setup.host.filesystem.as_ref();
        made.map_or(Duration::ZERO, |made| {
            MAKE_TIMEOUT + Duration::from_secs(made.bytes / WRITES)
        })
    }

    /// Receives the reports that are sent without an order.
    fn hear(&mut self) -> Result<(), Failed> {
        loop {
            match self.reports.try_recv() {
                // An answer after its deadline is dropped.
                Ok(heard) => drop(self.keep(heard)?),
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => return Err(self.lost()),
            }
        }
    }

    fn lost(&self) -> Failed {
        let end = self.place.end(true);
        self.lost_by(
            &end.wrong
                .unwrap_or_else(|| "ended what it was doing".to_owned()),
        )
    }

    fn lost_by(&self, what: &str) -> Failed {
        Failed::Lost(format!(
            "{}, which has the system, {what}",
            self.place.name()
        ))
    }

    /// The error for an answer that does not match its order.
    fn unfit(&self, answer: &Report) -> Failed {
        let agent = self.place.name();
        match answer {
            Report::Failed { why } => Failed::System(why.clone()),
            Report::Refused { why } => {
                let why = why.clone();
                Failed::Fatal(MachineError::Refused { agent, why })
            }
            _ => self.lost_by("answers what it was not asked"),
        }
    }

    /// All programs of the system.
    fn programs(&self) -> impl Iterator<Item = &CommandSpec> {
        let all = self.setup.iter().map(|setup| &setup.spec);
        all.flat_map(|spec| spec.before.iter().map(|(_, spec)| spec).chain([spec]))
    }

    /// Longest time for the system to start.
    fn start_within(&self) -> Duration {
        let within = self.programs().map(|spec| spec.ready_within_ms);
        ANSWER + RESET_DEADLINE + self.making() + Duration::from_millis(within.sum())
    }

    /// Longest time to make the file system.
    fn making(&self) -> Duration {
        self.setup.as_ref().map_or(Duration::ZERO, Self::making_of)
    }

    fn stop_within(&self) -> Duration {
        let grace = self.programs().map(|spec| spec.stop_grace_ms);
        // Unwritten data is flushed when its file system is unmounted.
        ANSWER + Duration::from_millis(grace.sum()) + self.making()
    }

    /// Sends the list of users if the command reads it, then runs the command.
    fn prepare_there(
        &mut self,
        at: usize,
        users: &Path,
        interrupt: &AtomicBool,
    ) -> Result<(), Failed> {
        let all = self.setup.as_ref().map(|setup| &setup.spec.preparation);
        if all.is_some_and(|all| preparing::lists_users(all, at)) {
            self.send_users(users, interrupt)?;
        }
        match self.ask(&Order::Prepare { at }, ANSWER + RESET_DEADLINE, interrupt)? {
            Report::Prepared => Ok(()),
            other => Err(self.unfit(&other)),
        }
    }

    fn send_users(&mut self, users: &Path, interrupt: &AtomicBool) -> Result<(), Failed> {
        let unread =
            |error: io::Error| Failed::System(format!("the list of users can't be read: {error}"));
        let mut file = BufReader::new(File::open(users).map_err(unread)?);
        let mut after = 0;
        // An empty list is sent too, so that the file exists.
        let mut has_more = true;
        while has_more {
            let piece = whole_lines(&mut file).map_err(unread)?;
            has_more = !piece.is_empty();
            let expected = after + piece.len() as u64;
            match self.ask(&Order::Users { after, piece }, ANSWER, interrupt)? {
                Report::HasUsers { bytes } if bytes == expected => after = bytes,
                other => return Err(self.unfit(&other)),
            }
        }
        Ok(())
    }

    /// Closes the connection: the agent then restores its machine by itself.
    fn give_up(&mut self) {
        self.closed = true;
        self.place.kill();
    }

    /// Stops the system, fetches its output, and has the machine restored.
    fn end(&mut self) -> Result<Option<String>, Failed> {
        if self.closed {
            return Ok(None);
        }
        let never = AtomicBool::new(false);
        let note = match self.ask(&Order::Stop, self.stop_within(), &never)? {
            Report::Stopped { note } => note,
            other => return Err(self.unfit(&other)),
        };
        let taken = match self.setup {
            Some(_) => self.take_output(&never)?,
            None => None,
        };
        self.close(&never)?;
        let notes: Vec<String> = note.into_iter().chain(taken).collect();
        Ok((!notes.is_empty()).then(|| notes.join(" ")))
    }

    /// Writes the output to its file; returns a sentence if that fails.
    fn take_output(&mut self, never: &AtomicBool) -> Result<Option<String>, Failed> {
        let unwritten =
            |error: io::Error| Some(format!("The system's output can't be kept: {error}."));
        let mut file = match File::create(&self.output) {
            Ok(file) => file,
            Err(error) => return Ok(unwritten(error)),
        };
        let mut from = 0;
        while from < MOST_OUTPUT {
            let piece = match self.answer(&Order::Output { from }, ANSWER, never)? {
                Received::Piece(piece) => piece,
                Received::Report(Report::Refused { why }) => {
                    return Ok(unwritten(io::Error::other(why)));
                }
                Received::Report(other) => return Err(self.unfit(&other)),
            };
            if piece.is_empty() {
                break;
            }
            if let Err(error) = file.write_all(&piece) {
                return Ok(unwritten(error));
            }
            from += piece.len() as u64;
        }
        Ok(None)
    }
}

/// As many whole lines as fit into a piece of the list of users, or one longer line.
fn whole_lines(file: &mut impl BufRead) -> io::Result<String> {
    let mut piece = String::new();
    while piece.len() < USERS_PIECE {
        if file.read_line(&mut piece)? == 0 {
            break;
        }
    }
    Ok(piece)
}

fn hear(
    reports: &mut dyn FrameSource,
    into: &SyncSender<Result<Received, Unreadable>>,
    awaits_long: &AtomicBool,
) {
    while let Ok(Some(mut frame)) = reports.receive() {
        // A frame without a system can't be parsed.
        if Slot::take(&mut frame).is_none() {
            frame.clear();
        }
        let is_long = frame.len() > MOST_REPORT;
        // One long report per wait, so that the queue is bounded.
        let most = match is_long && awaits_long.swap(false, Ordering::Relaxed) {
            true => MOST_STARTED,
            false => MOST_REPORT,
        };
        if into.send(decode_received(&frame, most)).is_err() {
            return;
        }
    }
}

impl Machine for RemoteMachine {
    fn knows(&mut self, others: &[(String, SocketAddr)]) {
        if let Some(setup) = &mut self.setup {
            setup.spec = setup.spec.beside(others);
        }
    }

    fn start(&mut self, interrupt: &AtomicBool) -> Result<Started, Failed> {
        let Some(setup) = self.setup.clone().map(Box::new) else {
            return Err(self.lost_by("has nothing to start"));
        };
        let within = self.start_within();
        self.awaits_long.store(true, Ordering::Relaxed);
        let answer = self.ask(&Order::Start { setup }, within, interrupt);
        self.awaits_long.store(false, Ordering::Relaxed);
        match answer? {
            Report::Started {
                started,
                kernel,
                storage,
            } => {
                (self.kernel, self.storage) = (kernel, storage);
                Ok(*started)
            }
            other => Err(self.unfit(&other)),
        }
    }

    fn prepare(&mut self, at: usize, users: &Path, interrupt: &AtomicBool) -> Result<(), Failed> {
        let done = self.prepare_there(at, users, interrupt);
        if matches!(done, Err(Failed::Interrupted)) {
            // Only the end of its orders interrupts what the agent does.
            self.give_up();
        }
        done
    }

    fn look(&mut self) -> Result<(), Failed> {
        self.hear()?;
        match self.ended.take() {
            Some(why) => Err(Failed::System(why)),
            None => Ok(()),
        }
    }

    fn state(&mut self, touched: &[KernelSetting]) -> Result<StartingState, Failed> {
        let order = Order::State {
            touched: touched.to_vec(),
        };
        match self.ask(&order, ANSWER, &AtomicBool::new(false))? {
            Report::State(state) => Ok(*state),
            other => Err(self.unfit(&other)),
        }
    }

    fn count(&mut self, zero: u64, every: Duration, end: Duration) -> Result<Counts, Failed> {
        self.zero = zero;
        let order = Order::Count(Counting {
            zero: self.place.moment(zero),
            every_ns: nanos(every),
            end_ns: nanos(end),
        });
        match self.ask(&order, ANSWER, &AtomicBool::new(false))? {
            Report::Counts { columns, cores } => Ok(Counts {
                columns,
                cores: Some(cores),
            }),
            other => Err(self.unfit(&other)),
        }
    }

    fn rows(&mut self) -> Vec<Row> {
        // The next check reports a lost connection.
        let _lost = self.hear();
        let here = shared();
        let ahead = i128::from(self.place.moment(here)) - i128::from(here);
        let zero = i128::from(self.zero);
        let row = |(at, values): (u64, Vec<Option<f64>>)| {
            let at = u64::try_from(i128::from(at) - ahead - zero).unwrap_or(0);
            let at = Duration::from_nanos(at);
            Row { at, values }
        };
        self.rows.drain(..).map(row).collect()
    }

    fn look_around(&mut self) -> Result<(), Failed> {
        match self.ask(&Order::LookAround, ANSWER, &AtomicBool::new(false))? {
            Report::LooksAround => Ok(()),
            other => Err(self.unfit(&other)),
        }
    }

    fn looked_around(&mut self) -> Result<Option<SystemHost>, Failed> {
        match self.ask(&Order::LookedAround, ANSWER, &AtomicBool::new(false))? {
            Report::LookedAround(surrounded) => Ok(Some(*surrounded)),
            other => Err(self.unfit(&other)),
        }
    }

    fn kernel(&self) -> BTreeMap<String, String> {
        self.kernel.clone()
    }

    fn storage(&self) -> &[(String, String)] {
        &self.storage
    }

    fn counted(&self) -> Option<Counted<'_>> {
        None
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn keep_on(&self, _cores: &[u32]) -> usize {
        0
    }

    fn stop(&mut self) -> Result<Option<String>, Failed> {
        let note = self.end()?;
        // Reported since the last check: the system ended before it was stopped.
        match self.ended.take() {
            Some(why) => Err(Failed::System(why)),
            None => Ok(note),
        }
    }
}

impl Drop for RemoteMachine {
    fn drop(&mut self) {
        if !self.closed {
            self.place.kill();
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
