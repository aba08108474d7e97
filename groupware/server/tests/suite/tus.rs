//! Uploads in chunks by tus 1.0, according to its specification.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::support::*;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use groupware_server::{Config, Data, Server};
use serde_json::json;
use sha1::Digest as _;

pub(crate) const VERSION: (&str, &str) = ("tus-resumable", "1.0.0");
pub(crate) const CHUNK: (&str, &str) = ("content-type", "application/offset+octet-stream");
/// A name `a b.bin` and a type `text/plain`.
pub(crate) const METADATA: (&str, &str) = (
    "upload-metadata",
    "filename YSBiLmJpbg==,filetype dGV4dC9wbGFpbg==",
);

pub(crate) struct User {
    pub(crate) address: SocketAddr,
    auth: String,
    /// The path of a document.
    document: String,
}

impl User {
    pub(crate) fn new(server: &Server) -> Self {
        let auth = basic("ada", &register(server, &["ada"]).remove(0));
        let mut user = Self {
            address: server.address(),
            auth,
            document: String::new(),
        };
        let json = [("content-type", "application/json")];
        let reply = user.send("POST", "/docs/ada/notes/api/data/documents", &json, b"{}");
        user.document = reply.header("location").unwrap().to_owned();
        user
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let mut all = vec![("authorization", &*self.auth)];
        all.extend_from_slice(headers);
        send(self.address, method, path, &all, body)
    }

    /// The path for creating uploads to the item `Body`.
    pub(crate) fn creation(&self) -> String {
        let unid = self.document.rsplit('/').next().unwrap();
        format!("/tus/ada/notes/{unid}/Body")
    }

    pub(crate) fn create(&self, length: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut all = vec![VERSION, METADATA, ("upload-length", length)];
        all.extend_from_slice(headers);
        self.send("POST", &self.creation(), &all, body)
    }

    pub(crate) fn upload(&self, length: usize) -> String {
        let reply = self.create(&length.to_string(), &[], b"");
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.header("location").unwrap().to_owned()
    }

    pub(crate) fn patch(
        &self,
        path: &str,
        offset: usize,
        more: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let offset = offset.to_string();
        let mut all = vec![VERSION, CHUNK, ("upload-offset", &*offset)];
        all.extend_from_slice(more);
        self.send("PATCH", path, &all, body)
    }

    /// The offset that a `HEAD` returns.
    pub(crate) fn offset(&self, path: &str) -> usize {
        let reply = self.send("HEAD", path, &[VERSION], b"");
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        reply.header("upload-offset").unwrap().parse().unwrap()
    }

    pub(crate) fn attached(&self) -> Vec<u8> {
        let reply = self.send(
            "GET",
            &format!("{}/Body/a%20b.bin", self.document),
            &[],
            b"",
        );
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_eq!(reply.header("content-type"), Some("text/plain"));
        reply.body
    }

    pub(crate) fn attachments(&self) -> usize {
        let reply = self.send("GET", &self.document, &[], b"").json();
        reply["@attachments"].as_array().unwrap().len()
    }
}

pub(crate) fn content(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new()
        .update(b"content")
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}

pub(crate) fn on_disk(folder: &Path) -> Config {
    let mut config = Config::new(Data::Folder(folder.into()));
    config.admin_token = Some(TOKEN.into());
    config
}

#[test]
fn the_server_says_what_it_can_do() {
    let server = start();
    let ada = User::new(&server);
    let reply = send(ada.address, "OPTIONS", &ada.creation(), &[], b"");
    assert_eq!(reply.status, 204);
    for (name, value) in [
        ("tus-resumable", "1.0.0"),
        ("tus-version", "1.0.0"),
        ("tus-max-size", "4294967296"),
        ("tus-checksum-algorithm", "sha1,sha256,blake3"),
        (
            "tus-extension",
            "creation,creation-defer-length,creation-with-upload,termination,\
             checksum,expiration,concatenation",
        ),
    ] {
        assert_eq!(reply.header(name), Some(value));
    }
    for version in ["0.2.2", "2.0.0", ""] {
        let headers = [("tus-resumable", version), ("upload-length", "1"), METADATA];
        let reply = ada.send("POST", &ada.creation(), &headers, b"");
        assert_error(&reply, 412);
        assert_eq!(reply.header("tus-version"), Some("1.0.0"));
    }
    let reply = ada.send(
        "POST",
        &ada.creation(),
        &[("upload-length", "1"), METADATA],
        b"",
    );
    assert_error(&reply, 412);
}

#[test]
fn an_attachment_comes_in_chunks_and_shows_when_it_is_whole() {
    let server = start();
    let ada = User::new(&server);
    let content = content(2_000_000);
    let path = ada.upload(content.len());
    for (number, chunk) in content.chunks(262_144).enumerate() {
        let at = number * 262_144;
        assert_eq!((ada.offset(&path), ada.attachments()), (at, 0));
        let reply = ada.patch(&path, at, &[], chunk);
        assert_eq!(reply.status, 204, "{reply:?}");
        let after = (at + chunk.len()).to_string();
        assert_eq!(reply.header("upload-offset"), Some(&*after));
        let is_last = at + chunk.len() == content.len();
        assert_eq!(reply.header("upload-expires").is_none(), is_last);
    }
    assert!(ada.attached() == content);
    // A client that missed the last response finds the upload complete, and can't send more.
    assert_eq!(ada.offset(&path), content.len());
    let reply = ada.send("HEAD", &path, &[VERSION], b"");
    assert_eq!(reply.header("upload-length"), Some("2000000"));
    assert_eq!(reply.header("upload-metadata"), Some(METADATA.1));
    assert_error(&ada.patch(&path, 5, &[], b"x"), 409);
    assert_eq!(ada.patch(&path, content.len(), &[], b"").status, 204);
    assert_eq!(ada.attachments(), 1);
}

#[test]
fn a_chunk_can_come_with_the_creation() {
    let server = start();
    let ada = User::new(&server);
    let reply = ada.create("10", &[CHUNK], b"hello");
    assert_eq!(
        (reply.status, reply.header("upload-offset")),
        (201, Some("5"))
    );
    let path = reply.header("location").unwrap();
    assert_eq!(ada.patch(path, 5, &[], b"world").status, 204);
    assert_eq!(ada.attached(), b"helloworld");
    let reply = ada.create("4", &[CHUNK], b"once");
    assert_eq!(
        (reply.status, reply.header("upload-offset")),
        (201, Some("4"))
    );
    assert_eq!(ada.attached(), b"once");
    assert_eq!(ada.create("0", &[], b"").status, 201);
    assert_eq!(ada.attached(), b"");
    assert_error(&ada.create("3", &[CHUNK], b"four"), 413);
    assert_error(
        &ada.create("3", &[("content-type", "text/plain")], b"abc"),
        415,
    );
}

#[test]
fn an_upload_without_a_name_gets_one_and_can_have_another() {
    let server = start();
    let ada = User::new(&server);
    for metadata in [None, Some(("upload-metadata", "filename ,x eA=="))] {
        let mut headers = vec![VERSION, CHUNK, ("upload-length", "3")];
        headers.extend(metadata);
        let reply = ada.send("POST", &ada.creation(), &headers, b"abc");
        assert_eq!(reply.status, 201, "{reply:?}");
        let id = reply
            .header("location")
            .unwrap()
            .rsplit('/')
            .next()
            .unwrap();
        let given = format!("{}/Body/upload-{}", ada.document, &id[..12]);
        assert_eq!(ada.send("GET", &given, &[], b"").body, b"abc");

        let renamed = ada.send("PATCH", &given, &[], br#"{"name":"a b.bin"}"#);
        assert_eq!(renamed.status, 200, "{renamed:?}");
        let path = renamed.header("location").unwrap();
        assert_eq!(ada.send("GET", path, &[], b"").body, b"abc");
        assert_error(&ada.send("GET", &given, &[], b""), 404);
        assert_error(&ada.send("PATCH", &given, &[], br#"{"name":"x"}"#), 404);
        for body in [
            &br#"{"name":"a/b"}"#[..],
            b"{}",
            b"",
            br#"{"name":"x","y":1}"#,
        ] {
            assert_error(&ada.send("PATCH", path, &[], body), 400);
        }
        let other = format!("{}/Body/other", ada.document);
        assert_eq!(ada.send("PUT", &other, &[], b"other").status / 100, 2);
        assert_error(
            &ada.send("PATCH", &other, &[], br#"{"name":"a b.bin"}"#),
            409,
        );
        assert_eq!(ada.attachments(), 2);
        assert_eq!(ada.send("DELETE", path, &[], b"").status, 200);
        assert_eq!(ada.send("DELETE", &other, &[], b"").status, 200);
    }
}

/// An upload expires at a fixed time after its last chunk; requests for its offset don't count.
#[test]
fn the_expiry_is_that_of_the_last_activity() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(on_disk(folder.path())).unwrap();
    let ada = User::new(&server);
    let path = ada.upload(10);
    let file = folder
        .path()
        .join("uploads")
        .join(path.rsplit('/').next().unwrap());
    let expiry = |reply: &Reply| {
        let text = reply.header("upload-expires").unwrap();
        groupware_proto_http::parse_http_date(text).unwrap()
    };
    let head = || ada.send("HEAD", &path, &[VERSION], b"");
    let at_first = expiry(&head());
    let file = std::fs::File::options().write(true).open(file).unwrap();
    let made = file.metadata().unwrap().modified().unwrap();
    file.set_modified(made - Duration::from_secs(500)).unwrap();
    // As old as its record, whose second may be the one before.
    assert!((at_first - 1..=at_first).contains(&expiry(&head())));
    file.set_modified(made + Duration::from_secs(500)).unwrap();
    assert!(expiry(&head()) >= at_first + 499);
    assert!(expiry(&ada.patch(&path, 0, &[], b"abc")) >= at_first);
}

#[test]
fn what_does_not_fit_is_refused() {
    let server = start();
    let ada = User::new(&server);
    for length in ["-1", "1.5", "", "abc", "0x10", "+1"] {
        assert_error(&ada.create(length, &[], b""), 400);
    }
    for length in ["4294967297", "18446744073709551616", &"9".repeat(400)] {
        assert_error(&ada.create(length, &[], b""), 413);
    }
    for deferred in ["0", "2", "", "yes"] {
        let deferred = [VERSION, METADATA, ("upload-defer-length", deferred)];
        assert_error(&ada.send("POST", &ada.creation(), &deferred, b""), 400);
    }
    let both = [("upload-defer-length", "1")];
    assert_error(&ada.create("3", &both, b""), 400);
    assert_error(
        &ada.send("POST", &ada.creation(), &[VERSION, METADATA], b""),
        400,
    );
    for part in ["parts", "final", "final;", "final; /"] {
        let headers = [("upload-concat", part)];
        assert_error(&ada.create("3", &headers, b""), 400);
    }
    let nothing = format!("final;/tus/ada/{}", "0".repeat(32));
    for part in ["final;/tus/ada/x", &nothing] {
        let headers = [VERSION, METADATA, ("upload-concat", part)];
        let refused = ada.send("POST", &ada.creation(), &headers, b"");
        assert_error(&refused, 404);
    }
    let named = |name: &str| {
        let metadata = format!("filename {}", BASE64_STANDARD.encode(name));
        let headers = [
            VERSION,
            ("upload-length", "1"),
            ("upload-metadata", &metadata),
        ];
        ada.send("POST", &ada.creation(), &headers, b"")
    };
    for name in ["../../etc/passwd", "a/b", "..", "a\0b", "c:\\x"] {
        assert_error(&named(name), 400);
    }
    let elsewhere = format!("/tus/ada/notes/{}/Body", "0".repeat(32));
    let headers = [VERSION, METADATA, ("upload-length", "1")];
    assert_error(&ada.send("POST", &elsewhere, &headers, b""), 404);

    let path = ada.upload(10);
    assert_eq!(ada.patch(&path, 0, &[], b"abc").status, 204);
    for offset in [0, 2, 4, 10, usize::MAX] {
        assert_error(&ada.patch(&path, offset, &[], b"x"), 409);
    }
    for offset in ["-1", "x", ""] {
        let headers = [VERSION, CHUNK, ("upload-offset", offset)];
        assert_error(&ada.send("PATCH", &path, &headers, b"x"), 400);
    }
    assert_error(&ada.send("PATCH", &path, &[VERSION, CHUNK], b"x"), 400);
    let typed = [
        VERSION,
        ("content-type", "text/plain"),
        ("upload-offset", "3"),
    ];
    assert_error(&ada.send("PATCH", &path, &typed, b"x"), 415);
    assert_error(&ada.patch(&path, 3, &[], b"12345678"), 413);
    assert_eq!(ada.offset(&path), 3);
    // A body without an announced length is limited by the upload's; a negative length is invalid.
    let lengths = [
        (
            "transfer-encoding: chunked",
            "8\r\n12345678\r\n0\r\n\r\n",
            413,
        ),
        ("content-length: -1", "12345678", 400),
        ("content-length: 99999999999999999999", "12345678", 400),
    ];
    for (length, body, expected) in lengths {
        let mut stream = connect(ada.address);
        let head = format!(
            "PATCH {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\ntus-resumable: 1.0.0\r\n\
             content-type: {}\r\nupload-offset: 3\r\n{length}\r\n\r\n{body}",
            ada.auth, CHUNK.1
        );
        stream.write_all(head.as_bytes()).unwrap();
        assert_eq!(read_reply(stream).unwrap().status, expected, "{length}");
        assert_eq!(ada.offset(&path), 3);
    }
    for id in ["0".repeat(32), "..%2F..%2Fx".into(), "x".into()] {
        let reply = ada.send("HEAD", &format!("/tus/ada/{id}"), &[VERSION], b"");
        assert_eq!(reply.status, 404, "{reply:?}");
        assert_error(&ada.patch(&format!("/tus/ada/{id}"), 0, &[], b"x"), 404);
    }
    let eve = basic("eve", &register(&server, &["eve"]).remove(0));
    let headers = [("authorization", &*eve), VERSION];
    for method in ["HEAD", "DELETE"] {
        assert_eq!(send(ada.address, method, &path, &headers, b"").status, 403);
    }
    let of_eve = path.replace("/tus/ada", "/tus/eve");
    assert_eq!(
        send(ada.address, "HEAD", &of_eve, &headers, b"").status,
        404
    );
}

#[test]
fn checksums_are_checked_and_what_does_not_fit_is_forgotten() {
    let server = start();
    let ada = User::new(&server);
    let content = content(900_000);
    let path = ada.upload(content.len());
    type Digest = fn(&[u8]) -> Vec<u8>;
    let sums: [(&str, Digest); 3] = [
        ("sha1", |bytes| sha1::Sha1::digest(bytes).to_vec()),
        ("sha256", |bytes| sha2::Sha256::digest(bytes).to_vec()),
        ("blake3", |bytes| blake3::hash(bytes).as_bytes().to_vec()),
    ];
    for (number, (name, sum)) in sums.iter().enumerate() {
        let at = number * 300_000;
        let chunk = &content[at..at + 300_000];
        let header = format!("{name} {}", BASE64_STANDARD.encode(sum(chunk)));
        let sum = [("upload-checksum", &*header)];
        let mut wrong = chunk.to_vec();
        wrong[299_999] ^= 1;
        assert_eq!(ada.patch(&path, at, &sum, &wrong).status, 460);
        let short = format!("{name} {}", BASE64_STANDARD.encode("abc"));
        let sum_too_short = [("upload-checksum", &*short)];
        assert_eq!(ada.patch(&path, at, &sum_too_short, chunk).status, 460);
        assert_eq!(ada.offset(&path), at);
        assert_eq!(ada.patch(&path, at, &sum, chunk).status, 204);
    }
    assert!(ada.attached() == content);
    let path = ada.upload(3);
    for sum in ["md5 rL0Y20zC+Fzt72VPzMSk2A==", "sha1", "sha1 !", "sha1 YQ"] {
        assert_error(
            &ada.patch(&path, 0, &[("upload-checksum", sum)], b"abc"),
            400,
        );
    }
    assert_eq!(ada.offset(&path), 0);
}

/// Sends the head of a chunk and its first bytes, closes the connection, and waits until the server
/// does, too.
fn cut_off(ada: &User, path: &str, offset: usize, length: usize, sent: &[u8], more: &str) {
    let mut stream = connect(ada.address);
    let head = format!(
        "PATCH {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\ntus-resumable: 1.0.0\r\n\
         content-type: application/offset+octet-stream\r\nupload-offset: {offset}\r\n\
         {more}content-length: {length}\r\n\r\n",
        ada.auth
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(sent).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn an_upload_cut_off_at_any_byte_goes_on_where_it_was() {
    let server = start();
    let ada = User::new(&server);
    let content = content(1_000_000);
    let path = ada.upload(content.len());
    let mut at = 0;
    for sent in [1, 4095, 262_143, 262_145, 0, 300_000] {
        let rest = &content[at..];
        cut_off(&ada, &path, at, rest.len(), &rest[..sent], "");
        // The bytes sent before the end are kept.
        at += sent;
        assert_eq!(ada.offset(&path), at);
    }
    // A chunk with a checksum is kept as a whole or not at all.
    let sum = "upload-checksum: sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=\r\n";
    cut_off(&ada, &path, at, 1000, &content[at..at + 999], sum);
    assert_eq!(ada.offset(&path), at);
    assert_eq!(ada.patch(&path, at, &[], &content[at..]).status, 204);
    assert!(ada.attached() == content);
}

#[test]
fn who_comes_later_takes_over_from_who_hangs() {
    let server = start();
    let ada = User::new(&server);
    let path = ada.upload(10);
    let mut hanging = connect(ada.address);
    let head = format!(
        "PATCH {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\ntus-resumable: 1.0.0\r\n\
         content-type: application/offset+octet-stream\r\nupload-offset: 0\r\n\
         content-length: 10\r\n\r\nabcd",
        ada.auth
    );
    hanging.write_all(head.as_bytes()).unwrap();
    let mut at = 0;
    wait_for("the bytes to arrive", || {
        at = ada.offset(&path);
        at == 4
    });
    assert_error(&read_reply(hanging).unwrap(), 423);
    assert_eq!(ada.patch(&path, 4, &[], b"efghij").status, 204);
    assert_eq!(ada.attached(), b"abcdefghij");
}

#[test]
fn uploads_outlive_the_server_and_can_be_terminated() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = || on_disk(folder.path());
    let server = Server::start(on_disk()).unwrap();
    let mut ada = User::new(&server);
    let (kept, ended) = (ada.upload(8), ada.upload(8));
    assert_eq!(ada.patch(&kept, 0, &[], b"abcd").status, 204);
    let override_delete = [VERSION, ("x-http-method-override", "DELETE")];
    assert_eq!(ada.send("POST", &ended, &override_delete, b"").status, 204);
    assert_eq!(ada.send("HEAD", &ended, &[VERSION], b"").status, 404);
    assert_eq!(ada.send("DELETE", &ended, &[VERSION], b"").status, 404);
    server.shutdown();
    let files = || {
        std::fs::read_dir(folder.path().join("uploads"))
            .unwrap()
            .count()
    };
    assert_eq!(files(), 1);

    let server = Server::start(on_disk()).unwrap();
    ada.address = server.address();
    assert_eq!(ada.offset(&kept), 4);
    let override_patch = [
        VERSION,
        CHUNK,
        ("upload-offset", "4"),
        ("x-http-method-override", "PATCH"),
    ];
    assert_eq!(
        ada.send("POST", &kept, &override_patch, b"efgh").status,
        204
    );
    assert_eq!(ada.attached(), b"abcdefgh");
    wait_for("the file of the upload to go", || files() == 0);
    server.shutdown();
    let checked = groupware_server::check(folder.path()).unwrap();
    assert!(checked.wrong.is_empty(), "{:?}", checked.wrong);
    assert_eq!(
        (checked.documents, checked.contents, checked.bytes),
        (1, 1, 8)
    );
}

#[test]
fn uploads_whose_document_is_gone_come_to_nothing() {
    let server = start();
    let ada = User::new(&server);
    let path = ada.upload(4);
    assert_eq!(ada.patch(&path, 0, &[], b"ab").status, 204);
    assert_eq!(ada.send("DELETE", &ada.document, &[], b"").status, 200);
    assert_error(&ada.patch(&path, 2, &[], b"cd"), 404);
    assert_eq!(ada.send("DELETE", &path, &[VERSION], b"").status, 204);
    // A reset leaves nothing of an upload, either.
    let ada = User::new(&server);
    let path = ada.upload(4);
    assert_eq!(ada.patch(&path, 0, &[], b"ab").status, 204);
    assert_eq!(
        admin(&server, "POST", "/admin/users/ada/reset", json!(null)).status,
        200
    );
    assert_error(&ada.patch(&path, 2, &[], b"cd"), 404);
}

#[test]
fn an_upload_that_came_to_nothing_reaches_no_content_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = || on_disk(folder.path());
    let server = Server::start(on_disk()).unwrap();
    let mut ada = User::new(&server);
    let content = content(9000);
    let path = ada.upload(content.len());
    assert_eq!(ada.send("DELETE", &ada.document, &[], b"").status, 200);
    assert_error(&ada.patch(&path, 0, &[], &content), 404);

    // Eve attaches the same, and the response for the completed upload is lost.
    let auth = basic("eve", &register(&server, &["eve"]).remove(0));
    let headers = [
        ("authorization", &*auth),
        ("content-type", "application/json"),
    ];
    let documents = "/docs/eve/notes/api/data/documents";
    let reply = send(ada.address, "POST", documents, &headers, b"{}");
    let file = format!("{}/Body/a", reply.header("location").unwrap());
    let reply = send(ada.address, "PUT", &file, &headers, &content);
    assert_eq!(reply.status, 201, "{reply:?}");
    server.shutdown();
    let text = blake3::hash(&content).to_hex();
    let stored = folder
        .path()
        .join("content")
        .join(&text[..2])
        .join(&text[2..]);
    let name = path.rsplit('/').next().unwrap();
    for file in [stored, folder.path().join("uploads").join(name)] {
        let disk = std::fs::File::options().write(true).open(file).unwrap();
        disk.set_len(9000).unwrap();
    }

    let server = Server::start(on_disk()).unwrap();
    ada.address = server.address();
    assert_eq!(ada.offset(&path), 0);
    assert_eq!(ada.patch(&path, 0, &[], &[7; 100]).status, 204);
    assert_eq!(send(ada.address, "GET", &file, &headers, b"").body, content);
    server.shutdown();
    let checked = groupware_server::check(folder.path()).unwrap();
    assert!(checked.wrong.is_empty(), "{:?}", checked.wrong);
}

#[test]
fn the_sweep_takes_expired_uploads_and_what_nothing_refers_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::new(Data::Folder(folder.path().into()));
    config.admin_token = Some(TOKEN.into());
    config.limits.upload_lifetime = Duration::ZERO;
    config.limits.sweep_interval = Duration::from_millis(20);
    config.limits.quota_bytes = 20_000;
    let server = Server::start(config).unwrap();
    let ada = User::new(&server);
    let files = |name: &str| {
        let mut count = 0;
        let mut folders = vec![folder.path().join(name)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false => count += 1,
                }
            }
        }
        count
    };
    let path = ada.upload(15_000);
    wait_for("the upload to expire", || {
        ada.send("HEAD", &path, &[VERSION], b"").status == 404 && files("uploads") == 0
    });
    // Its reservation is released.
    let file = format!("{}/Body/x", ada.document);
    wait_for("room", || {
        ada.send("PUT", &file, &[], &[1; 15_000]).status == 201
    });
    let other = format!("{}/Body/y", ada.document);
    assert_eq!(ada.send("PUT", &other, &[], &[2; 90]).status, 201);
    assert_eq!(ada.send("DELETE", &file, &[], b"").status, 200);
    wait_for("the content to go", || files("content") == 1);
    assert_eq!(ada.send("GET", &other, &[], b"").body, [2; 90]);
    server.shutdown();
}
