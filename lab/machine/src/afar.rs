//! A machine elsewhere, by an agent: the conductor's side of what [`crate::Station`] does. It knows no network;
//! whoever opened the way to the agent says why it was lost.

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
use crate::hands::Hand;
use crate::machine::{Counted, Counts, Machine, Row, Started};
use crate::message::{
    Counting, Heard, MOST_ORDER, MOST_REPORT, MOST_STARTED, Order, Report, Setup, USERS_PIECE,
    Unreadable, decode_heard, encode,
};
use crate::preparing;
use crate::runner::RESET_DEADLINE;

/// Longest wait for an answer, beside what a system may take to start or end.
const ANSWER: Duration = Duration::from_secs(120);
/// How long the programs may take that make a file system.
const MAKES: Duration = Duration::from_secs(600);
/// Bytes that even a slow disk takes in a second.
const WRITES: u64 = 10_000_000;
/// Between two looks at the interrupt.
const LOOK: Duration = Duration::from_millis(50);
/// What was said and may wait for whoever conducts, each of at most a megabyte, but the answer to a start.
const QUEUE: usize = 64;
/// Output that is taken at most: its agent keeps 32 MB and a line.
const MOST_OUTPUT: u64 = 40 << 20;

/// A machine that an agent has, for one trial.
pub struct Afar {
    place: Box<dyn Place>,
    /// Which system of the trial's it has.
    hand: Hand,
    orders: Box<dyn FrameSink + Send>,
    heard: Receiver<Result<Heard, Unreadable>>,
    /// Whether a long one may come.
    awaits_long: Arc<AtomicBool>,
    /// What it is to start; `None` of a system that runs already.
    setup: Option<Setup>,
    /// The file that the system's output goes to when it has ended.
    output: PathBuf,
    rows: VecDeque<(u64, Vec<Option<f64>>)>,
    /// What the system ended by.
    ended: Option<String>,
    kernel: BTreeMap<String, String>,
    storage: Vec<(String, String)>,
    /// The trial's 0, by this machine's clock.
    zero: u64,
    /// It said that all is as it was.
    closed: bool,
}

impl Afar {
    /// By an agent that waits for orders; which of two systems it has there, or the left one where there is one.
    ///
    /// # Errors
    /// When no thread can be started that hears it.
    pub fn new(
        (peer, hand): (Peer, Hand),
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
            hand,
            orders: peer.orders,
            heard,
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

    /// What its agent refuses of these, each in a sentence. Nothing else is asked of it then.
    ///
    /// # Errors
    /// When it is lost; when `interrupt` becomes true.
    pub fn check(
        &mut self,
        setups: &[Setup],
        interrupt: &AtomicBool,
    ) -> Result<Vec<String>, Failed> {
        let mut all: Vec<String> = Vec::new();
        for setup in setups {
            // Its file system is made, and taken away.
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

    /// Has the machine left as it was; nothing is asked of it any more.
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

    /// Has it look after a system that runs there already, by its process or the port that it listens on; whether
    /// there is one that it may look after.
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

    /// Tells it something, and awaits its answer.
    fn ask(
        &mut self,
        order: &Order,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Report, Failed> {
        match self.answer(order, within, interrupt)? {
            Heard::Report(report) => Ok(report),
            Heard::Piece(_) => Err(self.lost_by("answers what it was not asked")),
        }
    }

    fn answer(
        &mut self,
        order: &Order,
        within: Duration,
        interrupt: &AtomicBool,
    ) -> Result<Heard, Failed> {
        let order = encode(order);
        if order.len() > MOST_ORDER {
            let (agent, megabytes) = (self.place.name(), MOST_ORDER >> 20);
            let why =
                format!("its files and texts have over {megabytes} MB: name files that are there");
            return Err(Failed::Fatal(MachineError::Refused { agent, why }));
        }
        if self.orders.send(&self.hand.mark(&order)).is_err() {
            return Err(self.lost());
        }
        let began = Stopwatch::start();
        loop {
            match self.heard.recv_timeout(LOOK) {
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

    /// Says what no program of ours says.
    #[cfg(test)]
    pub(crate) fn ask_raw(&mut self, frame: &[u8]) -> Result<(), lab_driver::remote::MessageError> {
        self.orders.send(frame)
    }

    /// Keeps what is no answer.
    fn keep(&mut self, heard: Result<Heard, Unreadable>) -> Result<Option<Heard>, Failed> {
        match heard {
            Ok(Heard::Report(Report::Row { at, values })) => self.rows.push_back((at, values)),
            Ok(Heard::Report(Report::Ended { why })) => self.ended = Some(why),
            Ok(answer) => return Ok(Some(answer)),
            Err(error) => return Err(self.lost_by(&format!("can't be understood: {error}"))),
        }
        Ok(None)
    }

    /// How long the file system of a system may take to be made, or to be taken away.
    fn making_of(setup: &Setup) -> Duration {
        let made = setup.host.filesystem.as_ref();
        made.map_or(Duration::ZERO, |made| {
            MAKES + Duration::from_secs(made.bytes / WRITES)
        })
    }

    /// Takes in what was said without an order.
    fn hear(&mut self) -> Result<(), Failed> {
        loop {
            match self.heard.try_recv() {
                // An answer that comes after its time is nobody's.
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

    /// What an answer says that is not the one asked for.
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

    /// How long the system may take to start.
    fn start_within(&self) -> Duration {
        let within = self.programs().map(|spec| spec.ready_within_ms);
        ANSWER + RESET_DEADLINE + self.making() + Duration::from_millis(within.sum())
    }

    /// How long a file system may take that is made for it.
    fn making(&self) -> Duration {
        self.setup.as_ref().map_or(Duration::ZERO, Self::making_of)
    }

    fn stop_within(&self) -> Duration {
        let grace = self.programs().map(|spec| spec.stop_grace_ms);
        // What is still to be written goes to the disk with the end of its file system.
        ANSWER + Duration::from_millis(grace.sum()) + self.making()
    }

    /// Sends the list of users, where the command lists them, and has the command run.
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
        // Once without any, so that it is there.
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

    /// Says nothing to it any more: it leaves its machine as it was by itself.
    fn give_up(&mut self) {
        self.closed = true;
        self.place.kill();
    }

    /// Ends the system, takes its output, and has the machine left as it was.
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

    /// Writes the output down; a sentence where that can't be done.
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
                Heard::Piece(piece) => piece,
                Heard::Report(Report::Refused { why }) => {
                    return Ok(unwritten(io::Error::other(why)));
                }
                Heard::Report(other) => return Err(self.unfit(&other)),
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

/// As many lines as a piece of the list of users has room for, or one that is longer.
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
    into: &SyncSender<Result<Heard, Unreadable>>,
    awaits_long: &AtomicBool,
) {
    while let Ok(Some(mut frame)) = reports.receive() {
        // Of a frame that is nobody's nothing can be understood.
        if Hand::take(&mut frame).is_none() {
            frame.clear();
        }
        let is_long = frame.len() > MOST_REPORT;
        // One for each time that it is awaited, so that what waits here has a bound.
        let most = match is_long && awaits_long.swap(false, Ordering::Relaxed) {
            true => MOST_STARTED,
            false => MOST_REPORT,
        };
        if into.send(decode_heard(&frame, most)).is_err() {
            return;
        }
    }
}

impl Machine for Afar {
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
            // What it is about is cut short by nothing but the end of its orders.
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
        // That it is lost shows at the next look.
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
        // Said since the last look: it had ended before it was told to.
        match self.ended.take() {
            Some(why) => Err(Failed::System(why)),
            None => Ok(note),
        }
    }
}

impl Drop for Afar {
    fn drop(&mut self) {
        if !self.closed {
            self.place.kill();
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
