//! The contract of every engine, on PostgreSQL; and the behaviour of this engine only.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use groupware_postgres::{Database, OpenError, PostgresOptions, open as open_at};
use groupware_store::{Forms, Store, StoreError, StoreOptions};
use plimsoll_tests::postgres::Postgres;
use plimsoll_tests::relay::{Direction, Relay, Way};
use plimsoll_tests::wait_until;

use crate::contract::{batch, get, keeps_the_contract, keys};
use crate::place::{place, server};
use crate::support::{few, store};

#[path = "../../store/tests/contract/mod.rs"]
mod contract;
mod place;
mod support;

keeps_the_contract!(open);

fn open() -> Option<(Store, ())> {
    let store = store(&place()?, &few());
    Some((store, ()))
}

#[test]
fn records_and_revisions_survive_a_restart() {
    let Some(at) = place() else { return };
    let mut last = 0;
    for round in 0..3 {
        let store = store(&at, &few());
        for key in 0..20 {
            let put = batch(|b| _ = b.put("p", format!("{round}-{key}"), "x"));
            let revision = store.commit_blocking(put).unwrap().revision;
            assert!(revision > last, "revisions only grow");
            last = revision;
        }
        assert_eq!(store.integrity().unwrap(), Vec::<String>::new());
    }
    let store = store(&at, &few());
    assert_eq!(keys(&store, "p", "", None, 1000).split(' ').count(), 60);
}

#[test]
fn one_server_has_a_store_to_itself() {
    let Some(at) = place() else { return };
    let brief = few().patience(std::time::Duration::from_secs(2));
    let again = |how: &PostgresOptions| open_at(&at, &StoreOptions::default(), how);
    let first = store(&at, &few());
    let in_use = |tried: Result<Store, OpenError>| match tried {
        Err(OpenError::InUse { at }) => assert!(!at.contains("trust"), "{at}"),
        other => panic!("{other:?}"),
    };
    in_use(again(&brief));
    in_use(again(&brief.clone().shared()));
    drop(first);
    let shared = store(&at, &few().shared());
    let other = store(&at, &few().shared());
    in_use(again(&brief));
    shared
        .commit_blocking(batch(|b| _ = b.put("p", "k", "1")))
        .unwrap();
    assert_eq!(get(&other, "p", "k").unwrap().value, "1");
    drop((shared, other));
    // PostgreSQL ends their sessions when it notices.
    again(&few().patience(std::time::Duration::from_secs(120))).unwrap();
}

/// All its sessions are lost, as in a network failure, and another server claims the store meanwhile.
#[test]
fn who_lost_a_store_to_another_server_neither_reads_nor_writes() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let at = Database::parse(&server.address()).unwrap();
    let first = store(&at, &few());
    let put = batch(|b| _ = b.put("p", "k", "1"));
    first.commit_blocking(put.clone()).unwrap();
    assert!(get(&first, "p", "k").is_some());
    let all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'plimsoll'";
    assert_eq!(server.sql(all).as_deref(), Some("2"));
    let second = store(&at, &few());
    let failed = first.commit_blocking(put.clone()).unwrap_err();
    let cause = std::error::Error::source(&failed).unwrap().to_string();
    assert_eq!(cause, "another server has taken the database over");
    let read = first.read(|snapshot| snapshot.get("p", b"k"));
    assert!(matches!(read, Err(StoreError::Database(_))), "{read:?}");
    second.commit_blocking(put).unwrap();
    assert_eq!(get(&second, "p", "k").unwrap().value, "1");
}

/// A server that reads and writes these forms, or the error of opening it.
fn serving(at: &Database, reads: u32, writes: u32) -> Result<Store, OpenError> {
    let how = few().shared().forms(Forms { reads, writes });
    open_at(at, &StoreOptions::default(), &how)
}

#[test]
fn versions_that_follow_each_other_may_be_side_by_side() {
    let Some(at) = place() else { return };
    let old = serving(&at, 1, 1).unwrap();
    // It can read already what the next version is going to write.
    let between = serving(&at, 2, 1).unwrap();
    let early = serving(&at, 2, 2);
    assert!(
        matches!(early, Err(OpenError::InUseByOlder { .. })),
        "{early:?}"
    );
    // A rejected server has no effect.
    let put = batch(|b| _ = b.put("p", "k", "1"));
    old.commit_blocking(put).unwrap();
    drop(serving(&at, 1, 1).unwrap());
    drop(old);
    let new = serving(&at, 2, 2).unwrap();
    for store in [&between, &new] {
        assert_eq!(get(store, "p", "k").unwrap().value, "1");
    }
    let late = serving(&at, 1, 1);
    assert!(
        matches!(
            late,
            Err(OpenError::NewerForms {
                found: 2,
                known: 1,
                ..
            })
        ),
        "{late:?}"
    );
    drop((between, new));
    // A program that only copies records declares no forms.
    drop(store(&at, &few()));
    assert!(serving(&at, 1, 1).is_err());
}

/// It loses the database while a later version starts to write, and reconnects.
#[test]
fn who_does_not_read_what_others_write_by_now_is_told_so() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let at = Database::parse(&server.address()).unwrap();
    let old = serving(&at, 1, 1).unwrap();
    let put = batch(|b| _ = b.put("p", "k", "1"));
    old.commit_blocking(put.clone()).unwrap();
    assert!(get(&old, "p", "k").is_some());
    let all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'plimsoll'";
    assert_eq!(server.sql(all).as_deref(), Some("2"));
    let new = serving(&at, 2, 2).unwrap();
    let failed = old.commit_blocking(put.clone()).unwrap_err();
    assert!(chain(&failed).contains("a later version"), "{failed:?}");
    let read = old.read(|snapshot| snapshot.get("p", b"k"));
    assert!(matches!(read, Err(StoreError::Database(_))), "{read:?}");
    new.commit_blocking(put).unwrap();
}

#[test]
fn servers_that_do_not_say_what_they_read_are_beside_nobody() {
    let Some(at) = place() else { return };
    let Some(server) = server() else { return };
    let schema = at.to_string();
    let (_, schema) = schema.split_once("schema=").unwrap();
    let version = || server.sql(&format!("SELECT version FROM {schema}.store"));
    let old = serving(&at, 2, 2).unwrap();
    assert_eq!(version().as_deref(), Some("2"));
    // As a server of that version would have left it.
    server
        .sql(&format!("UPDATE {schema}.store SET version = 1"))
        .unwrap();
    let refused = serving(&at, 2, 2);
    assert!(
        matches!(refused, Err(OpenError::InUseByOlder { .. })),
        "{refused:?}"
    );
    drop(old);
    let (one, other) = (serving(&at, 2, 2).unwrap(), serving(&at, 2, 2).unwrap());
    assert_eq!(version().as_deref(), Some("2"));
    drop((one, other));
}

/// A server without permission to read the store's owner can't join, and excludes no other server.
#[test]
fn what_keeps_a_server_from_taking_part_is_told() {
    let Some(at) = place() else { return };
    let Some(server) = server() else { return };
    let first = serving(&at, 2, 2).unwrap();
    let place = at.to_string();
    let (_, schema) = place.split_once("schema=").unwrap();
    server
        .sql(&format!(
            "CREATE ROLE narrow LOGIN; GRANT USAGE ON SCHEMA {schema} TO narrow;
             GRANT SELECT ON {schema}.records TO narrow;
             GRANT SELECT (version) ON {schema}.store TO narrow"
        ))
        .unwrap();
    let narrow = server.address().replacen("postgres@", "narrow@", 1);
    let narrow = Database::parse(&format!("{narrow}?schema={schema}")).unwrap();
    // A long maximum wait rules out a timeout as the reason.
    let patient = few().shared().patience(std::time::Duration::from_secs(120));
    let refused = open_at(&narrow, &StoreOptions::default(), &patient).unwrap_err();
    assert!(matches!(refused, OpenError::Away { .. }), "{refused:?}");
    assert!(chain(&refused).contains("permission denied"), "{refused:?}");
    drop(first);
}

#[test]
fn those_who_wait_for_a_store_do_not_keep_each_other_from_it() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let at = Database::parse(&server.address()).unwrap();
    let limit = std::time::Duration::from_secs(120);
    let first = store(&at, &few());
    let sessions = || {
        let all = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'plimsoll'";
        server.sql(all).and_then(|count| count.parse::<u32>().ok())
    };
    let before = sessions().unwrap();
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let (at, how) = (at.clone(), few().shared().patience(limit));
            std::thread::spawn(move || open_at(&at, &StoreOptions::default(), &how))
        })
        .collect();
    wait_until(limit, "both to have come", || {
        sessions().is_some_and(|count| count >= before + 2)
    });
    drop(first);
    let stores: Vec<Store> = waiting
        .into_iter()
        .map(|waiting| waiting.join().unwrap().unwrap())
        .collect();
    let put = batch(|b| _ = b.put("p", "k", "1"));
    stores[0].commit_blocking(put).unwrap();
    assert_eq!(get(&stores[1], "p", "k").unwrap().value, "1");
}

#[test]
fn what_would_lose_data_is_refused_in_words() {
    let Some(at) = place() else { return };
    let Some(server) = server() else { return };
    let refused = |at: &Database| {
        let error = open_at(at, &StoreOptions::default(), &few()).unwrap_err();
        let text = error.to_string();
        assert!(!text.contains("secret"), "{text}");
        text
    };
    drop(store(&at, &few()));
    let schema = at.to_string();
    let (_, schema) = schema.split_once("schema=").unwrap();
    server
        .sql(&format!("ALTER TABLE {schema}.records SET UNLOGGED"))
        .unwrap();
    let text = refused(&at);
    assert!(text.contains("records is unlogged"), "{text}");
    server
        .sql(&format!("ALTER TABLE {schema}.records SET LOGGED"))
        .unwrap();
    server
        .sql(&format!("UPDATE {schema}.store SET version = 7"))
        .unwrap();
    let text = refused(&at);
    assert!(
        text.contains("has schema version 7, and this program knows"),
        "{text}"
    );
    server.sql(&format!("DROP TABLE {schema}.writers")).unwrap();
    let text = refused(&at);
    assert!(
        text.contains("holds some tables of a store and not all"),
        "{text}"
    );
    let nowhere = Database::parse("postgres://me:secret@127.0.0.1:1/none").unwrap();
    let brief = few().patience(std::time::Duration::from_millis(500));
    let error = open_at(&nowhere, &StoreOptions::default(), &brief).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot open postgres://me@127.0.0.1:1/none"
    );
    let looked = open_at(
        &at.in_schema("nothing_here"),
        &StoreOptions::default().as_it_is(),
        &few(),
    );
    assert!(
        matches!(looked, Err(OpenError::Nothing { .. })),
        "{looked:?}"
    );
}

#[test]
fn settings_of_the_server_that_lose_data_are_refused() {
    let Some(server) = Postgres::start_with(&["fsync=off"]) else {
        return;
    };
    let at = Database::parse(&server.address()).unwrap();
    let refused = open_at(&at, &StoreOptions::default(), &few()).unwrap_err();
    assert!(refused.to_string().contains("Set fsync = on"), "{refused}");
    assert_eq!(
        server
            .sql("SELECT to_regnamespace('plimsoll') IS NULL")
            .as_deref(),
        Some("t")
    );
}

#[test]
fn tls_is_spoken_with_a_server_whose_certificate_is_right() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (
        server.folder().join("cert.pem"),
        server.folder().join("key.pem"),
    );
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    server.give(&key);
    for set in [
        format!("ALTER SYSTEM SET ssl_cert_file = '{}'", cert.display()),
        format!("ALTER SYSTEM SET ssl_key_file = '{}'", key.display()),
        "ALTER SYSTEM SET ssl = on".to_owned(),
        "SELECT pg_reload_conf()".to_owned(),
    ] {
        server.sql(&set).unwrap();
    }
    let at = |host: &str, root: &std::path::Path| {
        let root = root.display();
        let (port, rest) = (
            server.port(),
            format!("sslmode=verify-full&sslrootcert={root}"),
        );
        Database::parse(&format!(
            "postgres://postgres@{host}:{port}/postgres?{rest}"
        ))
        .unwrap()
    };
    let brief = few().patience(std::time::Duration::from_secs(2));
    let tried = |at: &Database| open_at(at, &StoreOptions::default(), &brief);
    let mut opened = tried(&at("localhost", &cert));
    plimsoll_tests::wait_until(std::time::Duration::from_secs(60), "TLS", || {
        if opened.is_err() {
            opened = tried(&at("localhost", &cert));
        }
        opened.is_ok()
    });
    let sessions = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE ssl AND application_name = 'plimsoll'";
    assert_eq!(server.sql(sessions).as_deref(), Some("1"));
    drop(opened);
    // A name other than the certificate's, and another authority.
    let patient = few().patience(std::time::Duration::from_secs(60));
    let tried = |at: &Database| open_at(at, &StoreOptions::default(), &patient);
    let wrong_name = tried(&at("127.0.0.1", &cert)).unwrap_err();
    assert!(
        chain(&wrong_name).contains("certificate"),
        "{}",
        chain(&wrong_name)
    );
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other_cert = server.folder().join("other.pem");
    std::fs::write(&other_cert, other.cert.pem()).unwrap();
    let untrusted = tried(&at("localhost", &other_cert)).unwrap_err();
    assert!(
        chain(&untrusted).contains("certificate"),
        "{}",
        chain(&untrusted)
    );
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut last = error;
    while let Some(cause) = last.source() {
        words = format!("{words}: {cause}");
        last = cause;
    }
    words
}

/// The server responds, and the session can be reused: another session would wait for the same lock.
#[test]
fn a_writer_that_waits_in_vain_for_what_another_has_keeps_its_session() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let at = Database::parse(&server.address()).unwrap();
    let patient = few().patience(std::time::Duration::from_secs(10));
    let store = store(&at, &patient);
    let put = || store.commit_blocking(batch(|b| _ = b.put("p", "k", "1")));
    put().unwrap();
    let sessions = || {
        let all = "SELECT pid FROM pg_stat_activity WHERE application_name = 'plimsoll'";
        server.sql(all).unwrap()
    };
    let before = sessions();
    std::thread::scope(|scope| {
        // All partition locks, held by a session until it is ended.
        scope.spawn(|| {
            server.sql(
                "SELECT count(pg_advisory_lock(x'504c494d'::int, number)), pg_sleep(600)
                     FROM generate_series(0, 1023) AS t(number)",
            )
        });
        let limit = std::time::Duration::from_secs(120);
        let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
            AND classid = x'504c494d'::int::oid";
        wait_until(limit, "the locks", || {
            server.sql(locks).as_deref() == Some("1024")
        });
        let refused = put();
        server
            .sql(
                "SELECT pg_terminate_backend(pid) FROM pg_locks
                 WHERE objid = 1023 AND classid = x'504c494d'::int::oid",
            )
            .unwrap();
        let refused = refused.unwrap_err();
        assert!(refused.is_passing(), "{refused:?}");
    });
    put().unwrap();
    assert_eq!(sessions(), before);
}

/// Stops the other threads, also on a panic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Like a halted machine or a network that drops packets: connections stay open.
#[test]
fn who_finds_a_server_silent_keeps_others_from_waiting_for_it() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let relay = Relay::start(([127, 0, 0, 1], server.port()).into()).unwrap();
    let port = format!(":{}/", server.port());
    let through = format!(":{}/", relay.address().port());
    let address = server.address().replacen(&port, &through, 1);
    keeps_others_from_waiting(&address, &relay);
}

/// The leader's machine hangs, and a standby is set up to reject every connection.
#[test]
fn what_another_host_refuses_is_not_the_word_of_the_silent_one() {
    let (Some(server), Some(refusing)) = (Postgres::start(), Postgres::start()) else {
        return;
    };
    server.sql("CREATE DATABASE ours").unwrap();
    let relay = Relay::start(([127, 0, 0, 1], server.port()).into()).unwrap();
    let (leader, standby) = (relay.address().port(), refusing.port());
    let address = format!("postgres://postgres@127.0.0.1:{leader},127.0.0.1:{standby}/ours");
    keeps_others_from_waiting(&address, &relay);
}

/// While the relay forwards nothing, all readers get an error, and hardly any has to wait for it.
fn keeps_others_from_waiting(address: &str, relay: &Relay) {
    let at = Database::parse(address).unwrap();
    let store = store(&at, &few());
    let read = || store.read(|snapshot| snapshot.get("p", b"k"));
    let put = || store.commit_blocking(batch(|b| _ = b.put("p", "k", "1")));
    put().unwrap();
    assert!(read().unwrap().is_some());
    for direction in [Direction::There, Direction::Back] {
        relay.set(direction, Way::Stalled);
    }
    let limit = std::time::Duration::from_secs(120);
    let (ends, refused) = (AtomicBool::new(false), [const { AtomicU32::new(0) }; 2]);
    // A response in flight may still arrive.
    let refuses = |which: usize, is_refused: &dyn Fn() -> bool| {
        while !ends.load(Relaxed) {
            refused[which].fetch_add(u32::from(is_refused()), Relaxed);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| refuses(0, &|| read().is_err_and(|error| error.is_passing())));
        scope.spawn(|| refuses(1, &|| put().is_err_and(|error| error.is_passing())));
        let _ends = Ends(&ends);
        // Without the check, each would wait for seconds.
        let are_many = || refused.iter().all(|count| count.load(Relaxed) > 1000);
        wait_until(limit, "refusals", are_many);
    });
    relay.heal();
    wait_until(limit, "reads and writes", || {
        read().is_ok() && put().is_ok()
    });
}

/// All open sessions belong to the lost machine: the server in its place knows none of them.
fn end_sessions(server: &Postgres) {
    let all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'plimsoll'";
    server.sql(all).unwrap();
}

/// The leader's machine vanishes with all that is sent to it, or accepts connections and stays silent.
#[test]
fn where_one_of_several_hosts_is_silent_for_good_another_is_found() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let relay = Relay::start(([127, 0, 0, 1], server.port()).into()).unwrap();
    // No connection is ever accepted there.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let ports = [
        relay.address().port(),
        silent.local_addr().unwrap().port(),
        server.port(),
    ];
    let [first, second, last] = ports.map(|port| format!("127.0.0.1:{port}"));
    let alone = format!("@{last}/");
    let all = format!("@{first},{second},{last}/");
    let address = server.address();
    assert!(address.contains(&alone), "{address}");
    let at = Database::parse(&address.replacen(&alone, &all, 1)).unwrap();
    let store = store(&at, &few());
    let read = || store.read(|snapshot| snapshot.get("p", b"k"));
    let put = || store.commit_blocking(batch(|b| _ = b.put("p", "k", "1")));
    put().unwrap();
    assert!(read().unwrap().is_some());
    for direction in [Direction::There, Direction::Back] {
        relay.set(direction, Way::Stalled);
    }
    // A check finds it silent.
    assert!(read().is_err_and(|error| error.is_passing()));
    end_sessions(&server);
    let limit = std::time::Duration::from_secs(60);
    wait_until(limit, "reads by another host", || read().is_ok());
    wait_until(limit, "writes by another host", || put().is_ok());
    // A store that is opened now has always found it silent.
    drop(store);
    let mut again = None;
    wait_until(limit, "a store by another host", || {
        again = open_at(&at, &StoreOptions::default(), &few()).ok();
        again.is_some()
    });
    assert_eq!(get(&again.unwrap(), "p", "k").unwrap().value, "1");
}
