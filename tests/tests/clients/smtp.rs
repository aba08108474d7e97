//! SMTP against the groupware server, without TLS and with.

use std::path::Path;

use plimsoll_tests::server::{Client, ServerProcess};
use serde_json::{Value, json};

use super::{by_step, certificate, measured, tried, trusting};

const WORKLOAD: &str = "\
workload: it
protocol: smtp
user: { name: \"user{{ index }}\" }
session:
  steps:
    - step: Deliver
      wait: 3ms..5ms
      mail:
        from: x@example.org
        to: \"{{ name }}@localhost\"
        subject: To {{ name }}
        text: |
          Hello,
          .
          this goes on after a dot.
      expect: 250
    - step: Nobody
      share: 50%
      mail: { from: x@example.org, to: nobody@localhost, text: Hello }
";

/// Starts a server with four users; returns its SMTP address, too.
fn server(folder: &Path, arguments: &[&str]) -> (ServerProcess, String) {
    let arguments = [&["--smtp-listen", "127.0.0.1:0"], arguments].concat();
    let server = ServerProcess::start_with(folder, &arguments);
    let smtp = server.smtp().to_string();
    (server, smtp)
}

fn study(smtp: &str, more: &str) -> String {
    format!(
        "study: it\ntitle: A server\nworkload: it\n\
         system:\n  attach: {{ url: \"smtp://{smtp}\" }}\n{more}\
         load: {{ users: 4, hold: 2s }}\ntrials: 1\nrepeats: 0\n"
    )
}

/// Registers the users; returns the first one's password.
fn register(server: &ServerProcess) -> String {
    let users: Vec<_> = (0..4)
        .map(|n| json!({ "name": format!("user{n}") }))
        .collect();
    let body = json!({ "users": users, "app_passwords": true });
    let mut admin = Client::admin(server.address()).expect("a connection");
    let answer = admin
        .request("POST", "/admin/users", &body)
        .expect("an answer");
    assert_eq!(answer.status, 200, "{answer:?}");
    let password = answer.body["users"][0]["app_password"].as_str();
    password.expect("a password").to_owned()
}

/// The subjects of the mails in the first user's inbox.
fn inbox(server: &ServerProcess, password: &str) -> Vec<String> {
    let mut client = Client::user(server.address(), "user0", password).expect("a connection");
    let path = "/mail/user0/api/mail/folders/inbox/messages?count=1000";
    let answer = client
        .request("GET", path, &Value::Null)
        .expect("an answer");
    assert_eq!(answer.status, 200, "{answer:?}");
    let mails = answer.body.as_array().expect("messages");
    let subject = |mail: &Value| mail["subject"].as_str().unwrap_or_default().to_owned();
    mails.iter().map(subject).collect()
}

#[test]
fn each_mail_is_counted_and_delivered_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (server, smtp) = server(folder.path(), &[]);
    let password = register(&server);
    let one_user = study(&smtp, "").replace("users: 4", "users: 1");
    // At most as many mails as a page of the inbox has.
    let slowly = WORKLOAD.replace("3ms..5ms", "20ms..30ms");
    let trial = measured(folder.path(), &one_user, &slowly);
    let delivered = by_step(&trial)[0];
    let mails = inbox(&server, &password);
    let there = mails.len() as u64;
    // One may have been under way at the deadline.
    assert!(
        delivered > 0 && (delivered..=delivered + 1).contains(&there),
        "{delivered} {there}"
    );
    assert!(
        mails.iter().all(|subject| subject == "To user0"),
        "{mails:?}"
    );
    assert_eq!(by_step(&trial)[1], 0);
    assert!(trial["errors"].as_u64() > Some(0), "{trial:#}");
    let example = trial["error_examples"].to_string();
    assert!(example.contains("550"), "{example}");
}

#[test]
fn a_connection_goes_over_to_tls_before_anything_is_delivered() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = certificate(folder.path());
    let tls = trusting(&files[0]);
    let files = files.map(|path| path.display().to_string());
    // Users submit mail over TLS only.
    let arguments = [
        "--submission-listen",
        "127.0.0.1:0",
        "--tls-cert",
        &files[0],
        "--tls-key",
        &files[1],
    ];
    let server = ServerProcess::start_with(folder.path(), &arguments);
    let smtp = server.submission().to_string();
    let speaks = |what: &str| {
        WORKLOAD.replace(
            "protocol: smtp",
            &format!("protocol: {{ name: smtp{what} }}"),
        )
    };
    let trusted = study(&smtp, &tls);
    let secure = speaks(", starttls: true, username: nobody, password: wrong");
    let (shown, code) = tried(folder.path(), &trusted, &secure);
    for line in ["> STARTTLS", "> AUTH PLAIN ***", "✗ connect: 535"] {
        assert!(shown.contains(line), "{line}:\n{shown}");
    }
    assert_eq!(code, Some(99), "{shown}");
    let (shown, _) = tried(folder.path(), &study(&smtp, ""), &secure);
    assert!(shown.contains("signed by itself"), "{shown}");
    let (shown, _) = tried(
        folder.path(),
        &study(&smtp, ""),
        &speaks(", username: a, password: b"),
    );
    assert!(shown.contains("✗ connect: 5"), "{shown}");
}

#[test]
fn the_groupware_of_a_study_takes_mail_for_its_users() {
    let folder = tempfile::tempdir().expect("a folder");
    let attached = "  attach: { url: \"smtp://nowhere:1\" }";
    let study = study("nowhere:1", "").replace(attached, "  groupware: { engine: memory }");
    let (shown, code) = tried(
        folder.path(),
        &study,
        &WORKLOAD.replace("share: 50%", "share: 0%"),
    );
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("< 250 2.0.0 Delivered"), "{shown}");
    assert!(shown.contains("> .."), "a dot is doubled: {shown}");
}
