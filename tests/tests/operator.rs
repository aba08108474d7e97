//! The operator commands, with the released program: users, sessions, mail and calendars imported and exported, backups
//! while the server runs, one killed half-way, and their results.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use plimsoll_tests::place::ServedFolder;
use plimsoll_tests::server::{Client, ServerProcess};
use serde_json::{Value, json};

/// The relative paths of all files, and their contents.
fn files(folder: &Path) -> BTreeSet<(String, Vec<u8>)> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("it can be read") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path
                .strip_prefix(folder)
                .expect("it lies there")
                .display()
                .to_string();
            found.insert((name, fs::read(path).expect("it can be read")));
        }
    }
    found
}

#[test]
fn users_come_are_shown_and_go() {
    let place = ServedFolder::new();
    place.good("users add ada", "correct horse\n");
    assert!(
        place
            .bad("users add ada", "battery staple\n", 104)
            .contains("already")
    );
    place.bad("users add ben", "short\n", 104);
    place.bad("users add ben", "", 104);
    // A user without a password is not left behind.
    assert!(!place.good("users list", "").contains("ben"));
    assert!(place.good("users show ada", "").contains("signs in   yes"));
    assert!(
        place
            .good("users list --json", "")
            .contains(r#""name":"ada""#)
    );
    let said = place.good("users usage ada --json", "");
    assert!(said.starts_with(r#"{"document_bytes":0,"#), "{said}");
    assert_eq!(place.good("sessions list --json", ""), "");
    place.good("users admin ada on", "");
    assert!(place.good("users show ada", "").contains("/users"));
    place.good("users admin ada off", "");
    assert!(!place.good("users show ada", "").contains("/users"));
    place.bad("users admin ben on", "", 104);
    place.good("users disable ada", "");
    assert!(place.good("users list", "").contains("disabled"));
    place.good("users enable ada", "");
    place.good("users passwd ada", "battery staple\n");
    place.good("sessions end ada", "");
    place.bad("sessions end ada 0123456789abcdef", "", 104);
    place.bad("users remove ada", "", 104);
    place.good("users remove ada --yes", "");
    assert!(place.bad("users show ada", "", 104).contains("404"));
    place.bad("users list --server http://192.0.2.1", "", 104);
    let wrong = place.path().join("wrong");
    fs::write(&wrong, "not-the-admin-token").expect("written");
    let said = place.bad("users list --admin-token-file wrong", "", 104);
    assert!(
        said.contains("401") && !said.contains("not-the-admin"),
        "{said}"
    );
}

#[test]
fn mail_is_brought_once_and_taken_out_as_it_was() {
    let place = ServedFolder::new();
    place.good("users add ada", "correct horse\n");
    place.good("users add ben", "correct horse\n");
    let maildir = place.path().join("Maildir");
    for folder in ["cur", "new", ".Sent/cur", ".R&-D.Entw&APw-rfe/cur"] {
        fs::create_dir_all(maildir.join(folder)).expect("made");
    }
    let message = |subject: &str| format!("From: a@x\nSubject: {subject}\n\nFrom here\n");
    for (name, subject) in [
        ("cur/1.x:2,RS", "one"),
        ("cur/2.x:2,F", "two"),
        ("new/3.x", "twice"),
        ("new/4.x", "twice"),
        ("cur/5.x:2,T", "deleted"),
        (".Sent/cur/6.x:2,S", "sent"),
        (".R&-D.Entw&APw-rfe/cur/7.x:2,PS", "far"),
    ] {
        let file = maildir.join(name);
        fs::write(&file, message(subject)).expect("written");
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_micros(1_551_675_967_123_456);
        let file = fs::File::options().write(true).open(file).expect("opened");
        file.set_modified(at).expect("dated");
    }
    let said = place.good("mail import ada Maildir", "");
    assert_eq!(said, "7 messages imported, 0 were there already\n");
    let said = place.good("mail import ada Maildir", "");
    assert_eq!(said, "0 messages imported, 7 were there already\n");

    place.good("mail export ada out", "");
    let said = place.good("mail import ben out", "");
    assert_eq!(said, "7 messages imported, 0 were there already\n");
    place.good("mail export ben again", "");
    let (out, again) = (
        files(&place.path().join("out")),
        files(&place.path().join("again")),
    );
    assert_eq!(out, again, "bytes, folders, flags, and dates in the names");
    let names: Vec<&str> = out.iter().map(|(name, _)| name.as_str()).collect();
    for (begin, flags) in [
        (".Sent/cur/1551675967.", ":2,S"),
        (".Trash/cur/1551675967.", ":2,"),
        (".R&-D.Entw&APw-rfe/cur/1551675967.", ":2,PS"),
        ("cur/1551675967.", ":2,RS"),
        ("cur/1551675967.", ":2,F"),
    ] {
        let is_it = |name: &&&str| name.starts_with(begin) && name.ends_with(flags);
        assert!(
            names.iter().any(|name| is_it(&name)),
            "{begin} {flags}: {names:?}"
        );
    }

    place.good("mail export ada boxes --format mbox", "");
    place.good("users add carl", "correct horse\n");
    let said = place.good("mail import carl boxes/Inbox.mbox --folder Old", "");
    assert_eq!(said, "4 messages imported, 0 were there already\n");
    place.good("mail export carl carls --format mbox", "");
    let sorted = |path: &str| {
        let text = fs::read_to_string(place.path().join(path)).expect("it is there");
        let mut messages: Vec<String> = text.split("\n\nFrom MAILER").map(str::to_owned).collect();
        messages
            .iter_mut()
            .for_each(|text| *text = text.trim_start_matches("From MAILER").trim_end().into());
        messages.sort();
        messages
    };
    assert_eq!(sorted("boxes/Inbox.mbox"), sorted("carls/Old.mbox"));
    // Equal mails of one second count once per folder, however often they are imported.
    place.good("users add dan", "correct horse\n");
    for (folder, new) in [("Inbox", 1), ("Sent", 1), ("Inbox", 0), ("Sent", 0)] {
        let mbox = "From x Sat Jan  3 01:05:34 1996\nSubject: same\n\nText\n\n";
        fs::write(place.path().join("same.mbox"), mbox).expect("written");
        let said = place.good(&format!("mail import dan same.mbox --folder {folder}"), "");
        let expected = format!("{new} messages imported, {} were there already\n", 1 - new);
        assert_eq!(said, expected, "{folder}");
    }
    place.bad("mail import nobody Maildir", "", 104);
    place.bad("mail import ada out/cur", "", 104);
    place.bad("mail import ada nothing", "", 104);
    // A single message, an empty file, and an empty Maildir have nothing to import.
    fs::write(place.path().join("one.eml"), message("alone")).expect("written");
    fs::write(place.path().join("empty"), "").expect("written");
    fs::create_dir_all(place.path().join("bare/cur")).expect("made");
    for source in ["one.eml", "empty", "bare"] {
        place.bad(&format!("mail import ada {source}"), "", 104);
    }
}

const MEETING: &str = "BEGIN:VEVENT\r\nUID:weekly@example.org\r\nDTSTAMP:20251201T120000Z\r\n\
    DTSTART;TZID=Europe/Berlin:20260316T090000\r\nDTEND;TZID=Europe/Berlin:20260316T100000\r\n\
    RRULE:FREQ=WEEKLY;COUNT=3\r\nSUMMARY;X-P=1:Planning\\, for\r\n  all\r\n\
    ORGANIZER;CN=Eve:mailto:eve@example.org\r\nATTENDEE:mailto:ada@localhost\r\n\
    X-VENDOR;X=\"a:b\":kept\r\nBEGIN:VALARM\r\nTRIGGER:-PT15M\r\nACTION:DISPLAY\r\nEND:VALARM\r\n\
    END:VEVENT\r\n";
const TASK: &str = "BEGIN:VTODO\nUID:task\nDUE;VALUE=DATE:20260301\nEND:VTODO\n";
const ZONE: &str = "BEGIN:VTIMEZONE\r\nTZID:Europe/Berlin\r\nBEGIN:STANDARD\r\n\
    DTSTART:19701025T030000\r\nTZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\nEND:STANDARD\r\n\
    END:VTIMEZONE\r\n";

fn in_calendar(parts: &[&str]) -> String {
    let parts = parts.concat();
    format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{parts}END:VCALENDAR\r\n")
}

#[test]
fn calendars_come_in_and_go_out_as_they_are() {
    let place = ServedFolder::new();
    place.good("users add ada", "correct horse\n");
    place.good("users add ben", "correct horse\n");
    // Radicale's layout: a file for each object, in folders, and its own files beside them.
    let store = place.path().join("store/ada/work");
    fs::create_dir_all(store.join(".Radicale.cache/item")).expect("made");
    for (name, text) in [
        ("1.ics", in_calendar(&[ZONE, MEETING])),
        ("2.ICS", in_calendar(&[TASK])),
        (".Radicale.props", "{}".to_owned()),
        (".Radicale.cache/item/3.ics", "no calendar".to_owned()),
        ("4.vcf", "BEGIN:VCARD".to_owned()),
    ] {
        fs::write(store.join(name), text).expect("written");
    }
    let task = "; tasks and journals among them: 1, at /calendar/others in the browser\n";
    let said = place.good("calendar import ada store", "");
    assert_eq!(said, format!("2 imported{task}"));
    let said = place.good("calendar import ada store", "");
    assert_eq!(said, format!("0 imported, 2 there already{task}"));

    let whole = place.good("calendar export ada", "");
    for part in [ZONE, MEETING, TASK] {
        assert_eq!(whole.matches(part).count(), 1, "{whole}");
    }
    place.good("calendar export ada ada.ics", "");
    let file = fs::read_to_string(place.path().join("ada.ics")).expect("it is there");
    assert_eq!(file, whole);
    place.bad("calendar export ada ada.ics", "", 104);
    let said = place.good("calendar import ben ada.ics", "");
    assert_eq!(said, format!("2 imported{task}"));

    let address = place.server().address();
    let mut ben = Client::user(address, "ben", "correct horse").expect("the server listens");
    let range = "since=2026-01-01T00:00:00Z&before=2027-01-01T00:00:00Z";
    let events = "/mail/ben/api/calendar/events";
    let listed = ben.request("GET", &format!("{events}?{range}"), &Value::Null);
    let listed = listed.expect("an answer").body;
    let lines = listed["events"].as_array().expect("events");
    assert_eq!(lines.len(), 3, "{listed}");
    for line in lines {
        let href = line["href"].as_str().expect("a path");
        let shown = ben.request("GET", href, &Value::Null).expect("an answer");
        assert_eq!(shown.body["events"][0]["start"], line["start"]);
        let refused = ben.request("DELETE", href, &Value::Null);
        assert_eq!(refused.expect("an answer").status, 403);
    }
    let path = format!("{events}/weekly%40example.org");
    let instances = ben.request("GET", &format!("{path}/instances"), &Value::Null);
    let instances = instances.expect("an answer").body;
    assert_eq!(instances["instances"].as_array().map(Vec::len), Some(3));
    let mut event = ben
        .request("GET", &path, &Value::Null)
        .expect("an answer")
        .body;
    event["events"][0]["summary"] = json!("Review");
    let changed = ben.request("PUT", &path, &event).expect("an answer");
    assert_eq!(changed.status, 200, "{}", changed.body);
    // All lines but the modification times are unchanged.
    let marks = ["DTSTAMP", "LAST-MODIFIED", "SEQUENCE"];
    let others = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with(' '));
        let lines = lines.filter(|line| !marks.iter().any(|mark| line.starts_with(mark)));
        lines
            .map(|line| line.replace("Planning\\, for", "Review"))
            .collect()
    };
    let whole = place.good("calendar export ben", "");
    let meeting = &whole[whole.find("BEGIN:VEVENT").expect("it is there")..];
    let meeting = &meeting[..meeting.find("END:VEVENT").expect("it ends") + "END:VEVENT\r\n".len()];
    assert_eq!(others(meeting), others(MEETING));
    let gone = ben.request("DELETE", &path, &Value::Null);
    assert_eq!(gone.expect("an answer").status, 200);
    let listed = ben.request("GET", &format!("{events}?{range}"), &Value::Null);
    assert_eq!(listed.expect("an answer").body, Value::Null);
}

#[test]
fn what_is_wrong_in_a_calendar_is_told_with_its_line() {
    let place = ServedFolder::new();
    place.good("users add ada", "correct horse\n");
    let bad = "BEGIN:VEVENT\r\nUID:bad\r\nSUMMARY:no start\r\nEND:VEVENT\r\n";
    // A task without a UID gets one.
    let mixed = in_calendar(&[TASK, bad, &TASK.replace("UID:task\n", "")]);
    let cut = in_calendar(&[MEETING]).replace("END:VEVENT\r\nEND", "END");
    for (name, text) in [("mixed.ics", &mixed), ("cut.ics", &cut)] {
        fs::write(place.path().join(name), text).expect("written");
    }
    let said = place.bad("calendar import ada mixed.ics cut.ics", "", 104);
    for part in [
        "not imported: mixed.ics, line 7: it has no DTSTART: add",
        "not imported: cut.ics: line 18: END:VCALENDAR where VEVENT, begun on line 3, should end",
        "nothing of it was imported",
        "2 objects or files were not imported",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let whole = place.good("calendar export ada", "");
    assert!(whole.contains(TASK) && !whole.contains("VEVENT"), "{whole}");
    place.bad("calendar import nobody mixed.ics", "", 104);
    place.bad("calendar import ada nothing.ics", "", 104);
    fs::create_dir(place.path().join("empty")).expect("made");
    place.bad("calendar import ada empty", "", 104);
}

#[test]
fn a_backup_that_is_killed_is_told_as_incomplete_or_is_whole() {
    let place = ServedFolder::new();
    place.good("users add ada", "correct horse\n");
    // Large enough that a backup takes a moment.
    let mbox = place.path().join("large.mbox");
    let mut text = String::new();
    for number in 0..40 {
        text += &format!("From x Sat Jan  3 01:05:34 1996\nSubject: {number}\n\n");
        text += &format!("{number:064}\n").repeat(8000);
        text.push('\n');
    }
    fs::write(mbox, text).expect("written");
    place.good("mail import ada large.mbox", "");
    assert!(place.good("data backup backups", "").contains("1 users"));
    for attempt in 0..20 {
        let mut child = place
            .command("data backup backups")
            .spawn()
            .expect("it starts");
        // Later each time, by progress rather than by the clock: by the number of files that it created.
        let folder = place.path().join("backups/backups");
        let made = || fs::read_dir(&folder).map_or(0, Iterator::count);
        let before = made();
        while made() <= before && child.try_wait().expect("it can be waited for").is_none() {
            std::hint::spin_loop();
        }
        for _ in 0..attempt * 2000 {
            std::hint::black_box(made());
        }
        let _ = child.kill();
        let _ = child.wait();
        let listed = place.good("data list backups", "");
        let whole = listed
            .lines()
            .filter(|line| !line.contains("incomplete"))
            .count();
        let incomplete = listed
            .lines()
            .filter(|line| line.contains("incomplete"))
            .count();
        assert!(whole >= 1 && incomplete <= 1, "{listed}");
    }
    place.good("data backup backups --keep 2", "");
    let listed = place.good("data list backups", "");
    assert!(!listed.contains("incomplete"), "{listed}");
    place.good("data check backups", "");
    place.good("data restore backups --to restored", "");
    place.bad("data restore backups --to restored", "", 104);
    place.bad(
        "data restore backups --to other --at 2001-01-01T00:00:00Z",
        "",
        104,
    );
    let said = place.good("serve --check --data restored", "");
    assert!(said.starts_with("1 users"), "{said}");
    let found = place.good("serve --check --json --data restored", "");
    let found: Value = serde_json::from_str(&found).expect("it is JSON");
    let whole = (&found["whole"], &found["users"], &found["wrong"]);
    assert_eq!(whole, (&json!(true), &json!(1), &json!([])));
    // Failures of the check are reported in JSON, too.
    for (folder, code) in [("nothing", 104), ("foreign", 1)] {
        fs::create_dir_all(place.path().join("foreign")).expect("made");
        fs::write(place.path().join("foreign/groupware.sqlite"), "a letter").expect("written");
        let arguments = format!("serve --check --json --data {folder}");
        let output = place.run(&arguments, "");
        assert_eq!(output.status.code(), Some(code), "{folder}: {output:?}");
        let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        assert_eq!(found["whole"], json!(false), "{found}");
        assert!(found["error"].as_str().is_some_and(|said| !said.is_empty()));
    }
    place.bad("data backup backups --data nothing", "", 104);
}

/// Each change is a mail: the number of mails in a folder of ada's, in the data of another folder.
fn mails(place: &ServedFolder, data: &str) -> usize {
    let beside = place.path().join(format!("{data}-beside"));
    fs::create_dir_all(&beside).expect("made");
    let data = place.path().join(data);
    let program = std::process::Command::new(plimsoll_tests::program());
    let server = ServerProcess::start_on(&data, &beside, program, &[]);
    let output = std::process::Command::new(plimsoll_tests::program())
        .args(["mail", "export", "ada"])
        .arg(beside.join("out"))
        .env("PLIMSOLL_ADMIN_TOKEN", plimsoll_tests::server::ADMIN_TOKEN)
        .env("PLIMSOLL_SERVER", format!("http://{}", server.address()))
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{output:?}");
    fs::read_dir(beside.join("out/cur")).map_or(0, Iterator::count)
        + fs::read_dir(beside.join("out/new")).map_or(0, Iterator::count)
}

fn import_one(place: &ServedFolder, number: u32) {
    let mbox = format!("From x Sat Jan  3 01:05:34 1996\nSubject: {number}\n\nText\n\n");
    fs::write(place.path().join("one.mbox"), mbox).expect("written");
    place.good("mail import ada one.mbox", "");
}

/// The time of the last kept change, as the command prints it.
fn last_change(place: &ServedFolder) -> String {
    let said = place.good("data changes", "");
    let line = said.lines().last().expect("there is a line");
    line.split_whitespace().nth(2).expect("to when").to_owned()
}

#[test]
fn a_backup_is_brought_to_a_moment_while_the_server_runs_and_after_it_was_killed() {
    let mut place = ServedFolder::with(&["--keep-changes", "7d"]);
    place.good("users add ada", "correct horse\n");
    place.good("data backup backups", "");
    (0..5).for_each(|number| import_one(&place, number));
    let five = last_change(&place);
    place.kill_and_start_again();
    (5..8).for_each(|number| import_one(&place, number));
    let eight = last_change(&place);
    place.good("users remove ada --yes", "");
    for (at, count) in [(&five, 5), (&eight, 8)] {
        let to = format!("at-{count}");
        let said = place.good(
            &format!("data restore backups --to {to} --at {at} --changes data"),
            "",
        );
        assert!(said.contains("brought forward by"), "{said}");
        assert_eq!(mails(&place, &to), count, "{at}");
    }
    // Without the changes, the result is the backup.
    place.good(&format!("data restore backups --to plain --at {eight}"), "");
    assert_eq!(mails(&place, "plain"), 0);
    let arguments = format!("data restore backups --to x --at {eight} --changes plain");
    place.bad(&arguments, "", 104);
    place.bad("data changes --data plain", "", 104);
}

/// The UIDVALIDITY of ada's inbox.
fn validity(place: &ServedFolder) -> u64 {
    let address = place.server().address();
    let mut ada = Client::user(address, "ada", "correct horse").expect("the server listens");
    let inbox = ada.request("GET", "/mail/ada/api/mail/folders/inbox", &Value::Null);
    let inbox = inbox.expect("an answer").body;
    inbox["uidValidity"].as_u64().expect("it is a number")
}

#[test]
fn data_that_a_snapshot_brought_back_get_new_numbers_when_that_is_said() {
    let mut place = ServedFolder::new();
    place.good("users add ada", "correct horse\n");
    import_one(&place, 1);
    let first = validity(&place);
    place.kill_and_start_again();
    assert_eq!(validity(&place), first);
    place.bad("store restored data", "", 104);
    place.bad("store restored nowhere", "", 104);
    fs::create_dir(place.path().join("empty")).expect("made");
    place.bad("store restored empty", "", 104);
    place.stop();
    place.good("store restored data", "");
    place.kill_and_start_again();
    let second = validity(&place);
    assert!(second > first, "{second}, {first}");
    place.kill_and_start_again();
    assert_eq!(validity(&place), second);
    place.stop();
    assert_eq!(mails(&place, "data"), 1);
}

/// Whenever the command is killed, all data is still there afterwards.
#[test]
fn making_the_records_anew_loses_nothing_when_it_is_killed() {
    let mut place = ServedFolder::new();
    place.good("users add ada", "correct horse\n");
    let mut text = String::new();
    for number in 0..30 {
        text += &format!("From x Sat Jan  3 01:05:34 1996\nSubject: {number}\n\n");
        text += &format!("{number:064}\n").repeat(8000);
        text.push('\n');
    }
    fs::write(place.path().join("large.mbox"), text).expect("written");
    place.good("mail import ada large.mbox", "");
    place.bad("data compact", "", 104);
    place.stop();
    for attempt in 0..15 {
        let mut child = place.command("data compact").spawn().expect("it starts");
        let new = place.path().join("data/groupware.sqlite.compact");
        let length = || fs::metadata(&new).map_or(0, |about| about.len());
        // Later each time, by its progress.
        while length() < attempt << 20 && child.try_wait().expect("waited").is_none() {
            std::hint::spin_loop();
        }
        let _ = child.kill();
        let _ = child.wait();
        let said = place.good("serve --check --data data", "");
        assert!(said.starts_with("1 users"), "{said}");
    }
    let said = place.good("data compact", "");
    assert!(said.contains("of records before"), "{said}");
    assert!(!place.path().join("data/groupware.sqlite.compact").exists());
    assert_eq!(mails(&place, "data"), 30);
    place.bad("data compact --data nothing", "", 104);
}
