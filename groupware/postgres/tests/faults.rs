//! Nothing acknowledged is lost, nothing is stored twice or by half, whatever happens to the sessions, to the
//! server, and to the way there.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use groupware_postgres::{Database, PostgresOptions};
use groupware_store::{Batch, CommitError, Store, StoreError, counters};
use plimsoll_tests::postgres::Postgres;
use plimsoll_tests::wait_until;

use crate::support::{few, store};

mod support;

/// What a client was told of its batches, by their numbers.
#[derive(Debug, Default)]
struct Told {
    stored: Vec<u32>,
    refused: Vec<u32>,
    unknown: Vec<u32>,
}

/// A batch that is whole or not there: two records in two partitions, and one more in a sum that all add to.
fn batch(number: u32) -> Batch {
    let mut batch = Batch::new();
    let key = number.to_be_bytes();
    batch
        .assert_absent("left", key)
        .put("left", key, "")
        .put("right", key, "");
    batch.add("all", "sum", [1]);
    batch
}

/// Hands in batches with numbers from `first` on until it is told to stop.
fn write(store: &Store, first: u32, stop: &AtomicBool) -> Told {
    let mut told = Told::default();
    for number in first.. {
        if stop.load(Ordering::Relaxed) {
            return told;
        }
        match store.commit_blocking(batch(number)) {
            Ok(_) => told.stored.push(number),
            Err(CommitError::Unknown(_)) => told.unknown.push(number),
            Err(CommitError::Store(StoreError::Away(_))) => told.refused.push(number),
            Err(error) => panic!("{number}: {error:?}"),
        }
    }
    unreachable!("there are enough numbers")
}

/// Each writer has numbers of its own.
const NUMBERS: u32 = 1_000_000;

/// Has several threads write through several handles while something is done to them.
fn meanwhile(stores: &[Store], work: impl FnOnce()) -> Vec<Told> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..)
            .zip(stores.iter().cycle().take(8))
            .map(|(at, store)| {
                let stop = &stop;
                scope.spawn(move || write(store, at * NUMBERS, stop))
            })
            .collect();
        work();
        stop.store(true, Ordering::Relaxed);
        let told = writers.into_iter().map(|writer| writer.join().unwrap());
        told.collect()
    })
}

fn there(store: &Store, partition: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let read = store.read(|snapshot| {
        snapshot.scan(partition, b"", None, usize::MAX, &mut |key, _| {
            found.push(u32::from_be_bytes(key.try_into().unwrap()));
            std::ops::ControlFlow::Continue(())
        })
    });
    read.map_err(|error: StoreError| error).unwrap();
    found
}

/// What is wrong with what is there, by what was told.
fn wrong(store: &Store, told: &[Told]) -> Vec<String> {
    let (left, right) = (there(store, "left"), there(store, "right"));
    let sum = store.read(|snapshot| snapshot.get("all", b"sum")).unwrap();
    let sum = sum.map_or(0, |sum| counters(&sum.value).next().unwrap_or(0));
    let mut wrong = Vec::new();
    if left != right {
        wrong.push("a batch is half there".to_owned());
    }
    if usize::try_from(sum) != Ok(left.len()) {
        wrong.push(format!(
            "{} batches are there, and {sum} were added",
            left.len()
        ));
    }
    let is_there = |number: &u32| left.binary_search(number).is_ok();
    for told in told {
        let lost = told
            .stored
            .iter()
            .filter(|number| !is_there(number))
            .count();
        let kept = told
            .refused
            .iter()
            .filter(|number| is_there(number))
            .count();
        if lost + kept > 0 {
            wrong.push(format!(
                "{lost} were acknowledged and are gone, {kept} were refused and stay"
            ));
        }
    }
    wrong
}

fn count(told: &[Told]) -> (usize, usize, usize) {
    told.iter().fold((0, 0, 0), |sum, told| {
        let (stored, refused) = (sum.0 + told.stored.len(), sum.1 + told.refused.len());
        (stored, refused, sum.2 + told.unknown.len())
    })
}

fn at(server: &Postgres) -> Database {
    Database::parse(&server.address()).unwrap()
}

fn stores(at: &Database, count: usize) -> Vec<Store> {
    (0..count).map(|_| store(at, &patient())).collect()
}

/// Groups committed so far, of all handles.
fn groups(stores: &[Store]) -> u64 {
    stores.iter().map(|store| store.stats().commits).sum()
}

fn after_more(stores: &[Store], commits: u64) {
    let before = groups(stores);
    let limit = Duration::from_secs(120);
    wait_until(limit, "more commits", || groups(stores) >= before + commits);
}

#[test]
fn sessions_that_are_ended_lose_nothing() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let stores = stores(&at(&server), 4);
    let told = meanwhile(&stores, || {
        for _ in 0..40 {
            after_more(&stores, 20);
            let ended = server.sql(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                     WHERE application_name = 'plimsoll' AND random() < 0.7",
            );
            assert!(ended.is_some());
        }
    });
    assert_eq!(wrong(&stores[0], &told), Vec::<String>::new());
    let (stored, refused, unknown) = count(&told);
    assert!(stored > 800, "{stored} {refused} {unknown}");
    // The server is there all the time: whatever was in doubt could be found out.
    assert_eq!((refused, unknown), (0, 0));
}

#[test]
fn a_server_that_crashes_loses_nothing_acknowledged() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let stores = stores(&at(&server), 3);
    let told = meanwhile(&stores, || {
        for _ in 0..5 {
            after_more(&stores, 50);
            server.kill();
            server.restart();
        }
        after_more(&stores, 50);
    });
    assert_eq!(wrong(&stores[0], &told), Vec::<String>::new());
    assert!(count(&told).0 > 300, "{:?}", count(&told));
}

/// Stands between a store and its server, and cuts the way when a transaction is to be committed.
struct Relay {
    address: SocketAddr,
    cuts: Arc<AtomicU32>,
}

/// The message that asks to commit, and its answer's beginning.
const ASKS: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
const ANSWERS: &[u8] = b"C\0\0\0\x0bCOMMIT\0";

/// Cuts one commit in so many, by turns before it and before its answer.
const EVERY: u32 = 7;

impl Relay {
    /// `after_cut` is done when the server has committed and the store hasn't heard of it.
    fn start(server: u16, after_cut: impl Fn() + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = Arc::new(AtomicU32::new(0));
        let (seen, after_cut) = (Arc::new(AtomicU32::new(0)), Arc::new(after_cut));
        let counted = Arc::clone(&cuts);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                let way = Way {
                    client,
                    server,
                    cuts: Arc::clone(&counted),
                    seen: Arc::clone(&seen),
                };
                let after_cut = Arc::clone(&after_cut);
                std::thread::spawn(move || way.relay(&*after_cut));
            }
        });
        Self { address, cuts }
    }

    fn database(&self) -> Database {
        Database::parse(&format!("postgres://postgres@{}/postgres", self.address)).unwrap()
    }
}

struct Way {
    client: TcpStream,
    server: TcpStream,
    cuts: Arc<AtomicU32>,
    seen: Arc<AtomicU32>,
}

impl Way {
    fn relay(self, after_cut: &dyn Fn()) {
        let is_cut = Arc::new(AtomicBool::new(false));
        let back = {
            let (mut from, mut to) = (
                self.server.try_clone().unwrap(),
                self.client.try_clone().unwrap(),
            );
            let is_cut = Arc::clone(&is_cut);
            std::thread::spawn(move || {
                let (mut buffer, mut kept) = ([0; 65536], Vec::new());
                while let Ok(count @ 1..) = from.read(&mut buffer) {
                    match is_cut.load(Ordering::SeqCst) {
                        true => {
                            kept.extend_from_slice(&buffer[..count]);
                            if kept.windows(ANSWERS.len()).any(|part| part == ANSWERS) {
                                return true;
                            }
                        }
                        false if to.write_all(&buffer[..count]).is_err() => break,
                        false => {}
                    }
                }
                let _ = to.shutdown(Shutdown::Both);
                false
            })
        };
        let cut_after = self.forward(&is_cut);
        if cut_after && back.join().unwrap() {
            after_cut();
        }
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    /// Hands on what the client says; true if its commit was handed on and the answer is to be lost.
    fn forward(&self, is_cut: &AtomicBool) -> bool {
        let (mut from, mut to) = (&self.client, &self.server);
        let mut buffer = [0; 65536];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let asks = buffer[..count].windows(ASKS.len()).any(|part| part == ASKS);
            let turn = match asks {
                true => self.seen.fetch_add(1, Ordering::SeqCst) + 1,
                false => 0,
            };
            if asks && turn.is_multiple_of(EVERY) {
                self.cuts.fetch_add(1, Ordering::SeqCst);
                if (turn / EVERY).is_multiple_of(2) {
                    return false;
                }
                is_cut.store(true, Ordering::SeqCst);
                return to.write_all(&buffer[..count]).is_ok();
            }
            if to.write_all(&buffer[..count]).is_err() {
                return false;
            }
        }
        false
    }
}

fn patient() -> PostgresOptions {
    few().shared().patience(Duration::from_secs(20))
}

#[test]
fn a_commit_whose_answer_is_lost_is_found_out() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let relay = Relay::start(server.port(), || {});
    let through: Vec<_> = (0..3)
        .map(|_| store(&relay.database(), &patient()))
        .collect();
    let told = meanwhile(&through, || {
        let limit = Duration::from_secs(120);
        wait_until(limit, "cuts", || relay.cuts.load(Ordering::SeqCst) >= 60);
    });
    let direct = store(&at(&server), &patient());
    assert_eq!(wrong(&direct, &told), Vec::<String>::new());
    let (stored, refused, unknown) = count(&told);
    assert!(stored > 100, "{stored}");
    assert_eq!((refused, unknown), (0, 0));
}

/// Without the marker, nobody could tell: this suite would notice.
#[test]
fn without_the_marker_batches_are_stored_twice() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let server = Arc::new(server);
    let unmarked = Arc::clone(&server);
    let relay = Relay::start(server.port(), move || {
        unmarked
            .sql("UPDATE plimsoll.writers SET last = last - 1")
            .unwrap();
    });
    let through = store(&relay.database(), &patient());
    // Without an assert that would find the first one there.
    let add = || {
        let mut batch = Batch::new();
        batch
            .add("all", "sum", [1])
            .put("left", 1_u32.to_be_bytes(), "");
        batch
    };
    let limit = Duration::from_secs(120);
    let mut stored = 0;
    wait_until(limit, "cuts", || {
        stored += i64::from(through.commit_blocking(add()).is_ok());
        relay.cuts.load(Ordering::SeqCst) >= 6
    });
    let direct = store(&at(&server), &patient());
    let sum = direct.read(|snapshot| snapshot.get("all", b"sum")).unwrap();
    let sum = counters(&sum.unwrap().value).next().unwrap();
    assert!(sum > stored, "{sum} were added, and {stored} acknowledged");
}

/// A commit that waits for another machine in vain says COMMIT all the same, with a warning before it.
#[test]
fn what_only_one_machine_has_is_not_acknowledged() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let brief = few().patience(Duration::from_secs(2));
    let store = store(&at(&server), &brief);
    store.commit_blocking(batch(1)).unwrap();
    server
        .sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        .unwrap();
    server.sql("SELECT pg_reload_conf()").unwrap();
    let outcome = std::thread::scope(|scope| {
        let commit = scope.spawn(|| store.commit_blocking(batch(2)));
        wait_until(Duration::from_secs(60), "a cancelled wait", || {
            let cancelled = server.sql(
                "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
                     WHERE application_name = 'plimsoll' AND wait_event = 'SyncRep'",
            );
            cancelled.is_some_and(|count| count != "0") || commit.is_finished()
        });
        commit.join().unwrap()
    });
    assert!(
        matches!(outcome, Err(CommitError::Unknown(_))),
        "{outcome:?}"
    );
    // As long as nobody else has what is written, writes are refused, and reads go on.
    let refused = store.commit_blocking(batch(3)).unwrap_err();
    assert!(refused.is_passing(), "{refused:?}");
    assert!(there(&store, "left").starts_with(&[1]));
    server
        .sql("ALTER SYSTEM RESET synchronous_standby_names")
        .unwrap();
    server.sql("SELECT pg_reload_conf()").unwrap();
    let mut number = 3;
    wait_until(Duration::from_secs(60), "writes to be taken again", || {
        number += 1;
        store.commit_blocking(batch(number)).is_ok()
    });
    assert!(store.condition().refusal.is_none());
}
