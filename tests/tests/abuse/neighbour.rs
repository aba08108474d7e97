//! The well-behaved user beside an abuse: reads, writes, signs in, and expects the right answer each time.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use plimsoll_tests::server::{Client, connect_from};
use serde_json::{Value, json};

use crate::stage::{NEIGHBOUR, Stage};

/// Messages in the neighbour's inbox.
const MESSAGES: usize = 3;
/// One of them is large: more than the server buffers for any client without a bound.
const LARGE_BYTES: usize = 300_000;

/// The step that changes something.
const CHANGE: u64 = 1;

/// The neighbour's measurements.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The time of each request.
    pub(crate) times: Vec<Duration>,
    /// The longest time of a change.
    pub(crate) slowest_change: Duration,
    /// Wrong and missing answers.
    pub(crate) wrong: Vec<String>,
}

impl Seen {
    /// Returns the 99th percentile of the times.
    pub(crate) fn p99(&self) -> Duration {
        let mut times = self.times.clone();
        times.sort();
        let at = times.len().saturating_sub(1) * 99 / 100;
        times.get(at).copied().unwrap_or_default()
    }
}

/// Ada, with a few mails.
pub(crate) struct Neighbour<'a> {
    stage: &'a Stage,
    client: Option<Client>,
    large: String,
    round: u64,
}

impl<'a> Neighbour<'a> {
    pub(crate) fn new(stage: &'a Stage) -> Self {
        let mut ada = Self {
            stage,
            client: None,
            large: String::new(),
            round: 0,
        };
        for number in 0..MESSAGES {
            let text = match number {
                0 => "large ".repeat(LARGE_BYTES / 6),
                _ => "small".to_owned(),
            };
            let body = json!({ "to": ["ada@localhost"], "subject": number.to_string(),
                "content": [{ "contentType": "text/plain", "data": text }] });
            let sent = ada.ask("POST", "/mail/ada/api/mail/outbox", &body);
            assert_eq!(sent.unwrap().0, 201);
        }
        let list = ada.ask("GET", "/mail/ada/api/mail/inbox", &Value::Null);
        let list = list.unwrap().1;
        let large = list.as_array().unwrap().last().unwrap();
        ada.large = large["href"].as_str().unwrap().to_owned();
        ada
    }

    /// Repeats its rounds until `stop` is set.
    #[expect(clippy::disallowed_methods, reason = "it is real time that counts")]
    pub(crate) fn work(&mut self, stop: &AtomicBool) -> Seen {
        let mut seen = Seen::default();
        while !stop.load(Relaxed) {
            for step in 0..4 {
                let start = Instant::now();
                let done = self.step(step);
                let took = start.elapsed();
                seen.times.push(took);
                if step == CHANGE {
                    seen.slowest_change = seen.slowest_change.max(took);
                }
                if let Err(problem) = done {
                    seen.wrong.push(problem);
                    self.client = None;
                }
            }
            self.round += 1;
            if self.round.is_multiple_of(5) {
                // Continues on another connection.
                self.client = None;
            }
            self.stage.rounds.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_millis(5));
        }
        seen
    }

    fn step(&mut self, step: u64) -> Result<(), String> {
        let inbox = "/mail/ada/api/mail/inbox";
        match step {
            0 => {
                let (status, body) = self.asked("GET", inbox, &Value::Null)?;
                let messages = body.as_array().map_or(0, Vec::len);
                right(status == 200 && messages == MESSAGES, inbox, status)
            }
            CHANGE => {
                let event = json!({ "events": [{ "summary": "Lunch",
                    "start": { "date": "2026-01-05", "time": "12:00:00", "utc": true },
                    "end": { "date": "2026-01-05", "time": "13:00:00", "utc": true } }] });
                let events = "/mail/ada/api/calendar/events";
                let (status, _) = self.asked("POST", events, &event)?;
                right(status == 201, events, status)
            }
            2 => {
                let large = self.large.clone();
                let (status, body) = self.asked("GET", &large, &Value::Null)?;
                let bytes = text_bytes(&body);
                right(status == 200 && bytes >= LARGE_BYTES, &large, status)
            }
            _ => self.sign_in(),
        }
    }

    /// Requests a page before sign-in, on a connection of its own.
    fn sign_in(&self) -> Result<(), String> {
        let stream = connect_from(NEIGHBOUR, self.stage.address());
        let page = stream.and_then(|stream| {
            let mut stranger = self.stage.client(stream, "None".to_owned())?;
            let form = b"username=nobody&password=x";
            let kind = [("content-type", "application/x-www-form-urlencoded")];
            match self.round % 20 {
                0 => stranger.send("POST", "/sign-in", &kind, form),
                _ => stranger.send("GET", "/sign-in", &[], b""),
            }
        });
        let status = page.map_err(|error| format!("/sign-in: {error}"))?.status;
        // A refusal for a wrong name or too many tries is an answer.
        let is_answered = matches!(status, 200 | 303 | 401 | 403 | 422 | 429);
        right(is_answered, "/sign-in", status)
    }

    fn asked(&mut self, method: &str, path: &str, body: &Value) -> Result<(u16, Value), String> {
        let asked = self.ask(method, path, body);
        asked.map_err(|error| format!("{method} {path}: {error}"))
    }

    fn ask(&mut self, method: &str, path: &str, body: &Value) -> io::Result<(u16, Value)> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => self.stage.user("ada", NEIGHBOUR)?,
        };
        let answer = client.request(method, path, body)?;
        self.client = Some(client);
        Ok((answer.status, answer.body))
    }
}

/// The bytes of all texts in it.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(entries) => entries.values().map(text_bytes).sum(),
        _ => 0,
    }
}

fn right(is_right: bool, path: &str, status: u16) -> Result<(), String> {
    match is_right {
        true => Ok(()),
        false => Err(format!("{path}: {status}")),
    }
}
