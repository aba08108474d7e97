//! Errors of the routes of documents, their attachments, and their grants.

use insta::assert_snapshot;

use crate::transcript::*;

const DATABASE: &str = "/docs/ada/notes/api/data";
const DOCUMENTS: &str = "/docs/ada/notes/api/data/documents";
/// The id of no document.
const NONE: &str = "0123456789ABCDEF0123456789ABCDEF";

fn document(t: &Transcript) -> String {
    t.made(Ada, "POST", DOCUMENTS, &json(r#"{"Subject":"Plan"}"#))
}

/// Every route with an allowed method, for this document.
fn routes(document: &str) -> Vec<(&'static str, String)> {
    let file = format!("{document}/Body/a.txt");
    vec![
        ("GET", "/docs/ada/api/data".to_owned()),
        ("GET", DOCUMENTS.to_owned()),
        ("POST", DOCUMENTS.to_owned()),
        ("GET", document.to_owned()),
        ("PUT", document.to_owned()),
        ("PATCH", document.to_owned()),
        ("DELETE", document.to_owned()),
        ("POST", document.to_owned()),
        ("GET", format!("{DATABASE}/access")),
        ("PUT", format!("{DATABASE}/access")),
        ("DELETE", format!("{DATABASE}/access")),
        ("POST", format!("{document}/Body")),
        ("GET", file.clone()),
        ("PUT", file.clone()),
        ("DELETE", file),
    ]
}

#[test]
fn who_may_not() {
    let mut t = Transcript::new();
    let document = document(&t);
    for (method, path) in routes(&document) {
        for who in [Nobody, Ben, Admin] {
            t.check(who, method, &path, json("{}"));
        }
    }
    // A reader of a database can't write to it; an author can't change others' documents.
    let access = format!("{DATABASE}/access");
    for grant in ["readers", "authors"] {
        let body = json(format!(r#"{{"{grant}":["ben"]}}"#));
        t.check(Ada, "PUT", &access, body);
        for (method, path) in routes(&document) {
            if method != "GET" {
                t.check(Ben, method, &path, json("{}"));
            }
        }
    }
    t.check(Ada, "GET", "/docs/a%20b/notes/api/data/documents", bare());
    t.check(Ada, "GET", "/docs/%FF/notes/api/data/documents", bare());
    assert_snapshot!(t.text());
}

#[test]
fn what_is_not_there() {
    let mut t = Transcript::new();
    let document = document(&t);
    let none = format!("{DOCUMENTS}/unid/{NONE}");
    for (method, path) in routes(&none) {
        if path.contains(NONE) && method != "POST" {
            t.check(Ada, method, &path, json("{}"));
        }
    }
    for (method, path) in [
        ("GET", format!("{DOCUMENTS}/unid/x")),
        ("GET", format!("{DOCUMENTS}/unid/%FF")),
        ("GET", format!("{document}/Body/a.txt")),
        ("DELETE", format!("{document}/Body/a.txt")),
        ("GET", "/docs/ada/.hidden/api/data/documents".to_owned()),
        ("GET", "/docs/ada/nothing/api/data/documents".to_owned()),
        ("GET", "/docs/ada/notes".to_owned()),
        ("GET", "/docs/ada".to_owned()),
    ] {
        t.check(Ada, method, &path, bare());
    }
    assert_snapshot!(t.text());
}

#[test]
fn methods_that_are_not_taken() {
    let mut t = Transcript::new();
    let document = document(&t);
    for (method, path) in [
        ("POST", "/docs/ada/api/data".to_owned()),
        ("DELETE", DOCUMENTS.to_owned()),
        ("POST", format!("{DATABASE}/access")),
        ("GET", format!("{document}/Body")),
        ("POST", format!("{document}/Body/a.txt")),
        ("POST", document.clone()),
    ] {
        t.check(Ada, method, &path, bare());
    }
    let overridden = json("{}").and("x-http-method-override", "GET");
    t.check(Ada, "POST", &document, overridden);
    assert_snapshot!(t.text());
}

#[test]
fn bodies_that_are_no_document() {
    let mut t = Transcript::new();
    let document = document(&t);
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(17), "]".repeat(17));
    let many: Vec<String> = (0..1001).map(|n| format!(r#""f{n}":1"#)).collect();
    let many = format!("{{{}}}", many.join(","));
    let long = format!(r#"{{"{}":1}}"#, "n".repeat(129));
    for (method, path) in [
        ("POST", DOCUMENTS),
        ("PUT", &document),
        ("PATCH", &document),
    ] {
        for body in [
            "",
            "{",
            "[]",
            r#"{"@new":1}"#,
            r#"{"":1}"#,
            r#"{"a":1,"A":2}"#,
        ] {
            t.check(Ada, method, path, json(body));
        }
        for body in [&deep, &many, &long] {
            t.check(Ada, method, path, json(body.as_str()));
        }
        t.check(Ada, method, path, typed("text/plain", "{}"));
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(257 << 10));
        t.check(Ada, method, path, json(large));
        t.check(Ada, method, path, announced("application/json", 1 << 40));
    }
    t.check(Ada, "POST", &format!("{DOCUMENTS}?form=a%00b"), json("{}"));
    for query in [
        "count=x",
        "ps=100000",
        "start=-1",
        "page=x",
        "fields=",
        "%FF=%FF",
    ] {
        let path = format!("/docs/ada/empty/api/data/documents?{query}");
        t.check(Ada, "GET", &path, bare());
    }
    let access = format!("{DATABASE}/access");
    for body in [
        "",
        "{",
        r#"{"owners":["ben"]}"#,
        r#"{"readers":"ben"}"#,
        r#"{"readers":["eve"]}"#,
        r#"{"readers":["a b"]}"#,
    ] {
        t.check(Ada, "PUT", &access, json(body));
    }
    assert_snapshot!(t.text());
}

#[test]
fn changes_under_a_condition() {
    let mut t = Transcript::new();
    let document = document(&t);
    let long_ago = ("if-unmodified-since", "Mon, 06 Jan 2020 09:00:00 GMT");
    for condition in [long_ago, ("if-unmodified-since", "yesterday")] {
        for method in ["PUT", "PATCH", "DELETE"] {
            let rest = json("{}").and(condition.0, condition.1);
            t.check(Ada, method, &document, rest);
        }
    }
    let later = with(&[("if-modified-since", "Fri, 04 Mar 2061 09:00:00 GMT")]);
    t.check(Ada, "GET", &document, later);
    assert_snapshot!(t.text());
}

#[test]
fn attachments_that_are_not_taken() {
    let mut t = Transcript::with(|config| {
        config.limits.attachment_bytes = 3000;
        config.limits.quota_bytes = 3600;
    });
    let document = document(&t);
    let file = format!("{document}/Body/a.txt");
    let form = format!("{document}/Body");
    let plain = |bytes: usize| typed("text/plain", vec![b'x'; bytes]);
    t.check(Ada, "PUT", &file, plain(3001));
    t.check(Ada, "PUT", &format!("{document}/Body/a%2Fb"), plain(1));
    t.check(Ada, "PUT", &format!("{document}/%20/a"), plain(1));
    t.check(
        Ada,
        "PUT",
        &format!("{document}/Body/{}", "x".repeat(256)),
        plain(1),
    );
    t.check(Ada, "POST", &form, json("{}"));
    t.check(Ada, "POST", &form, typed("multipart/form-data", ""));
    let parts = "multipart/form-data; boundary=line";
    for body in [
        "",
        "no boundary",
        "--line\r\n",
        "--line--\r\n",
        "--line\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nx\r\n--line--\r\n",
        "--line\r\ncontent-disposition: form-data; name=\"a\"; filename=\"../b\"\r\n\r\nx\r\n--line--\r\n",
    ] {
        t.check(Ada, "POST", &form, typed(parts, body));
    }
    let large = format!(
        "--line\r\ncontent-disposition: form-data; name=\"a\"; filename=\"b\"\r\n\r\n{}\r\n--line--\r\n",
        "x".repeat(3001)
    );
    t.check(Ada, "POST", &form, typed(parts, large));
    t.made(Ada, "PUT", &file, &plain(900));
    for range in ["bytes=900-", "bytes=5-2", "bytes=-0", "lines=1-2"] {
        t.check(Ada, "GET", &file, with(&[("range", range)]));
    }
    t.made(Ada, "PUT", &format!("{document}/Body/b.txt"), &plain(900));
    // More than is left, both by a new count and by the maximum added since.
    t.check(Ada, "PUT", &format!("{document}/Body/c.txt"), plain(3000));
    t.check(
        Ada,
        "POST",
        DOCUMENTS,
        json(format!(r#"{{"a":"{}"}}"#, "x".repeat(3000))),
    );
    assert_snapshot!(t.text());
}
