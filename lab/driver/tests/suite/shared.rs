//! Users with shared HTTP/1.1 connections, and local addresses of connections.

use std::collections::BTreeSet;
use std::net::{IpAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Make, Observed, Peer, Server, ms, ok, pass, run_until};
use lab_driver::{Assignment, ErrorClass, Phase};
use lab_workload::Wait;

fn shared(server: &Server, wait: Wait, (users, connections): (u32, u32)) -> Assignment {
    let mut drive = Make::new(&[]).step(wait, "GET /").drive(&server.base());
    drive.users = users;
    drive.protocol.shared = Some(connections);
    drive
}

/// Returns a server with this response time.
fn answers_after(long: Duration) -> Server {
    Server::start(move |mut peer: Peer<TcpStream>| {
        while peer.request().is_some() {
            pass(long);
            if !peer.ok("body") {
                break;
            }
        }
    })
}

/// Returns the number of requests that waited for a connection.
fn blocked(observed: &Observed) -> u64 {
    let windows = observed.windows.iter();
    windows
        .map(|window| window.steps[0].times.phases[Phase::Blocked as usize].len())
        .sum()
}

#[test]
fn users_share_connections_and_all_of_them_are_used() {
    let server = Server::answering(|_| ok("body"));
    let used = || -> BTreeSet<usize> {
        let seen = server.seen().into_iter();
        seen.map(|seen| seen.connection).collect()
    };
    let observed = run_until(
        shared(&server, Wait::Constant(ms(1)), (50, 3)),
        |observed| observed.done() >= 600 && used().len() == 3,
    );
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!((observed.summary.connects, used().len()), (3, 3));
}

#[test]
fn waiting_for_a_connection_is_a_part_of_the_response_time() {
    let server = answers_after(ms(40));
    let observed = run_until(shared(&server, Wait::None, (4, 1)), |observed| {
        observed.done() >= 12
    });
    assert_eq!((observed.summary.errors, observed.summary.connects), (0, 1));
    // One after the other: each but the first of all waits for three others, 40 ms each.
    assert!(blocked(&observed) >= observed.transactions(0) - 1);
    assert!(observed.times(0).value_at_quantile(0.5) >= 155_000);
}

#[test]
fn who_gets_no_connection_in_time_has_a_timeout() {
    let server = answers_after(ms(100));
    // A request that gets the connection last has no response in time, nor have most of those behind nine others.
    let mut drive = shared(&server, Wait::None, (10, 1));
    drive.limits.request_timeout = ms(150);
    let late = |observed: &Observed| {
        let of = |(class, detail): &(ErrorClass, String)| {
            *class == ErrorClass::Timeout && detail.contains("all shared connections were in use")
        };
        observed.examples.iter().any(of)
    };
    let observed = run_until(drive, late);
    assert!(late(&observed), "{:?}", observed.examples);
}

#[test]
fn a_shared_connection_that_ends_is_replaced() {
    let server = Server::start(|mut peer| {
        peer.request();
        peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    });
    let observed = run_until(shared(&server, Wait::Constant(ms(1)), (9, 2)), |observed| {
        observed.done() >= 30
    });
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert!(observed.summary.connects >= 30);
}

#[test]
fn connections_to_other_servers_are_each_users_own() {
    let other = Server::answering(|_| ok("there"));
    let server = Server::answering(|_| ok("here"));
    let mut drive = Make::new(&[])
        .step(Wait::Constant(ms(1)), "GET /here")
        .step(Wait::None, &format!("GET {}/there", other.base()))
        .drive(&server.base());
    drive.users = 4;
    drive.protocol.shared = Some(1);
    let observed = run_until(drive, |observed| observed.done() >= 80);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(observed.summary.connects, 1 + 4);
}

#[test]
fn connections_come_from_the_sources_in_turn() {
    let seen: Arc<Mutex<BTreeSet<IpAddr>>> = Arc::default();
    let peers = Arc::clone(&seen);
    let server = Server::start(move |mut peer| {
        peers
            .lock()
            .unwrap()
            .insert(peer.stream.peer_addr().unwrap().ip());
        while peer.request().is_some() && peer.ok("") {}
    });
    let sources: Vec<IpAddr> = (2..6).map(|last| [127, 0, 0, last].into()).collect();
    let mut drive = Make::new(&[])
        .step(Wait::Constant(ms(1)), "GET /")
        .drive(&server.base());
    drive.users = 8;
    drive.sources.clone_from(&sources);
    let observed = run_until(drive, |observed| {
        observed.done() >= 40 && seen.lock().unwrap().len() == sources.len()
    });
    assert_eq!((observed.summary.errors, observed.summary.connects), (0, 8));
    assert_eq!(*seen.lock().unwrap(), sources.into_iter().collect());
}
