//! Errors of the mail routes.

use insta::assert_snapshot;

use crate::transcript::*;

const MAIL: &str = "/mail/ada/api/mail";
/// The id of no message.
const NONE: &str = "0123456789ABCDEF0123456789ABCDEF";

fn at(rest: &str) -> String {
    format!("{MAIL}{rest}")
}

fn mime(text: &str) -> Rest<'static> {
    typed("message/rfc822", text.replace('\n', "\r\n"))
}

fn to_ben() -> Rest<'static> {
    mime("From: ada@localhost\nTo: ben@localhost\nSubject: Plan\n\nx\n")
}

/// Every route with an allowed method.
fn routes() -> Vec<(&'static str, String)> {
    [
        ("GET", "/inbox"),
        ("PUT", "/inbox"),
        ("GET", "/sent"),
        ("GET", "/drafts"),
        ("POST", "/drafts"),
        ("GET", "/trash"),
        ("DELETE", "/trash"),
        ("DELETE", "/trash/ID"),
        ("POST", "/outbox"),
        ("GET", "/messages/ID"),
        ("PUT", "/messages/ID?send=true"),
        ("DELETE", "/messages/ID"),
        ("GET", "/messages/ID/attachments/a.txt"),
        ("GET", "/quota"),
        ("GET", "/folders"),
        ("POST", "/folders"),
        ("GET", "/folders/ID"),
        ("PUT", "/folders/ID"),
        ("DELETE", "/folders/ID"),
        ("GET", "/folders/ID/messages"),
        ("PUT", "/folders/ID/messages"),
    ]
    .map(|(method, rest)| (method, at(&rest.replace("ID", NONE))))
    .to_vec()
}

#[test]
fn who_may_not() {
    let mut t = Transcript::new();
    for (method, path) in routes() {
        for who in [Nobody, Ben, Admin] {
            t.check(who, method, &path, bare());
        }
    }
    assert_snapshot!(t.text());
}

#[test]
fn what_is_not_there() {
    let mut t = Transcript::new();
    let named = r#"{"name":"Harbour"}"#;
    for (method, path) in routes() {
        let rest = match method {
            "PUT" if path.contains("/folders/") && !path.ends_with("/messages") => json(named),
            "PUT" if path.ends_with("/messages") => json(r#"{"add":[]}"#),
            "GET" | "DELETE" if path.contains(NONE) => bare(),
            "PUT" if path.contains("/messages/") => bare(),
            _ => continue,
        };
        t.check(Ada, method, &path, rest);
    }
    for (method, rest) in [
        ("GET", "/messages/x"),
        ("GET", "/messages/%FF"),
        ("GET", "/folders/x"),
        ("DELETE", "/folders/inbox"),
        ("GET", "/nothing"),
        ("GET", ""),
    ] {
        t.check(Ada, method, &at(rest), bare());
    }
    t.check(Ada, "PUT", &at("/folders/trash"), json(named));
    t.check(
        Ada,
        "PUT",
        &at("/inbox"),
        json(format!(r#"{{"add":["{NONE}"]}}"#)),
    );
    t.check(Ada, "PUT", &at("/inbox"), json(r#"{"remove":["x"]}"#));
    let kept = t.made(Ada, "POST", &at("/drafts"), &to_ben());
    t.check(Ada, "GET", &format!("{kept}/attachments/a.txt"), bare());
    t.check(
        Ada,
        "DELETE",
        &kept.replace("/messages/", "/trash/"),
        bare(),
    );
    t.check(Ben, "GET", &kept.replace("/ada/", "/ben/"), bare());
    assert_snapshot!(t.text());
}

#[test]
fn methods_that_are_not_taken() {
    let mut t = Transcript::new();
    for (method, rest) in [
        ("POST", "/inbox"),
        ("POST", "/sent"),
        ("DELETE", "/drafts"),
        ("PUT", "/trash"),
        ("GET", "/trash/x"),
        ("GET", "/outbox"),
        ("PATCH", "/messages/x"),
        ("PUT", "/messages/x/attachments/a"),
        ("POST", "/quota"),
        ("DELETE", "/folders"),
        ("POST", "/folders/x"),
        ("DELETE", "/folders/x/messages"),
    ] {
        t.check(Ada, method, &at(rest), bare());
    }
    assert_snapshot!(t.text());
}

#[test]
fn messages_that_are_not_taken() {
    let mut t = Transcript::new();
    let long = format!(
        "From: ada@localhost\nTo: ben@localhost\nX: {}\n\n",
        "x".repeat(300 << 10)
    );
    for path in [at("/outbox"), at("/drafts")] {
        t.check(Ada, "POST", &path, bare());
        t.check(Ada, "POST", &path, typed("text/plain", "x"));
        for body in [
            "",
            "{",
            "[]",
            r#"{"subject":7}"#,
            r#"{"subject":"a\nBcc: ben"}"#,
            r#"{"to":[{"email":"a b"}]}"#,
            r#"{"to":[{"email":"ben","displayName":"a\r\nb"}]}"#,
            r#"{"to":[{"email":"ben"}],"inReplyTo":"a b"}"#,
            r#"{"to":[{"email":"ben"}],"content":[{"contentType":"image/png","data":"x"}]}"#,
        ] {
            t.check(Ada, "POST", &path, json(body));
        }
        t.check(Ada, "POST", &path, mime(""));
        t.check(Ada, "POST", &path, mime(&long));
        t.check(Ada, "POST", &path, announced("message/rfc822", 1 << 40));
    }
    let outbox = at("/outbox");
    t.check(Ada, "POST", &outbox, json(r#"{"subject":"to nobody"}"#));
    let unknown = r#"{"to":[{"email":"eve"},{"email":"x@example.com"},{"email":"ben"}]}"#;
    t.check(Ada, "POST", &outbox, json(unknown));
    let many = vec![r#"{"email":"ben"}"#; 201].join(",");
    t.check(Ada, "POST", &outbox, json(format!(r#"{{"to":[{many}]}}"#)));
    for head in [
        "From: ben@localhost\nTo: ben@localhost",
        "From: ada@localhost\nFrom: ben@localhost\nTo: ben@localhost",
        "From: ada@localhost\nSender: ben@localhost\nTo: ben@localhost",
        "From: ada@localhost, ben@localhost\nTo: ben@localhost",
        "From: ada@localhost",
    ] {
        t.check(Ada, "POST", &outbox, mime(&format!("{head}\n\nx\n")));
    }
    assert_snapshot!(t.text());
}

#[test]
fn changes_that_do_not_fit_what_is_there() {
    let mut t = Transcript::new();
    let sent = t.made(Ada, "POST", &at("/outbox"), &to_ben());
    t.check(Ada, "PUT", &sent, to_ben());
    t.check(Ada, "PUT", &format!("{sent}?send=true"), bare());
    t.check(Ada, "PUT", &format!("{sent}?send=true"), to_ben());
    t.check(Ada, "PUT", &sent, bare());
    let draft = t.made(
        Ada,
        "POST",
        &at("/drafts"),
        &mime("Subject: to nobody\n\nx\n"),
    );
    t.check(Ada, "PUT", &format!("{draft}?send=true"), bare());
    t.check(Ada, "PUT", &draft, typed("text/plain", "x"));
    let unid = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    let into = |folder: &str| at(&format!("/folders/{folder}/messages"));
    let add = |unid: &str| json(format!(r#"{{"add":["{unid}"]}}"#));
    let (sent_unid, draft_unid) = (unid(&sent), unid(&draft));
    t.check(Ada, "PUT", &at("/inbox"), add(&draft_unid));
    t.check(Ada, "PUT", &into("drafts"), add(&sent_unid));
    t.check(Ada, "PUT", &into(NONE), add(&sent_unid));
    let many = vec![format!("\"{NONE}\""); 1001].join(",");
    t.check(
        Ada,
        "PUT",
        &at("/inbox"),
        json(format!(r#"{{"add":[{many}]}}"#)),
    );
    for body in ["", "{", r#"{"add":"x"}"#, r#"{"delete":[]}"#] {
        t.check(Ada, "PUT", &at("/inbox"), json(body));
    }
    for (method, path) in [
        ("GET", format!("{sent}?markread=maybe")),
        ("GET", format!("{sent}?attachmentlinks=maybe")),
        ("GET", format!("{sent}?format=xml")),
        ("PUT", format!("{sent}?send=maybe")),
        ("DELETE", format!("{sent}?permanently=maybe")),
        ("GET", at("/inbox?%FF=%FF")),
        ("GET", at("/inbox?count=x")),
        ("GET", at("/inbox?ps=100000")),
        ("GET", at("/inbox?start=-1")),
        ("GET", at("/inbox?page=x")),
        ("GET", at("/inbox?sortcolumn=size")),
        ("GET", at("/inbox?sortorder=up")),
    ] {
        t.check(Ada, method, &path, bare());
    }
    assert_snapshot!(t.text());
}

#[test]
fn folders_that_can_not_be_made() {
    let mut t = Transcript::new();
    let named = |name: &str| json(format!(r#"{{"name":"{name}"}}"#));
    let first = t.made(Ada, "POST", &at("/folders"), &named("Harbour"));
    t.made(Ada, "POST", &at("/folders"), &named("Quay"));
    let long = "x".repeat(129);
    let names = ["", " ", "harbour", "Inbox", "a\\nb", long.as_str()];
    for name in names {
        t.check(Ada, "POST", &at("/folders"), named(name));
    }
    t.check(Ada, "PUT", &first, named("quay"));
    for body in ["", "{", "{}", r#"{"name":7}"#] {
        t.check(Ada, "POST", &at("/folders"), json(body));
        t.check(Ada, "PUT", &first, json(body));
    }
    assert_snapshot!(t.text());
}

#[test]
fn a_mailbox_that_is_full() {
    let mut t = Transcript::with(|config| config.mail_quota_bytes = Some(1000));
    let large = |to: &str| {
        let head = format!("From: ada@localhost\nTo: {to}@localhost\n");
        mime(&format!(
            "{head}Date: Mon, 6 Jan 2020 09:00:00 +0000\n\n{}\n",
            "x".repeat(600)
        ))
    };
    // Ben's becomes full first: he still has what ada deleted.
    let sent = t.made(Ada, "POST", &at("/outbox"), &large("ben"));
    let gone = format!("{sent}?permanently=true");
    assert_eq!(t.ask(Ada, "DELETE", &gone, &bare()).status, 200);
    t.check(Ada, "POST", &at("/outbox"), large("ben"));
    let draft = t.made(Ada, "POST", &at("/drafts"), &large("ada"));
    t.check(Ada, "POST", &at("/outbox"), large("ada"));
    t.check(Ada, "POST", &at("/drafts"), large("ada"));
    t.check(
        Ada,
        "PUT",
        &draft,
        mime(&format!("Subject: x\n\n{}\n", "x".repeat(2000))),
    );
    t.check(Ada, "GET", &at("/quota"), bare());
    assert_snapshot!(t.text());
}
