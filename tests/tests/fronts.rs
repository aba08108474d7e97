//! Two servers over one database and one folder, with a balancer before them: everything that one of them acknowledges
//! is there at the other, and everything that one revokes is invalid there.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use nix::sys::signal::Signal;
use plimsoll_tests::balancer::Balancer;
use plimsoll_tests::mixed::{Ledger, World};
use plimsoll_tests::objects::{KEY_ID, ObjectServer, SECRET};
use plimsoll_tests::postgres::Postgres;
use plimsoll_tests::server::{Client, RawAnswer, ServerProcess, basic};
use plimsoll_tests::{program, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);
const PASSWORD: &str = "correct horse battery";
const TUS: (&str, &str) = ("tus-resumable", "1.0.0");

/// Two servers, and their shared resources.
struct Two {
    one: ServerProcess,
    other: ServerProcess,
    balancer: Balancer,
    database: Postgres,
    folder: TempDir,
}

impl Two {
    /// Starts them with a user ada; `None` without PostgreSQL.
    fn start() -> Option<Self> {
        let database = Postgres::start()?;
        let folder = tempfile::tempdir().expect("a folder can be made");
        let start = |name: &str| start(folder.path(), name, "data", &database.address());
        let (one, other) = (start("one"), start("other"));
        let balancer = Balancer::before(&[one.address(), other.address()]);
        let mut admin = Client::admin(balancer.address()).expect("the balancer accepts");
        let body = json!({ "password": PASSWORD });
        let made = admin.request("PUT", "/admin/users/ada", &body);
        assert_eq!(made.expect("a server answers").status, 201);
        Some(Self {
            one,
            other,
            balancer,
            database,
            folder,
        })
    }
}

fn start(folder: &Path, name: &str, data: &str, store: &str) -> ServerProcess {
    let beside = folder.join(name);
    std::fs::create_dir_all(&beside).expect("a folder can be made");
    let command = Command::new(program());
    ServerProcess::start_on(&folder.join(data), &beside, command, &["--store", store])
}

/// Signs in; returns the cookie.
fn sign_in(at: SocketAddr, password: &str) -> Option<String> {
    let mut client = Client::over(TcpStream::connect(at).ok()?, String::new()).ok()?;
    let body = json!({ "username": "ada", "password": password }).to_string();
    let json = ("content-type", "application/json");
    let answer = client.send("POST", "/login", &[json], body.as_bytes());
    let answer = answer.expect("the server answers");
    let cookie = answer.header("set-cookie")?.split(';').next()?.to_owned();
    (answer.status == 200).then_some(cookie)
}

/// Sends a request of a session.
fn ask(at: SocketAddr, cookie: &str, method: &str, path: &str) -> RawAnswer {
    let stream = TcpStream::connect(at).expect("the server accepts");
    let mut client = Client::over(stream, String::new()).expect("it takes settings");
    let answer = client.send(method, path, &[("cookie", cookie)], b"");
    answer.expect("the server answers")
}

const INBOX: &str = "/box/inbox";
/// A redirect to the sign-in page.
const SENT_AWAY: u16 = 303;

fn status(at: SocketAddr, cookie: &str) -> u16 {
    ask(at, cookie, "GET", INBOX).status
}

/// Waits until a session is invalid; returns how long that took.
fn wait_for_death(at: SocketAddr, cookie: &str, what: &str) {
    #[expect(
        clippy::disallowed_methods,
        reason = "what it took is told, not judged"
    )]
    let begun = Instant::now();
    wait_until(LIMIT, what, || status(at, cookie) == SENT_AWAY);
    println!("{what}: {:?}", begun.elapsed());
}

#[test]
fn a_session_holds_at_both_and_ends_at_both() {
    let Some(two) = Two::start() else { return };
    let (one, other) = (two.one.address(), two.other.address());
    let cookie = sign_in(one, PASSWORD).expect("the password is right");
    let elsewhere = sign_in(other, PASSWORD).expect("the password is right");
    for at in [one, other, two.balancer.address()] {
        assert_eq!((status(at, &cookie), status(at, &elsewhere)), (200, 200));
    }
    assert_eq!(ask(one, &cookie, "POST", "/logout").status, 204);
    assert_eq!(status(one, &cookie), SENT_AWAY);
    wait_for_death(other, &cookie, "the session's end at the other");
    assert_eq!(status(other, &elsewhere), 200);
    // A new password takes effect at once, and sessions of the old one end.
    let mut admin = Client::admin(one).unwrap();
    let body = json!({ "password": "another horse" });
    let set = admin.request("PUT", "/admin/users/ada", &body).unwrap();
    assert_eq!(set.status, 200);
    assert!(sign_in(other, "another horse").is_some());
    assert!(sign_in(other, PASSWORD).is_none());
    wait_for_death(other, &elsewhere, "the end by a new password");
    // A restart of all servers ends no session.
    let last = sign_in(one, "another horse").unwrap();
    let store = two.database.address();
    drop((two.one, two.other));
    let again = start(two.folder.path(), "again", "data", &store);
    assert_eq!(status(again.address(), &last), 200);
    assert_eq!(status(again.address(), &elsewhere), SENT_AWAY);
}

/// Sends the form for a mail to ada with this proof; returns the status.
fn send_form(at: SocketAddr, cookie: &str, proof: &str) -> u16 {
    let fields = [
        ("proof", proof),
        ("to", "ada"),
        ("subject", "Form"),
        ("do", "send"),
    ];
    let parts = fields.map(|(name, value)| {
        format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    });
    let form = parts.concat() + "--b--\r\n";
    let headers = [
        ("cookie", cookie),
        ("content-type", "multipart/form-data; boundary=b"),
        ("sec-fetch-site", "same-origin"),
    ];
    let stream = TcpStream::connect(at).expect("the server accepts");
    let mut client = Client::over(stream, String::new()).expect("it takes settings");
    let answer = client.send("POST", "/write", &headers, form.as_bytes());
    answer.expect("the server answers").status
}

/// As behind a balancer that gives each request to another server.
#[test]
fn a_form_that_one_has_shown_the_other_takes() {
    let Some(two) = Two::start() else { return };
    let (one, other) = (two.one.address(), two.other.address());
    let cookie = sign_in(one, PASSWORD).expect("the password is right");
    for (shown, taken) in [(one, other), (other, one)] {
        let page = String::from_utf8(ask(shown, &cookie, "GET", "/write").body).unwrap();
        let proof = page.split("name=\"proof\" value=\"").nth(1);
        let proof = proof.and_then(|rest| rest.split('"').next());
        let proof = proof.expect("the form has a proof");
        assert_eq!(send_form(taken, &cookie, proof), 303);
        let forged: String = proof.chars().rev().collect();
        assert_eq!(send_form(taken, &cookie, &forged), 403);
    }
    let found = ask(other, &cookie, "GET", INBOX);
    let found = String::from_utf8(found.body).unwrap();
    assert_eq!(found.matches(">Form<").count(), 2, "{found}");
}

/// It was stopped while the session ended, like a machine that is cut off or paused.
#[test]
fn who_slept_trusts_nothing_that_it_remembers() {
    let Some(two) = Two::start() else { return };
    let (one, other) = (two.one.address(), two.other.address());
    let cookie = sign_in(one, PASSWORD).expect("the password is right");
    assert_eq!(status(other, &cookie), 200);
    two.other.signal(Signal::SIGSTOP);
    assert_eq!(ask(one, &cookie, "POST", "/logout").status, 204);
    let mut asked = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(other).unwrap();
        let request =
            format!("GET {INBOX} HTTP/1.1\r\nhost: localhost\r\ncookie: {cookie}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        asked.push(stream);
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "it sleeps for longer than it may trust"
    )]
    let slept = Instant::now();
    wait_until(LIMIT, "five seconds", || {
        slept.elapsed() > Duration::from_secs(5)
    });
    two.other.signal(Signal::SIGCONT);
    for mut stream in asked {
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *b"HTTP/1.1 303");
    }
}

#[test]
fn mail_that_one_delivers_is_seen_at_the_other() {
    let Some(two) = Two::start() else { return };
    let (one, other) = (two.one.address(), two.other.address());
    for round in 0..10 {
        let name = format!("user{round}");
        let mut admin = Client::admin(one).unwrap();
        let body = json!({ "password": PASSWORD });
        let made = admin.request("PUT", &format!("/admin/users/{name}"), &body);
        assert_eq!(made.unwrap().status, 201);
        // The other server has not seen this recipient.
        let mut ada = Client::user(other, "ada", PASSWORD).unwrap();
        let letter = json!({
            "subject": "Hello", "to": [name],
            "content": [{ "contentType": "text/plain", "data": "Hello." }],
        });
        let sent = ada.request("POST", "/mail/ada/api/mail/outbox", &letter);
        let sent = sent.unwrap();
        assert_eq!(sent.status, 201, "{sent:?}");
        let mut reader = Client::user(one, &name, PASSWORD).unwrap();
        let inbox = format!("/mail/{name}/api/mail/folders/inbox/messages");
        let found = reader.request("GET", &inbox, &Value::Null).unwrap();
        assert_eq!(found.body.as_array().map(Vec::len), Some(1), "{found:?}");
    }
}

fn user(at: SocketAddr) -> Client {
    Client::user(at, "ada", PASSWORD).expect("the server accepts")
}

/// Creates a document and an upload of this many bytes for it; returns the paths of attachment and upload.
fn begin_upload(at: SocketAddr, bytes: usize) -> (String, String) {
    let mut client = user(at);
    let documents = "/docs/ada/files/api/data/documents";
    let document = client.request("POST", documents, &json!({})).unwrap();
    assert_eq!(document.status, 201, "{document:?}");
    let document = document.location.unwrap();
    let unid = document.rsplit('/').next().unwrap();
    let metadata = format!("filename {}", BASE64_STANDARD.encode("file"));
    let headers = [
        TUS,
        ("upload-length", &*bytes.to_string()),
        ("upload-metadata", &metadata),
    ];
    let path = format!("/tus/ada/files/{unid}/Body");
    let begun = client.send("POST", &path, &headers, b"").unwrap();
    assert_eq!(begun.status, 201, "{begun:?}");
    let upload = begun.header("location").unwrap().to_owned();
    (format!("{document}/Body/file"), upload)
}

fn offset(at: SocketAddr, upload: &str) -> usize {
    let answer = user(at).send("HEAD", upload, &[TUS], b"").unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.header("upload-offset").unwrap().parse().unwrap()
}

fn send_chunk(at: SocketAddr, upload: &str, from: usize, chunk: &[u8]) -> u16 {
    let headers = [
        TUS,
        ("content-type", "application/offset+octet-stream"),
        ("upload-offset", &*from.to_string()),
    ];
    let sent = user(at).send("PATCH", upload, &headers, chunk).unwrap();
    sent.status
}

/// The head of a request with a chunk of this many bytes.
fn chunk_head(upload: &str, (from, bytes): (usize, usize)) -> String {
    let authorization = basic("ada", PASSWORD);
    format!(
        "PATCH {upload} HTTP/1.1\r\nhost: localhost\r\nauthorization: {authorization}\r\n\
         tus-resumable: 1.0.0\r\ncontent-type: application/offset+octet-stream\r\n\
         upload-offset: {from}\r\ncontent-length: {bytes}\r\n\r\n"
    )
}

#[test]
fn an_upload_that_one_begins_the_other_continues() {
    let Some(two) = Two::start() else { return };
    let both = [two.one.address(), two.other.address()];
    let content: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    let (attachment, upload) = begin_upload(both[0], content.len());
    let mut from = 0;
    // In turn, so that each finds the other's changes since its own last request.
    for (turn, chunk) in content.chunks(40_000).enumerate() {
        let at = both[turn % 2];
        assert_eq!(offset(at, &upload), from);
        assert_eq!(send_chunk(at, &upload, from, chunk), 204);
        from += chunk.len();
        assert_eq!(send_chunk(both[(turn + 1) % 2], &upload, 1, chunk), 409);
    }
    for at in both {
        assert_eq!(offset(at, &upload), content.len());
        let there = user(at).send("GET", &attachment, &[], b"").unwrap();
        assert!(there.status == 200 && there.body == content);
    }
}

/// Its client is cut off in the middle of a chunk, which the server may not notice.
#[test]
fn an_upload_whose_client_comes_back_by_another_way_goes_on() {
    let Some(two) = Two::start() else { return };
    let content = vec![7; 200_000];
    let (attachment, upload) = begin_upload(two.one.address(), content.len());
    let mut stuck = TcpStream::connect(two.one.address()).unwrap();
    let head = chunk_head(&upload, (0, content.len()));
    stuck.write_all(head.as_bytes()).unwrap();
    stuck.write_all(&content[..100_000]).unwrap();
    let from = offset(two.other.address(), &upload);
    assert!(from <= 100_000, "{from}");
    let sent = send_chunk(two.other.address(), &upload, from, &content[from..]);
    assert_eq!(sent, 204);
    for at in [two.one.address(), two.other.address()] {
        let there = user(at).send("GET", &attachment, &[], b"").unwrap();
        assert!(there.status == 200 && there.body == content);
    }
}

#[test]
fn while_the_database_is_away_nobody_is_told_that_anything_was_done() {
    let Some(two) = Two::start() else { return };
    let both = [two.one.address(), two.other.address()];
    let cookie = sign_in(both[0], PASSWORD).expect("the password is right");
    for at in both {
        assert_eq!(status(at, &cookie), 200);
        // The password is cached from here on, as long as the store can confirm it.
        assert_eq!(
            user(at)
                .request("GET", "/mail/ada/api/mail/folders/inbox", &Value::Null)
                .unwrap()
                .status,
            200
        );
    }
    two.database.kill();
    for at in both {
        let mut admin = Client::admin(at).unwrap();
        let ready = admin.request("GET", "/readyz", &Value::Null).unwrap();
        assert_eq!(ready.status, 503, "{ready:?}");
        let letter = json!({ "subject": "Hello", "to": ["ada"] }).to_string();
        let json = ("content-type", "application/json");
        let path = "/mail/ada/api/mail/outbox";
        let sent = user(at).send("POST", path, &[json], letter.as_bytes());
        let sent = sent.unwrap();
        assert_eq!(sent.status, 503, "{sent:?}");
        let after = sent
            .header("retry-after")
            .and_then(|text| text.parse().ok());
        assert!(after.is_some_and(|seconds: u32| seconds <= 5), "{sent:?}");
        // Its cache of sessions isn't trusted for long.
        wait_until(LIMIT, "distrust", || status(at, &cookie) == 503);
    }
    two.database.restart();
    for at in both {
        wait_until(LIMIT, "the server to be ready again", || {
            let ready = Client::admin(at)
                .and_then(|mut admin| admin.request("GET", "/readyz", &Value::Null));
            ready.is_ok_and(|ready| ready.status == 200)
        });
        wait_until(LIMIT, "the session to hold", || status(at, &cookie) == 200);
        let inbox = "/mail/ada/api/mail/folders/inbox/messages";
        let found = user(at).request("GET", inbox, &Value::Null).unwrap();
        assert_eq!(found.body, json!([]));
    }
}

#[test]
fn what_one_has_acknowledged_the_other_has_when_it_is_killed() {
    let Some(database) = Postgres::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (data, store) = (folder.path().join("data"), database.address());
    let beside = ["one", "other"].map(|name| folder.path().join(name));
    for folder in &beside {
        std::fs::create_dir(folder).unwrap();
    }
    let other = World::start_with(&data, &beside[1], &["--store", &store]);
    let ledger = Ledger::default();
    for kill in 0..3_u64 {
        let one = other.again(&data, &beside[0]);
        let (dies, ends) = (AtomicBool::new(false), AtomicBool::new(false));
        let before = ledger.acknowledged();
        one.load(&ledger, (&format!("one{kill}"), kill), &dies, || {
            other.load(&ledger, (&format!("other{kill}"), !kill), &ends, || {
                let some = || ledger.acknowledged() > before + 20;
                wait_until(LIMIT, "writes at both", some);
                dies.store(true, Relaxed);
                one.server().signal(Signal::SIGKILL);
                let after = ledger.acknowledged();
                wait_until(LIMIT, "a write after that", || {
                    ledger.acknowledged() > after + 5
                });
                ends.store(true, Relaxed);
            });
        });
        let mut things = ledger.now();
        if let Err(wrong) = other.verify(&mut things) {
            panic!("after kill {kill}: {wrong}\n{}", other.server().said());
        }
        ledger.settle(things);
    }
}

#[test]
fn a_folder_that_is_not_the_databases_is_refused() {
    let Some(two) = Two::start() else { return };
    let elsewhere = two.folder.path().join("elsewhere").display().to_string();
    let store = two.database.address();
    let refused = Command::new(program())
        .args(["serve", "--listen", "127.0.0.1:0", "--data", &elsewhere])
        .args(["--store", &store])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(104), "{refused:?}");
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(words.contains("attachments of this database"), "{words}");
    // While servers use the database, copies and checks of it are refused.
    let copied = Command::new(program())
        .args(["store", "copy", &store, &elsewhere])
        .output()
        .unwrap();
    assert_eq!(copied.status.code(), Some(104), "{copied:?}");
}

/// Two servers with a data folder each, over one database and one object store.
struct Apart {
    folder: TempDir,
    database: Postgres,
    objects: ObjectServer,
    servers: [Option<ServerProcess>; 2],
}

impl Apart {
    /// Starts them with a user ada; `None` without PostgreSQL or an object store.
    fn start() -> Option<Self> {
        let mut apart = Self {
            folder: tempfile::tempdir().expect("a folder can be made"),
            database: Postgres::start()?,
            objects: ObjectServer::start()?,
            servers: [None, None],
        };
        for which in [0, 1] {
            apart.begin(which);
        }
        let mut admin = Client::admin(apart.address(0)).expect("the server accepts");
        let body = json!({ "password": PASSWORD });
        let made = admin.request("PUT", "/admin/users/ada", &body);
        assert_eq!(made.expect("a server answers").status, 201);
        Some(apart)
    }

    fn arguments(&self) -> Vec<String> {
        let url = self.objects.url(self.objects.address(), "site");
        let store = self.database.address();
        let all = ["--store", &*store, "--content", &*url];
        all.map(str::to_owned).to_vec()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(program());
        command
            .env("AWS_ACCESS_KEY_ID", KEY_ID)
            .env("AWS_SECRET_ACCESS_KEY", SECRET);
        command
    }

    fn data(&self, which: usize) -> PathBuf {
        self.folder.path().join(format!("data-{which}"))
    }

    /// Starts one of them, on another port each time.
    fn begin(&mut self, which: usize) {
        let beside = self.folder.path().join(format!("beside-{which}"));
        std::fs::create_dir_all(&beside).expect("a folder can be made");
        let arguments = self.arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let started =
            ServerProcess::start_on(&self.data(which), &beside, self.command(), &arguments);
        self.servers[which] = Some(started);
    }

    fn kill(&mut self, which: usize) {
        let server = self.servers[which].take();
        server.expect("it runs").kill();
    }

    fn address(&self, which: usize) -> SocketAddr {
        self.servers[which].as_ref().expect("it runs").address()
    }
}

#[test]
fn an_upload_goes_on_at_whichever_server_is_asked() {
    let Some(mut apart) = Apart::start() else {
        return;
    };
    let content: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
    let (attachment, upload) = begin_upload(apart.address(0), content.len());
    let mut from = 0;
    for (turn, chunk) in content.chunks(40_000).enumerate() {
        if turn == 3 {
            // Its start removes nothing of it.
            apart.kill(1);
            apart.begin(1);
        }
        let at = apart.address(1 - turn % 2);
        assert_eq!(offset(at, &upload), from);
        assert_eq!(send_chunk(at, &upload, from + 1, chunk), 409);
        assert_eq!(send_chunk(at, &upload, from, chunk), 204);
        from += chunk.len();
    }
    for which in [0, 1] {
        let at = apart.address(which);
        assert_eq!(offset(at, &upload), content.len());
        let there = user(at).send("GET", &attachment, &[], b"").unwrap();
        assert!(there.status == 200 && there.body == content);
        let folder = apart.data(which).join("uploads");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    }
    // An upload that is cancelled at the other server is gone.
    let (_, upload) = begin_upload(apart.address(1), 10);
    let gone = user(apart.address(0))
        .send("DELETE", &upload, &[TUS], b"")
        .unwrap();
    assert_eq!(gone.status, 204, "{gone:?}");
    let asked = user(apart.address(1))
        .send("HEAD", &upload, &[TUS], b"")
        .unwrap();
    assert_eq!(asked.status, 404);
    let stranger = Client::user(apart.address(0), "ada", "wrong").unwrap();
    let refused = { stranger }.send("HEAD", &upload, &[TUS], b"").unwrap();
    assert_eq!(refused.status, 401);
}

#[test]
fn an_upload_outlives_the_server_at_which_it_began() {
    let Some(mut apart) = Apart::start() else {
        return;
    };
    let content: Vec<u8> = (0..20_000_000_u32).map(|at| (at % 241) as u8).collect();
    let (attachment, upload) = begin_upload(apart.address(0), content.len());
    assert_eq!(
        send_chunk(apart.address(0), &upload, 0, &content[..60_000]),
        204
    );
    // It is killed in the middle of a chunk, of which it has made some durable.
    let mut stuck = TcpStream::connect(apart.address(0)).unwrap();
    let head = chunk_head(&upload, (60_000, content.len() - 60_000));
    stuck.write_all(head.as_bytes()).unwrap();
    stuck.write_all(&content[60_000..15_000_000]).unwrap();
    wait_until(LIMIT, "some of the chunk to be durable", || {
        user(apart.address(1))
            .send("HEAD", &upload, &[TUS], b"")
            .is_ok_and(|asked| asked.header("upload-offset") != Some("60000"))
    });
    apart.kill(0);
    let other = apart.address(1);
    let from = offset(other, &upload);
    assert!(from > 60_000 && from <= 15_000_000, "{from}");
    assert_eq!(send_chunk(other, &upload, from, &content[from..]), 204);
    let there = user(other).send("GET", &attachment, &[], b"");
    assert!(there.unwrap().body == content);
    // Restarted with an empty folder.
    std::fs::remove_dir_all(apart.data(0)).unwrap();
    apart.begin(0);
    assert_eq!(offset(apart.address(0), &upload), content.len());
    let there = user(apart.address(0)).send("GET", &attachment, &[], b"");
    assert!(there.unwrap().body == content);
}

/// As clients do that send the parts of a file at once, over whatever connections they get.
#[test]
fn parts_of_a_file_are_joined_whichever_servers_were_asked() {
    let Some(apart) = Apart::start() else { return };
    let documents = "/docs/ada/files/api/data/documents";
    for first in [0, 1] {
        let made = user(apart.address(0)).request("POST", documents, &json!({}));
        let document = made.unwrap().location.unwrap();
        let unid = document.rsplit('/').next().unwrap().to_owned();
        let create = |which: usize, headers: &[(&str, &str)], body: &[u8]| {
            let path = format!("/tus/ada/files/{unid}/Body");
            let headers = [&[TUS], headers].concat();
            let made = user(apart.address(which)).send("POST", &path, &headers, body);
            let made = made.unwrap();
            assert_eq!(made.status, 201, "{made:?}");
            made.header("location").unwrap().to_owned()
        };
        let parts = [first, 1 - first, first].map(|which| {
            let headers = [
                ("upload-length", "1000"),
                ("upload-concat", "partial"),
                ("content-type", "application/offset+octet-stream"),
            ];
            create(which, &headers, &[b'a' + which as u8; 1000])
        });
        let joined = format!("final;{}", parts.join(" "));
        let name = format!("filename {}", BASE64_STANDARD.encode("whole"));
        let headers = [("upload-concat", &*joined), ("upload-metadata", &*name)];
        create(1 - first, &headers, b"");
        let path = format!("{document}/Body/whole");
        let there = user(apart.address(first)).send("GET", &path, &[], b"");
        let expected = [first, 1 - first, first].map(|which| [b'a' + which as u8; 1000]);
        assert!(there.unwrap().body == expected.concat());
    }
}

#[test]
fn servers_over_an_object_store_need_no_folder_in_common() {
    let Some(apart) = Apart::start() else { return };
    let third = apart.folder.path().join("third").display().to_string();
    let serve = |more: &[&str]| {
        let mut command = apart.command();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data", &third]);
        let ended = command.args(more).output().unwrap();
        assert_eq!(ended.status.code(), Some(104), "{ended:?}");
        String::from_utf8_lossy(&ended.stderr).into_owned()
    };
    let arguments = apart.arguments();
    let both: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let words = serve(&both[..2]);
    assert!(words.contains("in an object store"), "{words}");
    let words = serve(&[&both[..], &["--reached-at", "127.0.0.1"]].concat());
    assert!(words.contains("Leave this setting out"), "{words}");
}
