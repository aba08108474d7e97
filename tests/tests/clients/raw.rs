//! Plain TCP and UDP: memcached, whose protocol has lines over TCP and frames over UDP, and socat as an echo server.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_tests::server::free_address;
use plimsoll_tests::wait_until;

use super::{Running, by_step, certificate, has, measured, refuses, tried, trusting};

const WORKLOAD: &str = "\
workload: it
protocol: tcp
setup:
  - send: \"set k{{ index }} 0 0 5\\r\\nhello\\r\\n\"
    expect: { contains: STORED }
session:
  steps:
    - step: Read
      wait: 3ms..5ms
      send: \"get k{{ index }}\\r\\n\"
      read: /END\\r\\n/
      capture: { value: '/ 5\\r\\n(.*)\\r\\n/' }
      expect: { contains: hello }
    - step: Write
      send: \"set w{{ index }} 0 0 {{ value | length }}\\r\\n{{ value }}\\r\\n\"
    - step: Write without an answer
      send: { text: \"set n{{ index }} 0 0 1 noreply\\r\\n1\\r\\n\" }
      read: nothing
    - step: Ask in binary
      send: { hex: \"80 0b 0000 00 00 0000 00000000 00000000 0000000000000000\" }
      read: { length: u32be, at: 8, plus: 12 }
      share: 0%
";

fn study(url: &str, more: &str) -> String {
    format!(
        "study: it\ntitle: A server\nworkload: it\n\
         system:\n  attach: {{ url: \"{url}\" }}\n{more}\
         load: {{ users: 4, hold: 2s }}\ntrials: 1\nrepeats: 0\n"
    )
}

/// A memcached that listens at this port for TCP or UDP.
fn memcached(udp: bool) -> Option<(Running, u16)> {
    if !has("memcached") {
        return None;
    }
    let port = free_address().port();
    let (stream, datagrams) = if udp { (0, port) } else { (port, 0) };
    let started = Command::new("memcached")
        .args(["-l", "127.0.0.1", "-u", "nobody"])
        .args(["-p", &stream.to_string(), "-U", &datagrams.to_string()])
        .stdout(Stdio::null())
        .spawn();
    let running = Running(started.expect("it starts"));
    if !udp {
        listens(port);
    }
    Some((running, port))
}

fn listens(port: u16) {
    wait_until(Duration::from_secs(120), "it listens", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
}

/// A counter of the server.
fn counter(port: u16, name: &str) -> u64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.write_all(b"stats\r\nquit\r\n").expect("asked");
    let mut told = String::new();
    stream.read_to_string(&mut told).expect("an answer");
    let start = format!("STAT {name} ");
    let found = told.lines().find_map(|line| line.strip_prefix(&start));
    found.expect("a counter").trim().parse().expect("a number")
}

#[test]
fn requests_over_tcp_are_counted_as_memcached_counts_them() {
    let Some((_running, port)) = memcached(false) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let workload = WORKLOAD.split("    - step: Ask in binary").next();
    let workload = workload.expect("a part");
    let study = study(&format!("tcp://127.0.0.1:{port}"), "");
    let trial = measured(folder.path(), &study, workload);
    let steps = by_step(&trial);
    assert_eq!(trial["errors"].as_u64().unwrap_or(0), 0, "{trial}");
    // Each of four users may have one under way at the deadline.
    let counted = |ours: u64, theirs: u64| (ours..=ours + 4).contains(&theirs);
    let gets = counter(port, "cmd_get");
    assert!(
        steps[0] > 100 && counted(steps[0], gets),
        "{steps:?} {gets}"
    );
    let sets = counter(port, "cmd_set") - 4;
    let ours = steps[1] + steps[2];
    assert!((ours..=ours + 8).contains(&sets), "{steps:?} {sets}");
}

#[test]
fn try_shows_bytes_and_the_missing_pattern() {
    let Some((_running, port)) = memcached(false) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let study = study(&format!("tcp://127.0.0.1:{port}"), "");
    // A binary request begins another protocol, so that it needs its own connection.
    let workload = "workload: it\nprotocol: tcp\nsession:\n  steps:\n    - step: Ask in binary\n      \
                    send: { hex: \"800b0000 00000000 00000000 00000000 0000000000000000\" }\n      \
                    read: { length: u32be, at: 8, plus: 12 }\n      capture: { version: '/([0-9]+\\.[0-9.]+)/' }\n";
    let (shown, code) = tried(folder.path(), &study, workload);
    assert_eq!(code, Some(0), "{shown}");
    assert!(
        shown.contains(r"\x80\x0b\x00\x00") && shown.contains(r"\x81\x0b\x00\x00"),
        "{shown}"
    );
    assert!(shown.contains("version = 1."), "{shown}");
    let failing = workload.replace("[0-9]+\\.[0-9.]+", "no such text [0-9]");
    let (shown, code) = tried(folder.path(), &study, &failing);
    assert_ne!(code, Some(0), "{shown}");
    let late = workload
        .replace("plus: 12", "plus: 13")
        .replace("capture", "timeout: 200ms\n      capture");
    let (shown, code) = tried(folder.path(), &study, &late);
    assert!(
        code != Some(0) && shown.contains("no whole answer in time"),
        "{shown}"
    );
}

/// socat as a server that returns what it gets.
fn echo(listen: &str) -> Option<Running> {
    if !has("socat") {
        return None;
    }
    let started = Command::new("socat").args([listen, "EXEC:cat"]).spawn();
    Some(Running(started.expect("it starts")))
}

fn tries_every_end(folder: &Path, study: &str) {
    fs::write(folder.join("hello.bin"), b"\x00\x05hello").expect("written");
    let workload = "\
workload: it
protocol: tcp
session:
  steps:
    - step: Line
      send: \"hello {{ index }}\\n\"
      expect: { contains: \"hello 0\" }
    - step: Bytes
      send: 123456
      read: { bytes: 4 }
      capture: { first: body }
    - step: The rest
      read: { bytes: 2 }
      capture: { second: body }
    - step: Length
      send: { file: hello.bin }
      read: { length: u16be }
      expect: { contains: hello }
    - step: Pattern
      send: { hex: \"61 62{% raw %}{% endraw %} 0a 63\" }
      read: '/b\\sc/'
    - step: Silence
      send: \"so\\n\\nlong\"
      read: { silence: 30ms }
      capture: { third: body }
";
    let (shown, code) = tried(folder, study, workload);
    assert_eq!(code, Some(0), "{shown}");
    for part in [
        "first = 1234",
        "second = 56",
        r"\x00\x05hello",
        "third = so",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn answers_end_as_the_workload_says_also_over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let port = free_address().port();
    let plain = format!("TCP-LISTEN:{port},fork,reuseaddr,bind=127.0.0.1");
    let Some(_running) = echo(&plain) else { return };
    listens(port);
    tries_every_end(
        folder.path(),
        &study(&format!("tcp://127.0.0.1:{port}"), ""),
    );
    let [cert, key] = certificate(folder.path());
    let port = free_address().port();
    let secure = format!(
        "OPENSSL-LISTEN:{port},fork,reuseaddr,bind=127.0.0.1,verify=0,cert={},key={}",
        cert.display(),
        key.display()
    );
    let Some(_running) = echo(&secure) else {
        return;
    };
    listens(port);
    let study = study(&format!("tls://127.0.0.1:{port}"), &trusting(&cert));
    tries_every_end(folder.path(), &study);
}

#[test]
fn an_answer_may_end_with_the_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let port = free_address().port();
    if !has("socat") {
        return;
    }
    let listen = format!("TCP-LISTEN:{port},fork,reuseaddr,bind=127.0.0.1");
    let started = Command::new("socat")
        .args([&listen, "EXEC:head -n 1"])
        .spawn();
    let _running = Running(started.expect("it starts"));
    listens(port);
    let workload = "workload: it\nprotocol: tcp\nsession:\n  steps:\n    - step: Finger\n      repeat: 2\n      \
                    send: \"who\\n\"\n      read: close\n      expect: { contains: who, size: 4 B }\n";
    let (shown, code) = tried(
        folder.path(),
        &study(&format!("tcp://127.0.0.1:{port}"), ""),
        workload,
    );
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn datagrams_have_answers_or_none() {
    let Some((_running, port)) = memcached(true) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    // A frame of eight bytes is before each message: id, number, count, reserved.
    let workload = "\
workload: it
protocol: udp
session:
  steps:
    - step: Version
      wait: 3ms..5ms
      send: { hex: \"0007 0000 0001 0000 76657273696f6e0d0a\" }
      expect: { contains: VERSION }
    - step: Several
      send: { hex: \"0008 0000 0001 0000 76657273696f6e0d0a\" }
      read: { silence: 5ms }
      expect: { contains: VERSION }
";
    let url = format!("udp://127.0.0.1:{port}");
    let trial = measured(folder.path(), &study(&url, ""), workload);
    let steps = by_step(&trial);
    assert!(steps.iter().all(|count| *count > 50), "{steps:?}");
    // Nothing listens at the port of a closed socket: the kernel refuses, which is an error of its own class.
    let closed = free_address().port();
    let url = format!("udp://127.0.0.1:{closed}");
    let (shown, code) = tried(folder.path(), &study(&url, ""), workload);
    assert!(code != Some(0) && shown.contains("refused"), "{shown}");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let secure = format!("tls://{}", listener.local_addr().expect("an address"));
    for (url, protocol, why) in [
        (&url, "protocol: tcp", "`protocol: udp` can use"),
        (&secure, "protocol: udp", "has no TLS"),
    ] {
        let workload = format!(
            "workload: it\n{protocol}\nsession:\n  steps:\n    - step: A\n      send: hello\n"
        );
        let (shown, code) = tried(folder.path(), &study(url, ""), &workload);
        assert!(code != Some(0) && shown.contains(why), "{shown}");
    }
}

#[test]
fn mistakes_are_reported_with_their_cure() {
    let folder = tempfile::tempdir().expect("a folder");
    refuses(
        folder.path(),
        WORKLOAD,
        &[
            (
                "read: nothing",
                "read: never",
                "isn't a known end of an answer",
            ),
            ("read: nothing", "read: datagram", "TCP has no datagrams"),
            (
                "read: nothing",
                "read: { bytes: 1, silence: 1s }",
                "an answer has one end",
            ),
            ("length: u32be", "length: u24be", "unknown number format"),
            ("length: u32be", "bytes: 24", "belong to `length`"),
            (
                "hex: \"80 0b",
                "hex: \"8 0b",
                "even number of hexadecimal digits",
            ),
            ("/END\\r\\n/", "/(END/", "not a regular expression"),
            ("protocol: tcp", "protocol: udp", "whole datagrams"),
            (
                "protocol: tcp",
                "protocol: redis",
                "is what a workload of TCP or UDP sends",
            ),
            (
                "protocol: tcp",
                "protocol: { name: tcp, username: me }",
                "has no settings",
            ),
        ],
    );
}
