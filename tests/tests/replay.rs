//! The log of a server, imported and replayed against the same server: it logs the same requests again.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_tests::web::{self, Received};
use serde_json::Value;

const WORKLOAD: &str = "
workload: visit
session:
  steps:
    - { step: List, wait: 20ms..60ms, request: 'GET /items?page={{ int_in(1, 3) }}&session_token=hidden' }
    - { step: None, request: 'GET /none/{{ index }}', expect: 404 }
    - { step: Head, request: HEAD /items }
    - { step: Buy, request: POST /orders, json: { n: 1 } }
";

const FORMAT: &str =
    "$remote_addr [$msec] \"$request\" $status $body_bytes_sent $request_time \"$http_user_agent\"";

type Log = Arc<Mutex<Vec<String>>>;

#[expect(
    clippy::disallowed_methods,
    reason = "it is the clock of a server that logs"
)]
fn now() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("after 1970")
}

/// A server that logs like nginx: when the answer is sent.
fn start(log: &Log) -> u16 {
    let log = Arc::clone(log);
    let answer = |request: &Received| {
        let status = if request.line().contains("/none/") {
            "404 None"
        } else {
            "200 OK"
        };
        let begun = now().as_secs_f64();
        (format!("{status}\r\nX-Begun: {begun}"), String::new())
    };
    web::serve_told(answer, move |request, head| {
        let agent = request.header("user-agent");
        let (agent, ended) = (agent.unwrap_or_else(|| "-".to_owned()), now().as_secs_f64());
        let (status, begun) = head.split_once("\r\nX-Begun: ").expect("it is in the head");
        let took = ended - begun.parse::<f64>().expect("a time");
        let (request, status) = (request.line(), &status[..3]);
        let line = format!("127.0.0.1 [{ended:.3}] \"{request}\" {status} 0 {took:.3} \"{agent}\"");
        log.lock().expect("not poisoned").push(line);
    })
}

/// The number of each request in a log, without what an import drops.
fn requests(lines: &[String]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        let request = line.split('"').nth(1).expect("a request");
        if !request.starts_with("POST ") {
            let request = request.replace("&session_token=hidden", "");
            *counts.entry(request).or_default() += 1;
        }
    }
    counts
}

/// The numbers of requests by the second of their start.
fn seconds(starts_ms: impl Iterator<Item = i64>) -> BTreeMap<i64, usize> {
    let mut counts = BTreeMap::new();
    for start in starts_ms {
        *counts.entry(start.div_euclid(1000)).or_default() += 1;
    }
    counts
}

/// Parses a decimal number of seconds, in ms.
fn ms(text: &str) -> i64 {
    let (whole, fraction) = text.split_once('.').expect("a fraction");
    format!("{whole}{fraction}").parse().expect("a number")
}

#[test]
fn a_log_is_replayed_request_by_request() {
    let log = Log::default();
    let port = start(&log);
    let folder = tempfile::tempdir().expect("a folder");
    let plimsoll = |arguments: &[&str]| web::plimsoll(folder.path(), arguments, &[]);
    let url = format!("http://127.0.0.1:{port}");
    fs::write(folder.path().join("visit.workload.yaml"), WORKLOAD).expect("written");
    let visited = plimsoll(&[
        "run",
        "visit.workload.yaml",
        "--url",
        &url,
        "--users",
        "3",
        "--for",
        "3s",
    ]);
    let first = std::mem::take(&mut *log.lock().expect("not poisoned"));
    assert!(first.len() > 50, "{visited:?}");
    fs::write(folder.path().join("access.log"), first.join("\n")).expect("written");

    let (_, said) = plimsoll(&[
        "import",
        "log",
        "access.log",
        "--format",
        FORMAT,
        "--url",
        &url,
    ]);
    let rows = fs::read_to_string(folder.path().join("access.jsonl")).expect(&said);
    let expected = requests(&first);
    let count: usize = expected.values().sum();
    assert!(
        said.contains(&format!("{count} of {} lines", first.len())),
        "{said}"
    );
    assert!(said.contains("of another method"), "{said}");
    assert!(
        !rows.contains("hidden") && !rows.contains("127.0.0.1"),
        "{rows}"
    );
    // By the log: the end minus the duration.
    let taken = first.iter().filter(|line| !line.contains("\"POST "));
    let in_log = seconds(taken.map(|line| {
        let ended = line.split(['[', ']']).nth(1).expect("a moment");
        let took = line.rsplit('"').nth(2).expect("what follows the request");
        let took = took.split_whitespace().nth(2).expect("a time");
        ms(ended) - ms(took)
    }));
    let in_rows = seconds(rows.lines().map(|row| {
        let row: Value = serde_json::from_str(row).expect("a row");
        row["time_us"].as_i64().expect("a moment").div_euclid(1000)
    }));
    assert_eq!(in_rows, in_log);

    let checked = plimsoll(&["check", "access.study.yaml", "access.workload.yaml"]);
    assert!(checked.0.contains("access"), "{checked:?}");
    let (result, ran) = web::result(folder.path(), ("access.study.yaml", "replayed"), &[]);
    let trials = result["trials"].as_array().expect("trials");
    for trial in trials {
        assert_eq!(trial["transactions"], count, "{ran:?}");
        assert_eq!(trial["errors"], 0, "{ran:?}");
    }
    let again = std::mem::take(&mut *log.lock().expect("not poisoned"));
    let once = requests(&again).into_iter();
    let once = once.map(|(request, count)| (request, count as f64 / trials.len() as f64));
    let expected = expected.into_iter();
    let expected = expected.map(|(request, count)| (request, count as f64));
    assert_eq!(once.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}
