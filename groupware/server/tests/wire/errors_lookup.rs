//! Errors of the lookup service, in JSON and in XML.

use groupware_server::{LookupAccess, Networks};
use insta::assert_snapshot;

use crate::transcript::*;

const RECORDS: &str = "/lookup/records";
const HLS: &str = "/perfSONAR_PS/services/hLS";
const HOST: &str = r#"{"type":"host","host-name":"a"}"#;

fn xml(body: impl Into<Vec<u8>>) -> Rest<'static> {
    typed("text/xml", body)
}

/// A message with these children.
fn message(kind: &str, children: &str) -> Rest<'static> {
    xml(format!(
        "<nmwg:message xmlns:nmwg=\"http://ggf.org/ns/nmwg/base/2.0/\" \
         xmlns:perfsonar=\"http://ggf.org/ns/nmwg/tools/org/perfsonar/1.0/\" \
         xmlns:psservice=\"http://ggf.org/ns/nmwg/tools/org/perfsonar/service/1.0/\" \
         type=\"LS{kind}Request\" id=\"m1\">{children}</nmwg:message>"
    ))
}

fn key(key: &str) -> String {
    format!(
        "<nmwg:metadata id=\"a\"><nmwg:key><nmwg:parameters id=\"k\"><nmwg:parameter \
         name=\"lsKey\">{key}</nmwg:parameter></nmwg:parameters></nmwg:key></nmwg:metadata>\
         <nmwg:data id=\"d\" metadataIdRef=\"a\"/>"
    )
}

fn service(access_point: &str) -> String {
    format!(
        "<nmwg:metadata id=\"a\"><perfsonar:subject id=\"s\"><psservice:service id=\"x\">\
         <psservice:accessPoint>{access_point}</psservice:accessPoint></psservice:service>\
         </perfsonar:subject></nmwg:metadata><nmwg:data id=\"d\" metadataIdRef=\"a\"/>"
    )
}

#[test]
fn records_that_are_not_taken() {
    let mut t = Transcript::with(|config| config.lookup = Some(LookupAccess::Open));
    for body in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"type":7}"#,
        r#"{"type":"host/a"}"#,
        r#"{"type":"host","k":[[]]}"#,
        r#"{"type":"host","ttl":"never"}"#,
        r#"{"type":"host","ttl":"P400D"}"#,
        r#"{"type":"host","":"x"}"#,
    ] {
        t.check(Nobody, "POST", RECORDS, json(body));
    }
    t.check(Nobody, "POST", RECORDS, bare());
    t.check(Nobody, "POST", RECORDS, typed("text/plain", HOST));
    let long = format!(r#"{{"type":"host","k":"{}"}}"#, "x".repeat(5000));
    t.check(Nobody, "POST", RECORDS, json(long));
    t.check(
        Nobody,
        "POST",
        RECORDS,
        announced("application/json", 1 << 40),
    );
    assert_eq!(t.ask(Nobody, "POST", RECORDS, &json(HOST)).status, 200);
    t.check(Nobody, "POST", RECORDS, json(HOST));
    let bulk = "/lookup/records/bulk";
    let many = format!("[{}]", vec![HOST; 1001].join(","));
    for body in [
        "",
        "{}",
        "[]",
        r#"[{"type":"a"},{"type":7}]"#,
        many.as_str(),
    ] {
        t.check(Nobody, "POST", bulk, json(body));
    }
    t.check(Nobody, "POST", bulk, typed("text/plain", "[]"));
    for body in [
        "",
        "{}",
        r#"{"record-uris":7}"#,
        r#"{"record-uris":["../x"]}"#,
    ] {
        t.check(Nobody, "PUT", RECORDS, json(body));
    }
    t.check(Nobody, "PUT", RECORDS, typed("text/plain", "{}"));
    assert_snapshot!(t.text());
}

#[test]
fn records_that_are_not_there() {
    let mut t = Transcript::with(|config| config.lookup = Some(LookupAccess::Open));
    for (method, path) in [
        ("GET", "/lookup/host/nonsense"),
        ("POST", "/lookup/host/nonsense"),
        ("DELETE", "/lookup/host/nonsense"),
        ("GET", "/lookup/host/nonsense/host-name"),
        ("GET", "/lookup/%FF/x"),
        ("GET", "/lookup/host/x/%FF"),
        ("GET", "/lookup"),
        ("GET", "/lookup/host"),
        ("PATCH", RECORDS),
        ("GET", "/lookup/records/bulk"),
        ("PUT", "/lookup/host/x"),
        ("DELETE", "/lookup/host/x/y"),
        ("GET", HLS),
    ] {
        t.check(Nobody, method, path, bare());
    }
    let conditions = "a=b&".repeat(65);
    for query in [
        "operator=maybe",
        "skip=-1",
        "maxresults=x",
        "%FF=%FF",
        conditions.as_str(),
    ] {
        t.check(Nobody, "GET", &format!("{RECORDS}?{query}"), bare());
    }
    let made = t.ask(Nobody, "POST", RECORDS, &json(HOST));
    let path = format!("/{}", made.json()["uri"].as_str().unwrap());
    t.check(Nobody, "GET", &format!("{path}/nothing"), bare());
    for body in ["{", "[]", r#"{"ttl":"never"}"#] {
        t.check(Nobody, "POST", &path, json(body));
    }
    assert_snapshot!(t.text());
}

#[test]
fn who_may_not() {
    let mut t = Transcript::with(|config| config.lookup = Some(LookupAccess::Users));
    let made = t.ask(Ada, "POST", RECORDS, &json(HOST));
    let path = format!("/{}", made.json()["uri"].as_str().unwrap());
    let wrong = crate::support::basic("ada", "wrong");
    for (method, at, rest) in [
        ("POST", RECORDS, json(HOST)),
        ("POST", "/lookup/records/bulk", json(format!("[{HOST}]"))),
        ("PUT", RECORDS, json("{}")),
        ("POST", path.as_str(), json("")),
        ("DELETE", path.as_str(), bare()),
        ("POST", HLS, message("Register", &service("http://a"))),
        ("POST", RECORDS, announced("application/json", 100 << 10)),
    ] {
        t.check(Nobody, method, at, rest.clone());
        t.check(Nobody, method, at, rest.and("authorization", &wrong));
    }
    for (method, rest) in [("POST", json("")), ("DELETE", bare())] {
        t.check(Ben, method, &path, rest);
    }
    let bearer = json(HOST).and("authorization", "Bearer wrong");
    t.check(Nobody, "POST", RECORDS, bearer);
    // Only users may register by default.
    let mut usual = Transcript::new();
    let forwarded = json(HOST).and("x-forwarded-for", "192.0.2.1");
    usual.check(Nobody, "POST", RECORDS, forwarded);
    let mut off = Transcript::with(|config| config.lookup = Some(LookupAccess::Off));
    off.check(Nobody, "GET", RECORDS, bare());
    off.check(Nobody, "POST", HLS, message("Query", ""));
    assert_snapshot!([t.text(), usual.text(), off.text()].concat());
}

#[test]
fn who_asks_too_often() {
    let mut t = Transcript::with(|config| {
        config.limits.lookup_per_s = 1;
        config.proxies = Networks::loopback();
    });
    let from = || with(&[("x-forwarded-for", "192.0.2.1")]);
    let many = format!("[{}]", vec![HOST; 30].join(","));
    let bulk = json(many).and("x-forwarded-for", "192.0.2.2");
    t.check(Ada, "POST", "/lookup/records/bulk", bulk);
    // Twenty seconds' worth accumulates; the refill meanwhile is less than this.
    let refused = (0..10_000).find(|_| t.ask(Nobody, "GET", RECORDS, &from()).status == 429);
    assert!(refused.is_some());
    t.check(Nobody, "GET", RECORDS, from());
    t.check(Nobody, "POST", HLS, from());
    assert_snapshot!(t.text());
}

#[test]
fn messages_that_are_none() {
    let mut t = Transcript::with(|config| config.lookup = Some(LookupAccess::Open));
    t.check(Nobody, "POST", HLS, bare());
    t.check(Nobody, "POST", HLS, typed("text/plain", "<a/>"));
    let envelope = |inner: &str| {
        format!(
            "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\">{inner}</s:Envelope>"
        )
    };
    let deep = format!("{}{}", "<a>".repeat(40), "</a>".repeat(40));
    for body in [
        String::new(),
        "no xml".to_owned(),
        "<a>".to_owned(),
        "<a></b>".to_owned(),
        "<a/>".to_owned(),
        "<a b=\"1\" b=\"2\"/>".to_owned(),
        "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>".to_owned(),
        "<n:a/>".to_owned(),
        envelope(""),
        envelope("<s:Body/>"),
        envelope("<s:Body><a/></s:Body>"),
        envelope(&format!("<s:Body>{deep}</s:Body>")),
        envelope(&deep),
    ] {
        t.check(Nobody, "POST", HLS, xml(body));
    }
    t.check(Nobody, "POST", HLS, xml(b"<a>\xFF</a>".to_vec()));
    t.check(Nobody, "POST", HLS, announced("text/xml", 1 << 40));
    t.check(Nobody, "POST", HLS, message("Dance", ""));
    let many = "<nmwg:metadata id=\"a\"/>".repeat(201);
    t.check(Nobody, "POST", HLS, message("Query", &many));
    assert_snapshot!(t.text());
}

#[test]
fn messages_whose_triggers_fail() {
    let mut t = Transcript::with(|config| config.lookup = Some(LookupAccess::Open));
    for kind in ["Register", "Deregister", "Keepalive", "Key", "Query"] {
        t.check(Nobody, "POST", HLS, message(kind, ""));
        let dangling = "<nmwg:data id=\"d\" metadataIdRef=\"nothing\"/>";
        t.check(Nobody, "POST", HLS, message(kind, dangling));
        let empty = "<nmwg:metadata id=\"a\"/><nmwg:data id=\"d\" metadataIdRef=\"a\"/>";
        t.check(Nobody, "POST", HLS, message(kind, empty));
        t.check(Nobody, "POST", HLS, message(kind, &key("nobody")));
        t.check(Nobody, "POST", HLS, message(kind, &service("")));
    }
    let register = message("Register", &service("http://a.example/"));
    t.check(Ada, "POST", HLS, register.clone());
    t.check(Ben, "POST", HLS, register);
    t.check(
        Ben,
        "POST",
        HLS,
        message("Keepalive", &key("http://a.example/")),
    );
    t.check(
        Ben,
        "POST",
        HLS,
        message("Deregister", &key("http://a.example/")),
    );
    let query = |text: &str, event: &str| {
        format!(
            "<nmwg:metadata id=\"a\"><xquery:subject id=\"s\" \
             xmlns:xquery=\"http://ggf.org/ns/nmwg/tools/org/perfsonar/service/lookup/xquery/1.0/\">\
             {text}</xquery:subject><nmwg:eventType>{event}</nmwg:eventType></nmwg:metadata>\
             <nmwg:data id=\"d\" metadataIdRef=\"a\"/>"
        )
    };
    let known = "http://ggf.org/ns/nmwg/tools/org/perfsonar/service/lookup/query/xquery/1.0";
    for (text, event) in [("for $x in", known), ("", known), ("//x", "made-up")] {
        t.check(Nobody, "POST", HLS, message("Query", &query(text, event)));
    }
    assert_snapshot!(t.text());
}
