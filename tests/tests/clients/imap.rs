//! IMAP, against Dovecot.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::unistd::{User, geteuid, getgid, getuid};
use plimsoll_tests::server::free_address;
use plimsoll_tests::wait_until;

use super::{Running, by_step, certificate, has, measured, refuses, tried, trusting};

const WORKLOAD: &str = r#"workload: it
protocol: { name: imap, username: "{{ name }}", password: sesame }
user: { name: "user{{ index }}" }
setup:
  - request: CREATE Archive
session:
  steps:
    - step: Keep
      wait: 3ms..5ms
      request: APPEND INBOX (\Seen)
      text: |
        Subject: The "first" of {{ name }}

        a NO this is part of the mail {3}
      capture: { uid: "$.code.appenduid[1]" }
    - step: Open
      request: SELECT INBOX
      capture: { there: $.exists }
    - step: Look for it
      set: { subject: 'The "first" of {{ name }}' }
      request: UID SEARCH SUBJECT "{{ subject }}"
      expect: { json: { "$.search[*]": "{{ uid }}" } }
    - step: Read it
      request: UID FETCH {{ uid }} (FLAGS BODY.PEEK[])
      expect: { json: { "$.fetch[0].uid": "{{ uid }}" }, contains: this is part of the mail }
      capture: { mail: "$.fetch[0]['body[]']" }
    - step: File it
      request: UID MOVE {{ uid }} Archive
    - step: Refused
      share: 50%
      request: SELECT Nowhere
"#;

/// The users of Dovecot's processes: if root starts it, some run as other users; otherwise all run as the current one.
fn who(folder: &Path) -> String {
    let (uid, gid, all) = match User::from_name("nobody") {
        Ok(Some(nobody)) if geteuid().is_root() => (nobody.uid, nobody.gid, String::new()),
        _ => {
            let own = User::from_uid(getuid()).expect("users can be asked for");
            let own = own.expect("we are one").name;
            let roots = ["anvil", "imap-login", "stats"];
            let roots = roots.map(|name| format!("service {name} {{\n  chroot =\n}}\n"));
            let all = format!("default_internal_user = {own}\ndefault_login_user = {own}\n");
            (getuid(), getgid(), all + &roots.concat())
        }
    };
    let mail = folder.join("mail");
    fs::create_dir(&mail).expect("a folder can be made");
    std::os::unix::fs::chown(&mail, Some(uid.as_raw()), Some(gid.as_raw())).expect("it is ours");
    format!(
        "{all}first_valid_uid = 1\nuserdb {{\n  driver = static\n  args = uid={uid} gid={gid} \
         home={}/%u\n}}\n",
        mail.display()
    )
}

/// Starts a server with a certificate, whose users have the same password; returns its port, too.
fn server(folder: &Path) -> Option<(Running, u16)> {
    if !has("dovecot") {
        return None;
    }
    let port = free_address().port();
    certificate(folder);
    let at = folder.display();
    let who = who(folder);
    let text = format!(
        "base_dir = {at}/dovecot\nstate_dir = {at}/dovecot-state\nlog_path = /dev/stderr\nprotocols = imap\n\
         listen = 127.0.0.1\nssl = yes\nssl_cert = <{at}/cert.pem\nssl_key = <{at}/key.pem\n\
         disable_plaintext_auth = no\nmail_location = maildir:~/mail\nmail_fsync = never\n\
         passdb {{\n  driver = static\n  args = password=sesame\n}}\n\
         service imap-login {{\n  inet_listener imap {{\n    port = {port}\n  }}\n  \
         inet_listener imaps {{\n    port = 0\n  }}\n}}\n{who}"
    );
    fs::write(folder.join("dovecot.conf"), text).expect("written");
    let log = File::create(folder.join("log")).expect("written");
    let started = Command::new("dovecot")
        .arg("-F")
        .arg("-c")
        .arg(folder.join("dovecot.conf"))
        .stdin(Stdio::null())
        .stderr(log)
        .spawn();
    let running = Running(started.expect("it starts"));
    wait_until(Duration::from_secs(120), "it listens", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    Some((running, port))
}

fn study(port: u16, more: &str) -> String {
    format!(
        "study: it\ntitle: A server\nworkload: it\n\
         system:\n  attach: {{ url: imap://127.0.0.1:{port} }}\n{more}\
         load: {{ users: 4, hold: 4s }}\ntrials: 1\nrepeats: 0\n"
    )
}

/// The number of mails in a mailbox of all users.
fn mails(folder: &Path, mailbox: &str) -> u64 {
    let of = |user: u64| {
        let mailbox = folder.join(format!("mail/user{user}/mail/{mailbox}"));
        let files = |part| fs::read_dir(mailbox.join(part)).map_or(0, Iterator::count);
        (files("cur") + files("new")) as u64
    };
    (0..4).map(of).sum()
}

#[test]
fn each_mail_is_counted_where_it_lies() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_running, port)) = server(folder.path()) else {
        return;
    };
    let trial = measured(folder.path(), &study(port, ""), WORKLOAD);
    let steps = by_step(&trial);
    assert!(steps[..5].iter().all(|count| *count > 0), "{trial:#}");
    // Each of four users may have one under way at the deadline.
    let (kept, filed) = (steps[0], steps[4]);
    let (inbox, archive) = (mails(folder.path(), ""), mails(folder.path(), ".Archive"));
    assert!((filed..=filed + 4).contains(&archive), "{filed} {archive}");
    assert!(
        (kept..=kept + 4).contains(&(inbox + archive)),
        "{kept} {inbox} {archive}"
    );
    assert_eq!(steps[5], 0);
    assert!(trial["errors"].as_u64() > Some(0), "{trial:#}");
    let example = trial["error_examples"].to_string();
    assert!(example.contains("NO Mailbox doesn't exist"), "{example}");
}

#[test]
fn both_sides_of_the_dialogue_are_shown_without_the_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_running, port)) = server(folder.path()) else {
        return;
    };
    let tls = trusting(&folder.path().join("cert.pem"));
    let secure = WORKLOAD.replace("password: sesame", "password: sesame, starttls: true");
    let (shown, code) = tried(folder.path(), &study(port, &tls), &secure);
    for line in [
        "> a STARTTLS",
        "> a LOGIN ***",
        r"> a APPEND INBOX (\Seen) {",
        r#"> a UID SEARCH SUBJECT "The \"first\" of user0""#,
        "< + OK",
        "< * 1 EXISTS",
        "there = 1",
        "a NO this is part of the mail {3}",
    ] {
        assert!(shown.contains(line), "{line}:\n{shown}");
    }
    assert!(!shown.contains("sesame"), "{shown}");
    assert!(matches!(code, Some(0 | 99)), "as its draw has it: {shown}");
    let wrong = WORKLOAD.replace("sesame", "wrong");
    let (shown, code) = tried(folder.path(), &study(port, ""), &wrong);
    assert_eq!(code, Some(99), "{shown}");
    assert!(
        shown.contains("✗ connect: NO [AUTHENTICATIONFAILED]"),
        "{shown}"
    );
}

#[test]
fn who_logs_out_comes_again_on_a_new_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_running, port)) = server(folder.path()) else {
        return;
    };
    let workload = "workload: it\n\
        protocol: { name: imap, username: somebody, password: sesame }\n\
        session:\n  steps:\n    - step: Here\n      request: NOOP\n    - step: Go\n      request: LOGOUT\n    \
        - step: Again\n      request: NOOP\n";
    let trial = measured(folder.path(), &study(port, ""), workload);
    let steps = by_step(&trial);
    assert!(steps.iter().all(|count| *count > 0), "{trial:#}");
    assert_eq!(trial["errors"].as_u64(), Some(0), "{trial:#}");
}

#[test]
fn mistakes_are_found_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let mistakes = [
        ("password: sesame", "database: mail", "know no `database`"),
        (
            "share: 50%",
            "json: { a: 1 }",
            "`json` belongs to requests of HTTP",
        ),
        ("share: 50%", "expect: 2xx", "`expect: status` belongs"),
        (
            "share: 50%",
            "values: [1]",
            "`values` is what a workload of PostgreSQL sends",
        ),
    ];
    refuses(folder.path(), WORKLOAD, &mistakes);
}
