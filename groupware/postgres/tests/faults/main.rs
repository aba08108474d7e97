//! No acknowledged batch is lost, none is stored twice or partially, whatever happens to the
//! sessions, the server, and the connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use groupware_postgres::Database;
use groupware_store::CommitError;
use plimsoll_tests::postgres::Postgres;
use plimsoll_tests::wait_until;

use crate::history::{batch, patient, there, wrong};
use crate::meanwhile::{after_more, count, meanwhile, stores};
use crate::relay::{Cut, Manner, Relay};
use crate::support::{few, store};

mod controls;
mod history;
mod meanwhile;
mod promotion;
mod relay;
#[path = "../support/mod.rs"]
mod support;
mod unlocked;

pub(crate) fn at(server: &Postgres) -> Database {
    Database::parse(&server.address()).unwrap()
}

/// Starts a relay in front of a server.
pub(crate) fn before(server: &Postgres, manner: Manner) -> Relay {
    Relay::start(Arc::new(server.port().into()), manner)
}

/// The database behind a relay.
pub(crate) fn through(relay: &Relay) -> Database {
    Database::parse(&format!("postgres://postgres@{}/postgres", relay.address)).unwrap()
}

/// One commit of this many is cut, alternately before it and before its response.
const EVERY: u32 = 7;

/// Cuts one commit in seven; `after_cut` runs after each that the server has committed.
pub(crate) fn every_seventh(after_cut: impl Fn() + Send + Sync + 'static) -> Manner {
    Manner {
        when: Box::new(|turn| {
            let is_cut = turn.is_multiple_of(EVERY);
            is_cut.then(|| match (turn / EVERY).is_multiple_of(2) {
                true => Cut::Before,
                false => Cut::After,
            })
        }),
        after_cut: Box::new(after_cut),
        ..Manner::default()
    }
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
    // The server is up all the time: every commit in doubt could be resolved.
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

#[test]
fn a_commit_whose_answer_is_lost_is_found_out() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let relay = before(&server, every_seventh(|| ()));
    let stores = stores(&through(&relay), 3);
    let told = meanwhile(&stores, || {
        let limit = Duration::from_secs(120);
        wait_until(limit, "cuts", || relay.cuts.load(Ordering::SeqCst) >= 60);
    });
    let direct = store(&at(&server), &patient());
    assert_eq!(wrong(&direct, &told), Vec::<String>::new());
    let (stored, refused, unknown) = count(&told);
    assert!(stored > 100, "{stored}");
    assert_eq!((refused, unknown), (0, 0));
}

/// The number of commits after which a setting certainly applies.
const FEW: u32 = 10_000;

/// A commit that gives up waiting for a standby still reports COMMIT, with a warning before it.
#[test]
fn what_only_one_machine_has_is_not_acknowledged() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let brief = few().patience(Duration::from_secs(10));
    let store = store(&at(&server), &brief);
    store.commit_blocking(batch(1)).unwrap();
    server
        .sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        .unwrap();
    server.sql("SELECT pg_reload_conf()").unwrap();
    let outcome = std::thread::scope(|scope| {
        // The setting applies after a delay: commits before it need no standby.
        let commit = scope.spawn(|| {
            let mut commits = (2..FEW).map(|number| store.commit_blocking(batch(number)));
            commits.find(Result::is_err)
        });
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
        matches!(outcome, Some(Err(CommitError::Unknown(_)))),
        "{outcome:?}"
    );
    // Without a standby that has the data, writes are refused, and reads continue.
    let refused = store.commit_blocking(batch(FEW)).unwrap_err();
    assert!(refused.is_passing(), "{refused:?}");
    assert!(there(&store, "left").starts_with(&[1]));
    server
        .sql("ALTER SYSTEM RESET synchronous_standby_names")
        .unwrap();
    server.sql("SELECT pg_reload_conf()").unwrap();
    let mut number = FEW;
    wait_until(Duration::from_secs(60), "writes to be taken again", || {
        number += 1;
        store.commit_blocking(batch(number)).is_ok()
    });
    assert!(store.condition().refusal.is_none());
}
