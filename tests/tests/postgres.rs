//! The whole server with its records in PostgreSQL: all services, kills of the server and of the database, and records
//! copied both ways.
//!
//! `PLIMSOLL_SEED=N` repeats the choices of a run; what is under way at each kill depends on the machine all the same.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
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

/// The number of kills.
const KILLS: u32 = 4;
/// The maximum time before each.
const MAX_LIFE_MS: u32 = 400;
const LIMIT: Duration = Duration::from_secs(120);
/// The maximum number of kills until the commit is the one under test.
const ATTEMPTS: u32 = 20;

fn random() -> Xoshiro256PlusPlus {
    let seed = std::env::var("PLIMSOLL_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(2026);
    println!("seed: PLIMSOLL_SEED={seed}");
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// All services write for a drawn time, and then something ends that.
fn live(
    world: &World,
    ledger: &Ledger,
    (label, random): (&str, &mut Xoshiro256PlusPlus),
    end: impl FnOnce(),
) {
    let (before, ends) = (ledger.acknowledged(), AtomicBool::new(false));
    let life = Duration::from_millis(u64::from(20 + random.next_u32() % MAX_LIFE_MS));
    world.load(ledger, (label, random.next_u64()), &ends, || {
        // Never sent to: this is a wait of the drawn length.
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
    // The records that are in the folder prevent it.
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

/// Copies as soon as the stopping server has released the records.
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

/// The maximum number of queries of a request, since each is a round trip if the database is remote.
const QUESTIONS: usize = 4;
/// The number of requests of each kind. Background work can only add to the queries meanwhile.
const TRIES: usize = 5;
const USERS: [&str; 7] = ["u1", "u2", "u3", "u4", "u5", "u6", "u7"];

/// The number of queries so far, by the database's log: statements within read-only transactions.
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
    // The minimum number of queries over a kind of request, each of which may have a path of its own.
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

/// Makes each commit wait for a standby that never connects, or stops that: meanwhile, commits are durable, but not
/// acknowledged.
fn hold_commits(database: &Postgres, holds: bool) {
    let name = if holds { "nobody" } else { "" };
    let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'");
    database.sql(&set).expect("it may be set");
    database
        .sql("SELECT pg_reload_conf()")
        .expect("it may be read");
    wait_until(LIMIT, "the setting to count", || {
        database.sql("SHOW synchronous_standby_names").as_deref() == Some(name)
    });
}

/// The number of commits that are durable and not acknowledged.
fn held_commits(database: &Postgres) -> usize {
    let held = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let held = database.sql(held).and_then(|count| count.parse().ok());
    held.expect("a number")
}

/// A message that a client sends over HTTP or SMTP, and repeats.
#[derive(Clone, Copy)]
struct Letter<'a> {
    subject: &'a str,
    is_over_smtp: bool,
    /// The sender's password.
    password: &'a str,
}

impl Letter<'_> {
    /// Sends it to a server; returns the status of the answer, if there is one.
    fn send(self, server: &ServerProcess) -> std::io::Result<u16> {
        match self.is_over_smtp {
            true => self.send_over_smtp(server),
            false => {
                let body = json!({ "subject": self.subject, "to": ["u2"],
                    "content": [{ "contentType": "text/plain", "data": "Hello" }] });
                let mut client = Client::user(server.address(), "u1", self.password)?;
                let path = "/mail/u1/api/mail/outbox";
                Ok(client.request("POST", path, &body)?.status)
            }
        }
    }

    fn send_over_smtp(self, server: &ServerProcess) -> std::io::Result<u16> {
        let stream = TcpStream::connect(server.smtp())?;
        stream.set_read_timeout(Some(LIMIT))?;
        let mut stream = BufReader::new(stream);
        let text = format!("Subject: {}\r\n\r\nHello.\r\n.", self.subject);
        let lines = [
            "",
            "HELO test",
            "MAIL FROM:<x@example.com>",
            "RCPT TO:<u2@localhost>",
            "DATA",
            &text,
        ];
        let mut status = 0;
        for line in lines {
            if !line.is_empty() {
                stream
                    .get_mut()
                    .write_all(format!("{line}\r\n").as_bytes())?;
            }
            let mut reply = String::new();
            stream.read_line(&mut reply)?;
            let code = reply.get(..3).and_then(|code| code.parse().ok());
            status = code.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        }
        Ok(status)
    }

    /// The numbers of copies in the recipient's inbox, and in the sender's folder.
    fn copies(self, server: &ServerProcess, recipient: &str) -> [usize; 2] {
        let places = [("u2", recipient, "inbox"), ("u1", self.password, "sent")];
        places.map(|(user, password, folder)| {
            let path = format!("/mail/{user}/api/mail/folders/{folder}/messages?count=1000");
            let mut lines = Vec::new();
            // A server with a long commit may consider its store unavailable.
            wait_until(LIMIT, "a list", || {
                let mut client = Client::user(server.address(), user, password).unwrap();
                let listed = client.request("GET", &path, &Value::Null).unwrap();
                lines = listed.body.as_array().cloned().unwrap_or_default();
                listed.status == 200
            });
            lines.retain(|line| line["subject"] == self.subject);
            lines.len()
        })
    }
}

#[test]
fn a_message_whose_server_dies_between_commit_and_answer_is_stored_once() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let (folder, store) = (tempfile::tempdir().unwrap(), database.address());
    let start = |name: &str| {
        let beside = folder.path().join(name);
        std::fs::create_dir_all(&beside).unwrap();
        let arguments = ["--store", &store, "--smtp-listen", "127.0.0.1:0"];
        let command = Command::new(program());
        ServerProcess::start_on(&folder.path().join("data"), &beside, command, &arguments)
    };
    let other = start("other");
    let body = json!({ "users": [{ "name": "u1" }, { "name": "u2" }], "app_passwords": true });
    let mut admin = Client::admin(other.address()).unwrap();
    let made = admin.request("POST", "/admin/users", &body).unwrap();
    let password = |which: usize| made.body["users"][which]["app_password"].as_str().unwrap();
    for (is_over_smtp, is_restarted) in [(false, true), (true, false)] {
        let mut was_in_doubt = false;
        // Another commit of the server at that moment may be held instead.
        for attempt in 0..ATTEMPTS {
            let subject = format!("{is_over_smtp} {is_restarted} {attempt}");
            let letter = Letter {
                subject: &subject,
                is_over_smtp,
                password: password(0),
            };
            let one = start("one");
            hold_commits(&database, true);
            let answered = std::thread::scope(|scope| {
                let sending = scope.spawn(|| letter.send(&one));
                wait_until(LIMIT, "a commit without an answer", || {
                    held_commits(&database) > 0
                });
                one.signal(Signal::SIGKILL);
                sending.join().unwrap()
            });
            assert!(answered.is_err(), "{answered:?}");
            drop(one);
            hold_commits(&database, false);
            wait_until(LIMIT, "commits to end", || held_commits(&database) == 0);
            let again = is_restarted.then(|| start("one"));
            let retried = again.as_ref().unwrap_or(&other);
            let before = letter.copies(retried, password(1));
            assert!(before[0] <= 1 && before[1] <= 1, "{subject}: {before:?}");
            was_in_doubt |= before[0] == 1;
            let retry = || letter.send(retried).expect("it is answered");
            wait_until(LIMIT, "an answer to the retry", || match retry() {
                201 | 250 => true,
                503 | 451 => false,
                status => panic!("{subject}: {status}"),
            });
            let expected = [1, usize::from(!is_over_smtp)];
            assert_eq!(letter.copies(retried, password(1)), expected, "{subject}");
            if was_in_doubt {
                break;
            }
        }
        assert!(was_in_doubt, "a message is committed without an answer");
    }
}
