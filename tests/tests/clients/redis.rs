//! Redis.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_tests::server::free_address;
use plimsoll_tests::wait_until;

use super::{Running, by_step, certificate, has, measured, refuses, tried, trusting};

const WORKLOAD: &str = "\
workload: it
user: { name: \"user{{ index }}\" }
protocol: { name: redis, password: sesame }
setup:
  - request: SET {{ name }} \"the value of {{ index }}\"
session:
  steps:
    - step: Read
      wait: 3ms..5ms
      request: GET {{ name }}
      expect: { contains: \"value of {{ index }}\" }
      capture: { value: body }
    - step: Write
      request: SET {{ name }} \"{{ value }}\"
    - step: Refused
      share: 50%
      request: HGET {{ name }} field
";

fn study(port: u16) -> String {
    format!(
        "study: it\ntitle: A server\nworkload: it\n\
         system: {{ attach: {{ url: redis://127.0.0.1:{port} }} }}\n\
         load: {{ users: 4, hold: 2s }}\ntrials: 1\nrepeats: 0\n"
    )
}

/// A server with a password, and its port.
fn server(folder: &Path) -> Option<(Running, u16)> {
    server_with(folder, "--port", &[])
}

/// The same with these arguments, and its port under this name.
fn server_with(folder: &Path, port_is: &str, more: &[&str]) -> Option<(Running, u16)> {
    if !has("redis-server") {
        return None;
    }
    let port = free_address().port();
    let started = Command::new("redis-server")
        .args([port_is, &port.to_string(), "--bind", "127.0.0.1"])
        .args(more)
        .args(["--save", "", "--requirepass", "sesame", "--dir"])
        .arg(folder)
        .stdout(Stdio::null())
        .spawn();
    let running = Running(started.expect("it starts"));
    wait_until(Duration::from_secs(120), "it listens", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    Some((running, port))
}

/// The numbers of calls and failures of this command at the server.
fn calls(port: u16, command: &str) -> (u64, u64) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    let ask = b"AUTH sesame\r\nINFO commandstats\r\nQUIT\r\n";
    stream.write_all(ask).expect("asked");
    let mut told = String::new();
    stream.read_to_string(&mut told).expect("an answer");
    let line = told.lines().find_map(|line| {
        let rest = line.strip_prefix("cmdstat_")?;
        rest.strip_prefix(command)?.strip_prefix(':')
    });
    let number = |name: &str| -> u64 {
        let fields = line.unwrap_or_default().split(',');
        let field = fields.filter_map(|field| field.split_once('='));
        let mut found = field.filter(|(key, _)| *key == name);
        found
            .next()
            .map_or(0, |(_, value)| value.parse().expect("a number"))
    };
    (number("calls"), number("failed_calls"))
}

#[test]
fn each_command_is_counted_as_the_server_counts_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_running, port)) = server(folder.path()) else {
        return;
    };
    let trial = measured(folder.path(), &study(port), WORKLOAD);
    let steps = by_step(&trial);
    // Each of four users may have one under way at the deadline, and wrote its value in the setup.
    let counted = |ours: u64, theirs: u64| (ours..=ours + 4).contains(&theirs);
    let (gets, failed) = calls(port, "get");
    assert!(
        steps[0] > 100 && counted(steps[0], gets) && failed == 0,
        "{steps:?} {gets}"
    );
    let (sets, _) = calls(port, "set");
    assert!(counted(steps[1] + 4, sets), "{steps:?} {sets}");
    let (_, refused) = calls(port, "hget");
    let errors = trial["errors"].as_u64().expect("a count");
    assert!(errors > 0 && counted(errors, refused), "{errors} {refused}");
    assert_eq!(steps[2], 0);
    let example = trial["error_examples"].to_string();
    assert!(example.contains("WRONGTYPE"), "{example}");
}

#[test]
fn both_sides_of_the_dialogue_are_shown_without_the_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_running, port)) = server(folder.path()) else {
        return;
    };
    let (shown, code) = tried(folder.path(), &study(port), WORKLOAD);
    for line in [
        "> AUTH ***",
        "< OK",
        "> SET user0 \"the value of 0\"",
        "> GET user0",
        "< the value of 0",
        "value = the value of 0",
    ] {
        assert!(shown.contains(line), "{line}:\n{shown}");
    }
    assert!(!shown.contains("sesame"), "{shown}");
    assert!(matches!(code, Some(0 | 99)), "as its draw has it: {shown}");
    let wrong = WORKLOAD.replace("sesame", "wrong");
    let (shown, code) = tried(folder.path(), &study(port), &wrong);
    assert_eq!(code, Some(99), "{shown}");
    assert!(shown.contains("✗ connect: WRONGPASS"), "{shown}");
}

#[test]
fn tls_is_spoken_from_the_beginning_where_the_address_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let [cert, key] = certificate(folder.path());
    let trusted = trusting(&cert);
    let [cert, key] = [cert, key].map(|path| path.display().to_string());
    let files = ["--tls-cert-file", &cert, "--tls-key-file", &key];
    let more = [&["--port", "0", "--tls-auth-clients", "no"][..], &files].concat();
    let Some((_running, port)) = server_with(folder.path(), "--tls-port", &more) else {
        return;
    };
    let over = |more: &str| {
        let plain = format!("system: {{ attach: {{ url: redis://127.0.0.1:{port} }} }}\n");
        let secure = format!("system:\n  attach: {{ url: rediss://127.0.0.1:{port} }}\n{more}");
        study(port).replace(&plain, &secure)
    };
    let secure = over(&trusted);
    let workload = WORKLOAD.replace("share: 50%", "share: 0%");
    let trial = measured(folder.path(), &secure, &workload);
    let steps = by_step(&trial);
    assert!(steps[0] > 100 && steps[1] > 100, "{trial:#}");
    assert_eq!(trial["errors"].as_u64(), Some(0), "{trial:#}");
    let (shown, code) = tried(folder.path(), &over(""), &workload);
    assert_eq!(code, Some(99), "{shown}");
    assert!(shown.contains("signed by itself"), "{shown}");
}

#[test]
fn mistakes_are_found_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let mistakes = [
        ("name: redis", "name: rediss", "did you mean `redis`?"),
        ("GET {{ name }}", "GET '{{ name }}", "doesn't end"),
        (
            "capture: { value: body }",
            "capture: { value: status }",
            "they have a `body`",
        ),
        (
            "share: 50%",
            "json: { a: 1 }",
            "`json` belongs to requests of HTTP",
        ),
    ];
    refuses(folder.path(), WORKLOAD, &mistakes);
}
