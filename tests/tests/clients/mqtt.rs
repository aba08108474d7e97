//! MQTT: mosquitto.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_tests::server::free_address;
use plimsoll_tests::wait_until;
use serde_json::Value;

use super::{Running, by_step, certificate, has, measured, refuses, tried, trusting};

const WORKLOAD: &str = "\
workload: it
protocol: { name: mqtt, client_id: \"user-{{ index }}\", username: me, password: sesame }
setup:
  - subscribe: { topics: [\"rooms/{{ index }}/+\", \"rooms/all\"], qos: 2 }
session:
  steps:
    - step: Publish
      wait: 3ms..5ms
      publish: { topic: \"counted/{{ index }}\", text: hello, qos: 1 }
    - step: Echo
      publish: { topic: \"rooms/{{ index }}/echo\", text: '{ \"from\": {{ index }} }', qos: 2 }
      receive: \"rooms/{{ index }}/echo\"
      capture: { from: $.from }
      expect: { contains: \"{{ index }}\" }
    - step: Keep bytes
      publish: { topic: \"rooms/{{ index }}/bytes\", hex: \"00 ff\", retain: true }
    - step: Read them
      receive: \"rooms/{{ index }}/bytes\"
    - step: Refused
      share: 50%
      publish: { topic: locked, text: hello, qos: 1 }
";

fn study(url: &str, more: &str) -> String {
    format!(
        "study: it\ntitle: A server\nworkload: it\nsystem:\n  attach: {{ url: \"{url}\" }}\n{more}\
         load: {{ users: 4, hold: 2s }}\ntrials: 1\nrepeats: 0\n"
    )
}

/// A broker whose only user may not write to `locked`, and its port.
fn broker(folder: &Path, more: &str) -> Option<(Running, u16)> {
    if !has("mosquitto") || !has("mosquitto_passwd") {
        return None;
    }
    let at = |name: &str| folder.join(name).display().to_string();
    let made = Command::new("mosquitto_passwd")
        .args(["-b", "-c", &at("passwords"), "me", "sesame"])
        .output();
    assert!(made.expect("it runs").status.success());
    let rights = "user me\ntopic rooms/#\ntopic counted/#\ntopic read locked\ntopic read $SYS/#\n";
    fs::write(at("rights"), rights).expect("written");
    let port = free_address().port();
    let settings = format!(
        "listener {port} 127.0.0.1\nallow_anonymous false\nuser root\nsys_interval 1\n\
         password_file {}\nacl_file {}\n{more}",
        at("passwords"),
        at("rights")
    );
    fs::write(at("settings"), settings).expect("written");
    let started = Command::new("mosquitto")
        .args(["-c", &at("settings")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let running = Running(started.expect("it starts"));
    wait_until(Duration::from_secs(120), "it listens", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    Some((running, port))
}

fn examples(trial: &Value) -> String {
    trial["error_examples"].to_string()
}

#[test]
fn messages_of_both_versions_are_counted_and_refusals_have_their_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_running, port)) = broker(folder.path(), "") else {
        return;
    };
    let study = study(&format!("mqtt://127.0.0.1:{port}"), "");
    let trial = measured(folder.path(), &study, WORKLOAD);
    let steps = by_step(&trial);
    assert!(steps[..4].iter().all(|count| *count > 20), "{steps:?}");
    let errors = trial["errors"].as_u64().expect("a count");
    assert!(errors > 0, "{trial:#}");
    assert_eq!(steps[4], 0, "{steps:?}");
    assert!(examples(&trial).contains("not authorized"), "{trial:#}");
    assert!(!examples(&trial).contains("sesame"));
    // Version 3.1.1 has no answer but success.
    let older = WORKLOAD.replace("name: mqtt", "name: mqtt, version: 3.1.1");
    let other = tempfile::tempdir().expect("a folder");
    let trial = measured(other.path(), &study, &older);
    let steps = by_step(&trial);
    assert!(steps.iter().all(|count| *count > 20), "{trial:#}");
    assert_eq!(trial["errors"].as_u64(), Some(0), "{trial:#}");
}

#[test]
fn both_sides_of_the_dialogue_are_shown_without_the_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_running, port)) = broker(folder.path(), "") else {
        return;
    };
    let study = study(&format!("mqtt://127.0.0.1:{port}"), "");
    let (shown, _) = tried(folder.path(), &study, WORKLOAD);
    for line in [
        "> SUBSCRIBE rooms/0/+, rooms/all",
        "< SUBACK 1",
        "> PUBLISH counted/0 (QoS 1): hello",
        "< PUBACK 2",
        "< PUBREC 3",
        "> PUBREL 3",
        r"PUBLISH rooms/0/bytes (QoS 0): \x00\xff",
        "from = 0",
    ] {
        assert!(shown.contains(line), "{line}:\n{shown}");
    }
    assert!(!shown.contains("sesame"), "{shown}");
    let wrong = WORKLOAD.replace("sesame", "wrong");
    let (shown, code) = tried(folder.path(), &study, &wrong);
    assert_eq!(code, Some(99), "{shown}");
    let refusal = "✗ connect: the broker refuses the connection: not authorized";
    assert!(shown.contains(refusal), "{shown}");
    let silent = WORKLOAD.replace(
        "rooms/{{ index }}/bytes\"\n",
        "rooms/all\"\n      timeout: 200ms\n",
    );
    let (shown, _) = tried(folder.path(), &study, &silent);
    assert!(shown.contains("✗ timeout"), "{shown}");
}

#[test]
fn tls_is_spoken_from_the_beginning_where_the_address_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let [cert, key] = certificate(folder.path());
    let more = format!("certfile {}\nkeyfile {}\n", cert.display(), key.display());
    let Some((_running, port)) = broker(folder.path(), &more) else {
        return;
    };
    let study = study(&format!("mqtts://127.0.0.1:{port}"), &trusting(&cert));
    let allowed = WORKLOAD.replace("topic: locked", "topic: rooms/all");
    let (shown, code) = tried(folder.path(), &study, &allowed);
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn mistakes_are_found_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let mistakes = [
        (
            "name: mqtt",
            "name: mqtt, version: 4.2",
            "unknown MQTT version",
        ),
        (
            "name: mqtt",
            "name: mqtt, starttls: true",
            "no such setting",
        ),
        ("name: mqtt", "name: mqtt, path: /", "WebSocket"),
        (
            "name: mqtt, client_id",
            "name: redis, client_id",
            "only MQTT",
        ),
        ("qos: 1", "qos: 3", "3"),
        (
            "topic: locked",
            "topic: locked/#",
            "can't contain `+` or `#`",
        ),
        ("text: hello", "text: hello, hex: 00", "bytes of one form"),
        ("rooms/all", "rooms#", "and `#` for all levels"),
        (
            "      receive: \"rooms/{{ index }}/bytes\"",
            "      request: GET /",
            "has no line",
        ),
        (
            "      receive: \"rooms/{{ index }}/bytes\"",
            "      receive: rooms/all\n      unsubscribe: rooms/all",
            "has one of these keys",
        ),
    ];
    refuses(folder.path(), WORKLOAD, &mistakes);
}
