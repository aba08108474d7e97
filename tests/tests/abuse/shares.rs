//! Abuse of what all share: few addresses hold as much as they can, or many ask for as much as they can, while
//! newcomers ask for a little.

use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::json;

use crate::Row;
use crate::stage::{Stage, abuser, read_all, stranger_from};

/// Addresses that guess.
const GUESSERS: usize = 200;
const GUESSING_THREADS: usize = 20;
/// A small body, as it is announced.
const BODY_BYTES: usize = 64 << 10;
/// Unfinished bodies of an address, more than its share.
const BODIES: usize = 140;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("passwords guessed while users sign in", guesses),
        Row::new("all small bodies, from two addresses", small_bodies),
    ]
}

fn log_in(name: &str, password: &str) -> String {
    let body = format!("username={name}&password={password}");
    let head = head(body.len());
    format!("{head}{body}")
}

fn head(length: usize) -> String {
    format!(
        "POST /login HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n"
    )
}

/// An address of somebody who abuses nothing.
fn newcomer(number: usize) -> IpAddr {
    let low = u8::try_from(number % 250).unwrap_or_default() + 1;
    Ipv4Addr::new(127, 67, 0, low).into()
}

fn answer(stage: &Stage, source: IpAddr, request: &str) -> String {
    let stream = stranger_from(source, stage.address(), request.as_bytes());
    stream.map_or_else(String::new, |mut stream| read_all(&mut stream))
}

/// Each user signs in by a password, which is hashed, from an address of their own.
fn guesses(stage: &Stage) {
    let names: Vec<_> = (0..stage.size(4, 36))
        .map(|at| format!("user{at}"))
        .collect();
    let users: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
    let mut admin = stage.admin();
    let made = admin.request("POST", "/admin/users", &json!({ "users": users }));
    assert_eq!(made.unwrap().status, 200);
    let password = json!({ "password": "correct horse" });
    for name in &names {
        let path = format!("/admin/users/{name}");
        assert_eq!(admin.request("PUT", &path, &password).unwrap().status, 200);
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..GUESSING_THREADS {
            let (names, done) = (&names, &done);
            scope.spawn(move || {
                for round in 0_usize.. {
                    let number =
                        thread + (round % (GUESSERS / GUESSING_THREADS)) * GUESSING_THREADS;
                    if done.load(Relaxed) {
                        return;
                    }
                    let name = &names[(number + round) % names.len()];
                    answer(
                        stage,
                        abuser(number),
                        &log_in(name, &format!("guess{round}")),
                    );
                }
            });
        }
        stage.let_the_neighbour_work();
        let signed_in = names.iter().enumerate().map(|(at, name)| {
            let answered = answer(stage, newcomer(at), &log_in(name, "correct+horse"));
            (name, answered)
        });
        let refused: Vec<_> = signed_in
            .filter(|(_, answered)| !answered.starts_with("HTTP/1.1 200"))
            .collect();
        done.store(true, Relaxed);
        assert!(refused.is_empty(), "{refused:?}");
    });
}

/// Nearly all of each body is there, and the rest doesn't come.
fn small_bodies(stage: &Stage) {
    let mut unfinished = head(BODY_BYTES).into_bytes();
    unfinished.resize(unfinished.len() + BODY_BYTES - 1, b'x');
    let held: Vec<TcpStream> = (0..2 * BODIES)
        .filter_map(|number| stranger_from(abuser(number % 2), stage.address(), &unfinished))
        .collect();
    stage.let_the_neighbour_work();
    for number in 0..stage.size(20, 200) {
        let name = format!("nobody{number}");
        let answered = answer(stage, newcomer(number), &log_in(&name, "wrong"));
        assert!(answered.starts_with("HTTP/1.1 401"), "{number}: {answered}");
    }
    drop(held);
}
