//! A user of the calendar, over a shared connection, and its requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::Error;

const TIMEOUT: Duration = Duration::from_secs(120);
/// The month of all meetings.
const SINCE: &str = "since=2026-01-01T00:00:00Z";
const BEFORE: &str = "before=2026-02-01T00:00:00Z";

/// A kept connection.
pub(super) struct Connection(BufReader<TcpStream>);

/// An answer.
struct Answer {
    status: u16,
    cookie: Option<String>,
    body: Vec<u8>,
}

impl Connection {
    pub(super) fn open(address: SocketAddr) -> Result<Self, Error> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self(BufReader::new(stream)))
    }

    fn ask(&mut self, request: &str) -> Result<Answer, Error> {
        self.0.get_mut().write_all(request.as_bytes())?;
        let wrong = || Error::Peer("no answer in HTTP".to_owned());
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(wrong)?;
        let (mut length, mut cookie) = (0, None);
        loop {
            line.clear();
            self.0.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            match name {
                "content-length" => length = value.parse().map_err(|_| wrong())?,
                "set-cookie" => cookie = value.split(';').next().map(str::to_owned),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok(Answer {
            status,
            cookie,
            body,
        })
    }
}

/// A user in the ring.
pub(super) struct User {
    place: usize,
    of: usize,
    password: String,
    cookie: String,
    /// The number of meetings scheduled so far.
    meetings: usize,
    /// Paths of invitations; the next one to open is at the end.
    invitations: Vec<String>,
    opened: Option<String>,
    /// Paths of accepted events of others.
    events: Vec<String>,
}

impl User {
    pub(super) fn name_of(place: usize) -> String {
        format!("user{place:05}")
    }

    pub(super) fn new((place, of): (usize, usize), password: &str) -> Self {
        Self {
            place,
            of,
            password: password.to_owned(),
            cookie: String::new(),
            meetings: 0,
            invitations: Vec::new(),
            opened: None,
            events: Vec::new(),
        }
    }

    fn name(&self) -> String {
        Self::name_of(self.place)
    }

    fn neighbour(&self, behind: usize) -> String {
        Self::name_of((self.place + behind) % self.of)
    }

    /// Sends a request like the generator of a study.
    fn ask(
        &self,
        over: &mut Connection,
        (method, path): (&str, &str),
        (kind, body): (&str, &str),
        status: u16,
    ) -> Result<Answer, Error> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nUser-Agent: plimsoll\r\n");
        if !kind.is_empty() {
            head += &format!("Content-Type: {kind}\r\n");
        }
        head += "Host: 127.0.0.1:8340\r\n";
        if !self.cookie.is_empty() {
            head += &format!("Cookie: {}\r\n", self.cookie);
        }
        if !body.is_empty() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        let answer = over.ask(&format!("{head}\r\n{body}"))?;
        match answer.status == status {
            true => Ok(answer),
            false => Err(Error::Peer(format!(
                "{method} {path}: {} {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            ))),
        }
    }

    fn get(&self, over: &mut Connection, path: &str) -> Result<Value, Error> {
        let answer = self.ask(over, ("GET", path), ("", ""), 200)?;
        if answer.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&answer.body).map_err(|error| Error::Peer(error.to_string()))
    }

    fn calendar(&self, rest: &str) -> String {
        format!("/mail/{}/api/calendar/{rest}", self.name())
    }

    pub(super) fn log_in(&mut self, over: &mut Connection) -> Result<(), Error> {
        let form = format!("username={}&password={}", self.name(), self.password);
        let form = ("application/x-www-form-urlencoded", form.as_str());
        let answer = self.ask(over, ("POST", "/login"), form, 200)?;
        let cookie = answer.cookie;
        self.cookie = cookie.ok_or_else(|| Error::Peer("no cookie".to_owned()))?;
        Ok(())
    }

    pub(super) fn list_invitations(&mut self, over: &mut Connection) -> Result<(), Error> {
        let list = self.get(over, &self.calendar("invitations"))?;
        let all = list["notices"].as_array().into_iter().flatten();
        let hrefs = all.filter_map(|line| Some(line["href"].as_str()?.to_owned()));
        self.invitations = hrefs.collect();
        self.invitations.reverse();
        Ok(())
    }

    pub(super) fn list_coming_events(&mut self, over: &mut Connection) -> Result<(), Error> {
        let path = self.calendar(&format!("events?{SINCE}&count=100"));
        self.get(over, &path).map(drop)
    }

    pub(super) fn list_month(&mut self, over: &mut Connection) -> Result<(), Error> {
        let path = self.calendar(&format!("events?{SINCE}&{BEFORE}&count=100"));
        let list = self.get(over, &path)?;
        let own = format!("{}@localhost", self.name());
        let all = list["events"].as_array().into_iter().flatten();
        let accepted = all.filter(|line| {
            line["x-lotus-organizer"]["data"] != own.as_str()
                && line["x-lotus-noticetype"]["data"] != "I"
        });
        let hrefs = accepted.filter_map(|line| Some(line["href"].as_str()?.to_owned()));
        self.events = hrefs.collect();
        Ok(())
    }

    pub(super) fn schedule(&mut self, over: &mut Connection) -> Result<(), Error> {
        self.meetings += 1;
        let attendees: Vec<_> = (1..=6)
            .map(|behind| {
                let name = self.neighbour(behind);
                json!({ "role": "req-participant", "status": "needs-action", "rsvp": true,
                    "displayName": name, "email": format!("{name}@localhost") })
            })
            .collect();
        let (number, name) = (self.place * 7 + self.meetings * 11, self.name());
        let (day, hour) = (5 + number % 14, 8 + number % 9);
        let at = |minute| json!({ "date": format!("2026-01-{day:02}"), "time": format!("{hour:02}:{minute}:00"), "utc": true });
        let id = format!(
            "{:08x}-0b57-4a3c-9a2d-{:012x}",
            number * 2_654_435_761 % 0xFFFF_FFFF,
            self.place * 1000 + self.meetings
        );
        let event = json!({
            "id": id, "summary": format!("Meeting of {name}"), "location": format!("Room {}", 1 + number % 40),
            "start": at("00"), "end": at("45"),
            "organizer": { "displayName": name, "email": format!("{name}@localhost") },
            "attendees": attendees,
        });
        let body = json!({ "events": [event] }).to_string();
        let asked = ("POST", &*self.calendar("events"));
        self.ask(over, asked, ("application/json", &body), 201)
            .map(drop)
    }

    pub(super) fn open_invitation(&mut self, over: &mut Connection) -> Result<(), Error> {
        let next = self.invitations.pop();
        let next = next.ok_or_else(|| Error::Peer("no invitation is left".to_owned()))?;
        self.get(over, &next)?;
        self.opened = Some(next);
        Ok(())
    }

    /// Answers the open invitation, or the next one.
    pub(super) fn act(&mut self, over: &mut Connection, action: &str) -> Result<(), Error> {
        let next = self.opened.take().or_else(|| self.invitations.pop());
        let next = next.ok_or_else(|| Error::Peer("no invitation is left".to_owned()))?;
        let to = (action == "delegate").then(|| self.neighbour(7));
        self.answer(over, (&next, action), to.as_deref())
    }

    fn answer(
        &self,
        over: &mut Connection,
        (path, action): (&str, &str),
        to: Option<&str>,
    ) -> Result<(), Error> {
        let path = format!("{path}/action?type={action}");
        let body = to.map(|to| json!({ "delegateTo": format!("{to}@localhost") }).to_string());
        let body = body.as_deref().map(|body| ("application/json", body));
        self.ask(over, ("PUT", &path), body.unwrap_or_default(), 200)
            .map(drop)
    }

    pub(super) fn open_event(&mut self, over: &mut Connection) -> Result<(), Error> {
        let at = self.place % self.events.len().max(1);
        let event = self.events.get(at).cloned();
        let event = event.ok_or_else(|| Error::Peer("no event was accepted".to_owned()))?;
        self.get(over, &event)?;
        self.opened = Some(event);
        Ok(())
    }

    pub(super) fn delegate_event(&mut self, over: &mut Connection) -> Result<(), Error> {
        let event = self.opened.take().unwrap_or_default();
        let to = self.neighbour(8);
        self.answer(over, (&event, "delegate"), Some(&to))
    }
}
