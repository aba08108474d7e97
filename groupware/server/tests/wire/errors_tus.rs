//! Errors of uploads in chunks.

use insta::assert_snapshot;

use crate::transcript::*;

const VERSION: (&str, &str) = ("tus-resumable", "1.0.0");
const CHUNK: (&str, &str) = ("content-type", "application/offset+octet-stream");
const NAMED: (&str, &str) = ("upload-metadata", "filename YS50eHQ=");
/// The path of no upload.
const NONE: &str = "/tus/ada/0123456789abcdef0123456789abcdef";

/// The path for creating uploads to a new document.
fn creation(t: &Transcript) -> String {
    let documents = "/docs/ada/notes/api/data/documents";
    let document = t.made(Ada, "POST", documents, &json("{}"));
    let unid = document.rsplit('/').next().unwrap();
    format!("/tus/ada/notes/{unid}/Body")
}

fn small() -> Transcript {
    Transcript::with(|config| {
        config.limits.attachment_bytes = 1000;
        config.limits.quota_bytes = 4500;
    })
}

#[test]
fn who_may_not_and_what_is_not_there() {
    let mut t = Transcript::new();
    let creation = creation(&t);
    let routes = [
        ("POST", creation.as_str()),
        ("HEAD", NONE),
        ("PATCH", NONE),
        ("DELETE", NONE),
        ("POST", NONE),
    ];
    for (method, path) in routes {
        for who in [Nobody, Ben, Admin] {
            t.check(who, method, path, with(&[VERSION]));
        }
    }
    let chunk = with(&[VERSION, CHUNK, ("upload-offset", "0")]);
    for (method, rest) in [
        ("HEAD", with(&[VERSION])),
        ("PATCH", chunk.clone()),
        ("DELETE", with(&[VERSION])),
        ("POST", chunk.and("x-http-method-override", "PATCH")),
    ] {
        t.check(Ada, method, NONE, rest);
    }
    t.check(Ada, "HEAD", "/tus/ada/x", with(&[VERSION]));
    let none = "/tus/ada/notes/0123456789ABCDEF0123456789ABCDEF/Body";
    let new = with(&[VERSION, NAMED, ("upload-length", "1")]);
    t.check(Ada, "POST", none, new);
    for (method, path) in [
        ("GET", NONE),
        ("PUT", NONE),
        ("GET", &creation),
        ("PATCH", &creation),
    ] {
        t.check(Ada, method, path, with(&[VERSION]));
    }
    t.check(Ada, "POST", NONE, with(&[VERSION]));
    t.check(Nobody, "OPTIONS", NONE, bare());
    assert_snapshot!(t.text());
}

#[test]
fn uploads_that_are_not_begun() {
    let mut t = small();
    let creation = creation(&t);
    let length = ("upload-length", "10");
    for headers in [
        vec![NAMED, length],
        vec![("tus-resumable", "0.2.2"), NAMED, length],
        vec![VERSION, NAMED],
        vec![VERSION, NAMED, ("upload-defer-length", "2")],
        vec![VERSION, NAMED, ("upload-concat", "final;")],
        vec![VERSION, NAMED, ("upload-concat", "final;/tus/ada/x")],
        vec![VERSION, NAMED, ("upload-length", "-1")],
        vec![VERSION, NAMED, ("upload-length", "1001")],
        vec![VERSION, length],
        vec![VERSION, length, ("upload-metadata", "filename !")],
        vec![VERSION, length, ("upload-metadata", "filename Li4vYQ==")],
        vec![VERSION, length, NAMED, ("content-type", "text/plain")],
    ] {
        t.check(Ada, "POST", &creation, with(&headers));
    }
    let too_long = Rest {
        body: b"12345678901".to_vec(),
        ..with(&[VERSION, NAMED, length, CHUNK])
    };
    t.check(Ada, "POST", &creation, too_long);
    for _ in 0..2 {
        let new = with(&[VERSION, NAMED, ("upload-length", "900")]);
        t.made(Ada, "POST", &creation, &new);
    }
    let new = with(&[VERSION, NAMED, ("upload-length", "900")]);
    t.check(Ada, "POST", &creation, new);
    assert_snapshot!(t.text());
}

#[test]
fn chunks_that_are_not_taken() {
    let mut t = small();
    let new = with(&[VERSION, NAMED, ("upload-length", "10")]);
    let upload = t.made(Ada, "POST", &creation(&t), &new);
    let at = ("upload-offset", "0");
    for headers in [
        vec![CHUNK, at],
        vec![VERSION, at],
        vec![VERSION, ("content-type", "text/plain"), at],
        vec![VERSION, CHUNK],
        vec![VERSION, CHUNK, ("upload-offset", "x")],
        vec![VERSION, CHUNK, ("upload-offset", "5")],
        vec![VERSION, CHUNK, at, ("upload-checksum", "sha1 AAAA")],
        vec![VERSION, CHUNK, at, ("upload-checksum", "crc32 AAAA")],
        vec![VERSION, CHUNK, at, ("upload-checksum", "sha1")],
        vec![
            VERSION,
            CHUNK,
            at,
            ("upload-checksum", "sha1 AAAAAAAAAAAAAAAAAAAAAAAAAAA="),
        ],
    ] {
        let rest = Rest {
            body: b"abc".to_vec(),
            ..with(&headers)
        };
        t.check(Ada, "PATCH", &upload, rest);
    }
    let long = Rest {
        body: vec![b'x'; 11],
        ..with(&[VERSION, CHUNK, at])
    };
    t.check(Ada, "PATCH", &upload, long);
    t.check(Ada, "DELETE", &upload, bare());
    t.check(Ada, "HEAD", &upload, bare());
    assert_snapshot!(t.text());
}
