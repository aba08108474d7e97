//! The scripts in `tests/scripts`, each about one area of k6's documentation, against a server that records: they send the requests,
//! in the order of each user, that are listed beside them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use plimsoll_tests::repository;
use plimsoll_tests::web::{self, Received};

use super::plimsoll;

/// The requests by user, each with its batch, if it has one.
type Log = Arc<Mutex<BTreeMap<String, Vec<(Option<String>, String)>>>>;

/// Headers that say nothing about the script.
const LEFT_OUT: [&str; 7] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "user-agent",
    "x-batch",
    "x-user",
];

const PAGE: &str = r##"<!doctype html><title>The shop</title>
<ul><li class="first">lamp</li><li>chair</li></ul>
<a href="/items/1">One</a> <a class="next" href="/items?page=2&amp;sort=name">Next</a>
<form id="search" action="/search"><input name="q"><input type="hidden" name="token" value="t&amp;1"></form>
<form id="login" method="post" action="/login"><input name="user"><input type="checkbox" name="keep" value="yes" checked>
<input type="checkbox" name="news" value="yes"><select name="lang"><option value="de">German<option value="en" selected>English</select>
<textarea name="note">hello</textarea><input type="submit" id="go" name="way" value="in"></form>
"##;

const CATALOGUE: &str = r#"{"items":[{"id":1,"name":"lamp","tags":["a","b"]},{"id":2,"name":"chair","tags":["c","d"]}],
"price":{"amount":12.5},"a.b":"dot","empty":"","no":null}"#;

/// Answers by the path alone, so that the requests depend on the script alone.
fn answer(request: &Received) -> (String, String) {
    let (path, query) = request.target();
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let status = |status: &str, body: &str| (status.to_owned(), body.to_owned());
    let json = |body: String| ("200 OK\r\nContent-Type: application/json".to_owned(), body);
    match (request.method(), parts.as_slice()) {
        ("POST", ["items"]) => status("201 Created", r#"{"id":7}"#),
        ("POST", ["orders"]) => status("201 Created", "{}"),
        ("GET", ["items", id]) => json(format!(r#"{{"id":{id},"stock":5}}"#)),
        ("GET", ["items", id, "details"]) => json(format!(r#"{{"of":{id}}}"#)),
        (_, ["basic"]) => match request.header("authorization") {
            Some(value) if value.starts_with("Basic ") => status("200 OK", "{}"),
            _ => status("401 None\r\nWWW-Authenticate: Basic realm=\"shop\"", "{}"),
        },
        (_, ["cookies", "redirect"]) => status(
            "302 Found\r\nSet-Cookie: way=back; Path=/\r\nLocation: /echo?after",
            "",
        ),
        (_, ["cookies"]) => {
            let set = query
                .split('&')
                .map(|pair| format!("\r\nSet-Cookie: {pair}; Path=/"));
            status(&format!("200 OK{}", set.collect::<String>()), "{}")
        }
        (_, ["redirect", "1"]) => status("302 Found\r\nLocation: /items/1", ""),
        (_, ["redirect", left]) => {
            let left: u32 = left.parse().expect("a number");
            status(
                &format!("302 Found\r\nLocation: /redirect/{}", left - 1),
                "",
            )
        }
        (_, ["moved", code]) => {
            status(&format!("{code} There\r\nLocation: /echo?moved={code}"), "")
        }
        (_, ["status", "204"]) => status("204 No Content", ""),
        (_, ["status", code]) => status(&format!("{code} Status"), "{}"),
        (_, ["bytes", count]) => {
            let count = count.parse().expect("a number");
            let bytes = "ABCDEFGHIJ".chars().take(count).collect();
            (
                "200 OK\r\nContent-Type: application/octet-stream".to_owned(),
                bytes,
            )
        }
        (_, ["html"]) => status("200 OK\r\nContent-Type: text/html; charset=utf-8", PAGE),
        (_, ["catalogue"]) => json(CATALOGUE.to_owned()),
        _ => status("200 OK", "{}"),
    }
}

/// A line of the list: the request without what the client or chance decides.
fn line(request: &Received, host: &str) -> String {
    let mut headers: Vec<(String, String)> = request
        .headers()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .filter(|(name, value)| {
            !LEFT_OUT.contains(&name.as_str()) && (name != "host" || value != host)
        })
        .collect();
    headers.sort();
    let mut text = format!(
        "{} {}",
        request.method(),
        request.line().split(' ').nth(1).unwrap_or("")
    );
    for (name, value) in &mut headers {
        if name == "cookie" {
            let mut cookies: Vec<&str> = value.split("; ").collect();
            cookies.sort_unstable();
            *value = cookies.join("; ");
        }
        let _ = write!(text, " | {name}: {value}");
    }
    if !request.body.is_empty() {
        let body = String::from_utf8_lossy(&request.body);
        let _ = write!(text, " | {body:?}");
    }
    let boundary = text
        .split_once("boundary=")
        .map(|(_, rest)| rest.to_owned());
    if let Some(boundary) = boundary.as_deref().and_then(|rest| rest.split(' ').next()) {
        text = text.replace(boundary, "BOUNDARY");
    }
    text.replace(host, "HOST")
}

/// Runs a script; returns the requests of each user. The order within a batch is not defined, so these are sorted.
fn requests(script: &str, most: usize) -> Result<String, String> {
    let log = Log::default();
    let own = Arc::clone(&log);
    let port = web::serve(move |request: &Received| {
        let host = request.header("host").unwrap_or_default();
        let user = request
            .header("x-user")
            .unwrap_or_else(|| "none".to_owned());
        let batch = request.header("x-batch");
        let mut log = own.lock().expect("not poisoned");
        log.entry(user)
            .or_default()
            .push((batch, line(request, &host)));
        drop(log);
        answer(request)
    });
    let folder = tempfile::tempdir().expect("a folder");
    let script = repository().join("tests/scripts").join(script);
    let script = script.to_str().expect("UTF-8");
    let url = format!("BASE_URL=http://127.0.0.1:{port}");
    let arguments = [
        "run",
        script,
        "-e",
        &url,
        "--set",
        "repeats=0",
        "--out",
        "run",
    ];
    let output = plimsoll(folder.path(), &arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    if !matches!(output.status.code(), Some(0 | 99 | 120)) {
        return Err(format!("{script}: {said}"));
    }
    let mut text = String::new();
    for (user, requests) in log.lock().expect("not poisoned").iter_mut() {
        let _ = writeln!(text, "user {user}");
        for same in requests.chunk_by_mut(|one, other| one.0.is_some() && one.0 == other.0) {
            same.sort();
        }
        for (_, line) in requests.iter().take(most) {
            let _ = writeln!(text, "  {line}");
        }
    }
    Ok(text)
}

/// How many requests of each user are compared: a script that runs for a time says so in its comment.
fn compared(text: &str) -> usize {
    let said = text.split_once("// Compared: the first ");
    let count = said.and_then(|(_, rest)| rest.split(' ').next());
    count.map_or(usize::MAX, |count| count.parse().expect("a number"))
}

/// Compares a script with the list beside it. `UPDATE_REQUESTS=1` writes the list: read it, it must be what k6's documentation says.
fn difference(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.to_owned();
    let text = fs::read_to_string(path).expect("a script");
    let sent = match requests(&name, compared(&text)) {
        Ok(sent) => sent,
        Err(said) => return Some(said),
    };
    let list = path.with_extension("requests");
    if std::env::var_os("UPDATE_REQUESTS").is_some() {
        fs::write(&list, &sent).expect("written");
    }
    let expected = fs::read_to_string(&list).unwrap_or_default();
    if sent == expected {
        return None;
    }
    let mut both = sent.lines().zip(expected.lines());
    let first = both.find(|(sent, expected)| sent != expected);
    let counts = (sent.lines().count(), expected.lines().count());
    Some(format!("{name}: {first:?}, lines {counts:?}"))
}

#[test]
fn scripts_send_the_requests_of_the_documentation() {
    let folder = repository().join("tests/scripts");
    let files = fs::read_dir(folder).expect("a folder").flatten();
    let mut scripts: Vec<_> = files.map(|file| file.path()).collect();
    scripts.retain(|path| {
        path.extension()
            .is_some_and(|kind| kind == "js" || kind == "ts")
    });
    scripts.sort();
    assert!(scripts.len() > 25, "{scripts:?}");
    let left = Mutex::new(scripts.into_iter());
    let next = || left.lock().expect("not poisoned").next();
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        // Each run waits most of its time.
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(script) = next() {
                    let different = difference(&script);
                    found.lock().expect("not poisoned").extend(different);
                }
            });
        }
    });
    let found = found.into_inner().expect("not poisoned");
    assert!(found.is_empty(), "{}", found.join("\n"));
}
