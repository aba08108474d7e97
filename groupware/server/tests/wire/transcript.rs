//! Requests and their responses as text, with stars for what differs between runs.

use std::ops::Range;

use groupware_server::{Config, Server};

use crate::support::{Reply, basic, config, read_reply, register, send};

/// Omitted headers: the body is shown, and the time varies.
const LEFT_OUT: [&str; 3] = ["connection", "content-length", "date"];
/// The longest body of a request that is shown.
const SHOWN_BYTES: usize = 300;
/// Dates of these years are those of the run: dates in the tests lie before or after.
const YEARS_OF_RUNS: Range<u16> = 2024..2060;

/// The sender of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Who {
    Nobody,
    Ada,
    Ben,
    Admin,
}

pub(crate) use Who::{Ada, Admin, Ben, Nobody};

/// A request besides its method and path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rest<'a> {
    pub(crate) headers: Vec<(&'a str, &'a str)>,
    pub(crate) body: Vec<u8>,
    /// A length that is announced without sending any byte of it.
    pub(crate) announced: Option<u64>,
}

/// No header, no body.
pub(crate) fn bare<'a>() -> Rest<'a> {
    Rest::default()
}

/// A body of a type.
pub(crate) fn typed(kind: &str, body: impl Into<Vec<u8>>) -> Rest<'_> {
    Rest {
        headers: vec![("content-type", kind)],
        body: body.into(),
        announced: None,
    }
}

pub(crate) fn json<'a>(body: impl Into<Vec<u8>>) -> Rest<'a> {
    typed("application/json", body)
}

/// Only headers.
pub(crate) fn with<'a>(headers: &[(&'a str, &'a str)]) -> Rest<'a> {
    Rest {
        headers: headers.to_vec(),
        ..Rest::default()
    }
}

/// A body of this length that never arrives.
pub(crate) fn announced<'a>(kind: &'a str, bytes: u64) -> Rest<'a> {
    Rest {
        announced: Some(bytes),
        ..typed(kind, "")
    }
}

impl<'a> Rest<'a> {
    pub(crate) fn and(mut self, name: &'a str, value: &'a str) -> Self {
        self.headers.push((name, value));
        self
    }
}

/// A server with the users `ada` and `ben`, and the transcript so far.
pub(crate) struct Transcript {
    pub(crate) server: Server,
    auth: [String; 2],
    text: String,
}

impl Transcript {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = config();
        change(&mut config);
        let server = Server::start(config).unwrap();
        let passwords = register(&server, &["ada", "ben"]);
        Self {
            auth: [basic("ada", &passwords[0]), basic("ben", &passwords[1])],
            server,
            text: String::new(),
        }
    }

    fn authorization(&self, who: Who) -> Option<String> {
        match who {
            Nobody => None,
            Ada => Some(self.auth[0].clone()),
            Ben => Some(self.auth[1].clone()),
            Admin => Some(format!("Bearer {}", crate::support::TOKEN)),
        }
    }

    /// Sends a request without recording it.
    pub(crate) fn ask(&self, who: Who, method: &str, path: &str, rest: &Rest<'_>) -> Reply {
        let auth = self.authorization(who);
        let mut headers = rest.headers.clone();
        headers.extend(auth.as_deref().map(|auth| ("authorization", auth)));
        let address = self.server.address();
        match rest.announced {
            None => send(address, method, path, &headers, &rest.body),
            Some(length) => {
                let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
                for (name, value) in headers {
                    head += &format!("{name}: {value}\r\n");
                }
                self.raw(format!("{head}content-length: {length}\r\n\r\n").as_bytes())
            }
        }
    }

    /// Sends bytes, and reads one response.
    fn raw(&self, bytes: &[u8]) -> Reply {
        let mut stream = crate::support::connect(self.server.address());
        std::io::Write::write_all(&mut stream, bytes).unwrap();
        read_reply(stream).expect("the server answers")
    }

    /// Sends a request that must succeed; returns the path in its `Location`.
    #[track_caller]
    pub(crate) fn made(&self, who: Who, method: &str, path: &str, rest: &Rest<'_>) -> String {
        let reply = self.ask(who, method, path, rest);
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.header("location").unwrap().to_owned()
    }

    /// Sends a request, and records it and the response.
    pub(crate) fn check(&mut self, who: Who, method: &str, path: &str, rest: Rest<'_>) -> Reply {
        let reply = self.ask(who, method, path, &rest);
        self.text += &request_text(&format!("{who:?}"), method, path, &rest);
        self.text += &reply_text(&reply);
        reply
    }

    /// The same for bytes that are no valid request.
    pub(crate) fn check_raw(&mut self, name: &str, bytes: &[u8]) {
        let reply = self.raw(bytes);
        self.text += &format!("### {name}\n");
        self.text += &reply_text(&reply);
    }

    pub(crate) fn text(&self) -> String {
        starred(&self.text)
    }
}

fn request_text(who: &str, method: &str, path: &str, rest: &Rest<'_>) -> String {
    let mut text = format!("### {who}: {method} {}\n", shortened(path));
    for (name, value) in &rest.headers {
        text += &format!("> {name}: {}\n", shortened(value));
    }
    match (rest.announced, rest.body.len()) {
        (Some(bytes), _) => text += &format!("> ({bytes} bytes announced)\n"),
        (None, 0) => {}
        (None, bytes) if bytes > SHOWN_BYTES => text += &format!("> ({bytes} bytes)\n"),
        _ => {
            for line in String::from_utf8_lossy(&rest.body).lines() {
                text += &format!("> {line}\n");
            }
        }
    }
    text
}

fn shortened(text: &str) -> String {
    match text.len() > SHOWN_BYTES {
        true => format!("{}… ({} bytes)", &text[..40], text.len()),
        false => text.to_owned(),
    }
}

/// Status, headers sorted by name, body.
pub(crate) fn reply_text(reply: &Reply) -> String {
    let mut text = format!("{}\n", reply.status);
    let mut headers: Vec<_> = reply
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
        .filter(|(name, _)| !LEFT_OUT.contains(&name.as_str()))
        .collect();
    headers.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, value) in headers {
        match name.as_str() {
            // A number of seconds from now.
            "retry-after" => text += &format!("{name}: **\n"),
            // It is missing during its own second.
            "last-modified" => {}
            // A revision and the second of a change.
            "etag" if value.contains('-') => text += &format!("{name}: \"*-*\"\n"),
            _ => text += &format!("{name}: {value}\n"),
        }
    }
    if !reply.body.is_empty() {
        // One line per element of a page, for readable differences.
        let body = String::from_utf8_lossy(&reply.body).replace("><", ">\n<");
        text += &format!("\n{}\n", body.trim_end());
    }
    text.push('\n');
    text
}

/// Masks identifiers, secrets, and dates of the run with stars.
pub(crate) fn starred(text: &str) -> String {
    let mut text = stars_for_words(text);
    for (before, after) in [
        ("plimsoll_session=", ";"),
        ("name=\"proof\" value=\"", "\""),
        ("name=\"seen\" value=\"", "\""),
        ("\"app_password\":\"", "\""),
        ("id=\"message.", "\""),
        ("%3Freply%3D", "\n"),
        ("%3Fdraft%3D", "\n"),
        ("It is ", " there now"),
    ] {
        text = stars_between(&text, before, after);
    }
    stars_for_mail_dates(&text)
}

/// Masks the text between two texts, one star per letter.
pub(crate) fn stars_between(text: &str, before: &str, after: &str) -> String {
    let mut pieces = text.split(before);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(after).unwrap_or_default();
        out += before;
        out += &"*".repeat(piece[..end].chars().count());
        out += &piece[end..];
    }
    out
}

/// Masks words that are identifiers, and times of years other than those of the tests.
fn stars_for_words(text: &str) -> String {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | ':');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match is_identifier(word) || is_moment(word) || is_second(word) {
            true => out += &"*".repeat(word.len()),
            false => out += word,
        }
        let end = after.find(is_word).unwrap_or(after.len());
        out += &after[..end];
        rest = &after[end..];
    }
    out
}

/// Seconds since 1970, in the years of runs: ten digits.
fn is_second(word: &str) -> bool {
    let word = word.trim_start_matches(':');
    word.len() == 10
        && word
            .parse()
            .is_ok_and(|second| (1_700_000_000..2_840_000_000_u64).contains(&second))
}

/// 32 or 16 hexadecimal digits, or 12 in the name of a style sheet or script.
fn is_identifier(word: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_asset = ["style-", "script-", "icon-"].iter().any(|name| {
        word.strip_prefix(name)
            .is_some_and(|hash| hash.len() == 12 && is_hex(hash))
    });
    let groups: Vec<&str> = word.split('-').collect();
    let is_uuid = groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]);
    is_asset
        || (matches!(word.len(), 16 | 32) && is_hex(word))
        || is_uuid && is_hex(&groups.concat())
}

/// `2026-11-22T05:09:00Z`, or without the `Z` where a fraction follows.
fn is_moment(word: &str) -> bool {
    let shape: String = word
        .chars()
        .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
        .collect();
    shape.trim_end_matches('Z') == "0000-00-00T00:00:00" && is_year_of_runs(&word[..4])
}

fn is_year_of_runs(text: &str) -> bool {
    text.len() == 4 && text.parse().is_ok_and(|year| YEARS_OF_RUNS.contains(&year))
}

/// Masks `Sun, 22 Nov 2026 05:09:00 GMT` (RFC 5322), with equal lengths for days of one and two digits.
fn stars_for_mail_dates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(", ") {
        let (before, after) = rest.split_at(at);
        let words: Vec<&str> = after[2..].splitn(5, [' ', '\n']).collect();
        let is_date = before.len() >= 3
            && matches!(&words[..], [day, month, year, time, _]
                if day.parse::<u8>().is_ok() && month.len() == 3 && is_year_of_runs(year)
                    && time.split(':').count() == 3);
        let taken = match is_date {
            true => {
                out += &before[..before.len() - 3];
                out += "***, ** *** **** **:**:**";
                2 + words[..4].iter().map(|word| word.len() + 1).sum::<usize>() - 1
            }
            false => {
                out += before;
                out += ", ";
                2
            }
        };
        rest = &after[taken..];
    }
    out + rest
}

#[test]
fn stars_stand_for_what_differs_and_for_nothing_else() {
    let check = |text: &str, expected: &str| assert_eq!(starred(text), expected);
    let id = "0123456789ABCDEF0123456789abcdef";
    let stars = "*".repeat(32);
    check(&format!("/a/{id}?x={id}0"), &format!("/a/{stars}?x={id}0"));
    check(
        "/assets/style-0123456789ab.css style-0123",
        "/assets/******************.css style-0123",
    );
    check(
        "58bf8e3d-4b30-599a-afd5-905a4a3fc154 58bf8e3d-4b30 2026-11-22T05:09:00.000Z",
        "************************************ 58bf8e3d-4b30 *******************.000Z",
    );
    check(
        "\"2026-11-22T05:09:00Z\" 2061-11-22T05:09:00Z 2026-11-22",
        "\"********************\" 2061-11-22T05:09:00Z 2026-11-22",
    );
    check(
        "a, Sun, 1 Nov 2026 05:09:00 GMT, b; Mon, 6 Jan 2020 05:09:00 GMT",
        "a, ***, ** *** **** **:**:** GMT, b; Mon, 6 Jan 2020 05:09:00 GMT",
    );
    check(
        "plimsoll_session=abc; HttpOnly; plimsoll_session=; x",
        "plimsoll_session=***; HttpOnly; plimsoll_session=; x",
    );
    check(
        "Thursday, 3 March 2061, 10:00 – 11:00 (UTC)",
        "Thursday, 3 March 2061, 10:00 – 11:00 (UTC)",
    );
}
