//! The lookup service over HTTP: both protocols, permissions, limits, sweeping.

use std::io::Write;
use std::time::Duration;

use crate::support::*;
use groupware_lookup::{Context, NewRecord, Registrant};
use groupware_server::{Config, Data, LookupAccess, LookupLayout, Networks, Server};
use groupware_store::{Store, StoreOptions};
use serde_json::json;

const JSON: (&str, &str) = ("content-type", "application/json");
const XML: (&str, &str) = ("content-type", "text/xml; charset=utf-8");
const HLS: &str = "/perfSONAR_PS/services/hLS";

fn start_with(change: impl FnOnce(&mut Config)) -> Server {
    let mut config = config();
    config.lookup = Some(LookupAccess::Open);
    change(&mut config);
    Server::start(config).unwrap()
}

fn ask(server: &Server, method: &str, path: &str, body: &str) -> Reply {
    send(server.address(), method, path, &[JSON], body.as_bytes())
}

fn text(reply: &Reply) -> String {
    String::from_utf8(reply.body.clone()).unwrap()
}

#[track_caller]
fn refused(reply: &Reply, status: u16) {
    assert_eq!(reply.status, status, "{}", text(reply));
    assert_eq!(
        reply.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
}

#[test]
fn a_record_has_a_life() {
    for layout in LookupLayout::ALL {
        let server = start_with(|config| config.lookup_layout = layout);
        let body = r#"{"type":["interface"],"interface-addresses":["10.0.0.1","fe80::1"]}"#;
        let made = ask(&server, "POST", "/lookup/records", body);
        assert_eq!(made.status, 200, "{}", text(&made));
        let uri = format!("/{}", made.json()["uri"].as_str().unwrap());
        refused(&ask(&server, "POST", "/lookup/records", body), 403);
        assert_eq!(ask(&server, "GET", &uri, "").json(), made.json());
        let key = ask(&server, "GET", &format!("{uri}/interface-addresses"), "");
        assert_eq!(
            key.json(),
            json!({ "interface-addresses": ["10.0.0.1", "fe80::1"] })
        );
        refused(&ask(&server, "GET", &format!("{uri}/nothing"), ""), 404);
        let found = ask(
            &server,
            "GET",
            "/lookup/records?interface-addresses=FE80%3A%3A1",
            "",
        );
        assert_eq!(found.json(), json!([made.json()]));
        let found = ask(
            &server,
            "GET",
            "/lookup/records?interface-addresses=10.0.*&maxresults=0",
            "",
        );
        assert_eq!(
            (found.json(), found.header("x-lookup-next-skip")),
            (json!([]), Some("0"))
        );

        let renewed = ask(&server, "POST", &uri, r#"{"ttl":["PT10M"]}"#);
        assert_eq!(renewed.json()["state"], "renewed");
        let bulk = json!({ "record-uris": [&uri[1..]] }).to_string();
        assert_eq!(
            ask(&server, "PUT", "/lookup/records", &bulk).json()["renewed"],
            1
        );
        assert_eq!(ask(&server, "DELETE", &uri, "").json()["state"], "deleted");
        refused(&ask(&server, "DELETE", &uri, ""), 404);
        let bulk = r#"[{"type":"a"},{"type":{}}]"#;
        refused(&ask(&server, "POST", "/lookup/records/bulk", bulk), 400);
        let bulk = r#"[{"type":"a"},{"type":"b"}]"#;
        let made = ask(&server, "POST", "/lookup/records/bulk", bulk);
        assert_eq!(made.json()["registered"], 2, "{}", text(&made));
    }
}

/// Requests like those of perfSONAR's own client: a slash before the query, a type with its
/// charset, numbers among the values.
#[test]
fn what_perfsonars_client_sends_is_taken() {
    let server = start_with(|_| {});
    let json = [("content-type", "application/json; charset=utf-8")];
    let send = |method: &str, path: &str, body: &str| {
        send(server.address(), method, path, &json, body.as_bytes())
    };
    let host = r#"{"type":["host"],"host-name":["ps.example.net"],"host-hardware-memory":[4],
        "host-hardware-cores":[8],"host-vm":[0],"ttl":[]}"#;
    let made = send("POST", "/lookup/records", host);
    assert_eq!(made.status, 200, "{}", text(&made));
    assert_eq!(made.json()["host-hardware-memory"], json!(["4"]));
    let uri = made.json()["uri"].as_str().unwrap().to_owned();
    let query = "/lookup/records/?type=host&host-hardware-memory=4";
    assert_eq!(send("GET", query, "").json(), json!([made.json()]));
    assert_eq!(
        send("POST", &format!("/{uri}/"), "").json()["state"],
        "renewed"
    );
    let bulk = json!({ "record-uris": [uri] }).to_string();
    assert_eq!(send("PUT", "/lookup/records/", &bulk).json()["renewed"], 1);
}

/// The registration of a host by perfSONAR's library.
const PERFSONARS_HOST: &str = r#"{"host-hardware-memory":[4096],"host-hardware-processorcore":[8],"host-hardware-processorcount":[1],"host-hardware-processorspeed":[2400],"host-name":["ps.example.net"],"host-net-interfaces":["lookup/interface/1b2dcc72-7cc1-3dc0-d1ec-136a04d88435"],"host-net-tcp-congestionalgorithm":["cubic"],"host-net-tcp-maxbuffer-recv":[16777216],"host-net-tcp-maxbuffer-send":[16777216],"host-os-kernel":["Linux 6.1"],"host-os-name":["Debian"],"host-os-version":["12"],"host-vm":[0],"location-city":["Bern"],"location-country":["CH"],"location-latitude":[46.9],"location-longitude":[7.4],"location-sitename":["Cafe & Co"],"ttl":["PT120M"],"type":["host"]}"#;

/// The exact bytes that perfSONAR's own programs send by their Perl library, except for the names
/// that the server assigns. The last body is repeated in each later request, even a GET.
#[test]
fn what_perfsonars_programs_send_is_answered() {
    let server = start_with(|_| {});
    let say = |line: &str, body: &str| {
        let length = match body.len() {
            0 => String::new(),
            length => format!("Content-Length: {length}\r\n"),
        };
        let mut stream = connect(server.address());
        let head = format!(
            "{line} HTTP/1.1\r\n{length}Content-Type: application/json; charset=utf-8\r\n\
             Host: 127.0.0.1:9777\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        read_reply(stream).expect("an answer")
    };
    let host = PERFSONARS_HOST;
    let made = say("POST /lookup/records", host).json();
    let uri = made["uri"].as_str().unwrap();
    assert_eq!(made["host-vm"], json!(["0"]));
    assert_eq!(
        (&made["ttl"], &made["type"]),
        (&json!(["PT7200S"]), &json!(["host"]))
    );
    assert_eq!(say("POST /lookup/records", host).status, 403);
    let renewed = say(&format!("POST /{uri}"), host).json();
    assert_eq!(renewed["state"], "renewed");
    assert_eq!(say(&format!("GET /{uri}"), host).json(), renewed);
    let key = say(&format!("GET /{uri}/host-name"), host).json();
    assert_eq!(key, json!({ "host-name": ["ps.example.net"] }));
    for query in [
        "?type=host&host-name=ps.example.net",
        "?operator=ANY&host-name=ps.example.net&type=host",
        "",
    ] {
        let found = say(&format!("GET /lookup/records/{query}"), "").json();
        assert_eq!(found.as_array().map(Vec::len), Some(1), "{query}");
    }
    let bulk = format!(r#"{{"record-uris":["{uri}","lookup/host/nothing"],"ttl":["PT60M"]}}"#);
    let bulk = say("PUT /lookup/records", &bulk).json();
    assert_eq!((&bulk["total"], &bulk["renewed"]), (&json!(2), &json!(1)));
    assert_eq!(
        say(&format!("DELETE /{uri}"), host).json()["state"],
        "deleted"
    );
    assert_eq!(say(&format!("DELETE /{uri}"), host).status, 404);
}

/// Its older library, over libwww-perl, requests this first, and nothing else if that fails.
#[test]
fn what_perfsonars_older_programs_ask_first_is_answered() {
    let body = "<SOAP-ENV:Envelope xmlns:SOAP-ENC=\"http://schemas.xmlsoap.org/soap/encoding/\"\n                   \
        xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\"\n                   \
        xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"\n                   \
        xmlns:SOAP-ENV=\"http://schemas.xmlsoap.org/soap/envelope/\">\n  <SOAP-ENV:Header/>\n  \
        <SOAP-ENV:Body>\n<nmwg:message xmlns:nmwg=\"http://ggf.org/ns/nmwg/base/2.0/\" \
        type=\"EchoRequest\" id=\"message.5843074\"><nmwg:metadata id=\"metadata.7450080\">\
        <nmwg:eventType>http://schemas.perfsonar.net/tools/admin/echo/2.0</nmwg:eventType>\
        </nmwg:metadata><nmwg:data id=\"data.8924994\" metadataIdRef=\"metadata.7450080\">\
        </nmwg:data></nmwg:message>  </SOAP-ENV:Body>\n</SOAP-ENV:Envelope>\n";
    let head = format!(
        "POST {HLS} HTTP/1.1\r\nTE: deflate,gzip;q=0.3\r\nConnection: TE, close\r\n\
         Host: 127.0.0.1:9778\r\nUser-Agent: libwww-perl/6.68\r\nContent-Length: {}\r\n\
         Content-Type: text/xml\r\nSOAPAction: http://ggf.org/ns/nmwg/base/2.0/message/\r\n\r\n",
        body.len()
    );
    assert_eq!(body.len(), 697);
    let server = start_with(|_| {});
    let mut stream = connect(server.address());
    stream.write_all((head + body).as_bytes()).unwrap();
    let reply = read_reply(stream).expect("an answer");
    let said = text(&reply);
    assert!(
        reply.status == 200 && said.contains("success.echo"),
        "{said}"
    );
}

#[test]
fn bad_requests_are_told_in_words() {
    let server = start_with(|_| {});
    for (path, status) in [
        ("/lookup/records?operator=maybe", 400),
        ("/lookup/records?skip=-1", 400),
        ("/lookup/host/nonsense", 404),
    ] {
        refused(&ask(&server, "GET", path, ""), status);
    }
    for body in ["", "{", "[]", r#"{"type":{}}"#, r#"{"type":"a","k":[[]]}"#] {
        refused(&ask(&server, "POST", "/lookup/records", body), 400);
    }
    refused(
        &ask(
            &server,
            "POST",
            "/lookup/records",
            r#"{"type":"a","ttl":"never"}"#,
        ),
        403,
    );
    let plain = send(
        server.address(),
        "POST",
        "/lookup/records",
        &[("content-type", "text/plain")],
        b"{}",
    );
    refused(&plain, 415);
    let huge = format!(r#"{{"type":"a","{}":"b"}}"#, "k".repeat(10 << 20));
    assert_eq!(ask(&server, "POST", "/lookup/records", &huge).status, 413);
    let large = format!(r#"{{"type":"a","{}":"b"}}"#, "k".repeat(1 << 20));
    refused(&ask(&server, "POST", "/lookup/records", &large), 400);
}

fn xml_body(doctype: &str, kind: &str, metadata: &str, data: &str) -> String {
    format!(
        r#"<?xml version="1.0"?>{doctype}<E:Envelope xmlns:E="http://schemas.xmlsoap.org/soap/envelope/"><E:Body>
        <nmwg:message type="LS{kind}Request" id="m1" xmlns:nmwg="http://ggf.org/ns/nmwg/base/2.0/">
        <nmwg:metadata id="m">{metadata}</nmwg:metadata>
        <nmwg:data id="d" metadataIdRef="m">{data}</nmwg:data></nmwg:message></E:Body></E:Envelope>"#
    )
}

const SUBJECT: &str = r#"<p:subject xmlns:p="http://ggf.org/ns/nmwg/tools/org/perfsonar/1.0/">
    <s:service xmlns:s="http://ggf.org/ns/nmwg/tools/org/perfsonar/service/1.0/">
    <s:accessPoint>http://a</s:accessPoint></s:service></p:subject>"#;

#[test]
fn messages_register_and_bombs_are_refused() {
    let server = start_with(|_| {});
    let post = |body: &str| send(server.address(), "POST", HLS, &[XML], body.as_bytes());
    // Large enough to need a memory permit.
    let interface = |n: usize| {
        format!(
            r#"<nmwg:metadata id="i{n}"><t:interface xmlns:t="http://ggf.org/ns/nmwg/topology/2.0/">
        <t:ifName>eth{n}</t:ifName><t:ifAddress>10.1.{}.{}</t:ifAddress></t:interface></nmwg:metadata>"#,
            n >> 8,
            n & 255
        )
    };
    let interfaces: String = (0..2000).map(interface).collect();
    let reply = post(&xml_body("", "Register", SUBJECT, &interfaces));
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.header("content-type"),
        Some("text/xml; charset=utf-8")
    );
    assert!(
        text(&reply).contains("[2000] Data elements have been registered"),
        "{}",
        text(&reply)
    );
    let found = ask(
        &server,
        "GET",
        "/lookup/records?interface-addresses=10.1.7.207",
        "",
    );
    assert_eq!(found.json()[0]["service-locator"], json!(["http://a"]));

    let bomb = r#"<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>"#;
    let bodies = [
        xml_body(bomb, "Register", SUBJECT, "&b;"),
        xml_body(
            r#"<!DOCTYPE x SYSTEM "file:///etc/passwd">"#,
            "Key",
            SUBJECT,
            "",
        ),
        xml_body("", "Key", "&b;", ""),
        xml_body("", "Key", &"<a>".repeat(10_000), ""),
        xml_body("", "Other", "", ""),
        interfaces,
        String::new(),
    ];
    for body in &bodies {
        let reply = post(body);
        assert_eq!(reply.status, 500);
        assert!(text(&reply).contains("SOAP-ENV:Client"), "{}", text(&reply));
    }
    let reply = send(server.address(), "POST", HLS, &[JSON], bodies[0].as_bytes());
    refused(&reply, 415);
}

#[test]
fn only_users_register_unless_it_is_open() {
    let server = start_with(|config| config.lookup = None);
    let passwords = register(&server, &["ann", "bob"]);
    let (ann, bob) = (basic("ann", &passwords[0]), basic("bob", &passwords[1]));
    let admin = format!("Bearer {TOKEN}");
    let through_a_proxy = ("x-forwarded-for", "192.0.2.1");
    let post = |headers: &[(&str, &str)], body: &str| {
        send(
            server.address(),
            "POST",
            "/lookup/records",
            headers,
            body.as_bytes(),
        )
    };
    let body = r#"{"type":"host","host-name":"a"}"#;
    let reply = post(&[JSON, through_a_proxy], body);
    assert_eq!(reply.status, 401, "{}", text(&reply));
    assert_eq!(
        post(&[JSON, ("authorization", "Bearer wrong")], body).status,
        401
    );
    let large = format!(r#"{{"type":"{}"}}"#, "x".repeat(100_000));
    assert_eq!(post(&[JSON, through_a_proxy], &large).status, 401);

    let made = post(&[JSON, through_a_proxy, ("authorization", &ann)], body);
    assert_eq!(made.status, 200, "{}", text(&made));
    let uri = format!("/{}", made.json()["uri"].as_str().unwrap());
    let delete = |headers: &[(&str, &str)]| send(server.address(), "DELETE", &uri, headers, b"");
    refused(&delete(&[("authorization", &bob)]), 403);
    assert_eq!(delete(&[]).status, 401);
    // Queries need no authentication.
    let found = send(
        server.address(),
        "GET",
        "/lookup/records",
        &[through_a_proxy],
        b"",
    );
    assert_eq!(found.json().as_array().unwrap().len(), 1);
    assert_eq!(delete(&[("authorization", &admin)]).status, 200);

    let message = xml_body("", "Register", SUBJECT, "");
    let reply = send(
        server.address(),
        "POST",
        HLS,
        &[XML, through_a_proxy],
        message.as_bytes(),
    );
    assert_eq!(reply.status, 401);
    let key = xml_body("", "Key", SUBJECT, "");
    let reply = send(
        server.address(),
        "POST",
        HLS,
        &[XML, through_a_proxy],
        key.as_bytes(),
    );
    assert!(text(&reply).contains("error.ls.key.not_registered"));

    let server = start_with(|config| config.lookup = Some(LookupAccess::Users));
    assert_eq!(ask(&server, "POST", "/lookup/records", body).status, 401);
    let server = start_with(|config| config.lookup = Some(LookupAccess::Off));
    assert_eq!(ask(&server, "GET", "/lookup/records", "").status, 404);
    assert_eq!(ask(&server, "POST", "/lookup/records", body).status, 404);
}

#[test]
fn what_is_anothers_is_not_renewed() {
    let server = start_with(|_| {});
    let passwords = register(&server, &["ann", "bob"]);
    let (ann, bob) = (basic("ann", &passwords[0]), basic("bob", &passwords[1]));
    let send = |method: &str, path: &str, who: &str, body: &str| {
        let headers = [JSON, ("authorization", who)];
        send(server.address(), method, path, &headers, body.as_bytes())
    };
    let body = r#"{"type":"host","host-name":"a"}"#;
    let made = send("POST", "/lookup/records", &ann, body).json();
    let uri = made["uri"].as_str().unwrap();
    refused(&send("POST", &format!("/{uri}"), &bob, ""), 403);
    let bulk = json!({ "record-uris": [uri, "lookup/host/nonsense", "../x"] }).to_string();
    let reply = send("PUT", "/lookup/records", &bob, &bulk).json();
    assert_eq!(
        (&reply["renewed"], &reply["failure"]),
        (&json!(0), &json!(3)),
        "{reply}"
    );
    assert_eq!(send("GET", &format!("/{uri}"), &bob, "").json(), made);

    let message = |kind: &str, who: &str, metadata: &str| {
        let headers = [XML, ("authorization", who)];
        let body = xml_body("", kind, metadata, "");
        text(&post_message(&server, &headers, &body))
    };
    let key = r#"<nmwg:key><nmwg:parameters id="k"><nmwg:parameter name="lsKey">http://a</nmwg:parameter></nmwg:parameters></nmwg:key>"#;
    assert!(message("Register", &ann, SUBJECT).contains("success.ls.register"));
    for kind in ["Keepalive", "Deregister", "Register"] {
        let reply = message(kind, &bob, key);
        assert!(reply.contains("somebody else"), "{kind}: {reply}");
    }
    assert!(message("Deregister", &ann, key).contains("success.ls.deregister"));
}

fn post_message(server: &Server, headers: &[(&str, &str)], body: &str) -> Reply {
    send(server.address(), "POST", HLS, headers, body.as_bytes())
}

/// Registers a host whose lease ended this many seconds ago, and returns its URI.
fn ended_ago(store: &Store, name: &str, seconds: i64) -> String {
    #[allow(
        clippy::disallowed_methods,
        reason = "leases of a test that lie in the past"
    )]
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let body = format!(r#"{{"type":"host","host-name":"{name}","ttl":"PT60S"}}"#);
    let new = NewRecord::parse(body.as_bytes()).unwrap();
    let decided = store.read(|snapshot| {
        let context = Context {
            snapshot,
            layout: LookupLayout::Indexed,
            now: i64::try_from(now).unwrap() - 60 - seconds,
            random: seconds.unsigned_abs().into(),
            who: &Registrant::Anybody,
        };
        groupware_lookup::register(&context, new)
    });
    let decided = decided.unwrap();
    store.commit_blocking(decided.batch).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&decided.reply).unwrap();
    format!("/{}", record["uri"].as_str().unwrap())
}

#[test]
fn ended_leases_are_not_found_and_soon_not_renewed() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_sqlite(folder.path(), StoreOptions::default()).unwrap();
    let (just, long) = (
        ended_ago(&store, "just", 5),
        ended_ago(&store, "long", 10_000),
    );
    drop(store);
    let server = start_with(|config| config.data = Data::Folder(folder.path().into()));
    for uri in [&just, &long] {
        refused(&ask(&server, "GET", uri, ""), 404);
    }
    assert_eq!(ask(&server, "GET", "/lookup/records", "").json(), json!([]));
    let renewed = ask(&server, "POST", &just, "");
    assert_eq!(renewed.json()["state"], "renewed", "{}", text(&renewed));
    assert_eq!(ask(&server, "GET", &just, "").status, 200);
    // Too late; or already swept.
    let late = ask(&server, "POST", &long, "");
    assert!([403, 404].contains(&late.status), "{}", text(&late));
}

#[test]
fn wide_queries_are_cut_short() {
    let server = start_with(|_| {});
    // More addresses than a query may read, each in a row of its own, none of which it finds.
    let record = |number: usize, addresses: usize| {
        let addresses: Vec<String> = (0..addresses)
            .map(|n| format!("{}-{number}-{n}y", number % 5))
            .collect();
        json!({ "type": "host", "interface-addresses": addresses }).to_string()
    };
    for number in 0..11 {
        let body = record(number, 19_000);
        assert_eq!(ask(&server, "POST", "/lookup/records", &body).status, 200);
    }
    // This many can't be written at once, either.
    let body = record(11, 25_000);
    refused(&ask(&server, "POST", "/lookup/records", &body), 413);
    let get = |query: &str| ask(&server, "GET", &format!("/lookup/records?{query}"), "");
    let wide = "interface-addresses=0*x,1*x,2*x,3*x,4*x&interface-addresses-operator=any";
    let reply = get(wide);
    refused(&reply, 503);
    assert!(text(&reply).contains("too wide"));
    refused(&get(&format!("k={}", "*".repeat(500))), 400);
    refused(&get(&format!("k={}", "a*,".repeat(10_000))), 400);
    let many = get(&format!("k={}", "a*,".repeat(1_000_000)));
    assert!((400..500).contains(&many.status), "{}", many.status);
    // It keeps responding.
    assert_eq!(get("interface-addresses=0-5-77y").status, 200);
}

#[test]
fn clients_elsewhere_have_a_rate() {
    let server = start_with(|config| {
        config.lookup = Some(LookupAccess::Open);
        config.limits.lookup_per_s = 1;
        config.proxies = Networks::loopback();
    });
    let from_afar = [JSON, ("x-forwarded-for", "192.0.2.1")];
    let get =
        |headers: &[(&str, &str)]| send(server.address(), "GET", "/lookup/records", headers, b"");
    // However much is refilled between two of them.
    let refusals = (0..10_000)
        .map(|_| get(&from_afar))
        .find(|reply| reply.status == 429);
    let refusal = refusals.expect("a refusal");
    assert!(refusal.header("retry-after").is_some());
    assert_eq!(get(&[]).status, 200);
    assert_eq!(get(&[("x-forwarded-for", "192.0.2.2")]).status, 200);
    let many: Vec<_> = (0..100)
        .map(|n| json!({ "type": "a", "k": n.to_string() }))
        .collect();
    let body = json!(many).to_string();
    let headers = [JSON, ("x-forwarded-for", "192.0.2.3")];
    let path = "/lookup/records/bulk";
    let bulk = || send(server.address(), "POST", path, &headers, body.as_bytes());
    // Each fills the bucket, which drains by one request per second.
    assert!((0..2).any(|_| bulk().status == 429));
}

#[test]
fn registrations_outlive_a_restart_and_removed_ones_are_cleared_away() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = |config: &mut Config| config.data = Data::Folder(folder.path().into());
    let server = start_with(on_disk);
    let addresses: Vec<String> = (0..3000)
        .map(|n| format!("10.0.{}.{}/32", n >> 8, n & 255))
        .collect();
    let body = json!({ "type": "service", "interface-addresses": addresses }).to_string();
    let made = ask(&server, "POST", "/lookup/records", &body);
    assert_eq!(made.status, 200, "{}", text(&made));
    server.shutdown();
    let server = start_with(on_disk);
    let query = "/lookup/records?interface-addresses=10.0.1.1/32";
    let found = ask(&server, "GET", query, "");
    assert_eq!(found.json()[0]["uri"], made.json()["uri"]);
    let uri = format!("/{}", made.json()["uri"].as_str().unwrap());
    assert_eq!(ask(&server, "DELETE", &uri, "").status, 200);
    assert_eq!(ask(&server, "GET", query, "").json(), json!([]));
    // The same again, before or after the sweep.
    assert_eq!(ask(&server, "POST", "/lookup/records", &body).status, 200);
    let commits = || {
        let metrics = admin(&server, "GET", "/metrics", serde_json::Value::Null);
        let text = text(&metrics);
        let line = text
            .lines()
            .find(|line| line.starts_with("plimsoll_store_commits_total"));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .unwrap()
    };
    // The old index has 3000 rows, of which a sweep clears 256: twelve batches.
    wait_for("the sweeps", || commits() >= 14);
    assert_eq!(
        ask(&server, "GET", query, "")
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    // The sweeper stops at once, whatever it waits for.
    let (stopped, told) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        server.shutdown();
        stopped.send(()).unwrap();
    });
    told.recv_timeout(Duration::from_secs(120)).unwrap();
}
