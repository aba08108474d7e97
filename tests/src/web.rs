//! Small servers for tests, which answer by a function, and runs of the program against them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

use crate::{program, repository};

/// A request as received.
pub struct Received {
    lines: Vec<String>,
    /// Its body.
    pub body: Vec<u8>,
    /// The number of its connection, in the order in which the server accepted them.
    pub connection: usize,
}

impl Received {
    /// The value of a header, whose name may be in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        let found = self
            .headers()
            .find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned())
    }

    /// Names and values of its headers.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = self
            .lines
            .iter()
            .skip(1)
            .filter_map(|line| line.split_once(':'));
        fields.map(|(name, value)| (name, value.trim()))
    }

    /// Its first line.
    #[must_use]
    pub fn line(&self) -> &str {
        self.lines.first().map_or("", String::as_str)
    }

    /// Its method.
    #[must_use]
    pub fn method(&self) -> &str {
        self.line().split(' ').next().unwrap_or_default()
    }

    /// Path and query.
    #[must_use]
    pub fn target(&self) -> (&str, &str) {
        let target = self.line().split(' ').nth(1).unwrap_or_default();
        target.split_once('?').unwrap_or((target, ""))
    }
}

/// Starts a server on a port of its own, for as long as the test runs. `answer` returns the status with further
/// headers, such as `302 There\r\nLocation: /b`, and the body; `answered` is called with each answer after it was sent.
///
/// # Panics
/// Without a free port.
pub fn serve_told(
    answer: impl Fn(&Received) -> (String, String) + Send + Sync + 'static,
    answered: impl Fn(&Received, &str) + Send + Sync + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let both = Arc::new((answer, answered));
    std::thread::spawn(move || {
        for (connection, stream) in listener.incoming().flatten().enumerate() {
            let both = Arc::clone(&both);
            std::thread::spawn(move || converse((connection, &stream), &both.0, &both.1));
        }
    });
    port
}

/// The same without a callback.
///
/// # Panics
/// Without a free port.
pub fn serve(answer: impl Fn(&Received) -> (String, String) + Send + Sync + 'static) -> u16 {
    serve_told(answer, |_, _| {})
}

/// A folder with the files of the shortest example of a page of the book, and others. The system is on this port.
///
/// # Panics
/// Unless the page has a study.
#[must_use]
pub fn folder_of_page(page: &str, port: u16, others: &[(&str, &[u8])]) -> TempDir {
    let path = repository().join("docs").join(page);
    let text = fs::read_to_string(path).expect(page);
    let parts: Vec<&str> = text.split("\n```yaml").collect();
    let named = parts.windows(2).filter_map(|pair| {
        let (_, name) = pair[0].strip_suffix("`:\n")?.rsplit_once('`')?;
        let (_, rest) = pair[1].split_once('\n')?;
        let (example, _) = rest.split_once("\n```")?;
        Some((name, example.replace(":8080", &format!(":{port}"))))
    });
    let named: Vec<(&str, String)> = named.collect();
    let has_study = named.iter().any(|(name, _)| name.ends_with(".study.yaml"));
    assert!(has_study, "{page} has {named:?}");
    let own = named.iter().map(|(name, text)| (*name, text.as_bytes()));
    folder(&own.chain(others.iter().copied()).collect::<Vec<_>>())
}

/// Answers on a connection until it ends.
fn converse(
    (connection, stream): (usize, &TcpStream),
    answer: impl Fn(&Received) -> (String, String),
    answered: impl Fn(&Received, &str),
) -> Option<()> {
    let mut input = BufReader::new(stream);
    let mut output = stream;
    loop {
        let mut request = Received {
            lines: Vec::new(),
            body: Vec::new(),
            connection,
        };
        loop {
            let mut line = String::new();
            if input.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => request.lines.push(line.to_owned()),
            }
        }
        let length = request.header("content-length");
        let length = length.map_or(0, |text| text.parse().expect("a length"));
        request.body = vec![0; length];
        input.read_exact(&mut request.body).ok()?;
        let (head, body) = answer(&request);
        let length = body.len();
        let message = match (request.method(), head.split(' ').next()) {
            (_, Some("204" | "304")) => format!("HTTP/1.1 {head}\r\n\r\n"),
            ("HEAD", _) => format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n"),
            _ => format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n{body}"),
        };
        output.write_all(message.as_bytes()).ok()?;
        answered(&request, &head);
    }
}

/// Runs the program in a folder, with these environment variables; returns its outputs.
///
/// # Panics
/// When it can't be started.
#[must_use]
pub fn plimsoll(folder: &Path, arguments: &[&str], given: &[(&str, &str)]) -> (String, String) {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .current_dir(folder)
        .envs(given.iter().copied())
        .env("PLIMSOLL_PATIENCE", "0")
        .env("PLIMSOLL_STATE", folder.join("state"));
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Creates a folder with these files.
///
/// # Panics
/// When they can't be written.
#[must_use]
pub fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, content) in files {
        fs::write(folder.path().join(name), content).expect("written");
    }
    folder
}

/// Runs a study in a folder; returns its result and the outputs.
///
/// # Panics
/// If the run has no result.
#[must_use]
pub fn result(
    folder: &Path,
    (study, out): (&str, &str),
    given: &[(&str, &str)],
) -> (Value, (String, String)) {
    let ran = plimsoll(folder, &["run", study, "--out", out], given);
    let (json, told) = plimsoll(folder, &["report", out, "--format", "json"], given);
    let result = serde_json::from_str(&json).unwrap_or_else(|_| panic!("{ran:?} {told}"));
    (result, ran)
}
