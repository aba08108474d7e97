//! The suite is valid only if it fails without the mechanisms that the engine relies on: the
//! marker, the locks, and the synchronous standby.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use groupware_store::{Batch, counters};
use plimsoll_tests::postgres::Postgres;
use plimsoll_tests::wait_until;

use crate::history::{patient, wrong};
use crate::meanwhile::{after_more, meanwhile, stores};
use crate::promotion::{both, two};
use crate::relay::Manner;
use crate::support::store;
use crate::unlocked::{functions, unlock};
use crate::{at, before, every_seventh, through};

/// Without the marker, the outcome of a lost commit is unknown: this suite would notice.
#[test]
fn without_the_marker_batches_are_stored_twice() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let server = Arc::new(server);
    let unmarked = Arc::clone(&server);
    let unmark = move || {
        unmarked
            .sql("UPDATE plimsoll.writers SET last = last - 1")
            .unwrap();
    };
    let relay = before(&server, every_seventh(unmark));
    let cut_off = store(&through(&relay), &patient());
    // Without an assert that would find the first batch.
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
        stored += i64::from(cut_off.commit_blocking(add()).is_ok());
        relay.cuts.load(Ordering::SeqCst) >= 6
    });
    let direct = store(&at(&server), &patient());
    let sum = direct.read(|snapshot| snapshot.get("all", b"sum")).unwrap();
    let sum = counters(&sum.unwrap().value).next().unwrap();
    assert!(sum > stored, "{sum} were added, and {stored} acknowledged");
}

#[test]
fn without_the_locks_sums_are_wrong() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let direct = store(&at(&server), &patient());
    server.sql(&functions("plimsoll")).unwrap();
    let taken = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&taken);
    let manner = Manner {
        change: Box::new(move |bytes| _ = counted.fetch_add(unlock(bytes), Ordering::SeqCst)),
        ..Manner::default()
    };
    let relay = before(&server, manner);
    let stores = stores(&through(&relay), 4);
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
