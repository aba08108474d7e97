//! One worker thread: its core, its single-threaded runtime, its slice of the users.

pub(crate) mod rehearsal;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use lab_workload::timing::{ArrivalStream, TimingStream};
use lab_workload::{LoadKind, User as Identity, UserScope, usual_at_once};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::{Pid, gettid};
use rustix::process::setpriority_process;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinSet, LocalSet};

use crate::assignment::Assignment;
use crate::client::Client;
use crate::clock::Clock;
use crate::control::Order;
use crate::error::DriverError;
use crate::load::{run_arrivals, run_probe, run_slot, run_user};
use crate::parallel_sessions::ParallelSessions;
use crate::population::Population;
use crate::scripted::{Engines, MOST_AT_ONCE, playing};
use crate::sharing::WorkerSharing;
use crate::tasks::Tasks;
use crate::timers::Timers;
use crate::tokens::SharedToken;
use crate::user::{Member, Shared, User};
use lab_client::Exchange;
use lab_client::time::{Nanos, nanos};
use lab_client::{ClientCounts, ErrorClass};
use lab_counts::Transactions;
use lab_recorder::event::Window;
use lab_recorder::recorder::Recorder;
use lab_recorder::report::{Outbox, Report, SetupCounts};
use lab_workload::part::Slice;

/// How often a worker reports the progress of setup.
const SETUP_REPORT: Duration = Duration::from_millis(250);

/// The parameters of a worker thread.
pub(crate) struct Worker {
    /// Its number in this program.
    pub(crate) number: usize,
    /// The populations, at least one, with their users on this worker.
    pub(crate) populations: Vec<Population>,
    pub(crate) clock: Clock,
    pub(crate) orders: watch::Receiver<Order>,
    pub(crate) outbox: Outbox,
    pub(crate) emptied: Receiver<Box<Window>>,
}

/// Reports the worker's end to the merger, however it ends.
struct EndNotice {
    outbox: Outbox,
    cut: bool,
}

impl Drop for EndNotice {
    fn drop(&mut self) {
        self.outbox.send(Report::Ended { cut: self.cut });
    }
}

/// The nice value of the highest priority below real time.
const FIRST: i32 = -20;

type Slots<C> = Rc<RefCell<Vec<Option<Box<User<C>>>>>>;

/// A population with its users on this worker.
struct Present<C: Client> {
    population: Population,
    slice: Slice,
    shared: Rc<Shared<C>>,
    users: Slots<C>,
}

impl Worker {
    /// Runs the thread. `ready` receives its kernel thread id, or why it could not begin.
    pub(crate) fn run<C: Client>(
        self,
        make: impl Fn(&Arc<Assignment>, &Timers) -> Result<C, DriverError>,
        ready: SyncSender<Result<i32, DriverError>>,
    ) {
        let mut notice = EndNotice {
            outbox: self.outbox.clone(),
            cut: false,
        };
        let runtime = match self.runtime() {
            Ok(runtime) => runtime,
            Err(error) => return report_ready(&ready, Err(error)),
        };
        let local = LocalSet::new();
        let work = self.work(make, &ready);
        notice.cut = local.block_on(&runtime, work);
        // The users, and with them their connections, end before the notice is sent.
        drop(local);
    }

    fn runtime(&self) -> Result<tokio::runtime::Runtime, DriverError> {
        let first = self
            .populations
            .first()
            .map(|population| &population.assignment);
        let core = first.and_then(|drive| Some((drive, *drive.cores.get(self.number)?)));
        if let Some((drive, core)) = core {
            let mut set = CpuSet::new();
            set.set(core)
                .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
                .map_err(|errno| DriverError::Pin {
                    core,
                    source: errno.into(),
                })?;
            if drive.own_cores {
                // Refused without root: then other programs' work shows in the lateness of sends.
                let _ = setpriority_process(None, FIRST);
            }
        }
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        builder.enable_io().build().map_err(DriverError::Runtime)
    }

    /// Runs setup, then the trial, within a [`LocalSet`]. Returns true if it ran to its end.
    pub(crate) async fn work<C: Client>(
        mut self,
        make: impl Fn(&Arc<Assignment>, &Timers) -> Result<C, DriverError>,
        ready: &SyncSender<Result<i32, DriverError>>,
    ) -> bool {
        let (timers, present) = match self.prepare(make) {
            Ok(prepared) => prepared,
            Err(error) => {
                report_ready(ready, Err(error));
                return false;
            }
        };
        let served = timers.clone();
        let service = tokio::task::spawn_local(async move { served.serve().await });
        report_ready(ready, Ok(gettid().as_raw()));
        let load = async { self.setup(&present).await && self.trial(&timers, &present).await };
        tokio::select! {
            cut = load => cut,
            // A worker can't continue without its timers: the load ends early and reports it.
            _ = service => false,
        }
    }

    fn prepare<C: Client>(
        &mut self,
        make: impl Fn(&Arc<Assignment>, &Timers) -> Result<C, DriverError>,
    ) -> Result<(Timers, Vec<Present<C>>), DriverError> {
        let timers = Timers::new(self.clock).map_err(DriverError::Runtime)?;
        let (_, nothing_yet) = std::sync::mpsc::sync_channel(0);
        let emptied = std::mem::replace(&mut self.emptied, nothing_yet);
        let sessions = self
            .populations
            .iter()
            .map(|population| population.script.session.len());
        let steps: usize = sessions.sum();
        let probes = self
            .populations
            .iter()
            .any(|population| population.script.probe.is_some());
        let recorded = (self.populations.len(), steps + usize::from(probes));
        let recorder = Recorder::new(recorded, self.outbox.clone(), emptied);
        let (recorder, ended) = (Rc::new(RefCell::new(recorder)), Rc::default());
        let sharing = self.sharing();
        let engines = Engines::default();
        let present = self.populations.iter().map(|population| {
            let client = make(&population.assignment, &timers)?;
            let of_worker = (&timers, &recorder, &ended, &sharing, &engines);
            self.present(population, client, of_worker, steps)
        });
        let present = present.collect::<Result<_, DriverError>>()?;
        Ok((timers, present))
    }

    /// Returns the state that its users share.
    fn sharing(&self) -> WorkerSharing {
        let workloads = self
            .populations
            .iter()
            .map(|population| &*population.assignment.workload);
        let Some(Population {
            assignment: drive,
            queues,
            ..
        }) = self.populations.first()
        else {
            return WorkerSharing::default();
        };
        let slice = Slice::new(&drive.part, self.number, drive.workers());
        WorkerSharing::of(workloads, queues.of_worker(self.number), slice)
    }

    /// Returns a population's users on this worker. `steps` counts those of all populations.
    fn present<C: Client>(
        &self,
        population: &Population,
        client: C,
        (timers, recorder, ended, sharing, engines): (
            &Timers,
            &Rc<RefCell<Recorder>>,
            &Rc<Notify>,
            &WorkerSharing,
            &Engines,
        ),
        steps: usize,
    ) -> Result<Present<C>, DriverError> {
        let drive = &population.assignment;
        let slice = Slice::new(&drive.part, self.number, drive.workers());
        let mine = slice.users(drive.users);
        let users = mine.clone().count();
        let open = matches!(drive.kind, LoadKind::Arrival { .. });
        if open {
            population.pool.lock().add(self.number, users);
        }
        let multiplexes = client.multiplexes(&client.session()).unwrap_or(true);
        let at_once = match &drive.workload.scripted {
            Some(_) => MOST_AT_ONCE,
            None => drive.workload.most_at_once(usual_at_once(multiplexes)) as usize,
        };
        let shared = Rc::new(Shared {
            client,
            drive: Arc::clone(drive),
            script: Arc::clone(&population.script),
            sharing: sharing.of_population(&drive.workload, users),
            playing: playing(engines, drive, self.clock)?,
            timers: timers.clone(),
            clock: self.clock,
            recorder: Rc::clone(recorder),
            first_step: population.first_step,
            probe_step: steps - population.first_step,
            transactions: Transactions::new(
                users,
                population.script.transaction_depth(),
                population.first_transaction,
            ),
            population: population.place,
            failure_pause: nanos(drive.limits.failure_pause),
            timeout_ends_step: drive.limits.timeout_ends_step,
            parallel_sessions: ParallelSessions::new(users, at_once),
            under_way: vec![Cell::default(); ParallelSessions::<C>::places(users, at_once)].into(),
            token: SharedToken::default(),
            open,
            pool: population.pool.clone(),
            worker: self.number,
            end: Cell::new(Nanos::MAX),
            zero: Cell::new(0),
            ended: Rc::clone(ended),
            left: Cell::new(drive.left(users)),
        });
        let users: Result<Vec<_>, _> = (0..)
            .zip(mine)
            .map(|who| user(&shared, who).map(Some))
            .collect();
        Ok(Present {
            population: population.clone(),
            users: Rc::new(RefCell::new(users?)),
            slice,
            shared,
        })
    }

    /// Runs all setup steps, each after all users of all workers have finished the one before, one population after the
    /// other. Returns false if stopped.
    async fn setup<C: Client>(&mut self, present: &[Present<C>]) -> bool {
        let counts = Rc::new(Cell::new(SetupCounts::default()));
        for of in present {
            for step in 0..of.population.script.setup.len() {
                if !self.setup_step(of, step, &counts).await {
                    return false;
                }
            }
        }
        true
    }

    async fn setup_step<C: Client>(
        &mut self,
        of: &Present<C>,
        step: usize,
        counts: &Rc<Cell<SetupCounts>>,
    ) -> bool {
        let (drive, place) = (&of.population.assignment, of.population.first_setup + step);
        let may = |order: &Order| order.stop || order.setup_step >= place;
        if !matches!(self.orders.wait_for(may).await, Ok(order) if !order.stop) {
            return false;
        }
        counts.set(SetupCounts {
            users_done: 0,
            ..counts.get()
        });
        let run = SetupRun {
            shared: Rc::clone(&of.shared),
            users: Rc::clone(&of.users),
            next: Rc::default(),
            counts: Rc::clone(counts),
            reported: Rc::new(Cell::new(self.clock.now())),
            outbox: self.outbox.clone(),
            step,
            place,
        };
        let share = drive.part.share(drive.limits.setup_concurrency);
        let share = share.div_ceil(drive.workers() as u32).max(1);
        let mut runners = JoinSet::new();
        for _ in 0..share.min(of.users.borrow().len() as u32) {
            runners.spawn_local(run.clone().run());
        }
        tokio::select! {
            () = async { while runners.join_next().await.is_some_and(no_panic) {} } => {}
            _ = self.orders.wait_for(|order| order.stop) => return false,
        }
        self.outbox.send(Report::SetupStepDone(counts.get()));
        true
    }

    /// Runs ramp and hold.
    async fn trial<C: Client>(&mut self, timers: &Timers, present: &[Present<C>]) -> bool {
        let may = |order: &Order| order.stop || order.zero.is_some();
        let zero = match self.orders.wait_for(may).await {
            Ok(order) if !order.stop => order.zero.unwrap_or_default(),
            _ => return false,
        };
        let Some(first) = present.first() else {
            return false;
        };
        let (drive, recorder) = (&first.population.assignment, &first.shared.recorder);
        let length = drive.ramp.saturating_add(drive.hold);
        recorder.borrow_mut().begin(zero, drive.window, length);
        let tasks = Tasks::new(&first.shared.ended);
        for of in present {
            of.shared.zero.set(zero);
            of.shared.end.set(recorder.borrow().end());
            of.spawn_probe(&tasks);
        }
        tasks.spawn(watch_loop(Member::of(&first.shared)));
        if !first.shared.sharing.queues.is_empty() {
            tasks.spawn(serve_queues(Member::of(&first.shared)));
        }
        let load = async {
            for of in present {
                of.spawn_load(&tasks).await;
            }
            std::future::pending::<()>().await;
        };
        let counts = || {
            let each = present.iter().map(|of| of.shared.client.take_counts());
            each.fold(ClientCounts::default(), ClientCounts::and)
        };
        let over = async {
            loop {
                let end = recorder.borrow().window_end();
                timers.sleep_until(end).await;
                let now = self.clock.nanos();
                if recorder.borrow().over(now) {
                    return true;
                }
                recorder.borrow_mut().roll(now, counts());
            }
        };
        let cut = tokio::select! {
            cut = over => cut,
            _ = self.orders.wait_for(|order| order.stop) => false,
            // Only a sequence ends by itself.
            ended = tasks.join_next() => no_panic(ended),
            () = load => false,
        };
        let now = self.clock.nanos();
        let at = recorder.borrow().cut(now);
        let (mut unanswered, mut unfinished) = (Vec::new(), Vec::new());
        for of in present {
            let mut pool = of.shared.pool.lock();
            pool.close();
            let arrived = pool.arrivals(of.shared.worker);
            let waiting = arrived.filter_map(|since| of.shared.transactions.waiting(since, at));
            unfinished.extend(waiting);
            drop(pool);
            unanswered.extend(of.shared.unanswered(at));
            unfinished.extend(of.shared.transactions.unfinished(at));
        }
        let mut recorder = recorder.borrow_mut();
        recorder.finish(now, counts(), (unanswered, unfinished));
        cut
    }
}

impl<C: Client> Present<C> {
    async fn spawn_load(&self, tasks: &Tasks) {
        let users = self.users.take().into_iter().flatten();
        let users = users.map(|user| (Member::of(&self.shared), user));
        let Some(stream) = self.arrivals() else {
            let users = users.map(|(shared, user)| run_user(shared, user));
            return tasks.spawn_all(users).await;
        };
        let slots = users.map(|(shared, user)| run_slot(shared, user));
        tasks.spawn_all(slots).await;
        // After the slots, so that they are free when the first session arrives.
        let (shared, slice) = (Member::of(&self.shared), self.slice.clone());
        tasks.spawn(run_arrivals(shared, stream, slice));
    }

    /// Returns the arriving sessions, if the load has arrivals.
    fn arrivals(&self) -> Option<ArrivalStream> {
        let drive = &self.population.assignment;
        let Assignment { seed, block, .. } = **drive;
        match drive.kind {
            LoadKind::Arrival {
                rate_per_s,
                spacing,
            } => Some(match &drive.timeline {
                Some(timeline) => ArrivalStream::recorded(timeline, drive.workload.data.as_ref()),
                None => ArrivalStream::new(seed, block, spacing, drive.profile(rate_per_s)),
            }),
            LoadKind::Users | LoadKind::Sequence { .. } => None,
        }
    }

    /// The probe belongs to the worker of user 0, and uses its name and cookies.
    fn spawn_probe(&self, tasks: &Tasks) {
        let (drive, shared) = (&self.population.assignment, &self.shared);
        let Some(probe) = shared.script.probe.filter(|_| self.slice.has(0)) else {
            return;
        };
        let users = self.users.borrow();
        let Some(Some(first)) = users.first() else {
            return;
        };
        // `prepare` created this very scope before, so it can't fail now.
        let Ok(scope) = scope(shared, 0) else {
            return;
        };
        let user = Box::new(User {
            index: 0,
            place: 0,
            scope,
            timing: TimingStream::new(drive.seed, drive.block, 0),
            session: shared.client.sibling(&first.session),
        });
        tasks.spawn(run_probe(Member::of(shared), user, probe));
    }
}

/// Returns a new user, by its index on its worker and its index among all.
fn user<C: Client>(
    shared: &Shared<C>,
    (place, index): (usize, u32),
) -> Result<Box<User<C>>, DriverError> {
    let (drive, session) = (&shared.drive, shared.client.session());
    Ok(Box::new(User {
        index,
        place,
        scope: scope(shared, index)?,
        timing: TimingStream::new(drive.seed, drive.block, index),
        session,
    }))
}

fn scope<C: Client>(shared: &Shared<C>, index: u32) -> Result<UserScope, DriverError> {
    let drive = &shared.drive;
    let extra = drive
        .user_extra
        .get(index as usize)
        .map_or(&[][..], Vec::as_slice);
    let identity = Identity {
        index,
        users: drive.users,
        first: drive.first,
        seed: drive.seed,
        block: drive.block,
        base_date: drive.base_date,
    };
    let scope = drive.workload.scope(identity, extra);
    let mut scope = scope.map_err(|error| DriverError::User {
        index,
        detail: drive.workload.inputs.mask(&error.to_string()),
    })?;
    scope.give(&shared.sharing.inputs);
    Ok(scope)
}

/// The time between samples of the loop's lag: in no simple ratio to a workload's times.
const LOOP_LAG_EVERY: u64 = 9_973_000;

/// Samples how long a readable input waits until it is read, until the task is dropped. A timer becomes readable at a
/// known time, and the loop reads it like any response. Only the kernel knows when a response became readable.
async fn watch_loop<C: Client>(shared: Member<C>) {
    let timer = shared.timers.timer();
    let mut at = shared.zero.get();
    loop {
        at = at.saturating_add(LOOP_LAG_EVERY);
        timer.sleep_until(at).await;
        let now = shared.clock.nanos();
        // After a stall, the missed sample times count, too: input that arrived then also waited.
        shared
            .recorder
            .borrow_mut()
            .loop_lag(now, now.saturating_sub(at));
        while now.saturating_sub(at) >= LOOP_LAG_EVERY {
            at += LOOP_LAG_EVERY;
            shared.recorder.borrow_mut().loop_lag(now, now - at);
        }
    }
}

/// Serves users that wait for entries of other workers' queues, and users of other workers that wait for its own, until
/// the task is dropped.
async fn serve_queues<C: Client>(shared: Member<C>) {
    shared.sharing.queues.serve().await;
}

/// Propagates a task's panic: a silently missing user would falsify the load.
fn no_panic(ended: Result<(), JoinError>) -> bool {
    match ended.map_err(JoinError::try_into_panic) {
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        _ => true,
    }
}

fn report_ready(ready: &SyncSender<Result<i32, DriverError>>, what: Result<i32, DriverError>) {
    // `Driver::start` waits for one message per worker; it leaves early only after a failure.
    let _gone = ready.send(what);
}

/// One setup step over this worker's users, shared by a few tasks.
struct SetupRun<C: Client> {
    shared: Rc<Shared<C>>,
    users: Slots<C>,
    next: Rc<Cell<usize>>,
    counts: Rc<Cell<SetupCounts>>,
    reported: Rc<Cell<Duration>>,
    outbox: Outbox,
    step: usize,
    /// The step's index among those of all populations.
    place: usize,
}

impl<C: Client> Clone for SetupRun<C> {
    fn clone(&self) -> Self {
        Self {
            shared: Rc::clone(&self.shared),
            users: Rc::clone(&self.users),
            next: Rc::clone(&self.next),
            counts: Rc::clone(&self.counts),
            reported: Rc::clone(&self.reported),
            outbox: self.outbox.clone(),
            step: self.step,
            place: self.place,
        }
    }
}

impl<C: Client> SetupRun<C> {
    /// Processes one user after the other until none is left.
    async fn run(self) {
        loop {
            let at = self.next.get();
            self.next.set(at + 1);
            let user = match self.users.borrow_mut().get_mut(at) {
                Some(slot) => slot.take(),
                None => return,
            };
            let Some(mut user) = user else { continue };
            let step = &self.shared.script.setup[self.step];
            let tokens = self.shared.script.tokens.as_ref();
            let is_anothers = tokens.is_some_and(|tokens| tokens.leaves_to_first(self.step, at));
            let rounds = if step.once && user.index > 0 || is_anothers {
                0
            } else {
                step.repeat
            };
            for round in 0..rounds {
                user.scope.set_round(round);
                self.step(&mut user).await;
            }
            self.users.borrow_mut()[at] = Some(user);
            self.user_done();
        }
    }

    async fn step(&self, user: &mut User<C>) {
        let shared = &self.shared;
        let requests = shared.script.setup[self.step].requests.clone();
        let mut left = requests.clone();
        let mut next = left.next();
        let mut authorized = None;
        while let Some(request) = next {
            let sent = shared.send_in_setup(user, request, authorized == next);
            let (exchange, is_for_token) = sent.await;
            authorized = next;
            if !exchange.redirected() && !is_for_token {
                next = left.next();
            }
            let class = exchange.failure();
            let pause = class.is_some_and(ErrorClass::is_without_response);
            let goes_on = self.count(exchange);
            self.report();
            if !goes_on {
                (request..requests.end).for_each(|r| shared.client.forget(r, &mut user.scope));
                if pause {
                    let until = shared.clock.nanos() + shared.failure_pause;
                    shared.timers.timer().sleep_until(until).await;
                }
                return;
            }
        }
    }

    /// Counts an exchange. Returns false if the rest of the step is skipped.
    fn count(&self, exchange: Exchange) -> bool {
        let mut counts = self.counts.get();
        let failure = match exchange {
            Exchange::Done { result: Ok(()), .. } => {
                counts.transactions += 1;
                None
            }
            Exchange::Skipped => {
                counts.skipped += 1;
                self.counts.set(counts);
                return false;
            }
            Exchange::Done {
                result: Err(failure),
                trace,
                ..
            } => Some((failure, trace)),
            Exchange::Unmade { detail } => {
                let class = ErrorClass::Check;
                Some((lab_client::FailedRequest::new(class, detail), None))
            }
        };
        counts.errors += u64::from(failure.is_some());
        let class = failure.as_ref().map(|(failure, _)| failure.class);
        counts.unanswered += u64::from(class.is_some_and(ErrorClass::is_without_response));
        self.counts.set(counts);
        let Some((failure, trace)) = failure else {
            return true;
        };
        let mut recorder = self.shared.recorder.borrow_mut();
        recorder.setup_example(self.place, failure, trace);
        false
    }

    fn user_done(&self) {
        let counts = self.counts.get();
        self.counts.set(SetupCounts {
            users_done: counts.users_done + 1,
            ..counts
        });
        self.report();
    }

    /// Reports the counts, a few times a second at most.
    fn report(&self) {
        let now = self.shared.clock.now();
        if now.saturating_sub(self.reported.get()) >= SETUP_REPORT {
            self.reported.set(now);
            self.outbox.send(Report::Setup(self.counts.get()));
        }
    }
}
