//! The suite proves something only as far as it fails where what it relies on is taken away: the marker, the locks,
//! and the standby that is waited for.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use groupware_postgres::Database;
use groupware_store::{Batch, counters};
use plimsoll_tests::postgres::Postgres;
use plimsoll_tests::wait_until;

use crate::at;
use crate::history::{after_more, meanwhile, patient, stores, wrong};
use crate::promotion::{both, two};
use crate::relay::Relay;
use crate::support::store;

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

/// The name of the function that takes a lock, as the statements of a session name it, and one of the same length that
/// takes none.
const LOCKS: &[u8] = b"pg_advisory_xact_lock";
const LOCKS_NOTHING: &[u8] = b"no_advisory_xact_lock";

/// Where a server is spoken to, and its locks are none.
fn without_locks(server: u16) -> (SocketAddr, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, taken) = (listener.local_addr().unwrap(), Arc::new(AtomicU32::new(0)));
    let counted = Arc::clone(&taken);
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                continue;
            };
            let (back, to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || hand_on(back, to, |_| ()));
            let counted = Arc::clone(&counted);
            thread::spawn(move || {
                hand_on(client, server, |bytes| {
                    counted.fetch_add(unlock(bytes), Ordering::SeqCst);
                });
            });
        }
    });
    (address, taken)
}

/// Has the statements in these bytes take no locks; says how many there were.
fn unlock(bytes: &mut [u8]) -> u32 {
    let mut found = 0;
    for at in 0..bytes.len() {
        if bytes[at..].starts_with(LOCKS) {
            bytes[at..at + LOCKS.len()].copy_from_slice(LOCKS_NOTHING);
            found += 1;
        }
    }
    found
}

fn hand_on(mut from: TcpStream, mut to: TcpStream, change: impl Fn(&mut [u8])) {
    let mut buffer = [0; 65536];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        change(&mut buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

#[test]
fn without_the_locks_sums_are_wrong() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let direct = store(&at(&server), &patient());
    for name in ["no_advisory_xact_lock", "no_advisory_xact_lock_shared"] {
        let made = server.sql(&format!(
            "CREATE FUNCTION plimsoll.{name}(int, int) RETURNS void LANGUAGE sql AS 'SELECT'"
        ));
        assert!(made.is_some());
    }
    let (address, taken) = without_locks(server.port());
    let unlocked = format!("postgres://postgres@{address}/postgres");
    let stores = stores(&Database::parse(&unlocked).unwrap(), 4);
    let told = meanwhile(&stores, || after_more(&stores, 200));
    assert!(
        taken.load(Ordering::SeqCst) >= 8,
        "both kinds, in each session"
    );
    let wrong = wrong(&direct, &told);
    assert!(
        wrong.iter().any(|words| words.contains("were added")),
        "{wrong:?}"
    );
}

#[test]
fn without_a_standby_that_is_waited_for_acknowledged_batches_are_lost() {
    let Some((first, second)) = two() else { return };
    let stores = stores(&both(&first, &second), 3);
    let told = meanwhile(&stores, || {
        after_more(&stores, 50);
        first.hold_up_standbys();
        after_more(&stores, 50);
        first.kill();
        second.promote();
    });
    let wrong = wrong(&store(&at(&second), &patient()), &told);
    assert!(
        wrong.iter().any(|words| words.contains("and are gone")),
        "{wrong:?}"
    );
}
