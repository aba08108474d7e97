//! All data of a user as one archive, from the real program: everything is in it, unchanged, and can be imported again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use plimsoll_tests::place::ServedFolder;
use plimsoll_tests::server::Client;
use plimsoll_tests::zip;
use serde_json::{Value, json};

/// More than the archive reads at once.
const EVENTS: usize = 230;
const DOCUMENTS: usize = 60;

fn user(place: &ServedFolder, name: &str) -> Client {
    let address = place.server().address();
    let mut admin = Client::admin(address).expect("the server listens");
    // An application password, to avoid the slow hash of a user's password.
    let body = json!({ "users": [{ "name": name }], "app_passwords": true });
    let made = ask(&mut admin, "POST", "/admin/users", &body);
    let password = made["users"][0]["app_password"]
        .as_str()
        .expect("one is made");
    Client::user(address, name, password).expect("the server listens")
}

fn ask(client: &mut Client, method: &str, path: &str, body: &Value) -> Value {
    let answer = client.request(method, path, body).expect("an answer");
    assert!(answer.status < 300, "{method} {path}: {answer:?}");
    match answer.location {
        Some(location) => json!(location),
        None => answer.body,
    }
}

/// The maximum size of a message.
const MESSAGE_BYTES: usize = 16 << 20;

/// Messages that are difficult for mbox, and some that no message should look like.
fn strange() -> Vec<Vec<u8>> {
    let mut strange: Vec<Vec<u8>> = [
        &b"Subject: no line end\r\n\r\nx"[..],
        b"Subject: ends like nothing else\n\nx\n\r",
        b"Subject: old line ends\r\rx\r",
        b"Subject: empty lines\r\n\r\n\r\n\r\n\n\n",
        b"X-Plimsoll: no-line-end\nSubject: like our own fields\n\nx",
        b"X-Keywords: $Junk\nX-Plimsoll: \nStatus: RO\nX-Status: AF\n\nx\n",
        b"Status: RO\nX-Status: F\nFrom ada Sat Jan  3 01:05:34 1996\n>From \n>>From x\n",
        b"Subject: \xff\xfe\0\x80\r\n\0: \0\r\n\r\n\xe9\0\0\r\n.\r\n..\r\n",
        b"From ",
        b"\n",
        b"no head",
    ]
    .map(<[u8]>::to_vec)
    .into();
    let mut large = b"Subject: as large as can be\r\n\r\n".to_vec();
    large.resize(MESSAGE_BYTES, b'x');
    strange.push(large);
    strange
}

/// Mail that was received, sent, and imported with flags.
fn fill_mail(place: &ServedFolder, ada: &mut Client, ben: &mut Client) {
    for (number, (from, to, size)) in [
        ("ben", "ada", 100),
        ("ben", "ada", 200_000),
        ("ada", "ben", 50),
    ]
    .into_iter()
    .enumerate()
    {
        let body = json!({
            "subject": format!("Letter {number}"), "to": [to],
            "content": [{ "contentType": "text/plain", "data": "From here, ü\n".repeat(size / 14) }],
        });
        let client = if from == "ada" { &mut *ada } else { &mut *ben };
        ask(
            client,
            "POST",
            &format!("/mail/{from}/api/mail/outbox"),
            &body,
        );
    }
    let maildir = place.path().join("Maildir");
    for folder in ["cur", "new", ".Work.2026/cur"] {
        fs::create_dir_all(maildir.join(folder)).expect("made");
    }
    for (file, text) in [
        (".Work.2026/cur/1.x:2,FRSbd", "Subject: marked\n\nx\n"),
        (".Work.2026/dovecot-keywords", "0 other\n1 work\n3 $Junk\n"),
    ] {
        fs::write(maildir.join(file), text).expect("written");
    }
    for (number, message) in strange().into_iter().enumerate() {
        fs::write(maildir.join(format!("cur/s{number}.x:2,S")), message).expect("written");
    }
    place.good("mail import ada Maildir", "");
}

fn fill_calendar(ada: &mut Client) {
    for number in 0..EVENTS {
        let day = format!("2026-{:02}-{:02}", 1 + number / 28, 1 + number % 28);
        let zone = ["Europe/Berlin", "America/New_York", "Asia/Tokyo"][number / 80];
        let moment = |time: &str| match number % 2 {
            0 => json!({ "date": day, "time": time, "utc": true }),
            _ => json!({ "date": day, "time": time, "utc": false, "tzid": zone }),
        };
        let event = json!({ "events": [{
            "summary": format!("Event {number}; with, signs"),
            "description": "First line\nSecond — “quoted”",
            "start": moment("09:00:00"), "end": moment("10:00:00"),
        }] });
        ask(ada, "POST", "/mail/ada/api/calendar/events", &event);
    }
}

/// Each event's summary with its times.
fn events(client: &mut Client, name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    loop {
        let range = "since=2026-01-01T00:00:00Z&before=2027-01-01T00:00:00Z&count=100";
        let start = found.len();
        let path = format!("/mail/{name}/api/calendar/events?{range}&start={start}");
        let answer = ask(client, "GET", &path, &Value::Null);
        let Some(events) = answer["events"].as_array() else {
            return found;
        };
        for event in events {
            let (start, end) = (&event["start"], &event["end"]);
            found.insert(format!("{} {start} {end}", event["summary"]));
        }
    }
}

/// Imports each event of an iCalendar object into another calendar.
fn bring_events(ben: &mut Client, calendar: &str) {
    assert!(calendar.starts_with("BEGIN:VCALENDAR\r\n") && calendar.ends_with("END:VCALENDAR\r\n"));
    assert_eq!(calendar.matches("BEGIN:VCALENDAR").count(), 1);
    let zones: String = pieces(calendar, "VTIMEZONE").concat();
    assert_eq!(pieces(calendar, "VTIMEZONE").len(), 3, "each zone once");
    let kind = [("content-type", "text/calendar")];
    for event in pieces(calendar, "VEVENT") {
        let one = format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{zones}{event}END:VCALENDAR\r\n");
        let path = "/mail/ben/api/calendar/events";
        let answer = ben.send("POST", path, &kind, one.as_bytes());
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 201, "{one}");
    }
}

fn pieces<'a>(calendar: &'a str, kind: &str) -> Vec<&'a str> {
    let end = format!("END:{kind}\r\n");
    let begin = format!("BEGIN:{kind}\r\n");
    let pieces = calendar.split_inclusive(&end);
    let piece = |text: &'a str| text.find(&begin).map(|at| &text[at..]);
    pieces.filter_map(piece).collect()
}

fn fill_documents(ada: &mut Client) -> Vec<(&'static str, Vec<u8>)> {
    let path = "/docs/ada/notes/api/data/documents";
    for number in 0..DOCUMENTS {
        let body = json!({ "Form": "Note", "Number": number, "Nested": { "a": [1, null, "ü"] } });
        ask(ada, "POST", path, &body);
    }
    let other = "/docs/ada/plans.2026/api/data/documents";
    let document = ask(ada, "POST", other, &json!({ "Subject": "with files" }));
    let document = document.as_str().expect("a path").to_owned();
    let large: Vec<u8> = (0..3_000_000_u32)
        .map(|at| (at.wrapping_mul(at) >> 7) as u8)
        .collect();
    let files = [
        ("report.pdf", large),
        ("What: a “name”?.txt", b"small".to_vec()),
        ("empty", Vec::new()),
    ];
    for (name, bytes) in &files {
        let name: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let path = format!("{document}/Body/{name}");
        let answer = ada.send("PUT", &path, &[], bytes).expect("an answer");
        assert_eq!(answer.status, 201, "{path}");
    }
    files.to_vec()
}

fn check_documents(archive: &BTreeMap<String, Vec<u8>>, files: &[(&str, Vec<u8>)]) {
    let read = |name: &str| -> Vec<Value> {
        serde_json::from_slice(&archive[name]).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let notes = read("documents/notes/documents.json");
    let numbers: BTreeSet<_> = notes
        .iter()
        .map(|it| it["fields"]["Number"].as_u64())
        .collect();
    assert_eq!((notes.len(), numbers.len()), (DOCUMENTS, DOCUMENTS));
    assert_eq!(notes[0]["fields"]["Nested"], json!({ "a": [1, null, "ü"] }));
    let plans = read("documents/plans.2026/documents.json");
    assert_eq!(plans.len(), 1);
    let attached = plans[0]["attachments"].as_array().expect("a list");
    assert_eq!(attached.len(), files.len());
    for (file, (name, bytes)) in attached.iter().zip(files) {
        assert_eq!(file["name"], *name);
        let path = file["file"].as_str().expect("a path");
        assert!(!path.contains([':', '?']), "{path}");
        assert!(
            archive[&format!("documents/plans.2026/{path}")] == *bytes,
            "{name}"
        );
    }
}

#[test]
fn everything_is_in_it_and_comes_in_again() {
    let place = ServedFolder::new();
    let (mut ada, mut ben) = (user(&place, "ada"), user(&place, "ben"));
    fill_mail(&place, &mut ada, &mut ben);
    fill_calendar(&mut ada);
    let files = fill_documents(&mut ada);

    let said = place.good("users export ada ada.zip", "");
    assert!(said.starts_with("ada.zip: "), "{said}");
    let archive = zip::read(&fs::read(place.path().join("ada.zip")).expect("it is there"));
    let names: Vec<&str> = archive.keys().map(String::as_str).collect();
    for name in [
        "README.txt",
        "mail/Inbox.mbox",
        "mail/Sent.mbox",
        "mail/Work/2026.mbox",
    ] {
        assert!(archive.contains_key(name), "{name}: {names:?}");
    }
    check_documents(&archive, &files);
    let calendar = std::str::from_utf8(&archive["calendar.ics"]).expect("it is text");
    bring_events(&mut ben, calendar);
    let (adas, bens) = (events(&mut ada, "ada"), events(&mut ben, "ben"));
    assert_eq!(adas.len(), EVENTS);
    assert_eq!(adas, bens);

    user(&place, "carl");
    for (name, folder) in [
        ("Inbox", "Inbox"),
        ("Sent", "Sent"),
        ("Work/2026", "Work/2026"),
    ] {
        let mbox = place.path().join("one.mbox");
        fs::write(&mbox, &archive[&format!("mail/{name}.mbox")]).expect("written");
        place.good(&format!("mail import carl one.mbox --folder {folder}"), "");
    }
    place.good("mail export ada adas", "");
    place.good("mail export carl carls", "");
    let (adas, carls) = (mails(&place, "adas"), mails(&place, "carls"));
    let strange = strange();
    // Two were received, one was sent, and the others were imported.
    assert_eq!(adas.len(), 4 + strange.len());
    for (ada, carl) in adas.iter().zip(&carls) {
        assert_eq!((&ada.0, &ada.1), (&carl.0, &carl.1));
        assert!(ada.2 == carl.2, "{} {}", ada.0, ada.1);
    }
    assert_eq!(adas.len(), carls.len());
    for message in &strange {
        let is_it = |(folder, _, bytes): &&Mail| folder.is_empty() && bytes == message;
        let beginning = message[..message.len().min(40)].escape_ascii();
        assert_eq!(carls.iter().filter(is_it).count(), 1, "{beginning}");
    }
    let keywords = place.path().join("carls/.Work.2026/dovecot-keywords");
    let keywords = fs::read_to_string(keywords).expect("there are some");
    assert_eq!(keywords, "0 $Junk\n1 work\n");
    assert!(carls.iter().any(|(_, flags, _)| flags == "FRSab"));
    // Nothing is overwritten, and a failed export leaves no file.
    place.bad("users export ada ada.zip", "", 104);
    place.bad("users export nobody other.zip", "", 104);
    assert!(!place.path().join("other.zip").exists());
}

/// Folder, message, and bytes.
type Mail = (String, String, Vec<u8>);

/// All mails of a Maildir.
fn mails(place: &ServedFolder, maildir: &str) -> Vec<Mail> {
    let mut found = Vec::new();
    let maildir = place.path().join(maildir);
    let mut folders = vec![(String::new(), maildir.clone())];
    for entry in fs::read_dir(&maildir).expect("it can be read") {
        let entry = entry.expect("it can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            folders.push((name, entry.path()));
        }
    }
    for (name, folder) in folders {
        for place in ["cur", "new"] {
            for entry in fs::read_dir(folder.join(place)).into_iter().flatten() {
                let entry = entry.expect("it can be read");
                let file = entry.file_name().to_string_lossy().into_owned();
                let flags = file.split_once(":2,").map_or("", |(_, flags)| flags);
                let bytes = fs::read(entry.path()).expect("it can be read");
                found.push((name.clone(), flags.to_owned(), bytes));
            }
        }
    }
    found.sort();
    found
}
