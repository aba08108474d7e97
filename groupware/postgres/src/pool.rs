//! Reading sessions, and the thread that drives their connections: a reader may run on a thread of
//! an event loop, and sleeps until its response is there.

use std::cell::Cell;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::future::join4;
use groupware_store::StoreError;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_postgres::{Client, Error, Statement};

use crate::clock::{Deadline, now};
use crate::connectivity::{Connectivity, Found, Turn};
use crate::error::{is_answer, is_late, kind, late};
use crate::hosts::Hosts;
use crate::session::{Role, Session};
use crate::sql;
use crate::wait::wait;
use crate::writer_connection::{Identity, brief};

/// An event loop on a thread of its own, which ends when this value is dropped.
pub(crate) struct Loop {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Loop {
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("store-postgres".to_owned())
            .spawn(move || _ = runtime.block_on(stopped))?;
        Ok(Self {
            handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Runs a future there, and sleeps until it is done.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
        most: Duration,
    ) -> Result<T, StoreError> {
        let task = self
            .handle
            .spawn(async move { tokio::time::timeout(most, work).await });
        // The future's own limit takes effect first.
        match wait(task, most + Duration::from_secs(1)) {
            Some(Ok(Ok(done))) => done,
            _ => Err(late()),
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread can't fail.
            let _ = thread.join();
        }
    }
}

/// The prepared statements of a reading session.
pub(crate) struct Statements {
    pub(crate) get: Statement,
    pub(crate) get_many: Statement,
    pub(crate) scan_many: Statement,
    pub(crate) scan: [Statement; 2],
    pub(crate) measure: [Statement; 2],
    pub(crate) walk: Statement,
}

impl Statements {
    async fn prepare(client: &Client) -> Result<Self, Error> {
        let (first, second) = futures_util::future::join(
            join4(
                client.prepare(sql::GET),
                client.prepare(sql::GET_MANY),
                client.prepare(sql::SCAN_FROM),
                client.prepare(sql::SCAN_RANGE),
            ),
            join4(
                client.prepare(sql::MEASURE_FROM),
                client.prepare(sql::MEASURE_RANGE),
                client.prepare(sql::WALK),
                client.prepare(sql::SCAN_MANY),
            ),
        )
        .await;
        Ok(Self {
            get: first.0?,
            get_many: first.1?,
            scan: [first.2?, first.3?],
            measure: [second.0?, second.1?],
            walk: second.2?,
            scan_many: second.3?,
        })
    }
}

/// A session and its prepared statements.
pub(crate) struct Reader {
    pub(crate) session: Session,
    pub(crate) statements: Statements,
}

/// Additional sessions for threads that hold one and need another to continue: without them, all
/// such threads could wait for each other.
pub(crate) const NESTED: usize = 4;

thread_local! {
    /// The number of sessions that this thread holds.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// A bounded pool of sessions; idle ones wait for the next reader.
pub(crate) struct Pool {
    hosts: Arc<Hosts>,
    identity: Identity,
    patience: Duration,
    most: usize,
    state: Mutex<State>,
    given_back: Condvar,
    /// Dropped after the sessions.
    event_loop: Loop,
}

struct State {
    idle: Vec<Reader>,
    /// Sessions in use or being opened.
    busy: usize,
    /// Whether the server responds, as far as readers know.
    reach: Connectivity,
}

/// A reader's permit: an idle session, or the right to open one.
#[derive(Default)]
struct Admitted {
    idle: Option<Reader>,
    /// Set if the other readers wait for the result: the time within which to open the session.
    finds_out: Option<Duration>,
}

impl State {
    /// Returns a permit for the next reader, if fewer than `most` sessions are in use.
    fn next(&mut self, most: usize) -> Option<Admitted> {
        while let Some(reader) = self.idle.pop() {
            if !reader.session.client.is_closed() {
                let (idle, finds_out) = (Some(reader), None);
                return Some(Admitted { idle, finds_out });
            }
        }
        (self.busy < most).then(Admitted::default)
    }
}

impl Pool {
    pub(crate) fn new(
        (hosts, identity): (Arc<Hosts>, Identity),
        (most, patience): (usize, Duration),
        event_loop: Loop,
    ) -> Self {
        let brief = brief(patience);
        let state = State {
            idle: Vec::new(),
            busy: 0,
            reach: Connectivity::new(brief, patience.saturating_sub(brief)),
        };
        Self {
            hosts,
            identity,
            patience,
            most,
            state: Mutex::new(state),
            given_back: Condvar::new(),
            event_loop,
        }
    }

    /// The maximum wait for a response. The rest of the store's maximum is for the reader that checks the server.
    pub(crate) fn patience(&self) -> Duration {
        self.patience.saturating_sub(brief(self.patience))
    }

    /// Takes a session for exclusive use, until it is put back or closed.
    pub(crate) fn take(&self) -> Result<Reader, StoreError> {
        let deadline = Deadline::after(self.patience());
        let Admitted { idle, finds_out } = self.admit(deadline)?;
        if let Some(idle) = idle {
            return Ok(idle);
        }
        let opened = self.open(finds_out.unwrap_or_else(|| deadline.left()));
        if opened.is_err() {
            self.leave(None);
        }
        let found = match &opened {
            Ok(_) => Found::Answer,
            Err(error) if is_answer(error) => Found::Answer,
            Err(error) if is_late(error) => Found::Silence,
            Err(_) => Found::Nobody,
        };
        match (finds_out, found) {
            (Some(_), found) => self.found_out(found),
            (None, Found::Answer) => self.heard(),
            (None, Found::Silence) => self.was_late(),
            (None, Found::Nobody) => {}
        }
        opened
    }

    /// Records that a response was missing. If the server is silent, closes the idle sessions, so
    /// that no other reader waits on them.
    pub(crate) fn was_late(&self) {
        let mut state = self.lock();
        if !state.reach.late(now()) {
            return;
        }
        let idle = std::mem::take(&mut state.idle);
        drop(state);
        drop(idle);
        self.given_back.notify_all();
    }

    /// Records a response.
    pub(crate) fn heard(&self) {
        let is_news = self.lock().reach.heard(now());
        if is_news {
            self.given_back.notify_all();
        }
    }

    fn found_out(&self, found: Found) {
        self.lock().reach.found_out(found, now());
        self.given_back.notify_all();
    }

    fn most_now(&self) -> usize {
        match HELD.get() {
            0 => self.most,
            _ => self.most + NESTED,
        }
    }

    fn admit(&self, deadline: Deadline) -> Result<Admitted, StoreError> {
        let mut state = self.lock();
        loop {
            let admitted = match state.reach.turn(now()) {
                Turn::Ask => state.next(self.most_now()),
                Turn::FindOut { within } => Some(Admitted {
                    idle: None,
                    finds_out: Some(within),
                }),
                Turn::Wait => None,
                Turn::Refused => return Err(late()),
            };
            if let Some(admitted) = admitted {
                state.busy += 1;
                HELD.set(HELD.get() + 1);
                return Ok(admitted);
            }
            if deadline.is_over() {
                return Err(late());
            }
            let waited = self.given_back.wait_timeout(state, deadline.left());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn open(&self, most: Duration) -> Result<Reader, StoreError> {
        let (hosts, identity) = (Arc::clone(&self.hosts), self.identity);
        let patience = self.patience;
        let opened = async move {
            let session = Session::open(&hosts, Role::Reader, patience).await?;
            identity.share(&session).await?;
            let statements = Statements::prepare(&session.client).await.map_err(kind)?;
            Ok(Reader {
                session,
                statements,
            })
        };
        self.event_loop.run(opened, most)
    }

    /// Returns a session, or the permit for it, to the pool.
    pub(crate) fn leave(&self, reader: Option<Reader>) {
        let mut state = self.lock();
        state.busy -= 1;
        HELD.set(HELD.get().saturating_sub(1));
        state.idle.extend(reader);
        drop(state);
        self.given_back.notify_one();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
