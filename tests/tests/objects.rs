//! Attachments in an object store, with the real program: sent, read in parts, exported, checked. Acknowledged data
//! survives failures of the store and kills of the server; refusals have a reason.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use plimsoll_tests::objects::{KEY_ID, ObjectServer, SECRET};
use plimsoll_tests::postgres::Postgres;
use plimsoll_tests::relay::Relay;
use plimsoll_tests::server::{ADMIN_TOKEN, Client, RawAnswer, ServerProcess};
use plimsoll_tests::{program, wait_until, zip};
use serde_json::{Value, json};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);
const TUS: (&str, &str) = ("tus-resumable", "1.0.0");

fn content(seed: u32, bytes: u32) -> Vec<u8> {
    (0..bytes)
        .map(|at| (at ^ (at >> 8) ^ seed.wrapping_mul(0x9E37_79B9)).to_le_bytes()[0])
        .collect()
}

/// The program with the credentials in its environment.
fn command() -> Command {
    let mut command = Command::new(program());
    command
        .env("AWS_ACCESS_KEY_ID", KEY_ID)
        .env("AWS_SECRET_ACCESS_KEY", SECRET)
        .stdin(Stdio::null());
    command
}

/// A server with its attachments in an object store behind a relay, and a user ada.
struct World {
    folder: TempDir,
    store: ObjectServer,
    relay: Relay,
    server: ServerProcess,
    password: String,
}

impl World {
    fn start() -> Option<Self> {
        let store = ObjectServer::start()?;
        let relay = Relay::start(store.address()).expect("a port is free");
        let folder = tempfile::tempdir().expect("a folder can be made");
        let url = store.url(relay.address(), "site");
        let server = ServerProcess::start_by(folder.path(), command(), &["--content", &url]);
        let body = json!({ "users": [{ "name": "ada" }], "app_passwords": true });
        let mut admin = Client::admin(server.address()).expect("the server accepts");
        let made = admin.request("POST", "/admin/users", &body);
        let password = made.expect("the server answers").body["users"][0]["app_password"].take();
        Some(Self {
            folder,
            store,
            relay,
            server,
            password: password.as_str().expect("one is made").to_owned(),
        })
    }

    fn url(&self) -> String {
        self.store.url(self.relay.address(), "site")
    }

    fn ada(&self) -> Client {
        Client::user(self.server.address(), "ada", &self.password).expect("the server accepts")
    }

    /// Kills the server, whatever it does, and restarts it.
    fn kill(self) -> Self {
        let url = self.url();
        self.server.kill();
        Self {
            server: ServerProcess::start_by(self.folder.path(), command(), &["--content", &url]),
            ..self
        }
    }

    /// Returns ada's export.
    fn taken_out(&self) -> Vec<u8> {
        let file = self.folder.path().join("ada.zip");
        let taken = command()
            .args(["users", "export", "ada"])
            .arg(&file)
            .args(["--server", &format!("http://{}", self.server.address())])
            .env("PLIMSOLL_ADMIN_TOKEN", ADMIN_TOKEN)
            .output()
            .expect("it runs");
        assert!(taken.status.success(), "{}", said(&taken));
        std::fs::read(file).expect("it is there")
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }
}

fn document(client: &mut Client) -> String {
    let path = "/docs/ada/notes/api/data/documents";
    let made = client.request("POST", path, &json!({}));
    made.expect("an answer").location.expect("a new document")
}

fn put(client: &mut Client, path: &str, bytes: &[u8]) -> RawAnswer {
    let put = client.send("PUT", path, &[("content-type", "text/plain")], bytes);
    put.expect("an answer")
}

fn get(client: &mut Client, path: &str, headers: &[(&str, &str)]) -> RawAnswer {
    client.send("GET", path, headers, b"").expect("an answer")
}

/// Begins an upload; returns its path.
fn begin(client: &mut Client, unid: &str, name: &str, bytes: usize) -> String {
    let length = bytes.to_string();
    let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, name);
    let metadata = format!("filename {encoded}");
    let headers = [
        TUS,
        ("upload-length", &*length),
        ("upload-metadata", &*metadata),
    ];
    let path = format!("/tus/ada/notes/{unid}/Body");
    let made = client.send("POST", &path, &headers, b"");
    let made = made.expect("an answer");
    made.header("location").expect("a place").to_owned()
}

/// Sends a chunk of an upload; returns the status.
fn chunk(client: &mut Client, path: &str, (offset, part): (usize, &[u8])) -> u16 {
    let at = offset.to_string();
    let headers = [
        TUS,
        ("upload-offset", &*at),
        ("content-type", "application/offset+octet-stream"),
    ];
    let sent = client.send("PATCH", path, &headers, part);
    sent.expect("an answer").status
}

/// Sends a file in chunks; returns the attachment's path.
fn upload(client: &mut Client, document: &str, name: &str, bytes: &[u8]) -> String {
    let unid = document.rsplit('/').next().expect("a name");
    let path = begin(client, unid, name, bytes.len());
    let (mut offset, length) = (0, bytes.len() / 3 + 1);
    while offset < bytes.len() {
        let part = &bytes[offset..(offset + length).min(bytes.len())];
        assert_eq!(chunk(client, &path, (offset, part)), 204);
        offset += part.len();
    }
    format!("{document}/Body/{name}")
}

fn said(output: &Output) -> String {
    let text = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

fn serve(arguments: &[&str]) -> Output {
    let mut command = command();
    command.arg("serve").args(arguments);
    command.output().expect("it runs")
}

/// The number of content files in the data folder.
fn files_of_content(data: &Path) -> usize {
    let folders = std::fs::read_dir(data.join("content")).expect("it is there");
    let files = folders.flatten().map(|folder| {
        let files = std::fs::read_dir(folder.path()).expect("a folder");
        files.count()
    });
    files.sum()
}

#[test]
fn attachments_are_in_the_object_store_and_come_back() {
    let Some(world) = World::start() else { return };
    let mut ada = world.ada();
    let document = document(&mut ada);
    let (small, large) = (content(1, 1000), content(2, 20 << 20));
    let at = format!("{document}/Body/small.txt");
    assert_eq!(put(&mut ada, &at, &small).status, 201);
    let up = upload(&mut ada, &document, "large.bin", &large);
    assert_eq!(files_of_content(&world.folder.path().join("data")), 0);
    assert!(world.store.kept_bytes() > 20 << 20);
    assert!(get(&mut ada, &at, &[]).body == small);
    assert!(get(&mut ada, &up, &[]).body == large);
    let part = get(&mut ada, &up, &[("range", "bytes=8388600-8388700")]);
    assert_eq!(part.status, 206);
    assert!(part.body == large[8_388_600..=8_388_700]);
    let found = zip::read(&world.taken_out());
    assert!(found.values().any(|bytes| *bytes == large), "the archive");
    let world = world.kill();
    let mut ada = world.ada();
    assert!(get(&mut ada, &up, &[]).body == large);
    assert!(get(&mut ada, &at, &[]).body == small);
    let mut admin = Client::admin(world.server.address()).expect("the server accepts");
    let told = get(&mut admin, "/metrics", &[]).body;
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(
        told.contains("plimsoll_object_store_requests_total{operation=\"get\"}")
            && told.contains("plimsoll_object_store_away 0"),
        "{told}"
    );
    let log = world.server.said();
    assert!(!log.contains(SECRET), "{log}");
    let (url, data) = (world.url(), world.data());
    world.server.kill();
    let checked = serve(&["--check", "--data", &data, "--content", &url]);
    let words = said(&checked);
    assert!(
        checked.status.success() && words.contains("2 pieces of content"),
        "{words}"
    );
    // A missing object is detected.
    std::fs::remove_dir_all(world.store.bucket().join("site/content")).expect("it is there");
    let checked = serve(&["--check", "--data", &data, "--content", &url]);
    let words = said(&checked);
    assert!(
        !checked.status.success() && words.contains("is missing"),
        "{words}"
    );
}

#[test]
fn a_store_that_is_away_costs_attachments_alone_and_loses_none() {
    let Some(world) = World::start() else { return };
    let mut ada = world.ada();
    let document = document(&mut ada);
    let bytes = content(3, 100_000);
    let at = |name: &str| format!("{document}/Body/{name}");
    assert_eq!(put(&mut ada, &at("first"), &bytes).status, 201);
    world.relay.close();
    let refused = put(&mut ada, &at("second"), &content(4, 1000));
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("retry-after").is_some());
    let mut ada = world.ada();
    let refused = get(&mut ada, &at("first"), &[]);
    assert_eq!(refused.status, 503, "{refused:?}");
    let letter = json!({ "subject": "Still here", "to": ["ada"],
        "content": [{ "contentType": "text/plain", "data": "x" }] });
    let sent = ada.request("POST", "/mail/ada/api/mail/outbox", &letter);
    assert!(sent.expect("an answer").status < 300);
    let ready = ada
        .request("GET", "/readyz", &Value::Null)
        .expect("an answer");
    assert_eq!(
        (ready.status, &ready.body["attachments"]),
        (200, &json!("away"))
    );
    world.relay.heal();
    let ready = || {
        let ready = world.ada().request("GET", "/readyz", &Value::Null);
        ready.is_ok_and(|ready| ready.body["attachments"] == "ok")
    };
    wait_until(LIMIT, "the object store to be back", ready);
    assert!(get(&mut ada, &at("first"), &[]).body == bytes);
    assert_eq!(get(&mut ada, &at("second"), &[]).status, 404);
    assert_eq!(put(&mut ada, &at("second"), &bytes).status, 201);
    assert!(get(&mut ada, &at("second"), &[]).body == bytes);
}

/// A complete upload becomes an attachment when the store is back, and not before.
#[test]
fn an_upload_whose_end_the_store_missed_ends_later() {
    let Some(world) = World::start() else { return };
    let mut ada = world.ada();
    let document = document(&mut ada);
    let bytes = content(5, 300_000);
    let unid = document.rsplit('/').next().expect("a name").to_owned();
    let upload = begin(&mut ada, &unid, "late", bytes.len());
    world.relay.close();
    assert_eq!(chunk(&mut ada, &upload, (0, &bytes)), 503);
    // The received bytes are there, also if the server is killed now.
    let world = world.kill_while_away();
    world.relay.heal();
    let mut offset = None;
    wait_until(LIMIT, "the upload to end", || {
        let asked = world.ada().send("HEAD", &upload, &[TUS], b"");
        offset = asked.ok().filter(|asked| asked.status == 200);
        offset.is_some()
    });
    let offset = offset.expect("an answer");
    assert_eq!(offset.header("upload-offset"), Some("300000"));
    let mut ada = world.ada();
    assert!(get(&mut ada, &format!("{document}/Body/late"), &[]).body == bytes);
}

impl World {
    /// Kills and restarts the server; the object store must be reachable when a server starts.
    fn kill_while_away(self) -> Self {
        self.relay.heal();
        self.kill()
    }
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let Some(world) = World::start() else { return };
    let mut ada = world.ada();
    let document = document(&mut ada);
    put(&mut ada, &format!("{document}/Body/a"), b"a");
    let (url, data_folder) = (world.url(), world.data());
    let backups = world.folder.path().join("backups").display().to_string();
    let backup = data(&["backup", &backups, "--data", &data_folder]);
    let words = said(&backup);
    assert!(
        !backup.status.success() && words.contains("--content"),
        "{words}"
    );
    world.server.kill();
    let refused = |arguments: &[&str], expected: &str| {
        let refused = serve(arguments);
        let words = said(&refused);
        assert_eq!(refused.status.code(), Some(104), "{words}");
        assert!(
            words.contains(expected) && !words.contains(SECRET),
            "{words}"
        );
    };
    let listen = ["--listen", "127.0.0.1:0"];
    let with = |more: &[&'static str], content: &str| {
        let mut all: Vec<String> = listen
            .iter()
            .chain(more)
            .map(|it| (*it).to_owned())
            .collect();
        all.extend(["--content".to_owned(), content.to_owned()]);
        all
    };
    let told = |all: Vec<String>, expected: &str| {
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        refused(&all, expected);
    };
    refused(
        &["--listen", "127.0.0.1:0", "--data", &data_folder],
        "--content",
    );
    refused(&["--check", "--data", &data_folder], "--content");
    told(with(&["--engine", "memory"], &url), "in memory");
    told(with(&["--keep-changes", "7d"], &url), "keep-changes");
    told(with(&[], "s3://key:secret@bucket"), "AWS_ACCESS_KEY_ID");
    let other = world.folder.path().join("other").display().to_string();
    refused(
        &[
            "--listen",
            "127.0.0.1:0",
            "--data",
            &other,
            "--content",
            &url,
        ],
        "attachments of other records",
    );
    let printed = serve(&["--print-config", "--content", &url]);
    let words = said(&printed);
    assert!(
        words.contains("content = \"s3://") && !words.contains(SECRET),
        "{words}"
    );
}

/// `plimsoll data` with arguments.
fn data(arguments: &[&str]) -> Output {
    let mut command = command();
    command.arg("data").args(arguments);
    command.output().expect("it runs")
}

/// A backup has the attachments in files, and can be restored without an object store, or with another prefix.
#[test]
fn a_backup_stands_by_itself() {
    let Some(world) = World::start() else { return };
    let mut ada = world.ada();
    let document = document(&mut ada);
    let (small, large) = (content(7, 1000), content(8, 9 << 20));
    let at = |name: &str| format!("{document}/Body/{name}");
    put(&mut ada, &at("small"), &small);
    put(&mut ada, &at("large"), &large);
    let folder = |name: &str| world.folder.path().join(name).display().to_string();
    let (backups, restored) = (folder("backups"), folder("again/data"));
    let (url, live) = (world.url(), world.data());
    for _ in 0..2 {
        let backup = data(&["backup", &backups, "--data", &live, "--content", &url]);
        let words = said(&backup);
        assert!(backup.status.success() && words.contains("2 "), "{words}");
    }
    let back = data(&["restore", &backups, "--to", &restored]);
    assert!(back.status.success(), "{}", said(&back));
    let again = world.folder.path().join("again");
    let check = |client: &mut Client| {
        assert!(get(client, &at("small"), &[]).body == small);
        assert!(get(client, &at("large"), &[]).body == large);
    };
    let user = |server: &ServerProcess| {
        let user = Client::user(server.address(), "ada", &world.password);
        user.expect("the server accepts")
    };
    let alone = ServerProcess::start_by(&again, command(), &[]);
    check(&mut user(&alone));
    alone.kill();
    let other = world.store.url(world.store.address(), "other");
    let moved = ServerProcess::start_by(&again, command(), &["--content", &other]);
    wait_until(LIMIT, "the attachments to move", || {
        files_of_content(Path::new(&restored)) == 0
    });
    check(&mut user(&moved));
}

/// Two servers over one database: each returns the other's attachments, and content stored by both is one object.
#[test]
fn servers_over_one_database_share_the_objects() {
    let (Some(store), Some(database)) = (ObjectServer::start(), Postgres::start()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder can be made");
    let url = store.url(store.address(), "site");
    let start = |name: &str| {
        let beside = folder.path().join(name);
        std::fs::create_dir_all(&beside).expect("a folder can be made");
        let arguments = ["--store", &database.address(), "--content", &url];
        let data = folder.path().join("data");
        ServerProcess::start_on(&data, &beside, command(), &arguments)
    };
    let (one, other) = (start("one"), start("other"));
    let body = json!({ "users": [{ "name": "ada" }], "app_passwords": true });
    let mut admin = Client::admin(one.address()).expect("the server accepts");
    let made = admin
        .request("POST", "/admin/users", &body)
        .expect("an answer");
    let password = made.body["users"][0]["app_password"].as_str().expect("one");
    let client = |server: &ServerProcess| {
        let client = Client::user(server.address(), "ada", password);
        client.expect("the server accepts")
    };
    let (mut at_one, mut at_other) = (client(&one), client(&other));
    let document = document(&mut at_one);
    let bytes = content(6, 9 << 20);
    let path = format!("{document}/Body/first");
    assert_eq!(put(&mut at_one, &path, &bytes).status, 201);
    assert!(get(&mut at_other, &path, &[]).body == bytes);
    let before = store.kept_bytes();
    let second = format!("{document}/Body/second");
    assert_eq!(put(&mut at_other, &second, &bytes).status, 201);
    assert_eq!(store.kept_bytes(), before);
    // Uploads under way are in the store, too.
    let late = content(9, 9 << 20);
    let unid = document.rsplit('/').next().expect("a name");
    let (path, half) = (begin(&mut at_one, unid, "late", late.len()), late.len() / 2);
    assert_eq!(chunk(&mut at_one, &path, (0, &late[..half])), 204);
    one.kill();
    assert_eq!(chunk(&mut at_other, &path, (half, &late[half..])), 204);
    let late_at = format!("{document}/Body/late");
    assert!(get(&mut at_other, &late_at, &[]).body == late);
    assert_eq!(files_of_content(&folder.path().join("data")), 0);
    assert!(get(&mut at_other, &second, &[]).body == bytes);
}
