//! The dry run: one session of one user, outside of any trial, by the rules of the engine, but without waits, and with
//! a witness for every request. It measures nothing.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};

use lab_client::{BaseUrl, Made, Parts, RequestId, Side, Tap, Unmade, Version, WholeAnswer};
use lab_recorder::ScriptNote;
use lab_script::Level;
use lab_workload::Wait;

use super::*;
use crate::crew::{self, Make, Speaking};
use crate::mix::Mix;
use crate::script::Script;
use crate::scripted::End;
use crate::timers::Timer;
use crate::user::{Life, Progress};
use lab_queues::Queues;
use lab_queues::SharedPool;
use lab_recorder::report::{QUEUE, Queue, queue};

/// The function of a script that runs once before all sessions.
pub(crate) const SETUP: &str = "setup";
/// The function that runs once after all sessions.
pub(crate) const TEARDOWN: &str = "teardown";
/// How often a dry run checks for an interrupt.
const LOOK: Duration = Duration::from_millis(50);

/// Observes the outcome of each request of a dry run, besides its traffic.
pub trait Witness: Tap {
    /// A script logged a line; it begins with its severity.
    fn logged(&self, line: &str);

    /// A request ended, or was not sent. `scope` has its captures.
    fn exchanged(&self, request: RequestId, scope: &UserScope, exchange: &Exchange);

    /// The step with this first request was skipped: a condition doesn't hold.
    fn left_out(&self, request: RequestId);
}

/// Runs the setup and one session for one user, without waits. This user also runs the setup steps that are for the
/// first user only. Around a session that a script plays, its `setup` and `teardown` run.
///
/// Returns `None` if `interrupt` became true before the end, and otherwise the uncaught error of the script, if any.
///
/// # Errors
/// When the load spec is unusable, there is no such user, or the server's name has no address.
pub fn rehearse(
    drive: &Assignment,
    user: u32,
    witness: &Rc<dyn Witness>,
    interrupt: &AtomicBool,
) -> Result<Option<Result<(), String>>, DriverError> {
    crew::validate_one(drive)?;
    if user >= drive.users {
        return Err(DriverError::Load("it has no such user"));
    }
    let mut drive = without_waits(drive);
    let around = |drive: &Assignment, function: &str| {
        let scripted = drive.workload.scripted.as_ref();
        if !scripted.is_some_and(|scripted| scripted.exports(function)) {
            return Ok(Some(Ok(None)));
        }
        let called = called(drive, function, witness, interrupt)?;
        let named = |why: String| format!("`{function}`: {why}");
        Ok(called.map(|called| called.judged().map_err(named)))
    };
    match around(&drive, SETUP)? {
        Some(Ok(None)) => {}
        Some(Ok(Some(data))) => {
            let workload = Arc::make_mut(&mut drive.workload);
            if let Some(scripted) = &mut workload.scripted {
                Arc::make_mut(scripted).data = Some(Arc::new(data));
            }
        }
        Some(Err(why)) => return Ok(Some(Err(why))),
        None => return Ok(None),
    }
    let drive = Arc::new(drive);
    let Some(session) = rehearsed(&drive, (user, true), witness, interrupt)? else {
        return Ok(None);
    };
    let torn = around(&drive, TEARDOWN)?;
    Ok(torn.map(|torn| session.judged().and(torn).map(drop)))
}

/// Calls a function of the population's script once, with its waits, for user 0. `None` if `interrupt` became true
/// before the end.
///
/// # Errors
/// As [`rehearse`].
pub(crate) fn call(
    drive: &Assignment,
    function: &str,
    interrupt: &AtomicBool,
) -> Result<Option<Called>, DriverError> {
    let witness: Rc<dyn Witness> = Rc::new(Unobserved);
    called(drive, function, &witness, interrupt)
}

fn called(
    drive: &Assignment,
    function: &str,
    witness: &Rc<dyn Witness>,
    interrupt: &AtomicBool,
) -> Result<Option<Called>, DriverError> {
    let mut workload = (*drive.workload).clone();
    if let Some(scripted) = &mut workload.scripted {
        function.clone_into(&mut Arc::make_mut(scripted).function);
    }
    let drive = Arc::new(Assignment {
        workload: Arc::new(workload),
        ..drive.clone()
    });
    rehearsed(&drive, (0, false), witness, interrupt)
}

/// Ignores the traffic of the calls of a script before and after a load.
struct Unobserved;

impl Tap for Unobserved {
    fn connected(&self, _: &BaseUrl, _: Nanos, _: Nanos) {}

    fn sent(&self, _: &BaseUrl, _: Version, _: Nanos, _: &[u8]) {}

    fn received(&self, _: Nanos, _: &[u8]) {}

    fn spoke(&self, _: Nanos, _: Side, _: &str) {}
}

impl Witness for Unobserved {
    fn exchanged(&self, _: RequestId, _: &UserScope, _: &Exchange) {}

    fn left_out(&self, _: RequestId) {}

    fn logged(&self, _: &str) {}
}

/// A session that has ended.
pub(crate) struct Called {
    /// The value of a script's function, or its uncaught error.
    pub(crate) end: End,
    /// What a worker would have reported.
    pub(crate) reports: Vec<Report>,
}

impl Called {
    /// Returns the end; `test.fail` counts as an error.
    fn judged(&self) -> End {
        let failed = self.reports.iter().find_map(|report| match report {
            Report::Script(ScriptNote::Failed(reason)) => Some(format!("`test.fail`: {reason}")),
            _ => None,
        });
        match failed {
            Some(why) => self.end.clone().and(Err(why)),
            None => self.end.clone(),
        }
    }
}

/// Runs one session, after the steps of the setup if the flag is set; `None` if it was interrupted.
fn rehearsed(
    drive: &Arc<Assignment>,
    (user, sets_up): (u32, bool),
    witness: &Rc<dyn Witness>,
    interrupt: &AtomicBool,
) -> Result<Option<Called>, DriverError> {
    let rehearsing = Rehearsing {
        drive,
        user,
        sets_up,
        witness,
        interrupt,
    };
    crew::speaking(&Mix::from(&**drive), rehearsing)?
}

/// A dry run about to begin, for any protocol.
struct Rehearsing<'a> {
    drive: &'a Arc<Assignment>,
    user: u32,
    sets_up: bool,
    witness: &'a Rc<dyn Witness>,
    interrupt: &'a AtomicBool,
}

impl Speaking for Rehearsing<'_> {
    type Output = Result<Option<Called>, DriverError>;

    fn with<C: Client>(self, make: impl Make<C>) -> Self::Output {
        let tap = Rc::clone(self.witness) as Rc<dyn Tap>;
        let make = move |drive: &Arc<Assignment>, timers: &Timers| {
            let client = make(drive, 0, timers)?.tapped(tap);
            Ok(Box::new(client) as Box<dyn Speaks>)
        };
        run(self, Box::new(make))
    }
}

type MakeOne = Box<dyn FnOnce(&Arc<Assignment>, &Timers) -> Result<Box<dyn Speaks>, DriverError>>;

fn run(what: Rehearsing<'_>, make: MakeOne) -> Result<Option<Called>, DriverError> {
    let Rehearsing {
        drive,
        user,
        sets_up,
        witness,
        interrupt,
    } = what;
    let builder = &mut tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_io().build().map_err(DriverError::Runtime)?;
    let local = LocalSet::new();
    let (queue, received) = queue(QUEUE);
    // A full queue would block the session.
    let reports = crew::spawn("reports".to_owned(), move || {
        let all = received.into_iter();
        all.map(|(_, report)| report).collect()
    })?;
    let whole = local.block_on(&runtime, async {
        let clock = Clock::start();
        let timers = Timers::new(clock).map_err(DriverError::Runtime)?;
        let client = Witnessed {
            client: make(drive, &timers)?,
            witness: Rc::clone(witness),
        };
        let service = timers.clone();
        let service = tokio::task::spawn_local(async move { service.serve().await });
        let rehearsal = Rehearsal::new(drive, client, (clock, timers.clone()), queue)?;
        let interrupted = async {
            let timer = timers.timer();
            while !interrupt.load(Ordering::Relaxed) {
                timer.sleep_until(clock.nanos() + nanos(LOOK)).await;
            }
        };
        tokio::select! {
            result = rehearsal.run(user, sets_up) => result.map(Some),
            () = interrupted => Ok(None),
            _ = service => Err(DriverError::Panicked),
        }
    });
    // The connections end before their runtime.
    drop(local);
    let reports = reports.join().map_err(|_| DriverError::Panicked)?;
    whole.map(|end| end.map(|end| Called { end, reports }))
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Info => "log",
        Level::Warn => "warn",
        Level::Error => "error",
    }
}

fn without_waits(drive: &Assignment) -> Assignment {
    let mut workload = (*drive.workload).clone();
    workload.session.pace = None;
    if let Some(scripted) = &mut workload.scripted {
        Arc::make_mut(scripted).speed = f64::INFINITY;
    }
    let steps = workload.setup.iter_mut().chain(&mut workload.session.steps);
    steps.for_each(|step| {
        step.wait = Wait::None;
        if let Some(retry) = &mut step.retry {
            (retry.wait, retry.retry_after) = (Wait::None, false);
        }
        if let Some(parallel) = &mut step.parallel {
            // The witness receives one request after the other.
            parallel.at_once = Some(1);
        }
    });
    Assignment {
        workload: Arc::new(workload),
        ..drive.clone()
    }
}

/// A worker without a load.
struct Rehearsal {
    shared: Rc<Shared<Witnessed>>,
    outbox: Outbox,
}

impl Rehearsal {
    fn new(
        drive: &Arc<Assignment>,
        client: Witnessed,
        (clock, timers): (Clock, Timers),
        queue: Queue,
    ) -> Result<Self, DriverError> {
        let script = Arc::new(Script::new(&drive.workload));
        let mut playing = playing(&Engines::default(), drive, clock)?;
        if let Some(playing) = &mut playing {
            let witness = Rc::clone(&client.witness);
            playing.set_log(Box::new(move |level, text| {
                witness.logged(&format!("{}: {text}", word(level)));
            }));
        }
        let (_, emptied) = std::sync::mpsc::sync_channel(0);
        let outbox = Outbox { worker: 0, queue };
        let steps = script.session.len();
        let (users, depth) = (drive.users as usize, script.transaction_depth());
        let at_once = match &drive.workload.scripted {
            Some(_) => MOST_AT_ONCE,
            None => drive.workload.most_at_once(1) as usize,
        };
        let recorder = Recorder::new((1, steps + 1), outbox.clone(), emptied);
        let workloads = std::iter::once(&*drive.workload);
        let queues = Queues::of(workloads.clone(), 1).of_worker(0);
        let sharing = WorkerSharing::of(workloads, queues, Slice::new(&drive.part, 0, 1));
        let shared = Rc::new(Shared {
            client,
            drive: Arc::clone(drive),
            script,
            sharing: sharing.of_population(&drive.workload, users),
            playing,
            clock,
            timers,
            recorder: Rc::new(RefCell::new(recorder)),
            first_step: 0,
            probe_step: steps,
            transactions: Transactions::new(users, depth, 0),
            population: 0,
            failure_pause: 0,
            timeout_ends_step: drive.limits.timeout_ends_step,
            under_way: vec![Cell::default(); ParallelSessions::<Witnessed>::places(users, at_once)]
                .into(),
            parallel_sessions: ParallelSessions::new(users, at_once),
            token: SharedToken::default(),
            open: false,
            pool: SharedPool::new(1, 0),
            worker: 0,
            end: Cell::new(Nanos::MAX),
            zero: Cell::new(0),
            ended: Rc::default(),
            left: Cell::new(drive.left(users)),
        });
        Ok(Self { shared, outbox })
    }

    async fn run(&self, index: u32, sets_up: bool) -> Result<End, DriverError> {
        let shared = &self.shared;
        let (begun, all) = (shared.clock.nanos(), Duration::MAX);
        shared.recorder.borrow_mut().begin(begun, all, all);
        let mut user = user(shared, (index as usize, index))?;
        let mut first = match index {
            0 => None,
            _ => Some(self::user(shared, (0, 0))?),
        };
        let steps = shared.script.setup.iter().filter(|_| sets_up);
        for (number, step) in steps.enumerate() {
            let run = self.setup(number);
            let who = match &mut first {
                Some(first) if step.once => first,
                _ => &mut user,
            };
            for round in 0..step.repeat {
                who.scope.set_round(round);
                run.step(who).await;
            }
        }
        let mut life = Life::new(user, &shared.timers);
        life.state = Progress::from(shared.clock.nanos());
        let end = match &shared.playing {
            Some(playing) => Box::pin(shared.play(&mut life, playing)).await,
            None => {
                shared.cycle(&mut life).await;
                Ok(None)
            }
        };
        let (now, counts) = (shared.clock.nanos(), ClientCounts::default());
        let mut recorder = shared.recorder.borrow_mut();
        recorder.finish(now, counts, (Vec::new(), Vec::new()));
        Ok(end)
    }

    fn setup(&self, step: usize) -> SetupRun<Witnessed> {
        SetupRun {
            shared: Rc::clone(&self.shared),
            users: Rc::default(),
            next: Rc::default(),
            counts: Rc::default(),
            reported: Rc::new(Cell::new(Duration::ZERO)),
            outbox: self.outbox.clone(),
            step,
            place: step,
        }
    }
}

/// A user's session, of any client.
type Session = Box<dyn Any>;

/// A client of any kind. Nothing is measured here, so that dynamic dispatch is acceptable; static dispatch would
/// compile the engine once more for each protocol.
trait Speaks {
    fn session(&self) -> Session;

    fn sibling(&self, session: &Session) -> Session;

    fn make_of(&self, session: &Session, request: RequestId, parts: &Parts)
    -> Result<Made, Unmade>;

    fn take_answer(&self, session: &mut Session) -> Option<Box<WholeAnswer>>;

    fn clear_cookies(&self, session: &Session);

    fn set_cookie(&self, session: &Session, value: &str, path: &str);

    fn beside(&self, session: &mut Session) -> Session;

    fn make(
        &self,
        session: &Session,
        request: RequestId,
        scope: &mut UserScope,
    ) -> Result<Made, Unmade>;

    fn take_up(&self, session: &mut Session, made: Made);

    fn exchange<'a>(
        &'a self,
        session: &'a mut Session,
        request: RequestId,
        scope: &'a mut UserScope,
        deadline: &'a Timer,
    ) -> Pin<Box<dyn Future<Output = Exchange> + 'a>>;

    fn forget(&self, request: RequestId, scope: &mut UserScope);

    fn again(&self, session: &mut Session, request: RequestId);

    fn take_counts(&self) -> ClientCounts;
}

/// Why a session never belongs to another client: a dry run has only one.
const OWN: &str = "the session is one of this client";

impl<C: Client> Speaks for C {
    fn session(&self) -> Session {
        Box::new(lab_client::Client::session(self))
    }

    fn sibling(&self, session: &Session) -> Session {
        let own = (**session).downcast_ref().expect(OWN);
        Box::new(lab_client::Client::sibling(self, own))
    }

    fn make_of(
        &self,
        session: &Session,
        request: RequestId,
        parts: &Parts,
    ) -> Result<Made, Unmade> {
        let own = (**session).downcast_ref().expect(OWN);
        lab_client::Client::make_of(self, own, request, parts)
    }

    fn take_answer(&self, session: &mut Session) -> Option<Box<WholeAnswer>> {
        let own = (**session).downcast_mut().expect(OWN);
        lab_client::Client::take_answer(self, own)
    }

    fn clear_cookies(&self, session: &Session) {
        let own = (**session).downcast_ref().expect(OWN);
        lab_client::Client::clear_cookies(self, own);
    }

    fn set_cookie(&self, session: &Session, value: &str, path: &str) {
        let own = (**session).downcast_ref().expect(OWN);
        lab_client::Client::set_cookie(self, own, value, path);
    }

    fn beside(&self, session: &mut Session) -> Session {
        let own = (**session).downcast_mut().expect(OWN);
        Box::new(lab_client::Client::parallel_session(self, own))
    }

    fn make(
        &self,
        session: &Session,
        request: RequestId,
        scope: &mut UserScope,
    ) -> Result<Made, Unmade> {
        let own = (**session).downcast_ref().expect(OWN);
        lab_client::Client::make(self, own, request, scope)
    }

    fn take_up(&self, session: &mut Session, made: Made) {
        let own = (**session).downcast_mut().expect(OWN);
        lab_client::Client::take_up(self, own, made);
    }

    fn exchange<'a>(
        &'a self,
        session: &'a mut Session,
        request: RequestId,
        scope: &'a mut UserScope,
        deadline: &'a Timer,
    ) -> Pin<Box<dyn Future<Output = Exchange> + 'a>> {
        let own = (**session).downcast_mut().expect(OWN);
        let exchange = lab_client::Client::exchange(self, own, request, scope, deadline);
        Box::pin(exchange)
    }

    fn forget(&self, request: RequestId, scope: &mut UserScope) {
        lab_client::Client::forget(self, request, scope);
    }

    fn again(&self, session: &mut Session, request: RequestId) {
        let own = (**session).downcast_mut().expect(OWN);
        lab_client::Client::again(self, own, request);
    }

    fn take_counts(&self) -> ClientCounts {
        lab_client::Client::take_counts(self)
    }
}

/// The client of all trials, with a witness of its requests.
struct Witnessed {
    client: Box<dyn Speaks>,
    witness: Rc<dyn Witness>,
}

impl lab_client::Client for Witnessed {
    type Time = Timers;
    type Session = Session;

    fn session(&self) -> Session {
        self.client.session()
    }

    fn sibling(&self, session: &Session) -> Session {
        self.client.sibling(session)
    }

    fn parallel_session(&self, session: &mut Session) -> Session {
        self.client.beside(session)
    }

    fn make_of(
        &self,
        session: &Session,
        request: RequestId,
        parts: &Parts,
    ) -> Result<Made, Unmade> {
        self.client.make_of(session, request, parts)
    }

    fn take_answer(&self, session: &mut Session) -> Option<Box<WholeAnswer>> {
        self.client.take_answer(session)
    }

    fn clear_cookies(&self, session: &Session) {
        self.client.clear_cookies(session);
    }

    fn set_cookie(&self, session: &Session, value: &str, path: &str) {
        self.client.set_cookie(session, value, path);
    }

    fn make(
        &self,
        session: &Session,
        request: RequestId,
        scope: &mut UserScope,
    ) -> Result<Made, Unmade> {
        let made = self.client.make(session, request, scope);
        let unsent = match &made {
            Ok(_) => None,
            Err(Unmade::Empty) => Some(Exchange::Skipped),
            Err(Unmade::Failed(detail)) => Some(Exchange::Unmade {
                detail: detail.clone(),
            }),
        };
        if let Some(exchange) = unsent {
            self.witness.exchanged(request, scope, &exchange);
        }
        made
    }

    fn take_up(&self, session: &mut Session, made: Made) {
        self.client.take_up(session, made);
    }

    async fn exchange(
        &self,
        session: &mut Session,
        request: RequestId,
        scope: &mut UserScope,
        deadline: &Timer,
    ) -> Exchange {
        let exchange = self
            .client
            .exchange(session, request, scope, deadline)
            .await;
        self.witness.exchanged(request, scope, &exchange);
        exchange
    }

    fn forget(&self, request: RequestId, scope: &mut UserScope) {
        self.client.forget(request, scope);
    }

    fn again(&self, session: &mut Session, request: RequestId) {
        self.client.again(session, request);
    }

    fn left_out(&self, request: RequestId) {
        self.witness.left_out(request);
    }

    fn take_counts(&self) -> ClientCounts {
        self.client.take_counts()
    }
}
