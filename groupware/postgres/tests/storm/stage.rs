//! Two databases, one the standby of the other, servers over them, connections between them, and their faults.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use groupware_postgres::Database;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::postgres::Postgres;
use plimsoll_tests::relay::{self, Direction, Way, pause};
use plimsoll_tests::tmpfs::Tmpfs;
use plimsoll_tests::wait_until;

use crate::draw::{FRONTS, Fault};
use crate::front::first_of;
use crate::history::patient;
use crate::received::Received;
use crate::relay::{Cut, Manner, Relay};
use crate::support::store;
use crate::unlocked;
use crate::{Without, lock};

/// A limit that exceeds every operation.
const LIMIT: Duration = Duration::from_secs(120);
/// The number of commits after each fault before the next one.
const PROGRESS: u64 = 12;
/// The room for both databases; filling the rest makes the disk full.
const DISK: &str = "640m";
/// Small, and quick to reconnect.
const SETTINGS: [&str; 5] = [
    "shared_buffers=16MB",
    "min_wal_size=32MB",
    "max_wal_size=64MB",
    "wal_keep_size=64MB",
    "wal_retrieve_retry_interval=100ms",
];
/// No server listens there.
const NOWHERE: u16 = 1;
/// Commits that wait for the standby.
const WAITING: &str =
    "FROM pg_stat_activity WHERE application_name = 'plimsoll' AND wait_event = 'SyncRep'";

/// A database, and the connections to it.
struct Slot {
    /// Shared with the relay's callback.
    server: Arc<Mutex<Option<Arc<Postgres>>>>,
    port: Arc<AtomicU16>,
    /// Cuts at commits; the relay in front of it cuts at any time.
    commits: Relay,
    armed: Arc<Mutex<Option<Cut>>>,
    way: relay::Relay,
}

impl Slot {
    fn new(server: Postgres, without: Option<Without>, schema: &Arc<Mutex<String>>) -> Self {
        let port = Arc::new(AtomicU16::new(server.port()));
        let server = Arc::new(Mutex::new(Some(Arc::new(server))));
        let armed: Arc<Mutex<Option<Cut>>> = Arc::default();
        let (taken, served, schema) = (Arc::clone(&armed), Arc::clone(&server), Arc::clone(schema));
        let unmark = move || {
            let server = lock(&served).clone();
            let words = format!("UPDATE {}.writers SET last = last - 1", lock(&schema));
            server.and_then(|server| server.sql(&words));
        };
        let mut manner = Manner {
            when: Box::new(move |_| lock(&taken).take()),
            ..Manner::default()
        };
        match without {
            Some(Without::Marker) => manner.after_cut = Box::new(unmark),
            Some(Without::Locks) => manner.change = Box::new(|bytes| _ = unlocked::unlock(bytes)),
            Some(Without::Standby) | None => {}
        }
        let commits = Relay::start(Arc::clone(&port), manner);
        let way = relay::Relay::start(commits.address).expect("a port is free");
        Self {
            server,
            port,
            commits,
            armed,
            way,
        }
    }

    fn server(&self) -> Arc<Postgres> {
        lock(&self.server).clone().expect("it is there")
    }

    fn address(&self) -> SocketAddr {
        self.way.address()
    }
}

/// A server in a process of its own.
struct Front {
    process: Child,
    reader: JoinHandle<()>,
}

impl Front {
    fn signal(&self, signal: Signal) {
        let process = i32::try_from(self.process.id()).expect("ids are small");
        // A process that has ended is detected later.
        let _ = kill(Pid::from_raw(process), signal);
    }

    /// Waits until it has ended; returns true for a clean exit.
    fn ended(mut self) -> bool {
        let mut status = None;
        wait_until(LIMIT, "a server to end", || {
            status = self.process.try_wait().expect("it is ours");
            status.is_some()
        });
        self.reader.join().expect("it only reads");
        status.is_some_and(|status| status.success())
    }
}

/// The servers and databases under test.
pub(crate) struct Stage {
    fronts: Vec<Front>,
    /// Servers started in this life.
    started: u32,
    heard: Arc<Mutex<Received>>,
    /// The acknowledged batches of all lives.
    stored: Arc<AtomicU64>,
    slots: [Slot; 2],
    /// The index of the primary.
    first: usize,
    schema: Arc<Mutex<String>>,
    name: String,
    without: Option<Without>,
    /// The disk of both, if one is available. Dropped last.
    disk: Option<Tmpfs>,
}

impl Stage {
    /// `None` without PostgreSQL.
    pub(crate) fn start(number: usize, without: Option<Without>) -> Option<Self> {
        let disk = Tmpfs::mount(DISK);
        let usual = std::env::temp_dir();
        let within = disk.as_ref().map_or(usual.as_path(), Tmpfs::path);
        let first = Postgres::start_in(within, &SETTINGS)?;
        let second = first.standby();
        if without != Some(Without::Standby) {
            first.wait_for_standbys();
        }
        let schema = Arc::default();
        let slots = [first, second].map(|server| Slot::new(server, without, &schema));
        Some(Self {
            fronts: Vec::new(),
            started: 0,
            heard: Arc::default(),
            stored: Arc::default(),
            slots,
            first: 0,
            schema,
            name: format!("storm{number}"),
            without,
            disk,
        })
    }

    /// Returns true if the disk can be filled.
    pub(crate) fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    fn primary(&self) -> Arc<Postgres> {
        self.slots[self.first].server()
    }

    fn standby(&self) -> Arc<Postgres> {
        self.slots[1 - self.first].server()
    }

    /// Runs one life: all servers write to a new store while faults are injected in order. Returns
    /// their reports and the defects of the store.
    pub(crate) fn live(&mut self, life: u64, faults: &[Fault]) -> (Received, Vec<String>) {
        let schema = format!("{}_{life}", self.name);
        lock(&self.schema).clone_from(&schema);
        if self.without == Some(Without::Locks) {
            let made = format!("CREATE SCHEMA {schema}; {}", unlocked::functions(&schema));
            self.primary().sql(&made).expect("it can be made");
        }
        self.started = 0;
        for _ in 0..FRONTS {
            let front = self.front();
            self.fronts.push(front);
        }
        self.go_on("the first ones");
        for fault in faults {
            self.strike(*fault);
            self.go_on(&format!("those after {fault:?}"));
        }
        let mut wrong = Vec::new();
        for mut front in std::mem::take(&mut self.fronts) {
            drop(front.process.stdin.take());
            if !front.ended() {
                wrong.push("a server has failed".to_owned());
            }
        }
        let heard = std::mem::take(&mut *lock(&self.heard));
        let primary = self.primary();
        let at = format!("{}?schema={schema}", primary.address());
        let at = store(&Database::parse(&at).expect("an address"), &patient());
        wrong.extend(heard.judge(&at));
        at.close_blocking();
        primary.sql(&format!("DROP SCHEMA {schema} CASCADE"));
        (heard, wrong)
    }

    fn front(&mut self) -> Front {
        let [one, other] = [0, 1].map(|slot: usize| self.slots[slot].address());
        let schema = lock(&self.schema).clone();
        let at = format!("postgres://postgres@{one},{other}/postgres?schema={schema}");
        let first = first_of(self.started).to_string();
        self.started += 1;
        let mut process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(std::env::current_exe().expect("a running program has a path"))
            .args(["front", &at, &first])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let said = BufReader::new(process.stdout.take().expect("it is piped"));
        let (heard, stored) = (Arc::clone(&self.heard), Arc::clone(&self.stored));
        let reader = std::thread::spawn(move || read(said, &heard, &stored));
        Front { process, reader }
    }

    /// Waits for further commits.
    fn go_on(&self, which: &str) {
        let before = self.stored.load(SeqCst);
        wait_until(LIMIT, &format!("batches to be stored: {which}"), || {
            self.stored.load(SeqCst) >= before + PROGRESS
        });
    }

    fn strike(&mut self, fault: Fault) {
        let slot = &self.slots[self.first];
        match fault {
            Fault::KillFront(at) => {
                let front = self.front();
                let old = std::mem::replace(&mut self.fronts[at], front);
                old.signal(Signal::SIGKILL);
                old.ended();
            }
            Fault::StopFront(at, long) => {
                self.fronts[at].signal(Signal::SIGSTOP);
                pause(long);
                self.fronts[at].signal(Signal::SIGCONT);
            }
            Fault::Terminate => {
                let ended = slot.server().sql(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                         WHERE application_name = 'plimsoll' AND random() < 0.7",
                );
                assert!(ended.is_some(), "it may be asked for");
            }
            Fault::CutCommit(cut) => {
                let before = slot.commits.cuts.load(SeqCst);
                *lock(&slot.armed) = Some(cut);
                let cuts = &slot.commits.cuts;
                wait_until(LIMIT, "a commit to cut", || cuts.load(SeqCst) > before);
            }
            Fault::CutAll => slot.way.cut(),
            Fault::Stall(long) => {
                for direction in [Direction::There, Direction::Back] {
                    slot.way.set(direction, Way::Stalled);
                }
                pause(long);
                slot.way.heal();
            }
            Fault::StopPrimary(long) => stop(&self.primary(), long),
            Fault::StopStandby(long) => stop(&self.standby(), long),
            Fault::CancelWait(long) => self.cancel(long),
            Fault::FullDisk(long) => self.fill(long),
            Fault::KillPrimary(long) => kill_and_start(&self.primary(), long),
            Fault::KillStandby(long) => kill_and_start(&self.standby(), long),
            Fault::Restart => {
                slot.server().stop();
                slot.server().restart();
            }
            Fault::Promote { is_held_up } => self.promote(is_held_up),
        }
    }

    /// Halts the standby, and cancels the commits that wait for it.
    fn cancel(&self, long: Duration) {
        let (primary, standby) = (self.primary(), self.standby());
        standby.signal(Signal::SIGSTOP);
        wait_until(LIMIT, "a cancelled wait", || {
            let cancelled = primary.sql(&format!("SELECT count(pg_cancel_backend(pid)) {WAITING}"));
            cancelled.is_some_and(|count| count != "0")
        });
        pause(long);
        standby.signal(Signal::SIGCONT);
    }

    /// Fills the disk, which may end either database.
    fn fill(&self, long: Duration) {
        let disk = self
            .disk
            .as_ref()
            .expect("the fault is drawn where there is one");
        let file = disk.path().join("full");
        fill_up(&file);
        pause(long);
        std::fs::remove_file(&file).expect("it is ours");
        for server in [self.primary(), self.standby()] {
            server.revive();
        }
    }

    fn promote(&mut self, is_held_up: bool) {
        let (old, new) = (self.first, 1 - self.first);
        let (dying, next) = (self.primary(), self.standby());
        if is_held_up {
            wait_until(LIMIT, "a standby that follows", || {
                let following = dying.sql("SELECT count(*) FROM pg_stat_replication");
                following.is_some_and(|count| count != "0")
            });
            dying.hold_up_standbys();
            match self.without {
                Some(Without::Standby) => self.go_on("what the standby doesn't hear of"),
                _ => wait_until(LIMIT, "a commit that waits", || {
                    let waiting = dying.sql(&format!("SELECT count(*) {WAITING}"));
                    waiting.is_some_and(|count| count != "0")
                }),
            }
        }
        let slot = &self.slots[old];
        slot.port.store(NOWHERE, SeqCst);
        dying.kill();
        next.promote();
        self.first = new;
        // Frees its room first.
        drop((dying, lock(&slot.server).take()));
        let standby = next.standby();
        slot.port.store(standby.port(), SeqCst);
        *lock(&slot.server) = Some(Arc::new(standby));
        if self.without != Some(Without::Standby) {
            next.wait_for_standbys();
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Relays and their state stay; the disk is released after its users.
        for slot in &self.slots {
            drop(lock(&slot.server).take());
        }
    }
}

/// Records a server's reports until it ends. An incomplete last line is ignored.
fn read(mut said: impl BufRead, heard: &Mutex<Received>, stored: &AtomicU64) {
    let mut line = String::new();
    while said.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        if let Some(whole) = line.strip_suffix('\n')
            && lock(heard).take(whole)
        {
            stored.fetch_add(1, SeqCst);
        }
        line.clear();
    }
}

fn stop(server: &Postgres, long: Duration) {
    server.signal(Signal::SIGSTOP);
    pause(long);
    server.signal(Signal::SIGCONT);
}

fn kill_and_start(server: &Postgres, long: Duration) {
    server.kill();
    pause(long);
    server.restart();
}

fn fill_up(file: &Path) {
    let mut file = File::create(file).expect("a file can be made");
    let piece = vec![0; 1 << 20];
    while file.write(&piece).is_ok_and(|bytes| bytes > 0) {}
}
