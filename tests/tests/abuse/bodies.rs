//! Abuse by bodies: endless, half-sent, and more expensive to process than to send.

use std::io::Write;

use crate::Row;
use crate::stage::{ABUSER, Stage, read_all};

const DOCUMENTS: &str = "/docs/mallory/notes/api/data/documents";
const SIGN_IN: &str = "POST /sign-in HTTP/1.1\r\nhost: localhost\r\n\
    content-type: application/x-www-form-urlencoded\r\n";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("a body without end to a name like a stream's", endless),
        Row::new("sign-ins that are nearly sent", nearly_sent_sign_ins),
        Row::new("large bodies that are nearly sent", nearly_sent_bodies),
        Row::new("a chunk of a byte with a long extension", chunk_extensions),
        Row::new("JSON of many keys, and deep", json),
        Row::new("a form of many names that are alike", form_names),
        Row::new("boundaries that nearly match", boundaries),
        Row::new("namespaces that are written into each element", namespaces),
    ]
}

/// Mailbox, database, and route together look like the address of an attachment.
fn endless(stage: &Stage) {
    let path = "/docs/documents/unid/api/data/documents";
    let length = stage.size(256 << 20, 4 << 30);
    let piece = vec![b' '; 1 << 20];
    let pieces = (0..length >> 20).map(|_| piece.clone());
    // The server closes the connection before all of it is sent, or answers at once.
    let sent = stage.mallory().send_stream("POST", path, length, pieces);
    if let Ok(answer) = sent {
        assert!(answer.status >= 400, "{}", answer.status);
    }
    stage.let_the_neighbour_work();
}

fn nearly_sent_sign_ins(stage: &Stage) {
    let body = "u".repeat(65_000);
    let text = format!("{SIGN_IN}content-length: 65536\r\n\r\n{body}");
    let held = stage.strangers(stage.size(1100, 4000), text.as_bytes());
    stage.let_the_neighbour_work();
    drop(held);
}

fn nearly_sent_bodies(stage: &Stage) {
    let head = stage.head("POST", "/mail/mallory/api/mail/outbox");
    let body = " ".repeat(8 << 20);
    let text = format!(
        "{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len() + 1
    );
    let text = text.as_bytes();
    std::thread::scope(|scope| {
        let count = stage.size(40, 200);
        let sending = (0..count).map(|_| {
            scope.spawn(|| {
                let mut stream = stage.stranger(b"")?;
                let timeout = Some(std::time::Duration::from_secs(2));
                stream.set_write_timeout(timeout).ok()?;
                let _ = stream.write_all(text);
                Some(stream)
            })
        });
        let sending: Vec<_> = sending.collect();
        let held: Vec<_> = sending
            .into_iter()
            .map(|sent| sent.join().unwrap())
            .collect();
        stage.let_the_neighbour_work();
        drop(held);
    });
}

fn chunk_extensions(stage: &Stage) {
    let extension = "x".repeat(10_000);
    let chunk = format!("1;{extension}\r\nx\r\n").repeat(stage.size(1000, 20_000));
    let mut stream = stage
        .stranger(format!("{SIGN_IN}transfer-encoding: chunked\r\n\r\n").as_bytes())
        .unwrap();
    let _ = stream.write_all(chunk.as_bytes());
    let _ = stream.write_all(b"0\r\n\r\n");
    drop(stream);
    stage.let_the_neighbour_work();
}

fn json(stage: &Stage) {
    let keys: Vec<_> = (0..70_000)
        .map(|number| format!("\"k{number}\":0"))
        .collect();
    let wide = format!("{{{}}}", keys.join(","));
    let deep = "[".repeat(500_000) + &"]".repeat(500_000);
    let nested = "{\"a\":".repeat(150_000) + "0" + &"}".repeat(150_000);
    let numbers = format!("[{}]", vec!["1e308"; 150_000].join(","));
    let mut mallory = stage.mallory();
    for path in [
        DOCUMENTS,
        "/mail/mallory/api/calendar/events",
        "/mail/mallory/api/mail/outbox",
        "/lookup/records",
    ] {
        for _ in 0..stage.size(1, 20) {
            for body in [&wide, &deep, &nested, &numbers] {
                let kind = [("content-type", "application/json")];
                match mallory.send("POST", path, &kind, body.as_bytes()) {
                    Ok(answer) => assert!(
                        (200..500).contains(&answer.status),
                        "{path}: {}",
                        answer.status
                    ),
                    Err(_) => mallory = stage.mallory(),
                }
            }
        }
    }
    stage.let_the_neighbour_work();
}

/// Names that collide under a weak hash.
fn form_names(stage: &Stage) {
    let names: Vec<_> = (0..4000_usize)
        .map(|number| {
            let letters = (0..12).map(|bit| ["Aa", "BB"][number >> bit & 1]);
            letters.collect::<String>()
        })
        .collect();
    let body = names.join("=1&");
    let body = &body[..body.len().min(65_000)];
    for _ in 0..stage.size(20, 1000) {
        let text = format!(
            "{SIGN_IN}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = stage.stranger(text.as_bytes()).unwrap();
        let answer = read_all(&mut stream);
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    stage.let_the_neighbour_work();
}

fn boundaries(stage: &Stage) {
    let mut mallory = stage.mallory();
    let made = mallory
        .request("POST", DOCUMENTS, &serde_json::json!({}))
        .unwrap();
    let item = format!("{}/Body", made.location.unwrap());
    let boundary = "-".repeat(69) + "x";
    let kind = format!("multipart/form-data; boundary={boundary}");
    // Each line is nearly the boundary.
    let line = format!("\r\n--{}y", "-".repeat(69));
    let body = line.repeat(stage.size(4 << 20, 64 << 20) / line.len());
    let parts = format!("--{boundary}\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n\r\n")
        .repeat(stage.size(10_000, 100_000));
    for body in [body, parts] {
        let mut mallory = stage.user("mallory", ABUSER).unwrap();
        let sent = mallory.send("POST", &item, &[("content-type", &kind)], body.as_bytes());
        if let Ok(answer) = sent {
            assert!((400..508).contains(&answer.status), "{}", answer.status);
        }
    }
    stage.let_the_neighbour_work();
}

fn namespaces(stage: &Stage) {
    let elements = "<x:a/>".repeat(9_000);
    let long = "n".repeat(stage.size(500_000, 4 << 20));
    for namespace in [&long[..5_000], &long] {
        let body = format!(
            r#"<?xml version="1.0"?><E:Envelope xmlns:E="http://schemas.xmlsoap.org/soap/envelope/"><E:Body>
            <nmwg:message type="LSRegisterRequest" id="m" xmlns:nmwg="http://ggf.org/ns/nmwg/base/2.0/" xmlns:x="{namespace}">
            <nmwg:metadata id="m"><x:subject/></nmwg:metadata>
            <nmwg:data id="d" metadataIdRef="m">{elements}</nmwg:data></nmwg:message></E:Body></E:Envelope>"#
        );
        for _ in 0..stage.size(3, 30) {
            let mut mallory = stage.mallory();
            let kind = [("content-type", "text/xml; charset=utf-8")];
            let sent = mallory.send("POST", "/perfSONAR_PS/services/hLS", &kind, body.as_bytes());
            if let Ok(answer) = sent {
                // SOAP requires a fault with status 500 (1.1, 6.2).
                let is_fault = answer.body.starts_with(b"<?xml");
                assert!(answer.status < 500 || is_fault, "{}", answer.status);
            }
        }
    }
    stage.let_the_neighbour_work();
}
