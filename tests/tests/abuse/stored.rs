//! Abuse by stored data, and by requests for it: uploads, others' mailboxes, unread answers, deletions.

use std::net::TcpStream;

use serde_json::json;

use crate::Row;
use crate::stage::{ABUSER, Setting, Stage, abuser, stranger_from};

const DOCUMENTS: &str = "/docs/mallory/notes/api/data/documents";
/// The quota of a user, and a little more for the server's own data.
const QUOTA_BYTES: u64 = (2 << 30) + (64 << 20);
/// The limit of one user's writes into others' mailboxes (256 MiB), as much in her own, and its log.
const MEETINGS_BYTES: u64 = 768 << 20;
/// The limit of buffered files for one client, and a little overhead.
const UNREAD_BYTES: u64 = (256 << 20) + (64 << 20);
/// The limit of one user's registrations (256 MiB), and its log.
const REGISTERED_BYTES: u64 = 384 << 20;
/// A quarter of it is reserved for removals and small changes. The rest is less than the buffered files for one client
/// elsewhere.
const SMALL_DISK: Setting = Setting {
    disk: Some("280m"),
    ..Setting::PLAIN
};
const SMALL_DISK_BYTES: u64 = 210 << 20;
const OUTBOX: &str = "/mail/mallory/api/mail/outbox";

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("uploads that announce far more than comes", announced).keeps(QUOTA_BYTES),
        Row::new("uploads in chunks that never begin", announced_chunks).keeps(QUOTA_BYTES),
        Row::new("uploads of no length, and very many parts", parts).keeps(QUOTA_BYTES),
        Row::new("meetings for somebody else", meetings).keeps(MEETINGS_BYTES),
        Row::new("large answers that nobody reads", unread).keeps(UNREAD_BYTES),
        Row::new("one large message, read by many at once", read_at_once).keeps(UNREAD_BYTES),
        Row::new("searches in a large mailbox", searches).after(large_mailbox),
        Row::new("the removal of a large mailbox", removal)
            .after(huge_mailbox)
            .holding_up_no_change(),
        Row::new("a large folder removed, a large trash emptied", clear_out)
            .after(large_folder_and_trash)
            .holding_up_no_change(),
        Row::new("folders of one name, made at once", same_folder),
        Row::new("files beside very many meetings", files_beside_meetings)
            .after(many_meetings)
            .keeps(512 << 20),
        Row::new("registrations without end", registrations).keeps(REGISTERED_BYTES),
        Row::new(
            "large registrations, read by many at once",
            large_registrations,
        )
        .keeps(UNREAD_BYTES + (128 << 20)),
        Row::new("archives that nobody reads", archives).after(large_mailbox),
        Row::new("unread answers on a small disk", unread_on_a_small_disk)
            .on(SMALL_DISK)
            .keeps(SMALL_DISK_BYTES),
    ]
}

/// Creates a document; returns its path.
fn document(stage: &Stage) -> String {
    let made = stage.mallory().request("POST", DOCUMENTS, &json!({}));
    made.unwrap().location.unwrap()
}

fn announced(stage: &Stage) {
    let path = document(stage);
    let held: Vec<_> = (0..stage.size(40, 200))
        .filter_map(|number| {
            let head = stage.head("PUT", &format!("{path}/Body/{number}"));
            stage.stranger(
                format!(
                    "{head}content-length: {}\r\n\r\nx",
                    [60_000_000, 4_000_000_000_u64][number % 2]
                )
                .as_bytes(),
            )
        })
        .collect();
    stage.let_the_neighbour_work();
    drop(held);
}

fn announced_chunks(stage: &Stage) {
    let unid = document(stage).rsplit('/').next().unwrap().to_owned();
    let path = format!("/tus/mallory/notes/{unid}/Body");
    let metadata: Vec<_> = (0..1500).map(|number| format!("k{number} YQ==")).collect();
    let metadata = format!("filename YQ==,{}", metadata.join(","));
    let mut mallory = stage.mallory();
    let mut begun = 0;
    for number in 0..stage.size(60, 1000) {
        // Uploads up to the share; more than the share; a head that is all metadata.
        let (length, metadata) = match number % 3 {
            0 => ("60000000", "filename YQ=="),
            1 => ("4000000000", "filename YQ=="),
            _ => ("60000000", &*metadata),
        };
        let headers = [
            ("tus-resumable", "1.0.0"),
            ("upload-length", length),
            ("upload-metadata", metadata),
        ];
        match mallory.send("POST", &path, &headers, b"") {
            Ok(answer) => {
                let status = answer.status;
                assert!(status < 500 || status == 507, "{status}");
                begun += usize::from(status == 201);
            }
            Err(_) => mallory = stage.mallory(),
        }
    }
    // All of the share, and no more.
    assert!((20..=36).contains(&begun), "{begun} uploads");
    stage.let_the_neighbour_work();
}

/// Uploads of undeclared length, and joined parts: all of them, some that don't exist, and again.
fn parts(stage: &Stage) {
    let unid = document(stage).rsplit('/').next().unwrap().to_owned();
    let path = format!("/tus/mallory/notes/{unid}/Body");
    let mut mallory = stage.mallory();
    let mut begin = |headers: &[(&str, &str)], body: &[u8]| {
        let all = [&[("tus-resumable", "1.0.0")], headers].concat();
        let Ok(answer) = mallory.send("POST", &path, &all, body) else {
            // A refused request with a pending body may have to reconnect.
            mallory = stage.mallory();
            return None;
        };
        let status = answer.status;
        assert!(status < 500 || status == 507, "{status}");
        answer.header("location").map(str::to_owned)
    };
    let chunk = ("content-type", "application/offset+octet-stream");
    let part = [
        ("upload-concat", "partial"),
        ("upload-length", "10000"),
        chunk,
    ];
    for _ in 0..stage.size(2, 20) {
        let made = (0..stage.size(20, 150)).filter_map(|_| begin(&part, &[7; 10_000]));
        let mut names: Vec<String> = made.collect();
        names.push(format!("/tus/mallory/{}", "0".repeat(32)));
        for count in [names.len(), names.len() - 1, names.len() - 1] {
            let concat = format!("final;{}", names[..count].join(" "));
            begin(&[("upload-concat", &concat)], b"");
        }
    }
    let long = format!("final;{}", "a ".repeat(10_000));
    begin(&[("upload-concat", &long)], b"");
    for _ in 0..stage.size(200, 2000) {
        begin(&[("upload-defer-length", "1")], b"");
    }
    stage.let_the_neighbour_work();
}

fn meetings(stage: &Stage) {
    let description = "x".repeat(60_000);
    let mut mallory = stage.mallory();
    for _ in 0..stage.size(100, 20_000) {
        let event = json!({ "events": [{ "summary": "again", "description": description,
            "attendees": [{ "email": "bob@localhost" }],
            "start": { "date": "2026-01-05", "time": "12:00:00", "utc": true },
            "end": { "date": "2026-01-05", "time": "13:00:00", "utc": true } }] });
        let path = "/mail/mallory/api/calendar/events";
        let made = mallory.request("POST", path, &event).unwrap();
        let is_refused = matches!(made.status, 403 | 413 | 429 | 507);
        assert!(made.status == 201 || is_refused, "{}", made.status);
    }
    let mut bob = stage.user("bob", ABUSER).unwrap();
    let path = "/mail/bob/api/calendar/invitations";
    let list = bob.request("GET", path, &json!(null)).unwrap();
    assert_eq!(list.status, 200);
    stage.let_the_neighbour_work();
}

/// Creates a message of 12 MiB in Mallory's inbox; returns its path.
fn large_message(stage: &Stage) -> String {
    let text = "large ".repeat((12 << 20) / 6);
    let message = json!({ "to": ["mallory@localhost"], "subject": "large",
        "content": [{ "contentType": "text/plain", "data": text }] });
    let status = stage.post(OUTBOX, &message);
    assert_eq!(status, 201);
    let path = "/mail/mallory/api/mail/inbox";
    let list = stage.mallory().request("GET", path, &json!(null)).unwrap();
    list.body[0]["href"].as_str().unwrap().to_owned()
}

fn unread(stage: &Stage) {
    let href = large_message(stage);
    let formats = ["?format=mime", "", "?format=mime&markread=false"];
    let ask = |number: usize| -> Option<TcpStream> {
        let path = format!("{href}{}", formats[number % formats.len()]);
        stage.stranger(format!("{}\r\n", stage.head("GET", &path)).as_bytes())
    };
    let held: Vec<_> = (0..stage.size(40, 300)).map(ask).collect();
    stage.let_the_neighbour_work();
    stage.let_the_neighbour_work();
    drop(held);
}

/// The neighbour's changes are still stored.
fn unread_on_a_small_disk(stage: &Stage) {
    let href = large_message(stage);
    let request = format!("{}\r\n", stage.head("GET", &format!("{href}?format=mime")));
    let held: Vec<_> = (0..stage.size(72, 144))
        .filter_map(|number| {
            let source = abuser(number % 4);
            stranger_from(source, stage.address(), request.as_bytes())
        })
        .collect();
    stage.let_the_neighbour_work();
    stage.let_the_neighbour_work();
    let read = stage.mallory().send("GET", &href, &[], b"").unwrap();
    assert!(matches!(read.status, 200 | 503 | 507), "{}", read.status);
    drop(held);
}

fn read_at_once(stage: &Stage) {
    let href = large_message(stage);
    let readers = stage.size(20, 100);
    std::thread::scope(|scope| {
        for _ in 0..readers {
            scope.spawn(|| {
                for _ in 0..stage.size(1, 5) {
                    let mut mallory = stage.mallory();
                    let read = mallory.send("GET", &href, &[], b"");
                    if let Ok(answer) = read {
                        assert!(matches!(answer.status, 200 | 503), "{}", answer.status);
                    }
                }
            });
        }
    });
    stage.let_the_neighbour_work();
}

/// Adds this many messages to Mallory's inbox.
fn fill(stage: &Stage, messages: usize) {
    let body = json!({ "users": ["mallory"], "messages": messages,
        "profile": [{ "text_bytes": 500, "attachment_bytes": 0, "permille": 1000 }] });
    let filled = stage
        .admin()
        .request("POST", "/admin/mail/fill", &body)
        .unwrap();
    assert_eq!(filled.status, 200, "{filled:?}");
}

fn large_mailbox(stage: &Stage) {
    fill(stage, stage.size(5_000, 100_000));
}

fn huge_mailbox(stage: &Stage) {
    fill(stage, stage.size(10_000, 1_000_000));
}

fn searches(stage: &Stage) {
    let queries = [
        "search=nothing-like-it",
        "sort=subject&start=4000",
        "start=4999&count=100",
        "sort=size&desc=true",
    ];
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut mallory = stage.mallory();
                for number in 0..stage.size(4, 40) {
                    let query = queries[number % queries.len()];
                    let path = format!("/mail/mallory/api/mail/inbox?{query}");
                    let answer = mallory.send("GET", &path, &[], b"").unwrap();
                    assert!(
                        (200..500).contains(&answer.status),
                        "{query}: {}",
                        answer.status
                    );
                }
            });
        }
    });
    stage.let_the_neighbour_work();
}

/// Deletes until everything is gone: only then is there an answer.
fn removal(stage: &Stage) {
    let gone = stage
        .admin()
        .request("DELETE", "/admin/users/mallory", &json!(null));
    assert_eq!(gone.unwrap().status, 204);
    stage.let_the_neighbour_work();
}

const FOLDERS: &str = "/mail/mallory/api/mail/folders";

/// Moves all messages of the inbox into a folder, and some of them into the trash.
fn large_folder_and_trash(stage: &Stage) {
    fill(stage, stage.size(1_000, 50_000));
    let mut mallory = stage.mallory();
    let made = mallory.request("POST", FOLDERS, &json!({ "name": "old" }));
    assert_eq!(made.unwrap().status, 201);
    let folder = the_folder(stage);
    for number in 0.. {
        let inbox = "/mail/mallory/api/mail/inbox?count=1000";
        let list = mallory.request("GET", inbox, &json!(null)).unwrap();
        let lines = list.body.as_array().unwrap();
        if lines.is_empty() {
            break;
        }
        let names = lines.iter().map(|line| {
            let href = line["href"].as_str().unwrap();
            href.rsplit('/').next().unwrap()
        });
        let names: Vec<_> = names.collect();
        if number % 5 == 0 {
            for name in &names {
                let path = format!("/mail/mallory/api/mail/messages/{name}");
                let gone = mallory.request("DELETE", &path, &json!(null)).unwrap();
                assert_eq!(gone.status, 200);
            }
            continue;
        }
        let path = format!("{folder}/messages");
        let moved = mallory.request("PUT", &path, &json!({ "add": names }));
        assert_eq!(moved.unwrap().status, 200);
    }
}

fn the_folder(stage: &Stage) -> String {
    let list = stage.mallory().request("GET", FOLDERS, &json!(null));
    let list = list.unwrap().body;
    let mut folders = list.as_array().unwrap().iter();
    let own = folders.find(|folder| folder["name"] == "old");
    own.unwrap()["href"].as_str().unwrap().to_owned()
}

/// Deletes both; the answer may be 503.
fn clear_out(stage: &Stage) {
    let folder = the_folder(stage);
    let mut mallory = stage.mallory();
    for path in [&*folder, "/mail/mallory/api/mail/trash"] {
        let gone = mallory.request("DELETE", path, &json!(null)).unwrap();
        assert!(matches!(gone.status, 200 | 503), "{}", gone.status);
    }
    stage.let_the_neighbour_work();
}

fn same_folder(stage: &Stage) {
    std::thread::scope(|scope| {
        for _ in 0..stage.size(16, 50) {
            scope.spawn(|| {
                let mut mallory = stage.mallory();
                for name in 0..stage.size(10, 80) {
                    let folder = json!({ "name": format!("folder {name}") });
                    let made = mallory.request("POST", FOLDERS, &folder).unwrap();
                    assert!(matches!(made.status, 201 | 409 | 503), "{made:?}");
                }
            });
        }
    });
    let list = stage.mallory().request("GET", FOLDERS, &json!(null));
    let list = list.unwrap();
    let names = list
        .body
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["name"].to_string());
    let mut names: Vec<_> = names.collect();
    let all = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), all, "a name is there twice");
    stage.let_the_neighbour_work();
}

/// Small ones, created by several clients at once.
fn many_meetings(stage: &Stage) {
    let event = json!({ "events": [{ "summary": "again",
        "start": { "date": "2026-01-05", "time": "12:00:00", "utc": true },
        "end": { "date": "2026-01-05", "time": "13:00:00", "utc": true } }] });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut mallory = stage.mallory();
                for _ in 0..stage.size(400, 25_000) {
                    let path = "/mail/mallory/api/calendar/events";
                    let made = mallory.request("POST", path, &event).unwrap();
                    assert_eq!(made.status, 201, "{made:?}");
                }
            });
        }
    });
}

/// Each upload checks the room that is left.
fn files_beside_meetings(stage: &Stage) {
    let path = document(stage);
    std::thread::scope(|scope| {
        for user in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let mut mallory = stage.mallory();
                for number in 0..stage.size(5, 200) {
                    // The same few names: the number of files of a document is limited.
                    let path = format!("{path}/Body/{user}-{}", number % 4);
                    let put = mallory.send("PUT", &path, &[], b"file").unwrap();
                    let is_right = matches!(put.status, 200 | 201 | 204 | 409 | 412 | 503);
                    assert!(is_right, "{}", put.status);
                }
            });
        }
        stage.let_the_neighbour_work();
    });
}

/// Large ones, until they are refused.
fn registrations(stage: &Stage) {
    let values: Vec<_> = (0..475).map(|_| "x".repeat(4000)).collect();
    let mut taken = 0;
    for number in 0..stage.size(170, 800) {
        let record =
            json!({ "type": "host", "host-name": number.to_string(), "group-domains": values });
        match stage.post("/lookup/records", &record) {
            200 => taken += 1,
            status => assert!(matches!(status, 0 | 413 | 429 | 507), "{status}"),
        }
    }
    // The limit of one user, and no more.
    assert!((125..=160).contains(&taken), "{taken} registrations");
    stage.let_the_neighbour_work();
}

/// Of nearly 8 MB each, requested whole, by a key, and in lists: by strangers that don't read the answers, and by a
/// user that reads them.
fn large_registrations(stage: &Stage) {
    let values: Vec<_> = (0..1900).map(|_| "x".repeat(4000)).collect();
    let mut paths = vec!["/lookup/records?type=host".to_owned()];
    for number in 0..2 {
        let record =
            json!({ "type": "host", "host-name": number.to_string(), "group-domains": values });
        let made = stage.mallory().request("POST", "/lookup/records", &record);
        let made = made.unwrap();
        assert_eq!(made.status, 200);
        let uri = made.body["uri"].as_str().unwrap();
        paths.extend([format!("/{uri}"), format!("/{uri}/group-domains")]);
    }
    let path = |number: usize| &paths[number % paths.len()];
    let ask = |number: usize| {
        let request = format!("GET {} HTTP/1.1\r\nhost: localhost\r\n\r\n", path(number));
        stage.stranger(request.as_bytes())
    };
    let held: Vec<_> = (0..stage.size(20, 300)).filter_map(ask).collect();
    stage.let_the_neighbour_work();
    drop(held);
    std::thread::scope(|scope| {
        for number in 0..stage.size(5, 50) {
            scope.spawn(move || {
                for _ in 0..stage.size(1, 5) {
                    let read = stage.mallory().send("GET", path(number), &[], b"");
                    if let Ok(answer) = read {
                        assert!(matches!(answer.status, 200 | 503), "{}", answer.status);
                    }
                }
            });
        }
        stage.let_the_neighbour_work();
    });
}

/// A request for the archive of the user with this cookie.
pub(crate) fn takeout(stage: &Stage, cookie: &str) -> String {
    let mut client = stage.mallory();
    let page = client.send("GET", "/account", &[("cookie", cookie)], b"");
    let page = String::from_utf8(page.unwrap().body).unwrap();
    let proof = page
        .split("name=\"proof\" value=\"")
        .nth(1)
        .expect("the form has a proof");
    let body = format!("proof={}", proof.split('"').next().unwrap());
    format!(
        "POST /account/takeout HTTP/1.1\r\nhost: localhost\r\ncookie: {cookie}\r\n\
         sec-fetch-site: same-origin\r\ncontent-type: application/x-www-form-urlencoded\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn archives(stage: &Stage) {
    let request = takeout(stage, &stage.cookie("mallory"));
    let held = stage.strangers(stage.size(20, 200), request.as_bytes());
    stage.let_the_neighbour_work();
    // Meanwhile there are writes: the log starts over although one of the archives is not read to its end.
    for _ in 0..stage.size(20, 2000) {
        let event = json!({ "events": [{ "summary": "more", "description": "x".repeat(50_000),
            "start": { "date": "2026-01-05", "time": "12:00:00", "utc": true },
            "end": { "date": "2026-01-05", "time": "13:00:00", "utc": true } }] });
        assert_eq!(stage.post("/mail/mallory/api/calendar/events", &event), 201);
    }
    drop(held);
}
