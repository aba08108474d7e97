//! The whole server with its records in PostgreSQL: all services, kills of the server and of the database, and
//! records moved there and back.
//!
//! `PLIMSOLL_SEED=N` repeats the choices of a run; what was under way at each kill depends on the machine's
//! moment all the same.

use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use nix::sys::signal::Signal;
use plimsoll_tests::mixed::{Ledger, World};
use plimsoll_tests::postgres::Postgres;
use plimsoll_tests::server::{Client, ServerProcess};
use plimsoll_tests::{program, wait_until};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

/// So often is anything killed.
const KILLS: u32 = 4;
/// It runs this long before, at most.
const MAX_LIFE_MS: u32 = 400;
const LIMIT: Duration = Duration::from_secs(120);

fn random() -> Xoshiro256PlusPlus {
    let seed = std::env::var("PLIMSOLL_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(2026);
    println!("seed: PLIMSOLL_SEED={seed}");
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// All services write for a drawn time, and then something ends it.
fn live(
    world: &World,
    ledger: &Ledger,
    (label, random): (&str, &mut Xoshiro256PlusPlus),
    end: impl FnOnce(),
) {
    let (before, ends) = (ledger.acknowledged(), AtomicBool::new(false));
    let life = Duration::from_millis(u64::from(20 + random.next_u32() % MAX_LIFE_MS));
    world.load(ledger, (label, random.next_u64()), &ends, || {
        // Nobody ever sends: this is a wait of the drawn length.
        let (_never, timer) = sync_channel::<()>(1);
        let _ = timer.recv_timeout(life);
        wait_until(LIMIT, "a write", || ledger.acknowledged() > before);
        ends.store(true, Relaxed);
        end();
    });
}

fn verify(world: &World, ledger: &Ledger, when: &str) {
    let mut things = ledger.now();
    if let Err(wrong) = world.verify(&mut things) {
        panic!("{when}: {wrong}\n{}", world.server().said());
    }
    ledger.settle(things);
}

fn plimsoll(arguments: &[&str]) -> Output {
    Command::new(program())
        .args(arguments)
        .output()
        .expect("the program runs")
}

fn look_through(data: &Path, store: &str) {
    let data = data.display().to_string();
    let looked = plimsoll(&["serve", "--check", "--data", &data, "--store", store]);
    assert!(looked.status.success(), "{looked:?}");
}

#[test]
fn what_all_services_acknowledged_survives_kills_of_the_server() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let (folder, mut random) = (tempfile::tempdir().unwrap(), random());
    let (data, store) = (folder.path().join("data"), database.address());
    let mut world = World::start_with(&data, folder.path(), &["--store", &store]);
    let ledger = Ledger::default();
    for kill in 0..KILLS {
        live(&world, &ledger, (&kill.to_string(), &mut random), || {
            world.server().signal(Signal::SIGKILL);
        });
        world = world.restarted(&data, folder.path());
        verify(&world, &ledger, &format!("after kill {kill}"));
    }
    drop(world);
    look_through(&data, &store);
    assert!(!data.join("groupware.sqlite").exists());
}

#[test]
fn what_all_services_acknowledged_survives_crashes_of_the_database() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let (folder, mut random) = (tempfile::tempdir().unwrap(), random());
    let (data, store) = (folder.path().join("data"), database.address());
    let world = World::start_with(&data, folder.path(), &["--store", &store]);
    let ledger = Ledger::default();
    let ready = |expected: u16| {
        let answer = Client::admin(world.server().address())
            .and_then(|mut client| client.request("GET", "/readyz", &Value::Null));
        answer.is_ok_and(|answer| answer.status == expected)
    };
    for kill in 0..KILLS {
        live(&world, &ledger, (&kill.to_string(), &mut random), || {
            database.kill()
        });
        wait_until(LIMIT, "the server to say that its store is away", || {
            ready(503)
        });
        database.restart();
        wait_until(LIMIT, "the server to be ready again", || ready(200));
        verify(&world, &ledger, &format!("after crash {kill}"));
    }
    drop(world);
    look_through(&data, &store);
}

#[test]
fn records_move_to_a_database_and_back() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let (folder, mut random) = (tempfile::tempdir().unwrap(), random());
    let (data, store) = (folder.path().join("data"), database.address());
    let there = data.display().to_string();
    let world = World::start(&data, folder.path());
    let ledger = Ledger::default();
    live(&world, &ledger, ("first", &mut random), || {
        world.server().signal(Signal::SIGKILL);
    });
    let world = world.restarted(&data, folder.path());
    verify(&world, &ledger, "before the move");
    let in_use = plimsoll(&["store", "copy", &there, &store]);
    assert_eq!(in_use.status.code(), Some(104), "{in_use:?}");
    world.server().signal(Signal::SIGTERM);
    let copied = wait_for_copy(&there, &store);
    let said = String::from_utf8_lossy(&copied.stdout).into_owned();
    assert!(said.contains("the same on both sides"), "{copied:?}");
    // The records that are in the folder are in the way.
    let refused = plimsoll(&["serve", "--data", &there, "--store", &store]);
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(words.contains("which the database would hide"), "{words}");
    for file in [
        "groupware.sqlite",
        "groupware.sqlite-wal",
        "groupware.sqlite-shm",
    ] {
        let _ = std::fs::remove_file(data.join(file));
    }
    let arguments = vec!["--store".to_owned(), store.clone()];
    let world = world.restarted_with(&data, folder.path(), arguments);
    verify(&world, &ledger, "in the database");
    live(&world, &ledger, ("second", &mut random), || {
        world.server().signal(Signal::SIGKILL);
    });
    let world = world.restarted(&data, folder.path());
    verify(&world, &ledger, "in the database, after a kill");
    world.server().signal(Signal::SIGTERM);
    let copied = wait_for_copy(&store, &there);
    assert!(copied.status.success(), "{copied:?}");
    let world = world.restarted_with(&data, folder.path(), Vec::new());
    verify(&world, &ledger, "back in the folder");
}

/// Copies as soon as the server that is being stopped has let go.
fn wait_for_copy(from: &str, to: &str) -> Output {
    let mut copied = None;
    wait_until(LIMIT, "the server to let go", || {
        let tried = plimsoll(&["store", "copy", from, to]);
        let is_held = String::from_utf8_lossy(&tried.stderr).contains("in use");
        copied = Some(tried);
        !is_held
    });
    copied.expect("it was tried")
}

#[test]
fn passwords_of_databases_are_nowhere_to_be_seen() {
    let store = "postgres://me:pa55word@127.0.0.1:1/none";
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    for arguments in [
        &["serve", "--store", store, "--data", &data][..],
        &["serve", "--store", store, "--data", &data, "--check"],
        &["serve", "--store", store, "--data", &data, "--print-config"],
        &[
            "serve",
            "--store",
            "postgres://me:pa55word@db/m?x=1",
            "--data",
            &data,
        ],
        &[
            "serve",
            "--store",
            "postgres://me:pa55word@db:port/m",
            "--data",
            &data,
        ],
        &["store", "copy", store, &data],
        &["store", "copy", &data, store],
    ] {
        let output = plimsoll(arguments);
        let all = [output.stdout, output.stderr].concat();
        let all = String::from_utf8_lossy(&all);
        assert!(!all.contains("pa55word"), "{arguments:?}: {all}");
        assert!(!all.is_empty());
    }
}

/// So many questions may a request ask of a database that is on another machine: each is a way there and back.
const QUESTIONS: usize = 4;
/// So often is each kind of request sent. Background work can only add to what the database is asked meanwhile.
const TRIES: usize = 5;
const USERS: [&str; 7] = ["u1", "u2", "u3", "u4", "u5", "u6", "u7"];

/// What was read of the database so far, by its log: statements within transactions that only read.
fn questions(database: &Postgres) -> usize {
    let log = std::fs::read(database.folder().join("log")).unwrap();
    let log = String::from_utf8_lossy(&log);
    let (mut readers, mut count) = (HashSet::new(), 0);
    for (process, said) in log.lines().filter_map(|line| line.split_once('|')) {
        if said.contains("BEGIN") {
            match said.contains("READ ONLY") {
                true => _ = readers.insert(process),
                false => _ = readers.remove(process),
            }
        }
        count += usize::from(said.contains("execute ") && readers.contains(process));
    }
    count
}

#[test]
fn a_request_asks_the_database_few_questions() {
    let settings = ["log_statement=all", "log_line_prefix=%p|"];
    let Some(database) = Postgres::start_with(&settings) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let store = database.address();
    let server = ServerProcess::start_with(folder.path(), &["--store", &store]);
    let users = USERS.map(|name| json!({ "name": name }));
    let body = json!({ "users": users, "app_passwords": true });
    let mut admin = Client::admin(server.address()).unwrap();
    let made = admin.request("POST", "/admin/users", &body).unwrap();
    let mut clients = [0, 1].map(|which| {
        let password = made.body["users"][which]["app_password"].as_str();
        Client::user(server.address(), USERS[which], password.unwrap()).unwrap()
    });
    // The least that a kind of request was answered with, each of which may have a path of its own.
    let mut few = |who: usize, method: &str, paths: &[String], body: &Value| {
        let asked = paths
            .iter()
            .cycle()
            .take(TRIES.max(paths.len()))
            .map(|path| {
                let before = questions(&database);
                let answer = clients[who].request(method, path, body).unwrap();
                assert!(answer.status < 300, "{method} {path}: {answer:?}");
                (questions(&database) - before, answer.body)
            });
        let (least, last) = asked.min_by_key(|(count, _)| *count).unwrap();
        println!("{method} {}: {least}", paths[0]);
        assert!(least <= QUESTIONS, "{method} {}: {least}", paths[0]);
        (least, last)
    };
    let of = |user: &str, path: &str| [format!("/mail/{user}/api/{path}")];
    let letter = json!({ "to": USERS, "subject": "Hello", "content": [
        { "contentType": "text/plain", "data": "Hi" },
    ] });
    few(0, "POST", &of("u1", "mail/outbox"), &letter);
    let inbox = of("u1", "mail/folders/inbox/messages");
    assert!(few(0, "GET", &inbox, &Value::Null).0 > 0, "it is counted");
    let guests = USERS[1..]
        .iter()
        .map(|name| json!({ "role": "req-participant", "email": format!("{name}@localhost") }));
    let meeting = json!({ "events": [{
        "summary": "Meeting",
        "start": { "date": "2026-12-01", "time": "13:00:00", "utc": true },
        "end": { "date": "2026-12-01", "time": "14:00:00", "utc": true },
        "organizer": { "email": "u1@localhost" },
        "attendees": guests.collect::<Vec<_>>(),
    }] });
    few(0, "POST", &of("u1", "calendar/events"), &meeting);
    let span = "since=2026-11-01T00:00:00Z&before=2026-12-31T00:00:00Z&count=100";
    let events = of("u1", &format!("calendar/events?{span}"));
    few(0, "GET", &events, &Value::Null);
    let (_, listed) = few(1, "GET", &of("u2", "calendar/invitations"), &Value::Null);
    let listed = listed["notices"].as_array().unwrap().iter();
    let invitations: Vec<String> = listed
        .map(|line| line["href"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(invitations.len(), TRIES);
    few(1, "GET", &invitations, &Value::Null);
    let accept = |path: &String| format!("{path}/action?type=accept");
    let accepted: Vec<String> = invitations.iter().map(accept).collect();
    few(1, "PUT", &accepted, &Value::Null);
}
