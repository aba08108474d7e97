//! Abuse by mails over HTTP and over the web form: large ones, and files attached many times; and by queries for many
//! large records.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plimsoll_tests::server::Client;
use serde_json::{Value, json};

use crate::Row;
use crate::stage::Stage;

const OUTBOX: &str = "/mail/mallory/api/mail/outbox";
const DRAFTS: &str = "/mail/mallory/api/mail/drafts";
const LOOKUP: &str = "/perfSONAR_PS/services/hLS";
const BOUNDARY: &str = "form-boundary";
/// The file of large mails.
const FILE: &str = "large.bin";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("large mails, drafted and sent over HTTP", large_mails).keeps(2 << 30),
        Row::new("a file of a mail, taken along many times", files_many_times).keeps(1 << 30),
        Row::new("a message of many queries for much", queries_for_much),
        Row::new("a large service, changed a little", little_changes).keeps(512 << 20),
    ]
}

/// A mail of Mallory's to herself with a file of this many bytes.
fn mail_with_file(bytes: usize) -> Value {
    let data = STANDARD.encode(vec![7; bytes]);
    json!({ "to": ["mallory@localhost"], "subject": "large", "content": [
        { "contentType": "text/plain", "data": "see the file" },
        { "contentType": "application/octet-stream",
          "contentDisposition": format!("attachment; filename=\"{FILE}\""),
          "contentTransferEncoding": "base64", "data": data } ] })
}

/// Sends JSON; returns status 0 for a closed connection.
fn sent(client: &mut Client, method: &str, path: &str, body: &[u8]) -> (u16, Option<String>) {
    let kind = [("content-type", "application/json")];
    let answer = client.send(method, path, &kind, body);
    answer.map_or((0, None), |answer| {
        let location = answer.header("location").map(str::to_owned);
        (answer.status, location)
    })
}

fn large_mails(stage: &Stage) {
    let mail = mail_with_file(10 << 20).to_string();
    std::thread::scope(|scope| {
        for _ in 0..stage.size(2, 8) {
            scope.spawn(|| {
                for _ in 0..stage.size(1, 6) {
                    let mut mallory = stage.mallory();
                    let (status, draft) = sent(&mut mallory, "POST", DRAFTS, mail.as_bytes());
                    let is_taken = matches!(status, 0 | 201 | 403 | 413 | 429 | 503 | 507);
                    assert!(is_taken, "{status}");
                    let Some(draft) = draft else { continue };
                    // Sent as it is stored, and as rewritten.
                    for body in [&b""[..], mail.as_bytes()] {
                        let path = format!("{draft}?send=true");
                        let (status, _) = sent(&mut mallory, "PUT", &path, body);
                        assert!(status != 500, "{status}");
                    }
                    let (status, _) = sent(&mut mallory, "POST", OUTBOX, mail.as_bytes());
                    assert!(status != 500, "{status}");
                }
            });
        }
        stage.let_the_neighbour_work();
    });
}

/// A form that keeps one file of 10 MB five hundred times.
fn files_many_times(stage: &Stage) {
    assert_eq!(stage.post(OUTBOX, &mail_with_file(10 << 20)), 201);
    let mut mallory = stage.mallory();
    let list = mallory.request("GET", "/mail/mallory/api/mail/inbox", &json!(null));
    let href = list.unwrap().body[0]["href"].as_str().unwrap().to_owned();
    let unid = href.rsplit('/').next().unwrap();
    let cookie = stage.cookie("mallory");
    let page = mallory
        .send("GET", "/write", &[("cookie", &cookie)], b"")
        .unwrap();
    let page = String::from_utf8(page.body).unwrap();
    let proof = page
        .split("name=\"proof\" value=\"")
        .nth(1)
        .expect("the form has a proof");
    let proof = proof.split('"').next().unwrap();
    let field = |name: &str, value: &str| {
        format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        )
    };
    let mut form = field("proof", proof) + &field("to", "mallory@localhost") + &field("do", "send");
    form += &field("keep", &format!("{unid}/{FILE}")).repeat(500);
    form += &format!("--{BOUNDARY}--\r\n");
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    let headers = [
        ("cookie", &*cookie),
        ("content-type", &*kind),
        ("sec-fetch-site", "same-origin"),
    ];
    std::thread::scope(|scope| {
        for _ in 0..stage.size(1, 4) {
            scope.spawn(|| {
                for _ in 0..stage.size(1, 5) {
                    let answer = stage
                        .mallory()
                        .send("POST", "/write", &headers, form.as_bytes());
                    let status = answer.map_or(0, |answer| answer.status);
                    assert!(matches!(status, 0 | 413 | 503), "{status}");
                }
            });
        }
        stage.let_the_neighbour_work();
    });
}

fn metadata(content: &str) -> String {
    format!(r#"<nmwg:metadata id="m">{content}</nmwg:metadata>"#)
}

fn trigger(content: &str) -> String {
    format!(r#"<nmwg:data id="d" metadataIdRef="m">{content}</nmwg:data>"#)
}

/// Registers a service of 4 MB; returns its key.
fn large_service(stage: &Stage) -> String {
    let blocks: String = (0..10_000)
        .map(|number| {
            let name = format!("eth{number}-{}", "x".repeat(200));
            format!(r#"<nmwg:metadata id="m{number}"><n:subject id="s"><t:interface><t:ifName>{name}</t:ifName></t:interface></n:subject></nmwg:metadata>"#)
        })
        .collect();
    let service = r#"<p:subject id="s"><v:service id="p"><v:serviceName>MA</v:serviceName>
        <v:accessPoint>http://mallory</v:accessPoint><v:serviceType>MA</v:serviceType>
        </v:service></p:subject>"#;
    let mut mallory = stage.mallory();
    let registered = ask(
        &mut mallory,
        "Register",
        &(metadata(service) + &trigger(&blocks)),
    );
    let key = registered.split("name=\"lsKey\">").nth(1);
    let key = key.expect("the service gets a key").split('<').next();
    key.unwrap().to_owned()
}

/// Requests all of it a hundred times in one message.
fn queries_for_much(stage: &Stage) {
    let key = large_service(stage);
    let query = format!(
        r#"<x:subject id="s">/nmwg:store[@type='LSStore']/nmwg:data[@metadataIdRef='{key}']</x:subject>
        <nmwg:eventType>http://ggf.org/ns/nmwg/tools/org/perfsonar/service/lookup/xquery/1.0</nmwg:eventType>"#
    );
    let queries = metadata(&query) + &trigger("").repeat(100);
    std::thread::scope(|scope| {
        for _ in 0..stage.size(2, 8) {
            scope.spawn(|| {
                for _ in 0..stage.size(1, 10) {
                    ask(&mut stage.mallory(), "Query", &queries);
                }
            });
        }
        stage.let_the_neighbour_work();
    });
}

/// Adds and removes one block, again and again: each change reads all others.
fn little_changes(stage: &Stage) {
    let key = large_service(stage);
    let key = metadata(&format!(
        r#"<nmwg:key id="k"><nmwg:parameters id="p"><nmwg:parameter name="lsKey">{key}</nmwg:parameter></nmwg:parameters></nmwg:key>"#
    ));
    let block = r#"<nmwg:metadata id="m0"><n:subject id="s"><t:interface><t:ifName>one more</t:ifName></t:interface></n:subject></nmwg:metadata>"#;
    std::thread::scope(|scope| {
        for _ in 0..stage.size(2, 8) {
            scope.spawn(|| {
                for _ in 0..stage.size(1, 10) {
                    for (kind, data) in [("Register", block), ("Key", ""), ("Deregister", block)] {
                        let message = key.clone() + &trigger(data);
                        ask(&mut stage.mallory(), kind, &message);
                    }
                }
            });
        }
        stage.let_the_neighbour_work();
    });
}

/// Returns the answer to a message of the XML protocol; empty if there is none.
fn ask(client: &mut Client, kind: &str, content: &str) -> String {
    let body = format!(
        r#"<E:Envelope xmlns:E="http://schemas.xmlsoap.org/soap/envelope/"><E:Body>
        <nmwg:message type="LS{kind}Request" id="m" xmlns:nmwg="http://ggf.org/ns/nmwg/base/2.0/"
        xmlns:p="http://ggf.org/ns/nmwg/tools/org/perfsonar/1.0/" xmlns:t="http://ggf.org/ns/nmwg/topology/2.0/"
        xmlns:v="http://ggf.org/ns/nmwg/tools/org/perfsonar/service/1.0/"
        xmlns:n="http://ggf.org/ns/nmwg/characteristic/utilization/2.0/"
        xmlns:x="http://ggf.org/ns/nmwg/tools/org/perfsonar/service/lookup/xquery/1.0/"
        >{content}</nmwg:message></E:Body></E:Envelope>"#
    );
    let headers = [("content-type", "text/xml; charset=utf-8")];
    let answer = client.send("POST", LOOKUP, &headers, body.as_bytes());
    answer.map_or(String::new(), |answer| {
        assert!(answer.status < 500, "{}", answer.status);
        String::from_utf8_lossy(&answer.body).into_owned()
    })
}
