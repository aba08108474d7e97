//! The log of a server, imported and replayed against the same server: it logs the same requests once more.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_tests::program;
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

/// Answers, and logs as nginx does: when the answer is sent.
fn serve(stream: &TcpStream, log: &Log) -> Option<()> {
    let mut input = BufReader::new(stream);
    let mut output = stream;
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if input.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let begun = now();
        let header = |name: &str| {
            let mut fields = lines.iter().filter_map(|line| line.split_once(": "));
            let found = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_owned())
        };
        let length: u64 =
            header("content-length").map_or(0, |text| text.parse().expect("a length"));
        std::io::copy(
            &mut std::io::Read::take(&mut input, length),
            &mut std::io::sink(),
        )
        .ok()?;
        let request = lines.first()?;
        let status = if request.contains("/none/") { 404 } else { 200 };
        let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
        output.write_all(answer.as_bytes()).ok()?;
        let (ended, agent) = (
            now(),
            header("user-agent").unwrap_or_else(|| "-".to_owned()),
        );
        let took = ended.saturating_sub(begun).as_secs_f64();
        let ended = ended.as_secs_f64();
        let line = format!("127.0.0.1 [{ended:.3}] \"{request}\" {status} 0 {took:.3} \"{agent}\"");
        log.lock().expect("not poisoned").push(line);
    }
}

/// How often each request stands in a log, without what an import drops.
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

/// Requests by the second in which they began.
fn seconds(starts_ms: impl Iterator<Item = i64>) -> BTreeMap<i64, usize> {
    let mut counts = BTreeMap::new();
    for start in starts_ms {
        *counts.entry(start.div_euclid(1000)).or_default() += 1;
    }
    counts
}

/// A decimal number of seconds, in ms.
fn ms(text: &str) -> i64 {
    let (whole, fraction) = text.split_once('.').expect("a fraction");
    format!("{whole}{fraction}").parse().expect("a number")
}

#[test]
fn a_log_is_replayed_request_by_request() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let log = Log::default();
    let served = Arc::clone(&log);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let log = Arc::clone(&served);
            std::thread::spawn(move || serve(&stream, &log));
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    let plimsoll = |arguments: &[&str]| {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(folder.path());
        command.env("PLIMSOLL_PATIENCE", "0");
        command.env("PLIMSOLL_STATE", folder.path().join("state"));
        let output = command.stdin(Stdio::null()).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
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
    // By the log: the end less the time that it took.
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
    let ran = plimsoll(&["run", "access.study.yaml", "--out", "replayed"]);
    let (json, told) = plimsoll(&["report", "replayed", "--format", "json"]);
    let result: Value = serde_json::from_str(&json).unwrap_or_else(|_| panic!("{ran:?} {told}"));
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
