//! Two servers over a database on two machines. The primary dies and the standby takes over: acknowledged changes are
//! there, and all works without a restart. And two servers that start at the same moment.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use plimsoll_tests::mixed::{Ledger, World};
use plimsoll_tests::postgres::Postgres;
use plimsoll_tests::server::{Client, RawAnswer, ServerProcess};
use plimsoll_tests::{program, wait_until};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(120);

fn status(world: &World, path: &str) -> u16 {
    let answer = Client::admin(world.server().address())
        .and_then(|mut client| client.request("GET", path, &Value::Null));
    answer.map_or(0, |answer| answer.status)
}

/// All services write at both servers until the ledger has `more` new changes; then `end` runs.
fn live(both: &[World; 2], ledger: &Ledger, label: &str, more: usize, end: impl FnOnce()) {
    let (ends, before) = (AtomicBool::new(false), ledger.acknowledged());
    let [one, other] = both;
    one.load(ledger, (&format!("one-{label}"), 1), &ends, || {
        other.load(ledger, (&format!("other-{label}"), 2), &ends, || {
            wait_until(LIMIT, "writes", || ledger.acknowledged() > before + more);
            ends.store(true, Relaxed);
            end();
        });
    });
}

#[test]
fn servers_go_on_where_the_standby_takes_over() {
    let Some(first) = Postgres::start() else {
        return;
    };
    let second = first.standby();
    first.wait_for_standbys();
    let folder = tempfile::tempdir().unwrap();
    let (data, store) = (
        folder.path().join("data"),
        Postgres::address_of(&[&first, &second]),
    );
    let beside = ["one", "other"].map(|name| folder.path().join(name));
    for folder in &beside {
        std::fs::create_dir(folder).unwrap();
    }
    let one = World::start_with(&data, &beside[0], &["--store", &store]);
    let other = one.again(&data, &beside[1]);
    let (both, ledger) = ([one, other], Ledger::default());
    live(&both, &ledger, "before", 40, || first.kill());
    #[expect(
        clippy::disallowed_methods,
        reason = "what it took is told, not judged"
    )]
    let died = Instant::now();
    for world in &both {
        wait_until(LIMIT, "a server to say that its store is away", || {
            status(world, "/readyz") == 503
        });
    }
    second.promote();
    println!("the standby takes over after {:?}", died.elapsed());
    for world in &both {
        wait_until(LIMIT, "a server to be ready again", || {
            status(world, "/readyz") == 200
        });
    }
    live(&both, &ledger, "after", 0, || {
        println!("the first write after {:?}", died.elapsed());
        for world in &both {
            world.server().signal(Signal::SIGKILL);
        }
    });
    let [one, _] = both;
    let world = one.restarted(&data, &beside[0]);
    let mut things = ledger.now();
    if let Err(wrong) = world.verify(&mut things) {
        panic!("{wrong}\n{}", world.server().said());
    }
}

/// Starts a server that creates a first administrator.
fn start(folder: &Path, name: &str, store: &str) -> ServerProcess {
    let beside = folder.join(name);
    std::fs::create_dir_all(&beside).unwrap();
    let arguments = ["--store", store, "--first-admin", "eve"];
    let data = folder.join("data");
    ServerProcess::start_on(&data, &beside, Command::new(program()), &arguments)
}

fn sign_in(server: &ServerProcess, password: &str) -> RawAnswer {
    let mut client = Client::admin(server.address()).unwrap();
    let body = json!({ "username": "eve", "password": password }).to_string();
    let json = ("content-type", "application/json");
    client
        .send("POST", "/login", &[json], body.as_bytes())
        .unwrap()
}

#[test]
fn of_two_servers_that_start_at_once_one_makes_the_first_administrator() {
    let Some(database) = Postgres::start() else {
        return;
    };
    for round in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("{}?schema=race{round}", database.address());
        let begin = |name: &'static str| {
            let (folder, store) = (folder.path().to_owned(), store.clone());
            move || start(&folder, name, &store)
        };
        let (one, other) = std::thread::scope(|scope| {
            let both = [scope.spawn(begin("one")), scope.spawn(begin("other"))];
            let [one, other] = both.map(|starting| starting.join().unwrap());
            (one, other)
        });
        // The file is created once the server listens.
        let data = folder.path().join("data");
        wait_until(LIMIT, "one password", || names(&data) == ["first-password"]);
        let password = std::fs::read_to_string(data.join("first-password")).unwrap();
        for server in [&one, &other] {
            assert_eq!(sign_in(server, password.trim()).status, 200, "{round}");
        }
        let makers = || {
            let said = [one.said(), other.said()];
            let makers = said.iter().filter(|said| said.contains("administrator: "));
            makers.count()
        };
        wait_until(LIMIT, "one to say so", || makers() == 1);
    }
}

/// The files of passwords in a data folder.
fn names(data: &Path) -> Vec<String> {
    let names = std::fs::read_dir(data).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("first-")).collect()
}
