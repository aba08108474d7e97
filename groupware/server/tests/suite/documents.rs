//! Documents and their attachments over HTTP.

use std::io::{Read, Write};
use std::net::SocketAddr;

use crate::support::*;
use groupware_server::Server;
use serde_json::{Value, json};

struct User<'a> {
    server: &'a Server,
    auth: String,
}

const DOCUMENTS: &str = "/docs/ada/notes/api/data/documents";

impl<'a> User<'a> {
    fn new(server: &'a Server, name: &str) -> Self {
        let auth = basic(name, &register(server, &[name]).remove(0));
        Self { server, auth }
    }

    fn address(&self) -> SocketAddr {
        self.server.address()
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut all = vec![("authorization", &*self.auth)];
        all.extend_from_slice(headers);
        send(self.address(), method, path, &all, body)
    }

    fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], b"")
    }

    fn json(&self, method: &str, path: &str, body: &Value) -> Reply {
        let headers = [("content-type", "application/json")];
        self.send(method, path, &headers, body.to_string().as_bytes())
    }

    /// Creates a document and returns its path.
    fn document(&self) -> String {
        let reply = self.json("POST", DOCUMENTS, &json!({ "Subject": "Hello" }));
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.header("location").unwrap().to_owned()
    }
}

#[test]
fn documents_are_made_read_changed_and_deleted() {
    let server = start();
    let ada = User::new(&server, "ada");
    let new = json!({ "Subject": "Plan", "Body": { "a": [1, 2.50] }, "@unid": "mine" });
    let reply = ada.json("POST", &format!("{DOCUMENTS}?form=Memo"), &new);
    assert_eq!(reply.status, 201, "{reply:?}");
    let path = reply.header("location").unwrap().to_owned();

    let reply = ada.get(&path);
    let read = reply.json();
    assert_eq!((reply.status, &read["@form"]), (200, &json!("Memo")));
    assert_eq!(
        (&read["Subject"], &read["Body"]),
        (&json!("Plan"), &new["Body"])
    );
    assert_eq!(read["@href"], *path);
    assert!(path.ends_with(read["@unid"].as_str().unwrap()));
    assert_eq!(read["@attachments"], json!([]));
    let only = ada.get(&format!("{path}?fields=subject")).json();
    assert!(
        only["Subject"] == "Plan" && only.get("Body").is_none(),
        "{only}"
    );

    // A document can be sent back as it was read.
    assert_eq!(ada.json("PUT", &path, &read).status, 200);
    assert_eq!(
        ada.json("PATCH", &path, &json!({ "Body": null, "New": 1 }))
            .status,
        200
    );
    let read = ada.get(&path).json();
    assert!(read.get("Body").is_none() && read["New"] == 1, "{read}");
    let overridden = [
        ("content-type", "application/json"),
        ("x-http-method-override", "PATCH"),
    ];
    assert_eq!(
        ada.send("POST", &path, &overridden, b"{\"New\":2}").status,
        200
    );
    assert_eq!(
        ada.json("PUT", &path, &json!({ "Subject": "Only" })).status,
        200
    );
    let read = ada.get(&path).json();
    assert!(
        read.get("New").is_none() && read["Subject"] == "Only",
        "{read}"
    );

    assert_eq!(ada.send("DELETE", &path, &[], b"").status, 200);
    assert_error(&ada.get(&path), 404);
    assert_error(&ada.send("DELETE", &path, &[], b""), 404);
    assert_error(&ada.json("PUT", &path, &json!({})), 404);
}

#[test]
fn dates_guard_against_lost_updates_and_needless_answers() {
    let server = start();
    let ada = User::new(&server, "ada");
    let path = ada.document();
    // A date within the current second identifies no version.
    let last_modified = || {
        let mut date = None;
        wait_for("the second is over", || {
            date = ada.get(&path).header("last-modified").map(str::to_owned);
            date.is_some()
        });
        date.unwrap()
    };
    let modified = last_modified();
    let early = "Sun, 06 Nov 1994 08:49:37 GMT";
    let change = |since: &str| {
        let headers = [
            ("content-type", "application/json"),
            ("if-unmodified-since", since),
        ];
        ada.send("PATCH", &path, &headers, b"{\"a\":1}")
    };
    assert_error(&change(early), 412);
    assert_error(&change("yesterday"), 400);
    assert_error(
        &ada.send("DELETE", &path, &[("if-unmodified-since", early)], b""),
        412,
    );
    assert_eq!(change(&modified).status, 200);
    assert_error(&change(&modified), 412);
    let read = |since: &str| ada.send("GET", &path, &[("if-modified-since", since)], b"");
    let reply = read(&last_modified());
    assert!(reply.status == 304 && reply.body.is_empty(), "{reply:?}");
    assert_eq!(read(early).status, 200);
    assert_eq!(read("yesterday").status, 200);
}

#[test]
fn tags_tell_versions_of_one_second_apart() {
    let server = start();
    let ada = User::new(&server, "ada");
    let path = ada.document();
    let tag = || ada.get(&path).header("etag").unwrap().to_owned();
    let change = |method: &str, header: &str, tag: &str, body: &[u8]| {
        let headers = [("content-type", "application/json"), (header, tag)];
        ada.send(method, &path, &headers, body)
    };
    let first = tag();
    assert_eq!(change("PUT", "if-match", &first, b"{\"a\":1}").status, 200);
    // The second change of the same version is rejected, however fast it is.
    for method in ["PUT", "PATCH", "DELETE"] {
        assert_error(&change(method, "if-match", &first, b"{\"a\":2}"), 412);
    }
    assert_error(&change("PUT", "if-none-match", "*", b"{}"), 412);
    assert_eq!(ada.get(&path).json()["a"], 1);
    let second = tag();
    assert_ne!(first, second);
    let read = |tag: &str| {
        ada.send("GET", &path, &[("if-none-match", tag)], b"")
            .status
    };
    assert_eq!((read(&first), read(&second), read("*")), (200, 304, 304));
    assert_eq!(change("DELETE", "if-match", &second, b"").status, 200);
    assert_error(&change("PUT", "if-match", "*", b"{}"), 404);
}

#[test]
fn tags_guard_attachments() {
    let server = start();
    let ada = User::new(&server, "ada");
    let path = format!("{}/Body/a.txt", ada.document());
    let send = |method: &str, header: &str, tag: &str, body: &[u8]| {
        let headers = [("content-type", "text/plain"), (header, tag)];
        ada.send(method, &path, &headers, body)
    };
    assert_error(&send("PUT", "if-match", "*", b"one"), 412);
    assert_eq!(send("PUT", "if-none-match", "*", b"one").status, 201);
    assert_error(&send("PUT", "if-none-match", "*", b"two"), 412);
    let first = ada.get(&path).header("etag").unwrap().to_owned();
    assert_eq!(send("PUT", "if-match", &first, b"two").status, 200);
    assert_error(&send("PUT", "if-match", &first, b"three"), 412);
    assert_error(&send("PATCH", "if-match", &first, b"{\"name\":\"b\"}"), 412);
    assert_error(&send("DELETE", "if-match", &first, b""), 412);
    assert_eq!(ada.get(&path).body, b"two");
    let second = ada.get(&path).header("etag").unwrap().to_owned();
    assert_eq!(send("GET", "if-none-match", &second, b"").status, 304);
    assert_eq!(send("DELETE", "if-match", &second, b"").status, 200);
}

#[test]
fn lists_have_pages() {
    let server = start();
    let ada = User::new(&server, "ada");
    let empty = ada.get(DOCUMENTS);
    assert_eq!(
        (empty.json(), empty.header("content-range")),
        (json!([]), Some("items */0"))
    );
    for number in 0..13 {
        ada.json("POST", DOCUMENTS, &json!({ "n": number }));
    }
    ada.json("POST", "/docs/ada/Other.nsf/api/data/documents", &json!({}));
    let mut seen = std::collections::BTreeSet::new();
    let check = |query: &str, count: usize, range: &str| {
        let reply = ada.get(&format!("{DOCUMENTS}{query}"));
        assert_eq!(reply.header("content-range"), Some(range), "{query}");
        let list = reply.json().as_array().unwrap().clone();
        assert_eq!(list.len(), count, "{query}");
        list
    };
    for line in check("", 10, "items 0-9/13").into_iter().chain(check(
        "?start=10&count=10",
        3,
        "items 10-12/13",
    )) {
        let path = line["@href"].as_str().unwrap().to_owned();
        assert_eq!(ada.get(&path).json()["@unid"], line["@unid"]);
        seen.insert(path);
    }
    assert_eq!(seen.len(), 13);
    check("?page=2&ps=5", 3, "items 10-12/13");
    check("?start=13", 0, "items */13");
    check("?since=2026-01-01T00:00:00Z&count=2", 2, "items 0-1/*");
    check("?since=2999-01-01T00:00:00Z", 0, "items */*");
    assert_error(&ada.get(&format!("{DOCUMENTS}?count=-1")), 400);
    let databases = ada.get("/docs/ada/api/data").json();
    let found: Vec<_> = databases.as_array().unwrap().iter().collect();
    assert_eq!(found.len(), 2);
    assert_eq!(
        (&found[0]["@title"], &found[0]["documents"]),
        (&json!("notes"), &json!(13))
    );
    let first = seen.first().unwrap();
    ada.send("DELETE", first, &[], b"");
    check("?count=1", 1, "items 0-0/12");
}

#[test]
fn databases_are_their_owners_alone() {
    let server = start();
    let ada = User::new(&server, "ada");
    let eve = User::new(&server, "eve");
    let path = ada.document();
    ada.send("PUT", &format!("{path}/Body/a.txt"), &[], b"secret");
    for (method, path) in [
        ("GET", "/docs/ada/api/data".to_owned()),
        ("GET", DOCUMENTS.to_owned()),
        ("POST", DOCUMENTS.to_owned()),
        ("GET", path.clone()),
        ("PUT", path.clone()),
        ("DELETE", path.clone()),
        ("GET", format!("{path}/Body/a.txt")),
        ("PUT", format!("{path}/Body/a.txt")),
        ("DELETE", format!("{path}/Body/a.txt")),
        ("POST", format!("{path}/Body")),
    ] {
        assert_error(&eve.send(method, &path, &[], b"x"), 403);
        assert_error(&send(eve.address(), method, &path, &[], b"x"), 401);
    }
    assert_eq!(ada.get(&format!("{path}/Body/a.txt")).body, b"secret");
}

#[test]
fn attachments_are_put_whole_and_read_in_parts() {
    let server = start();
    let ada = User::new(&server, "ada");
    let path = ada.document();
    let file = format!("{path}/Body/r%C3%A9sum%C3%A9%20%22x%22.pdf");
    let content: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let typed = [("content-type", "application/pdf")];
    let reply = ada.send("PUT", &file, &typed, &content);
    assert_eq!(
        (reply.status, reply.header("location")),
        (201, Some(&*file))
    );
    let reply = ada.get(&file);
    assert!(reply.status == 200 && reply.body == content);
    let hash = blake3::hash(&content).to_string();
    let tag = format!("\"{hash}\"");
    for (name, value) in [
        ("content-type", "application/pdf"),
        ("accept-ranges", "bytes"),
        ("etag", &tag),
        ("x-content-type-options", "nosniff"),
        (
            "content-disposition",
            "attachment; filename*=UTF-8''r%C3%A9sum%C3%A9%20%22x%22.pdf",
        ),
    ] {
        assert_eq!(reply.header(name), Some(value));
    }
    let listed = &ada.get(&path).json()["@attachments"][0];
    assert_eq!(listed["size"], content.len());
    assert_eq!(
        (&listed["blake3"], &listed["name"]),
        (&json!(hash), &json!("résumé \"x\".pdf"))
    );
    assert_eq!(listed["href"], *file);

    let range = |headers: &[(&str, &str)]| ada.send("GET", &file, headers, b"");
    let reply = range(&[("range", "bytes=1000-1999")]);
    assert_eq!(reply.status, 206);
    assert_eq!(
        reply.header("content-range"),
        Some("bytes 1000-1999/4000000")
    );
    assert!(reply.body == content[1000..2000]);
    assert!(range(&[("range", "bytes=-7")]).body == content[content.len() - 7..]);
    let reply = range(&[("range", "bytes=4000000-")]);
    assert_error(&reply, 416);
    assert_eq!(reply.header("content-range"), Some("bytes */4000000"));
    assert_eq!(range(&[("range", "bytes=5-1")]).status, 200);
    assert_eq!(
        range(&[("range", "bytes=0-1"), ("if-range", "\"x\"")]).status,
        200
    );
    assert_eq!(
        range(&[("range", "bytes=0-1"), ("if-range", &tag)]).status,
        206
    );
    assert_eq!(range(&[("if-none-match", &tag)]).status, 304);

    // A new file of the same name replaces it; equal content under another name is fine.
    assert_eq!(ada.send("PUT", &file, &[], b"short").status, 200);
    assert_eq!(ada.get(&file).body, b"short");
    assert_eq!(
        ada.send("PUT", &format!("{path}/Body/b"), &[], b"short")
            .status,
        201
    );
    assert_eq!(
        ada.send("PUT", &format!("{path}/Body/empty"), &[], b"")
            .status,
        201
    );
    assert_eq!(ada.get(&format!("{path}/Body/empty")).body, b"");
    assert_eq!(ada.send("DELETE", &file, &[], b"").status, 200);
    assert_error(&ada.get(&file), 404);
    assert_error(&ada.send("DELETE", &file, &[], b""), 404);
    assert_eq!(ada.get(&format!("{path}/Body/b")).body, b"short");
    assert_eq!(
        ada.get(&path).json()["@attachments"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn forms_attach_files_all_or_none() {
    let server = start();
    let ada = User::new(&server, "ada");
    let path = ada.document();
    let large = vec![7; 700_000];
    let form = |second: &str| {
        let mut form =
            b"--X\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nnot a file\r\n\
            --X\r\nContent-Disposition: form-data; name=\"f\"; filename=\"one.bin\"\r\n\
            Content-Type: image/png\r\n\r\n"
                .to_vec();
        form.extend_from_slice(&large);
        form.extend_from_slice(
            format!(
                "\r\n--X\r\nContent-Disposition: form-data; name=\"f\"; \
                 filename=\"{second}\"\r\n\r\ntwo\r\n--X--\r\n"
            )
            .as_bytes(),
        );
        form
    };
    let typed = [("content-type", "multipart/form-data; boundary=X")];
    let post = |body: &[u8]| ada.send("POST", &format!("{path}/Body"), &typed, body);
    let names = || {
        let read = ada.get(&path).json();
        let attachments = read["@attachments"].as_array().unwrap().clone();
        let names = attachments
            .iter()
            .map(|it| it["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_error(&post(&form("../two")), 400);
    let whole = form("two.txt");
    assert_error(&post(&whole[..whole.len() - 10]), 400);
    assert_error(&post(b"no form"), 400);
    assert!(names().is_empty());
    // Content outside files is bounded, too.
    let field = "--X\r\ncontent-disposition: form-data; name=\"note\"\r\n\r\n";
    let field = [field.as_bytes(), &vec![b'x'; 2 << 20], b"\r\n", &whole].concat();
    assert_error(&post(&field), 413);
    assert!(names().is_empty());
    let reply = post(&whole);
    assert_eq!(reply.status, 201, "{reply:?}");
    assert_eq!(
        reply.header("location"),
        Some(&*format!("{path}/Body/one.bin"))
    );
    assert_eq!(names(), ["one.bin", "two.txt"]);
    let one = ada.get(&format!("{path}/Body/one.bin"));
    assert!(one.body == large && one.header("content-type") == Some("image/png"));
    assert_eq!(ada.get(&format!("{path}/Body/two.txt")).body, b"two");
    assert_error(&ada.send("POST", &format!("{path}/Body"), &[], &whole), 415);
    let nothing = b"--X\r\n\r\n\r\n--X--";
    assert_error(&post(nothing), 400);
}

#[test]
fn bad_input_is_refused_in_words() {
    let server = start();
    let ada = User::new(&server, "ada");
    let path = ada.document();
    let json_type = [("content-type", "application/json")];
    let post = |body: &[u8]| ada.send("POST", DOCUMENTS, &json_type, body);
    let key = format!("{{\"{}\":1}}", "k".repeat(10 << 20));
    assert_error(&post(key.as_bytes()), 413);
    assert_error(&post(&[b'['; 200_000]), 400);
    assert_error(
        &post(format!("{{\"a\":{}1{}}}", "[".repeat(50_000), "]".repeat(50_000)).as_bytes()),
        400,
    );
    assert_error(&post(b""), 400);
    assert_error(&post(b"[]"), 400);
    assert_error(&post(b"{\"a\":"), 400);
    let wide = format!("{{\"a\":\"{}\"}}", "x".repeat(300_000));
    assert_error(&post(wide.as_bytes()), 413);
    assert_error(&ada.send("POST", DOCUMENTS, &[], b"{}"), 415);
    assert_error(
        &ada.json("POST", "/docs/ada/a%2Fb/api/data/documents", &json!({})),
        400,
    );
    assert_error(
        &ada.json("POST", "/docs/ada/.hidden/api/data/documents", &json!({})),
        400,
    );
    for name in [
        "..%2F..%2Fetc%2Fpasswd",
        "..",
        "a%5Cb",
        "a%00b",
        "%0Ax",
        &"x".repeat(256),
    ] {
        let reply = ada.send("PUT", &format!("{path}/Body/{name}"), &[], b"x");
        assert!(matches!(reply.status, 400 | 404), "{name}: {reply:?}");
    }
    assert_error(
        &ada.send("PUT", &format!("{path}/%2E%2E/x"), &[], b"x"),
        400,
    );
    assert_error(&ada.get(&format!("{DOCUMENTS}/unid/..%2F..")), 404);
    assert_error(&ada.get(&format!("{DOCUMENTS}/unid/1234")), 404);
    let missing = format!("{DOCUMENTS}/unid/{}", "0".repeat(32));
    assert_error(
        &ada.send("PUT", &format!("{missing}/Body/x"), &[], b"x"),
        404,
    );
    // Impossible file lengths, announced and not.
    for length in ["99999999999999", "18446744073709551615"] {
        let stream = connect(ada.address());
        let head = format!(
            "PUT {path}/Body/x HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\ncontent-length: {length}\r\n\r\n",
            ada.auth
        );
        (&stream).write_all(head.as_bytes()).unwrap();
        let reply = read_reply(stream).unwrap();
        assert!(
            matches!(reply.status, 400 | 413 | 431),
            "{length}: {reply:?}"
        );
    }
    assert_eq!(ada.get(&path).json()["@attachments"], json!([]));
}

#[test]
fn a_share_of_the_disk_is_a_users_own() {
    let mut config = config();
    config.limits.quota_bytes = 100_000;
    config.limits.attachment_bytes = 80_000;
    let server = Server::start(config).unwrap();
    let ada = User::new(&server, "ada");
    let path = ada.document();
    let put = |name: &str, bytes: usize| {
        let file = format!("{path}/Body/{name}");
        ada.send("PUT", &file, &[], &vec![1; bytes])
    };
    assert_error(&put("a", 80_001), 413);
    assert_eq!(put("a", 60_000).status, 201);
    assert_error(&put("b", 60_000), 507);
    // Replaced content counts once; the same content under another name counts twice.
    assert_eq!(put("b", 30_000).status, 201);
    assert_error(
        &ada.json("POST", DOCUMENTS, &json!({ "x": "y".repeat(9500) })),
        507,
    );
    // A body of unknown length is cut at the end of the share.
    let mut stream = connect(ada.address());
    let head = format!(
        "PUT {path}/Body/c HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\ntransfer-encoding: chunked\r\n\r\n",
        ada.auth
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(b"2710\r\n").unwrap();
    stream.write_all(&[1; 10_000]).unwrap();
    stream.write_all(b"\r\n0\r\n\r\n").unwrap();
    assert_error(&read_reply(stream).unwrap(), 507);
    assert_eq!(
        ada.send("DELETE", &format!("{path}/Body/a"), &[], b"")
            .status,
        200
    );
    assert_eq!(put("c", 60_000).status, 201);
    assert_eq!(ada.send("DELETE", &path, &[], b"").status, 200);
    assert_eq!(
        ada.json("POST", DOCUMENTS, &json!({ "x": "y".repeat(9500) }))
            .status,
        201
    );
}

#[test]
fn bodies_under_way_count_in_their_owners_share() {
    let mut config = config();
    config.limits.quota_bytes = 100_000;
    let server = Server::start(config).unwrap();
    let ada = User::new(&server, "ada");
    let path = ada.document();
    let head = |name: &str, length: &str| {
        let auth = &ada.auth;
        format!(
            "PUT {path}/Body/{name} HTTP/1.1\r\nhost: localhost\r\nauthorization: {auth}\r\n{length}\r\n\r\n"
        )
    };
    let put = |name: &str| {
        let file = format!("{path}/Body/{name}");
        ada.send("PUT", &file, &[], &[1; 60_000])
    };
    // The server requests the body once it has reserved its length.
    let mut under_way = connect(ada.address());
    let announced = "content-length: 60000\r\nexpect: 100-continue";
    under_way
        .write_all(head("a", announced).as_bytes())
        .unwrap();
    let mut asked = [0; 12];
    under_way.read_exact(&mut asked).unwrap();
    assert_eq!(&asked, b"HTTP/1.1 100");
    assert_error(&put("b"), 507);
    let mut chunked = connect(ada.address());
    let head = head("c", "transfer-encoding: chunked");
    chunked.write_all(head.as_bytes()).unwrap();
    chunked.write_all(b"ea60\r\n").unwrap();
    chunked.write_all(&[1; 60_000]).unwrap();
    chunked.write_all(b"\r\n0\r\n\r\n").unwrap();
    assert_error(&read_reply(chunked).unwrap(), 507);
    // A cancelled upload releases its reservation.
    drop(under_way);
    wait_for("room", || put("b").status == 201);
}

#[test]
fn a_body_that_comes_too_slowly_is_given_up() {
    let mut config = config();
    config.limits.body_timeout = std::time::Duration::from_secs(1);
    let server = Server::start(config).unwrap();
    let ada = User::new(&server, "ada");
    let path = ada.document();
    let mut stream = connect(ada.address());
    let head = format!(
        "PUT {path}/Body/x HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\ncontent-length: 1000000\r\n\r\nabc",
        ada.auth
    );
    stream.write_all(head.as_bytes()).unwrap();
    assert_error(&read_reply(stream).unwrap(), 408);
    assert_eq!(ada.get(&path).json()["@attachments"], json!([]));
}

/// The route decides what is streamed: an account and a database whose names look like the path of
/// an attachment change nothing. The body is announced and never sent: a server that read it would
/// wait.
#[test]
fn no_names_in_a_path_lift_the_bound_on_a_body() {
    let server = start();
    let owner = User::new(&server, "documents");
    let ordinary = "/docs/documents/unid/api/data/documents";
    for (auth, path, status) in [
        (&*owner.auth, ordinary.to_owned(), 413),
        ("", ordinary.to_owned(), 401),
        (&*owner.auth, format!("{ordinary}/unid/0123"), 413),
        (
            &*owner.auth,
            "/tus/documents/no/such/route/here".to_owned(),
            413,
        ),
    ] {
        let mut stream = connect(server.address());
        let auth = match auth {
            "" => String::new(),
            auth => format!("authorization: {auth}\r\n"),
        };
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\n{auth}content-type: application/json\r\n\
             content-length: {}\r\n\r\n{{",
            10_u64 << 30
        );
        stream.write_all(head.as_bytes()).unwrap();
        let reply = read_reply(&mut stream).expect("it is answered before the body is there");
        assert_eq!(reply.status, status, "{path}: {reply:?}");
    }
}
