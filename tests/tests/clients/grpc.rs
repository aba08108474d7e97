//! gRPC, with etcd as the server.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_tests::server::free_address;
use plimsoll_tests::wait_until;

use super::{Running, by_step, has, measured, refuses, tried};

const WORKLOAD: &str = "\
workload: it
user: { key: \"users/{{ index }}\" }
protocol:
  name: grpc
  descriptors: etcd.proto
  headers: { Cookie: sesame }
session:
  steps:
    - step: Watch
      wait: 3ms..5ms
      request: etcdserverpb.Watch/Watch
      json: { create_request: { key: \"{{ key }}\" } }
      stays_open: true
      capture: { watch: \"$[0].watch_id\" }
    - step: Write
      request: etcdserverpb.KV/Put
      json: { key: \"{{ key }}\", value: \"the value of {{ index }}\" }
      deadline: 60s
      capture: { revision: \"$.header.revision\" }
    - step: Hear
      request: etcdserverpb.Watch/Watch
      stays_open: true
      expect: { json: { \"$[0].events[0].kv.mod_revision\": \"{{ revision }}\" } }
    - step: Read
      request: etcdserverpb.KV/Range
      json: { key: \"{{ key }}\" }
      expect: { json: { \"$.kvs[0].value\": \"the value of {{ index }}\", \"$.count\": \"1\" } }
    - step: Watch no longer
      request: etcdserverpb.Watch/Watch
      json: { cancel_request: { watch_id: \"{{ watch }}\" } }
      stays_open: true
      expect: { json: { \"$[0].canceled\": \"true\" } }
    - step: Read twice
      parallel:
        - request: etcdserverpb.KV/Range
          json: { key: \"{{ key }}\" }
          expect: { json: { \"$.count\": \"1\" } }
        - request: etcdserverpb.KV/Range
          json: { key: \"{{ key }}/none\" }
          expect: { json: { \"$.count\": \"0\" } }
    - step: Refused
      share: 50%
      request: etcdserverpb.KV/Put
";

fn study(port: u16) -> String {
    format!(
        "study: it\ntitle: A server\nworkload: it\n\
         system: {{ attach: {{ url: grpc://127.0.0.1:{port} }} }}\n\
         load: {{ sequence: {{ sessions: 10 }} }}\ntrials: 1\nrepeats: 0\n"
    )
}

/// Writes the description of its services beside the workload.
fn describe(folder: &Path) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/etcd.proto");
    fs::copy(file, folder.join("etcd.proto")).expect("copied");
}

fn server(folder: &Path) -> Option<(Running, u16)> {
    if !has("etcd") {
        return None;
    }
    let port = free_address().port();
    let url = format!("http://127.0.0.1:{port}");
    let started = Command::new("etcd")
        .args([
            "--listen-client-urls",
            &url,
            "--advertise-client-urls",
            &url,
        ])
        .args(["--listen-peer-urls", "http://127.0.0.1:0"])
        .args(["--unsafe-no-fsync", "--data-dir"])
        .arg(folder.join("etcd"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let running = Running(started.expect("it starts"));
    wait_until(Duration::from_secs(120), "it is healthy", || {
        page(port, "/health").is_some_and(|page| page.contains("\"true\""))
    });
    Some((running, port))
}

fn page(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let ask = format!("GET {path} HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    Some(page)
}

/// The numbers of calls of this method that began at the server, and that it refused.
fn calls(port: u16, method: &str) -> (u64, u64) {
    let page = page(port, "/metrics").expect("its metrics");
    let of = format!("grpc_method=\"{method}\"");
    let sum = |name: &str, code: &str| -> u64 {
        let lines = page.lines().filter(|line| line.starts_with(name));
        let lines = lines.filter(|line| line.contains(&of) && line.contains(code));
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        values.sum()
    };
    let refused = sum("grpc_server_handled_total", "InvalidArgument");
    (sum("grpc_server_started_total", ""), refused)
}

#[test]
fn each_call_is_counted_as_the_server_counts_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_running, port)) = server(folder.path()) else {
        return;
    };
    describe(folder.path());
    let trial = measured(folder.path(), &study(port), WORKLOAD);
    let steps = by_step(&trial);
    assert_eq!(steps[..5], [10; 5], "{trial:#}");
    let (reads, _) = calls(port, "Range");
    assert_eq!((reads, steps[5]), (10 + 20, 20));
    // A watch is one call, however many steps use it.
    let (watches, _) = calls(port, "Watch");
    assert_eq!(watches, 1);
    let (_, refused) = calls(port, "Put");
    let errors = trial["errors"].as_u64().expect("a count");
    assert!(
        (1..=10).contains(&errors),
        "half of them, as the seed has it: {errors}"
    );
    assert_eq!((errors, steps[6]), (refused, 0));
    let example = trial["error_examples"].to_string();
    assert!(
        example.contains("INVALID_ARGUMENT: etcdserver: key is not provided"),
        "{example}"
    );
}

#[test]
fn calls_of_users_who_share_connections_are_counted_so_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_running, port)) = server(folder.path()) else {
        return;
    };
    describe(folder.path());
    let shared = "{ users: 6, hold: 2s, connections: 2 }";
    let study = study(port).replace("{ sequence: { sessions: 10 } }", shared);
    let trial = measured(folder.path(), &study, WORKLOAD);
    let connections = &trial["connections"];
    assert_eq!(connections["opened"], 2, "{trial:#}");
    assert_eq!(connections["http2"], 2, "{trial:#}");
    let steps = by_step(&trial);
    let counted = steps[3] + steps[5];
    let (reads, _) = calls(port, "Range");
    // Requests under way at the end have no answer.
    assert!((counted..=counted + 12).contains(&reads), "{reads}");
    assert!(counted > 12, "{trial:#}");
    // One for each user, on whichever connection.
    let (watches, _) = calls(port, "Watch");
    assert_eq!(watches, 6);
}

#[test]
fn calls_are_shown_as_they_are_meant() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_running, port)) = server(folder.path()) else {
        return;
    };
    describe(folder.path());
    let workload = WORKLOAD.replace("share: 50%", "share: 0%");
    let (own, shared) = (
        "{ sequence: { sessions: 10 } }",
        "{ users: 6, hold: 2s, connections: 2 }",
    );
    for load in [own, shared] {
        let study = study(port).replace(own, load);
        let (shown, code) = tried(folder.path(), &study, &workload);
        for line in [
            "etcdserverpb.KV/Put",
            "cookie: ***",
            "grpc-timeout: 60000m",
            "{\"key\":\"users/0\",\"value\":\"the value of 0\"}",
            "\"created\": true",
            "watch = 0",
        ] {
            assert!(shown.contains(line), "{line}:\n{shown}");
        }
        assert!(!shown.contains("sesame"), "{shown}");
        assert_eq!(code, Some(0), "{shown}");
    }
}

#[test]
fn mistakes_are_found_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    describe(folder.path());
    let wrong = "syntax = \"proto3\";\nmessage A {\n  strin a = 1;\n}\n";
    fs::write(folder.path().join("wrong.proto"), wrong).expect("written");
    fs::write(folder.path().join("none.binpb"), b"\xff\xff").expect("written");
    let mistakes = [
        ("etcd.proto", "etc.proto", "did you mean `etcd.proto`?"),
        ("etcd.proto", "wrong.proto", "wrong.proto:3:3"),
        ("etcd.proto", "none.binpb", "describes no services"),
        (
            "  descriptors: etcd.proto\n",
            "",
            "needs to know the services",
        ),
        (
            "KV/Range",
            "KV/Rang",
            "did you mean `etcdserverpb.KV/Range`?",
        ),
        (
            "{ key: \"{{ key }}\" }\n      expect",
            "{ kex: 1 }\n      expect",
            "did you mean `key`?",
        ),
        (
            "watch_id: \"{{ watch }}\"",
            "watch_id: soon",
            "no etcdserverpb.WatchRequest",
        ),
        (
            "create_request: { key",
            "create_request: { ky",
            "the fields are `key` and `start_revision`",
        ),
        ("deadline: 60s", "deadline: soon", "is not a duration"),
        ("deadline: 60s", "stays_open: true", "takes one message"),
        ("deadline: 60s", "events: {}", "answers with one message"),
        (
            "deadline: 60s",
            "expect: NOTFOUND",
            "did you mean `NOT_FOUND`?",
        ),
        (
            "deadline: 60s",
            "form: { a: 1 }",
            "belongs to requests of HTTP",
        ),
        (
            "headers: { Coo",
            "headers: { TE: x, Coo",
            "written by the driver itself",
        ),
        (
            "          expect: { json: { \"$.count\": \"0\" } }",
            "          stays_open: true",
            "within `parallel` doesn't stay open",
        ),
        ("name: grpc", "name: redis", "only gRPC has descriptors"),
    ];
    refuses(folder.path(), WORKLOAD, &mistakes);
}
