//! The log of a server: a line per request, faults with their causes, and no secrets.

use std::process::Command;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use plimsoll_tests::server::{ADMIN_TOKEN, Client, ServerProcess};
use plimsoll_tests::{program, wait_until};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

const PASSWORD: &str = "a-pass-phrase-of-ada-7";

fn register(server: &ServerProcess) {
    let mut admin = Client::admin(server.address()).expect("it accepts connections");
    let body = json!({"password": PASSWORD});
    let made = admin.request("PUT", "/admin/users/ada", &body);
    assert!(made.expect("an answer").status < 300);
}

/// The lines of a log in JSON. The last one may not be whole yet.
fn lines(server: &ServerProcess) -> Vec<Value> {
    let said = server.said();
    let lines = said.lines().filter(|line| line.starts_with('{'));
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[test]
fn each_request_is_a_line_and_no_line_has_a_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let server =
        ServerProcess::start_with(folder.path(), &["--log", "json", "--slow-request", "1h"]);
    register(&server);
    let mut ada = Client::user(server.address(), "ada", PASSWORD).expect("it accepts connections");
    let inbox = ada.send(
        "GET",
        "/mail/ada/api/mail/inbox?q=a-private-search",
        &[],
        b"",
    );
    let inbox = inbox.expect("an answer");
    let id = inbox
        .header("x-request-id")
        .expect("it has a name")
        .to_owned();
    let form = format!("username=ada&password={PASSWORD}");
    let kind = [("content-type", "application/x-www-form-urlencoded")];
    let signed_in = ada.send("POST", "/login", &kind, form.as_bytes());
    let signed_in = signed_in.expect("an answer");
    let cookie = signed_in.header("set-cookie").expect("a cookie");
    let cookie = cookie.split(';').next().expect("a value").to_owned();
    let token = cookie.split('=').nth(1).expect("a token").to_owned();
    let mut wrong = Client::user(server.address(), "ada", "a-wrong-guess").expect("a connection");
    let refused = wrong.send("GET", "/mail/ada/api/mail/inbox", &[], b"");
    assert_eq!(refused.expect("an answer").status, 401);
    let mut admin = Client::admin(server.address()).expect("it accepts connections");
    let path = "/admin/users/ada/app-passwords";
    let made = admin.request("POST", path, &json!({"label": "phone"}));
    let made = made.expect("an answer").body;
    let made = made["app_password"]
        .as_str()
        .expect("a password")
        .to_owned();
    let missing = admin.send("GET", "/no/such/%0Aplace", &[], b"");
    assert_eq!(missing.expect("an answer").status, 404);

    wait_until(
        Duration::from_secs(120),
        "the last request is in the log",
        || lines(&server).iter().any(|line| line["status"] == 404),
    );
    let lines = lines(&server);
    let line = lines.iter().find(|line| line["id"] == *id);
    let line = line.expect("the request is in the log");
    for (field, value) in [
        ("level", json!("INFO")),
        ("message", json!("request")),
        ("client", json!("127.0.0.1")),
        ("user", json!("ada")),
        ("method", json!("GET")),
        ("path", json!("/mail/ada/api/mail/inbox")),
        ("route", json!("/mail/{mailbox}/api/mail/inbox")),
        ("status", json!(200)),
    ] {
        assert_eq!(line[field], value, "{line}");
    }
    assert!(line["ms"].as_f64().is_some_and(|ms| ms > 0.0), "{line}");
    assert!(line["timestamp"].is_string(), "{line}");
    let sign_in = lines.iter().find(|line| line["path"] == "/login");
    assert_eq!(sign_in.expect("it is in the log")["user"], "ada");
    let said = server.said();
    let whole = said.rsplit_once('\n').expect("lines").0;
    for line in whole.lines() {
        let line = serde_json::from_str::<Value>(line);
        line.unwrap_or_else(|_| panic!("a line is no JSON: {said}"));
    }
    let listening = format!("listening on http://{}", server.address());
    assert!(said.contains(&listening), "{said}");
    let basic = BASE64_STANDARD.encode(format!("ada:{PASSWORD}"));
    for secret in [
        PASSWORD,
        &basic,
        ADMIN_TOKEN,
        &token,
        &made,
        "a-wrong-guess",
        "a-private-search",
    ] {
        assert!(!said.contains(secret), "{secret} in {said}");
    }
}

#[test]
fn who_asks_for_no_log_gets_slow_requests_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = ServerProcess::start(folder.path());
    register(&server);
    let mut ada = Client::user(server.address(), "ada", PASSWORD).expect("it accepts connections");
    let inbox = ada.send("GET", "/mail/ada/api/mail/inbox", &[], b"");
    assert_eq!(inbox.expect("an answer").status, 200);
    assert!(!server.said().contains("mail/inbox"), "{}", server.said());
    drop(server);

    let server = ServerProcess::start_with(folder.path(), &["--slow-request", "0s"]);
    let mut ada = Client::user(server.address(), "ada", PASSWORD).expect("it accepts connections");
    let inbox = ada.send("GET", "/mail/ada/api/mail/inbox", &[], b"");
    assert_eq!(inbox.expect("an answer").status, 200);
    wait_until(
        Duration::from_secs(120),
        "a slow request is in the log",
        || {
            let said = server.said();
            said.contains("WARN") && said.contains("slow request") && said.contains("mail/inbox")
        },
    );
}

/// The limit of file sizes. The system reports a write beyond it as a failure of the disk, not as a full one. The log
/// stays below it.
const FILE_BYTES: u64 = 64 << 10;

fn limit_files(server: &ServerProcess, bytes: Option<u64>) {
    let id = i32::try_from(server.pid()).ok().and_then(Pid::from_raw);
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    prlimit(id, Resource::Fsize, limit).expect("it runs");
}

#[test]
fn a_disk_that_fails_is_told_from_a_full_one_and_the_cause_is_in_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(program());
    let server = ServerProcess::start_by(folder.path(), shell, &["--log", "json"]);
    register(&server);
    let mut ada = Client::user(server.address(), "ada", PASSWORD).expect("it accepts connections");
    let mail = json!({
        "subject": "room", "to": ["ada"],
        "content": [{ "contentType": "text/plain", "data": "x ".repeat(50_000) }],
    })
    .to_string();
    let mut status = |method: &str, path: &str| {
        let body = match method {
            "POST" => mail.as_bytes(),
            _ => b"",
        };
        let kind = [("content-type", "application/json")];
        let answer = ada.send(method, path, &kind, body);
        answer.expect("an answer").status
    };
    let outbox = "/mail/ada/api/mail/outbox";
    assert_eq!(status("POST", outbox), 201);
    assert_eq!(status("GET", "/readyz"), 200);

    limit_files(&server, Some(FILE_BYTES));
    assert_eq!(status("POST", outbox), 500);
    // Reads still work, and the server reports that it accepts no writes.
    assert_eq!(status("GET", "/mail/ada/api/mail/inbox"), 200);
    assert_eq!(
        (status("GET", "/healthz"), status("GET", "/readyz")),
        (200, 503)
    );
    limit_files(&server, None);
    assert_eq!(status("GET", "/readyz"), 200);
    assert_eq!(status("POST", outbox), 201);

    let found = |words: &str| {
        lines(&server)
            .into_iter()
            .find(|line| line["message"] == words)
    };
    let again = "the store takes writes again";
    wait_until(Duration::from_secs(120), again, || found(again).is_some());
    assert!(found("the store takes no writes").is_some());
    let failure = found("request failed").expect("it comes before the others");
    for (field, value) in [
        ("level", json!("ERROR")),
        ("user", json!("ada")),
        ("status", json!(500)),
        ("path", json!(outbox)),
    ] {
        assert_eq!(failure[field], value, "{failure}");
    }
    let cause = failure["cause"].as_str().unwrap_or_default();
    for words in ["the disk can't be read or written", "disk I/O error"] {
        assert!(cause.contains(words), "{failure}");
    }
    let at = failure["at"].as_str().unwrap_or_default();
    assert!(at.contains("domino/src/mail"), "{failure}");
}
