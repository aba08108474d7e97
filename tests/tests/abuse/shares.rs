//! Abuse of shared resources: few addresses hold as much as they can, or many request as much as they can, while
//! newcomers request a little.

use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::json;

use crate::Row;
use crate::stage::{Stage, abuser, read_all, stranger_from};
use crate::stored::takeout;

/// Answers that an address leaves unread, more than its share.
const UNREAD: usize = 165;
/// The number of guessing addresses.
const GUESSERS: usize = 200;
const GUESSING_THREADS: usize = 20;
/// The announced length of a small body.
const BODY_BYTES: usize = 64 << 10;
/// Unfinished bodies of an address, more than its share.
const BODIES: usize = 140;

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("passwords guessed while users sign in", guesses),
        Row::new("all small bodies, from two addresses", small_bodies),
        Row::new("all streams, by two addresses", streams).keeps(640 << 20),
        Row::new("archives of very many users, which nobody reads", archives).keeps(2 << 30),
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

/// The address of a client that abuses nothing.
fn newcomer(number: usize) -> IpAddr {
    let low = u8::try_from(number % 250).unwrap_or_default() + 1;
    Ipv4Addr::new(127, 67, 0, low).into()
}

fn answer(stage: &Stage, source: IpAddr, request: &str) -> String {
    let stream = stranger_from(source, stage.address(), request.as_bytes());
    stream.map_or_else(String::new, |mut stream| read_all(&mut stream))
}

/// Each user signs in by a password, which is hashed, from a separate address.
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

/// Nearly all of each body is sent, and the rest never.
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

/// Large answers of which only the beginning is read.
fn streams(stage: &Stage) {
    let values: Vec<_> = (0..1900).map(|_| "x".repeat(4000)).collect();
    let record = json!({ "type": "host", "host-name": "a", "group-domains": values });
    let made = stage.mallory().request("POST", "/lookup/records", &record);
    let made = made.unwrap();
    assert_eq!(made.status, 200, "{made:?}");
    let path = format!("/{}", made.body["uri"].as_str().unwrap());
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let held: Vec<_> = (0..2 * UNREAD)
        .filter_map(|number| stranger_from(abuser(number % 2), stage.address(), request.as_bytes()))
        .collect();
    stage.let_the_neighbour_work();
    for number in 0..stage.size(10, 100) {
        let answered = answer(stage, newcomer(number), &request);
        assert!(
            answered.starts_with("HTTP/1.1 200"),
            "{number}: {answered:.300}"
        );
    }
    drop(held);
}

/// Each is larger than the buffers, so that it is still being made.
fn archives(stage: &Stage) {
    let names: Vec<_> = (0..stage.size(12, 64))
        .map(|at| format!("user{at}"))
        .collect();
    let users: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
    let mut admin = stage.admin();
    let made = admin.request("POST", "/admin/users", &json!({ "users": users }));
    assert_eq!(made.unwrap().status, 200);
    let fill = json!({ "users": names, "messages": 400,
        "profile": [{ "text_bytes": 20_000, "attachment_bytes": 0, "permille": 1000 }] });
    let filled = admin.request("POST", "/admin/mail/fill", &fill).unwrap();
    assert_eq!(filled.status, 200, "{filled:?}");
    let password = json!({ "password": "correct horse" });
    let requests: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let path = format!("/admin/users/{name}");
            assert_eq!(admin.request("PUT", &path, &password).unwrap().status, 200);
            let signed_in = answer(stage, newcomer(at), &log_in(name, "correct+horse"));
            let cookie = signed_in
                .lines()
                .find_map(|line| line.strip_prefix("set-cookie: "));
            let cookie = cookie.and_then(|line| line.split(';').next());
            takeout(stage, cookie.unwrap_or_else(|| panic!("{signed_in}")))
        })
        .collect();
    let held: Vec<_> = requests
        .iter()
        .enumerate()
        .filter_map(|(at, request)| {
            stranger_from(newcomer(at), stage.address(), request.as_bytes())
        })
        .collect();
    assert_eq!(held.len(), names.len());
    stage.let_the_neighbour_work();
    // Another user reads, and gets all of it.
    let request = takeout(stage, &stage.cookie("bob"));
    let source = newcomer(names.len());
    let mut stream = stranger_from(source, stage.address(), request.as_bytes()).unwrap();
    let archive = read_all(&mut stream);
    assert!(archive.starts_with("HTTP/1.1 200"), "{archive:.300}");
    // An archive that was made before it was read to its end is not lost.
    let mut first = held.into_iter().next().unwrap();
    assert!(read_all(&mut first).starts_with("HTTP/1.1 200"));
}
