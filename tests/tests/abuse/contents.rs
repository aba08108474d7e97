//! Abuse by content that the server parses: messages, meetings, queries.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use plimsoll_tests::server::Client;
use plimsoll_tests::wait_until;
use serde_json::json;

use crate::Row;
use crate::stage::{Setting, Stage, read_all, stranger_at};

const EVENTS: &str = "/mail/mallory/api/calendar/events";

const ASKS_IN_VAIN: Setting = Setting {
    asks_in_vain: true,
    ..Setting::PLAIN
};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("a message of very many parts", mime_parts),
        Row::new("messages as large as they get, and larger", large_messages).keeps(1 << 30),
        Row::new("a message to very many", recipients),
        Row::new("SMTP messages that are nearly sent", nearly_sent_messages),
        Row::new("mails whose origin nobody tells", origins_unknown).on(ASKS_IN_VAIN),
        Row::new("a meeting of very many", attendees),
        Row::new("dates at the end of time", dates),
        Row::new("patterns with many stars", patterns),
        Row::new("a text of very many links", links),
        Row::new("XML of very many namespaces", namespaces),
    ]
}

/// Speaks SMTP up to the text of a message to Mallory; `None` if the server refuses more.
fn smtp(stage: &Stage) -> Option<TcpStream> {
    let hello = b"EHLO x\r\nMAIL FROM:<eve@example.com>\r\nRCPT TO:<mallory@localhost>\r\nDATA\r\n";
    let mut stream = stranger_at(stage.smtp, hello)?;
    let mut said = String::new();
    while !said.contains("354 ") {
        let mut bytes = [0; 1024];
        let count = stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
        said += &String::from_utf8_lossy(&bytes[..count]);
        if said.contains("421 ") || said.contains("450 ") || said.contains("452 ") {
            return None;
        }
    }
    Some(stream)
}

fn deliver(stage: &Stage, message: &str) -> String {
    let Some(mut stream) = smtp(stage) else {
        return String::new();
    };
    let _ = stream.write_all(message.as_bytes());
    let _ = stream.write_all(b"\r\n.\r\nQUIT\r\n");
    let mut said = String::new();
    let _ = stream.read_to_string(&mut said);
    said
}

fn mime_parts(stage: &Stage) {
    let head = "From: eve@example.com\r\nSubject: parts\r\nMIME-Version: 1.0\r\n";
    let mut wide = format!("{head}Content-Type: multipart/mixed; boundary=b\r\n\r\n");
    wide += &"--b\r\n\r\nx\r\n".repeat(100_000);
    wide += "--b--\r\n";
    let mut deep = head.to_owned();
    for level in 0..20_000 {
        let _ = write!(
            deep,
            "Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n"
        );
    }
    for message in [wide, deep] {
        for _ in 0..stage.size(2, 20) {
            let said = deliver(stage, &message);
            assert!(!said.contains("451 "), "{said}");
        }
    }
    // The recipient opens the accepted messages.
    let mut mallory = stage.mallory();
    let path = "/mail/mallory/api/mail/inbox";
    let list = mallory.request("GET", path, &json!(null)).unwrap();
    for line in list.body.as_array().unwrap() {
        let href = line["href"].as_str().unwrap();
        for query in ["", "?attachmentlinks=true"] {
            let read = mallory.request("GET", &format!("{href}{query}"), &json!(null));
            assert_eq!(read.unwrap().status, 200);
        }
    }
    stage.let_the_neighbour_work();
}

/// Of very many parts, all head, and too large; from several clients at once.
fn large_messages(stage: &Stage) {
    let head = "From: eve@example.com\r\nSubject: large\r\nMIME-Version: 1.0\r\n\
        Content-Type: multipart/mixed; boundary=b\r\n\r\n";
    let part = format!("--b\r\n\r\n{}\r\n", "x".repeat(140));
    let parts = head.to_owned() + &part.repeat(100_000) + "--b--\r\n";
    let people = " a@example.com,\r\n".repeat(1_000_000 - 70_000);
    let all_head = format!("From: eve@example.com\r\nTo:{people}\r\n\r\nx");
    let too_large = parts.repeat(2);
    std::thread::scope(|scope| {
        for _ in 0..stage.size(2, 8) {
            scope.spawn(|| {
                for _ in 0..stage.size(1, 5) {
                    let said = deliver(stage, &parts);
                    // A client that has sent very much has to wait.
                    let is_not_now = said.is_empty() || said.contains("452 ");
                    assert!(is_not_now || said.contains("250 2.0.0 D"), "{said}");
                    for message in [&all_head, &too_large] {
                        let said = deliver(stage, message);
                        let is_not_now = said.is_empty() || said.contains("452 ");
                        assert!(is_not_now || said.contains("552 5.3.4 "), "{said}");
                    }
                }
            });
        }
        stage.let_the_neighbour_work();
    });
}

fn recipients(stage: &Stage) {
    let to: Vec<_> = (0..60_000)
        .map(|number| format!("u{number}@localhost"))
        .collect();
    let message = json!({ "to": to, "subject": "all", "content": [] });
    for _ in 0..stage.size(3, 50) {
        let status = stage.post("/mail/mallory/api/mail/outbox", &message);
        assert!((400..500).contains(&status), "{status}");
    }
    let head = format!(
        "From: mallory@localhost\r\nTo: {}\r\n\r\nx",
        to.join(",\r\n ")
    );
    let said = deliver(stage, &head);
    assert!(!said.contains("451 "), "{said}");
    // One message at a time, over SMTP.
    let hello = b"EHLO x\r\nMAIL FROM:<eve@example.com>\r\n";
    let mut stream = stranger_at(stage.smtp, hello).unwrap();
    let lines = "RCPT TO:<mallory@localhost>\r\n".repeat(stage.size(10_000, 100_000));
    let mut reader = stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut sink = Vec::new();
            let _ = reader.read_to_end(&mut sink);
        });
        let _ = stream.write_all(lines.as_bytes());
        let _ = stream.write_all(b"QUIT\r\n");
    });
    stage.let_the_neighbour_work();
}

fn nearly_sent_messages(stage: &Stage) {
    let line = "x".repeat(900) + "\r\n";
    let text = line.repeat((8 << 20) / line.len());
    let held: Vec<_> = (0..stage.size(40, 300))
        .map(|_| {
            let mut stream = smtp(stage)?;
            let timeout = Some(std::time::Duration::from_secs(2));
            stream.set_write_timeout(timeout).ok()?;
            let _ = stream.write_all(text.as_bytes());
            Some(stream)
        })
        .collect();
    stage.let_the_neighbour_work();
    drop(held);
}

/// Whole mails from very many addresses, with more signatures than are checked, of domains for which no name server
/// answers.
fn origins_unknown(stage: &Stage) {
    let filler = "eA".repeat(200);
    let mut signatures = String::new();
    for number in 0..100 {
        let _ = write!(
            signatures,
            "DKIM-Signature: v=1; a=rsa-sha256; d=d{number}.example; s=s; c=relaxed/relaxed;\r\n \
             h=from; bh={filler}=; b={filler}==\r\n"
        );
    }
    let held: Vec<_> = (0..stage.size(100, 900))
        .filter_map(|number| {
            let [.., high, low] = number.to_be_bytes();
            let text = format!(
                "PROXY TCP4 192.0.{high}.{low} 198.51.100.1 4000 25\r\nEHLO x\r\n\
                 MAIL FROM:<eve@example{number}.com>\r\nRCPT TO:<mallory@localhost>\r\nDATA\r\n\
                 From: eve@example{number}.com\r\nSubject: signed\r\n{signatures}\r\nx\r\n.\r\n"
            );
            stranger_at(stage.smtp, text.as_bytes())
        })
        .collect();
    stage.let_the_neighbour_work();
    drop(held);
}

fn attendees(stage: &Stage) {
    let people: Vec<_> = (0..30_000)
        .map(|number| json!({ "email": format!("u{number}@localhost") }))
        .collect();
    let event = json!({ "events": [{ "summary": "all", "attendees": people,
        "start": { "date": "2026-01-05", "time": "12:00:00", "utc": true },
        "end": { "date": "2026-01-05", "time": "13:00:00", "utc": true } }] });
    let lines: String = (0..25_000)
        .map(|number| format!("ATTENDEE:mailto:u{number}@localhost\r\n"))
        .collect();
    let text = format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\n\
         DTSTART:20260105T120000Z\r\nDTEND:20260105T130000Z\r\n{lines}END:VEVENT\r\nEND:VCALENDAR\r\n"
    );
    for _ in 0..stage.size(3, 50) {
        let status = stage.post(EVENTS, &event);
        assert!((400..500).contains(&status), "{status}");
        let kind = [("content-type", "text/calendar")];
        let sent = stage.mallory().send("POST", EVENTS, &kind, text.as_bytes());
        let status = sent.unwrap().status;
        assert!((400..500).contains(&status), "{status}");
    }
    stage.let_the_neighbour_work();
}

fn dates(stage: &Stage) {
    for date in [
        "1000000000-01-01",
        "9999-12-31",
        "-9999-01-01",
        "0000-00-00",
    ] {
        for end in ["23:59:60", "24:00:00", "12:00:00"] {
            let event = json!({ "events": [{ "summary": "late",
                "start": { "date": date, "time": "12:00:00", "utc": true },
                "end": { "date": date, "time": end, "utc": true } }] });
            let status = stage.post(EVENTS, &event);
            assert!((200..500).contains(&status), "{date} {end}: {status}");
        }
    }
    let mut mallory = stage.mallory();
    for query in [
        "?since=9999-12-31T23:59:59Z",
        "?since=1000000000-01-01T00:00:00Z",
        "?start=18446744073709551615&count=18446744073709551615",
        "?before=-9999-01-01T00:00:00Z",
    ] {
        let path = format!("{EVENTS}{query}");
        let answer = mallory.request("GET", &path, &json!(null)).unwrap();
        assert!(
            (200..500).contains(&answer.status),
            "{path}: {}",
            answer.status
        );
    }
    for page in [
        "/calendar/month/9999-12",
        "/calendar/week/9999-12-31",
        "/calendar/week/1000000000-01-01",
    ] {
        let answer = mallory.send("GET", page, &[], b"").unwrap();
        assert!(
            (200..500).contains(&answer.status),
            "{page}: {}",
            answer.status
        );
    }
    stage.let_the_neighbour_work();
}

fn patterns(stage: &Stage) {
    let mut mallory = stage.mallory();
    let value = "a".repeat(200);
    for number in 0..stage.size(100, 2000) {
        let record = json!({ "type": "host", "host-name": format!("{value}{number}") });
        let made = mallory.request("POST", "/lookup/records", &record).unwrap();
        assert!((200..500).contains(&made.status), "{}", made.status);
    }
    let values = vec!["a".repeat(4000); 475];
    for number in 0..stage.size(2, 20) {
        let record =
            json!({ "type": "host", "host-name": number.to_string(), "group-domains": values });
        let made = mallory.request("POST", "/lookup/records", &record).unwrap();
        assert!((200..500).contains(&made.status), "{}", made.status);
    }
    // Too many stars, just as many as allowed, and many that nearly match at every position.
    let nearly = vec![format!("*{}b*", "a".repeat(490)); 50].join(",");
    let paths = [
        format!("host-name={}b&type=*&*=*", "a*".repeat(60)),
        format!("host-name={}b&type=*&*=*", "a*".repeat(8)),
        format!("group-domains={nearly}&group-domains-operator=any"),
    ];
    for number in 0..stage.size(6, 100) {
        let path = format!("/lookup/records?{}", paths[number % paths.len()]);
        let answer = mallory.send("GET", &path, &[], b"").unwrap();
        // A query that would scan too much is refused.
        let is_right = matches!(answer.status, 200 | 400 | 503);
        assert!(is_right, "{}", answer.status);
    }
    stage.let_the_neighbour_work();
}

/// Opened as a page, which makes links of texts that begin like one.
fn links(stage: &Stage) {
    let line = "https://a ".repeat(90) + "\r\n";
    let text = line.repeat(stage.size(2 << 20, 15 << 20) / line.len());
    let said = deliver(stage, &format!("Subject: links\r\n\r\n{text}"));
    assert!(said.contains("250 2.0.0 Delivered"), "{said}");
    let cookie = stage.cookie("mallory");
    let cookie = [("cookie", &*cookie)];
    let mut mallory = stage.mallory();
    let list = mallory.request("GET", "/mail/mallory/api/mail/inbox", &json!(null));
    let list = list.unwrap();
    let unid = list.body[0]["href"]
        .as_str()
        .unwrap()
        .rsplit('/')
        .next()
        .unwrap();
    let path = format!("/message/{unid}");
    let open = |mallory: &mut Client| {
        let page = mallory.send("GET", &path, &cookie, b"").unwrap();
        let is_shown = page.status == 200;
        // A page that takes too long, or for which there is no room, is refused.
        let said = String::from_utf8_lossy(&page.body);
        let is_told = page.status == 503
            && (said.contains("The request took too long.")
                || said.contains("Too many large responses wait to be received."));
        assert!(is_shown || is_told, "{}: {said:.200}", page.status);
        is_shown
    };
    wait_until(Duration::from_secs(120), "it is shown to one alone", || {
        open(&mut mallory)
    });
    std::thread::scope(|scope| {
        for _ in 0..stage.size(2, 8) {
            scope.spawn(|| {
                let mut mallory = stage.mallory();
                for _ in 0..stage.size(1, 5) {
                    open(&mut mallory);
                }
            });
        }
        stage.let_the_neighbour_work();
    });
}

/// As much as a stranger may send, nearly all of it declarations: on one element, and on nested elements that each use
/// the declarations of the outermost.
fn namespaces(stage: &Stage) {
    const BYTES: usize = 58 << 10;
    let declared = |count: usize| -> String {
        let declared =
            (0..count).map(|number| format!(" xmlns:n{number}=\"urn:example:{number}\""));
        let text: String = declared.collect();
        format!("<a{text}/>")
    };
    let mut within = String::from("<n0:a xmlns:n0=\"urn:example:0\">");
    let mut ends = String::new();
    for number in 1..60 {
        let _ = write!(within, "<n0:a xmlns:n{number}=\"urn:example:{number}\">");
        ends += "</n0:a>";
    }
    within += &"<n0:b/>".repeat((BYTES - within.len() - ends.len()) / 8);
    within += &ends;
    within += "</n0:a>";
    let bodies = [declared(1), declared(1600), within];
    assert!(bodies.iter().all(|body| body.len() <= BYTES));
    let ask = |body: &str| {
        let text = format!(
            "POST /perfSONAR_PS/services/hLS HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: text/xml\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = stage.stranger(text.as_bytes());
        answer.map_or_else(String::new, |mut stream| read_all(&mut stream))
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..stage.size(15, 1500) {
                    let answer = ask(&bodies[number % bodies.len()]);
                    let status = answer.get(9..12).unwrap_or_default();
                    // SOAP reports a bad message by a fault with status 500.
                    let is_blamed = answer.contains("<faultcode>SOAP-ENV:Client<");
                    let is_later = matches!(status, "429" | "503");
                    assert!(answer.is_empty() || is_blamed || is_later, "{answer}");
                }
            });
        }
        stage.let_the_neighbour_work();
    });
}
