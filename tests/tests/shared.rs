//! Users share state: consumers take entries that producers put into a queue, each entry once, with unique numbers and
//! with rows that one session at a time has.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use plimsoll_tests::web::{self, Received};

/// The server's observations.
#[derive(Default)]
struct Seen {
    placed: HashSet<u64>,
    done: HashSet<u64>,
    /// Whether each desk is taken.
    desks: HashMap<String, bool>,
    wrong: Vec<String>,
}

impl Seen {
    /// Records a request; returns the body of its response.
    fn answer(&mut self, request: &Received) -> String {
        let path = request.target().0;
        let (kind, name) = path[1..].split_once('/').unwrap_or((path, ""));
        let number = name.parse().unwrap_or(0);
        let is_right = match (request.method(), kind) {
            ("POST", "orders") => number >= 1000 && self.placed.insert(number),
            ("POST", "done") => self.placed.contains(&number) && self.done.insert(number),
            // The desk must be free.
            ("POST", "desks") => self.desks.insert(name.to_owned(), true) != Some(true),
            ("DELETE", "desks") => self.desks.insert(name.to_owned(), false) == Some(true),
            _ => false,
        };
        if !is_right {
            self.wrong.push(request.line().to_owned());
        }
        format!("id={number}")
    }
}

fn start() -> (u16, Arc<Mutex<Seen>>) {
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let kept = Arc::clone(&seen);
    let port = web::serve(move |request| {
        let body = seen.lock().expect("no panic").answer(request);
        ("200 OK".to_owned(), body)
    });
    (port, kept)
}

fn folder(port: u16) -> tempfile::TempDir {
    web::folder_of_page("shared.md", port, &[("desks.csv", b"desk\na\nb\nc\nd\n")])
}

/// Both outputs of the program.
fn plimsoll(folder: &Path, arguments: &[&str]) -> String {
    let (out, error) = web::plimsoll(folder, arguments, &[]);
    out + &error
}

#[test]
fn what_some_users_place_others_handle_once() {
    let (port, seen) = start();
    let folder = folder(port);
    let path = folder.path();
    let planned = plimsoll(path, &["plan", "factory.study.yaml"]);
    for line in [
        "counters, unique over all generators: order_no\n",
        "queues, of each generator: orders\n",
        "pools, dealt out to the workers of all generators: desks\n",
    ] {
        assert!(planned.contains(line), "{planned}");
    }
    let (result, ran) = web::result(path, ("factory.study.yaml", "run"), &[]);
    let trial = &result["trials"][0];
    assert_eq!(trial["errors"], 0, "{ran:?} {}", trial["error_examples"]);
    let seen = seen.lock().expect("no panic");
    assert_eq!(
        seen.wrong, [""; 0],
        "each number, order, and desk is one user's"
    );
    assert!(!seen.done.is_empty(), "some were handled");
    let of = |name: &str, figure: &str| {
        let queues = trial["queues"].as_array().expect("queues");
        let queue = queues.iter().find(|one| one["name"] == name);
        queue.map(|one| one[figure].as_u64().expect("a count"))
    };
    let (puts, takes) = (of("orders", "puts"), of("orders", "takes"));
    let (puts, takes) = (puts.expect("puts"), takes.expect("takes"));
    // Each generator and user may have one under way at the end.
    assert!(takes <= puts && seen.done.len() as u64 <= takes, "{trial}");
    assert!(seen.placed.len() as u64 - puts <= 6, "{trial}");
    assert_eq!(of("orders", "dropped"), Some(0));
    assert_eq!(of("orders", "length"), Some(puts - takes));
    assert!(of("desks", "takes") > Some(0), "{trial}");
    let waits = &trial["queues"][0]["queue_wait_ms"];
    assert!(waits["count"].as_u64() > Some(0), "{waits}");
}

#[test]
fn a_queue_without_its_other_side_is_refused_where_the_study_stands() {
    let folder = folder(1);
    let path = folder.path();
    let study = fs::read_to_string(path.join("factory.study.yaml")).expect("a study");
    let consumers = "\n    - { population: consumers, users: 8, workload: consumer }";
    assert!(study.contains(consumers), "{study}");
    let alone = study.replace(consumers, "");
    fs::write(path.join("alone.study.yaml"), alone).expect("written");
    let said = plimsoll(path, &["check", "alone.study.yaml"]);
    assert!(
        said.contains("nobody takes anything from the queue `orders`"),
        "{said}"
    );
    assert!(said.contains("alone.study.yaml:"), "{said}");
}
