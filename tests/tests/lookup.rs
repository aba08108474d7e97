//! The lookup service under SIGKILL: acknowledged registrations are there, each whole or not at all, and removed ones
//! stay away.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_tests::server::{Client, ServerProcess};
use plimsoll_tests::wait_until;
use serde_json::{Value, json};

const ADDRESSES: usize = 300;
const WRITERS: usize = 3;
const ROUNDS: usize = 3;

fn address(service: usize, at: usize) -> String {
    format!("10.{}.{}.{}", service & 255, at >> 8, at & 255)
}

fn record(service: usize) -> Value {
    let addresses: Vec<String> = (0..ADDRESSES).map(|at| address(service, at)).collect();
    json!({ "type": "service", "service-name": service.to_string(), "interface-addresses": addresses })
}

/// The acknowledged changes of one writer before the server was killed.
#[derive(Default)]
struct Notified {
    registered: BTreeSet<usize>,
    removed: BTreeSet<usize>,
    /// The last request, which may or may not have taken effect.
    asked: Option<usize>,
}

/// Registers services, removing every third, until the connection ends.
fn write(server: SocketAddr, next: &AtomicUsize, acknowledged: &AtomicUsize) -> Notified {
    let mut told = Notified::default();
    let Ok(mut client) = Client::admin(server) else {
        return told;
    };
    loop {
        let service = next.fetch_add(1, Ordering::Relaxed);
        told.asked = Some(service);
        let Ok(answer) = client.request("POST", "/lookup/records", &record(service)) else {
            return told;
        };
        assert_eq!(answer.status, 200, "{}", answer.body);
        told.registered.insert(service);
        acknowledged.fetch_add(1, Ordering::Relaxed);
        if service.is_multiple_of(3) {
            told.registered.remove(&service);
            let uri = format!(
                "/{}",
                answer.body["uri"].as_str().expect("a record has a URI")
            );
            let Ok(answer) = client.request("DELETE", &uri, &Value::Null) else {
                return told;
            };
            assert_eq!(answer.status, 200, "{}", answer.body);
            told.removed.insert(service);
        }
        told.asked = None;
    }
}

/// The number of services found by an address.
fn found(client: &mut Client, service: usize, at: usize) -> usize {
    let path = format!(
        "/lookup/records?interface-addresses={}",
        address(service, at)
    );
    let answer = client
        .request("GET", &path, &Value::Null)
        .expect("an answer");
    assert_eq!(answer.status, 200);
    let found = answer.body.as_array().expect("a list").clone();
    assert!(
        found.iter().all(|record| {
            record["interface-addresses"]
                .as_array()
                .is_some_and(|all| all.len() == ADDRESSES)
        }),
        "a registration is whole"
    );
    found.len()
}

fn check(folder: &Path, told: &[Notified]) -> ServerProcess {
    let server = ServerProcess::start(folder);
    let mut client = Client::admin(server.address()).expect("a connection");
    for told in told {
        for service in &told.registered {
            assert_eq!(
                found(&mut client, *service, ADDRESSES / 2),
                1,
                "{service} is there"
            );
        }
        for service in &told.removed {
            assert_eq!(
                found(&mut client, *service, ADDRESSES / 2),
                0,
                "{service} is gone"
            );
        }
        if let Some(service) = told.asked {
            let first = found(&mut client, service, 0);
            assert_eq!(
                first,
                found(&mut client, service, ADDRESSES - 1),
                "{service}"
            );
        }
    }
    server
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let next = AtomicUsize::new(0);
    let mut all = Vec::new();
    let mut server = ServerProcess::start(folder.path());
    for round in 1..=ROUNDS {
        let acknowledged = AtomicUsize::new(0);
        let address = server.address();
        let told: Vec<Notified> = std::thread::scope(|scope| {
            let write = || write(address, &next, &acknowledged);
            let writers: Vec<_> = (0..WRITERS).map(|_| scope.spawn(write)).collect();
            wait_until(Duration::from_secs(120), "registrations", || {
                acknowledged.load(Ordering::Relaxed) >= 10 * round
            });
            server.kill();
            writers
                .into_iter()
                .map(|writer| writer.join().expect("a writer ends"))
                .collect()
        });
        all.extend(told);
        server = check(folder.path(), &all);
    }
    assert!(all.iter().map(|told| told.registered.len()).sum::<usize>() >= 20);
}
