//! Uploads by tus with a deferred length, and uploads concatenated from parts.

use groupware_server::{Config, Server};

use crate::support::*;
use crate::tus::{CHUNK, METADATA, User, VERSION, content, on_disk};

const DEFERRED: (&str, &str) = ("upload-defer-length", "1");
const PART: (&str, &str) = ("upload-concat", "partial");

impl User {
    fn begin(&self, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut all = vec![VERSION, METADATA];
        all.extend_from_slice(headers);
        self.send("POST", &self.creation(), &all, body)
    }

    fn deferred(&self) -> String {
        let reply = self.begin(&[DEFERRED], b"");
        assert_eq!(reply.status, 201, "{reply:?}");
        assert!(reply.header("upload-expires").is_some());
        reply.header("location").unwrap().to_owned()
    }

    /// A complete part.
    fn part(&self, bytes: &[u8]) -> String {
        let length = bytes.len().to_string();
        let headers = [PART, ("upload-length", &*length), CHUNK];
        let reply = self.begin(&headers, bytes);
        assert_eq!(reply.status, 201, "{reply:?}");
        assert_eq!(reply.header("upload-offset"), Some(&*length));
        reply.header("location").unwrap().to_owned()
    }

    fn join(&self, parts: &[&String]) -> Reply {
        let parts: Vec<&str> = parts.iter().map(|part| part.as_str()).collect();
        let concat = format!("final;{}", parts.join(" "));
        self.begin(&[("upload-concat", &concat)], b"")
    }

    fn head(&self, path: &str) -> Reply {
        self.send("HEAD", path, &[VERSION], b"")
    }
}

fn with_quota(bytes: u64) -> Config {
    let mut config = config();
    config.limits.quota_bytes = bytes;
    config
}

#[test]
fn a_joined_file_says_no_length_of_its_own() {
    let server = start();
    let ada = User::new(&server);
    let part = ada.part(b"part");
    let concat = format!("final;{part}");
    for length in [("upload-length", "4"), ("upload-defer-length", "1")] {
        let refused = ada.begin(&[("upload-concat", &concat), length], b"");
        assert_eq!(refused.status, 400, "{refused:?}");
    }
    assert_eq!(ada.join(&[&part]).status, 201);
}

#[test]
fn a_length_can_be_told_with_the_last_chunk() {
    let server = start();
    let ada = User::new(&server);
    let content = content(3_000_000);
    for is_empty in [false, true] {
        let path = ada.deferred();
        let (first, last) = content.split_at(if is_empty { content.len() } else { 2_000_001 });
        assert_eq!(ada.patch(&path, 0, &[], first).status, 204);
        let head = ada.head(&path);
        assert_eq!(head.header("upload-defer-length"), Some("1"));
        assert!(head.header("upload-length").is_none());
        assert!(head.header("upload-expires").is_some());
        let length = content.len().to_string();
        let told = [("upload-length", &*length)];
        let reply = ada.patch(&path, first.len(), &told, last);
        assert_eq!(reply.status, 204, "{reply:?}");
        assert_eq!(reply.header("upload-offset"), Some(&*length));
        assert!(ada.attached() == content);
        let head = ada.head(&path);
        assert!(head.header("upload-defer-length").is_none());
        assert_eq!(head.header("upload-length"), Some(&*length));
    }
    // All of it at once, or nothing at all.
    for body in [&b"abc"[..], b""] {
        let path = ada.deferred();
        let length = body.len().to_string();
        let told = [("upload-length", &*length)];
        assert_eq!(ada.patch(&path, 0, &told, body).status, 204);
        assert_eq!(ada.attached(), body);
    }
}

#[test]
fn a_length_is_told_once_and_covers_what_is_there() {
    let server = start();
    let ada = User::new(&server);
    let path = ada.deferred();
    assert_eq!(ada.patch(&path, 0, &[], b"abcdef").status, 204);
    for (length, status) in [
        ("5", 400),
        ("x", 400),
        ("4294967296", 507),
        ("4294967297", 413),
    ] {
        let told = [("upload-length", length)];
        assert_error(&ada.patch(&path, 6, &told, b""), status);
    }
    let told = [("upload-length", "9")];
    assert_eq!(ada.patch(&path, 6, &told, b"gh").status, 204);
    assert_error(&ada.patch(&path, 8, &[("upload-length", "10")], b"ij"), 400);
    assert_error(&ada.patch(&path, 8, &[], b"ij"), 413);
    assert_eq!(ada.patch(&path, 8, &told, b"i").status, 204);
    assert_eq!(ada.attached(), b"abcdefghi");
    // With the creation, too.
    let reply = ada.begin(&[DEFERRED, CHUNK], b"abc");
    assert_eq!(
        (reply.status, reply.header("upload-offset")),
        (201, Some("3"))
    );
    let path = reply.header("location").unwrap();
    assert_eq!(
        ada.patch(path, 3, &[("upload-length", "4")], b"d").status,
        204
    );
    assert_eq!(ada.attached(), b"abcd");
}

#[test]
fn what_is_set_aside_grows_with_what_comes() {
    let server = Server::start(with_quota(40 << 20)).unwrap();
    let ada = User::new(&server);
    let (first, second) = (ada.deferred(), ada.deferred());
    assert_error(&ada.begin(&[DEFERRED], b""), 507);
    // More than the other upload's reservation leaves.
    let chunk = vec![7; 30 << 20];
    assert_error(&ada.patch(&first, 0, &[], &chunk), 507);
    assert_eq!(ada.send("DELETE", &second, &[VERSION], b"").status, 204);
    assert_eq!(ada.patch(&first, 0, &[], &chunk).status, 204);
    assert_error(&ada.patch(&first, 30 << 20, &[], &chunk), 507);
    // The unused reservation is released.
    let told = [("upload-length", "31457280")];
    assert_eq!(ada.patch(&first, 30 << 20, &told, b"").status, 204);
    assert_eq!(ada.attachments(), 1);
    assert_eq!(ada.create("9000000", &[], b"").status, 201);
    assert_error(&ada.create("2000000", &[], b""), 507);
}

#[test]
fn a_length_that_is_told_late_outlives_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = || on_disk(folder.path());
    let server = Server::start(on_disk()).unwrap();
    let mut ada = User::new(&server);
    let content = content(200_000);
    let (early, late) = (ada.deferred(), ada.deferred());
    for path in [&early, &late] {
        assert_eq!(ada.patch(path, 0, &[], &content[..50_000]).status, 204);
    }
    let told = [("upload-length", "200000")];
    let more = &content[50_000..100_000];
    assert_eq!(ada.patch(&early, 50_000, &told, more).status, 204);
    server.shutdown();
    let server = Server::start(on_disk()).unwrap();
    ada.address = server.address();
    assert_eq!((ada.offset(&early), ada.offset(&late)), (100_000, 50_000));
    assert_eq!(
        ada.patch(&early, 100_000, &[], &content[100_000..]).status,
        204
    );
    assert!(ada.attached() == content);
    let rest = ada.patch(&late, 50_000, &told, &content[50_000..]);
    assert_eq!(rest.status, 204, "{rest:?}");
    assert!(ada.attached() == content);
    server.shutdown();
    let checked = groupware_server::check(folder.path()).unwrap();
    assert!(checked.wrong.is_empty(), "{:?}", checked.wrong);
    assert_eq!((checked.contents, checked.bytes), (1, 200_000));
}

#[test]
fn parts_are_joined_in_their_order() {
    let server = start();
    let ada = User::new(&server);
    let content = content(700_000);
    let (first, second) = content.split_at(300_000);
    let parts = [ada.part(second), ada.part(first)];
    let head = ada.head(&parts[0]);
    assert_eq!(head.header("upload-concat"), Some("partial"));
    assert_eq!((ada.offset(&parts[0]), ada.attachments()), (400_000, 0));
    // A complete part that is no attachment accepts nothing more.
    assert_error(&ada.patch(&parts[0], 400_000, &[], b"x"), 413);
    assert_eq!(ada.patch(&parts[0], 400_000, &[], b"").status, 204);
    let address = format!("http://localhost{}", parts[1]);
    let reply = ada.join(&[&address, &parts[0]]);
    assert_eq!(reply.status, 201, "{reply:?}");
    assert_eq!(reply.header("upload-offset"), Some("700000"));
    assert!(ada.attached() == content);
    let path = reply.header("location").unwrap();
    let head = ada.head(path);
    assert_eq!(head.header("upload-length"), Some("700000"));
    assert_eq!(head.header("upload-offset"), Some("700000"));
    let concat = format!("final;{address} {}", parts[0]);
    assert_eq!(head.header("upload-concat"), Some(&*concat));
    assert_error(&ada.patch(path, 700_000, &[], b"x"), 403);
    for part in &parts {
        assert_eq!(ada.head(part).status, 404);
    }
    assert_error(&ada.join(&[&parts[0], &parts[1]]), 404);
}

#[test]
fn only_whole_parts_are_joined() {
    let server = start();
    let ada = User::new(&server);
    let (whole, other) = (ada.part(b"abc"), ada.upload(3));
    let reply = ada.begin(&[PART, ("upload-length", "5")], b"");
    let begun = reply.header("location").unwrap().to_owned();
    let reply = ada.begin(&[PART, DEFERRED], b"");
    let open = reply.header("location").unwrap().to_owned();
    for parts in [
        [&whole, &other],
        [&whole, &begun],
        [&whole, &open],
        [&whole, &whole],
    ] {
        assert_error(&ada.join(&parts), 400);
    }
    // Parts of another user are not found.
    let eve = basic("eve", &register(&server, &["eve"]).remove(0));
    let concat = format!("final;{whole}");
    let headers = [
        ("authorization", &*eve),
        VERSION,
        ("upload-concat", &*concat),
    ];
    let made = send(ada.address, "POST", &ada.creation(), &headers, b"");
    assert_eq!(made.status, 403);
    // A deferred length completes a part.
    assert_eq!(
        ada.patch(&open, 0, &[("upload-length", "2")], b"de").status,
        204
    );
    assert_eq!(ada.attachments(), 0);
    assert_eq!(ada.join(&[&whole, &open]).status, 201);
    assert_eq!(ada.attached(), b"abcde");
}

#[test]
fn parts_outlive_the_server_and_take_their_share_once() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = || {
        let mut config = on_disk(folder.path());
        config.limits.quota_bytes = 1_500_000;
        config
    };
    let server = Server::start(on_disk()).unwrap();
    let mut ada = User::new(&server);
    let content = content(1_400_000);
    let (first, second) = content.split_at(700_000);
    let (first, second) = (ada.part(first), ada.part(second));
    server.shutdown();
    let server = Server::start(on_disk()).unwrap();
    ada.address = server.address();
    assert_eq!(ada.join(&[&first, &second]).status, 201);
    assert!(ada.attached() == content);
    let files = || {
        let files = std::fs::read_dir(folder.path().join("uploads"));
        files.unwrap().count()
    };
    wait_for("the files of the parts to go", || files() == 0);
    server.shutdown();
    let checked = groupware_server::check(folder.path()).unwrap();
    assert!(checked.wrong.is_empty(), "{:?}", checked.wrong);
    assert_eq!((checked.contents, checked.bytes), (1, 1_400_000));
}
