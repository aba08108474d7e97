//! Mail by all three ways of sending: HTTP, SMTP, and the web form.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::world::{Seen, Things, USERS, World, Writer, expect, name, together};
use crate::server::Client;

/// The view of a letter in all mailboxes.
fn shown(sender: Option<usize>, to: &[usize]) -> String {
    let mut shown: Vec<_> = to.iter().map(|user| format!("inbox {user}")).collect();
    shown.extend(sender.map(|user| format!("sent {user}")));
    together(shown)
}

pub(super) fn over_http(writer: &mut Writer<'_>) -> io::Result<()> {
    let mut client = writer.world.client(writer.user)?;
    let path = format!("/mail/{}/api/mail/outbox", name(writer.user));
    while writer.goes_on() {
        let (label, to) = (writer.next_label(), writer.others());
        let names: Vec<_> = to.iter().map(|user| name(*user)).collect();
        // Some are large enough to be shared.
        let bytes = if writer.below(4) == 0 { 70_000 } else { 1000 };
        let body = json!({
            "subject": label, "to": names,
            "content": [{ "contentType": "text/plain", "data": "x ".repeat(bytes / 2) }],
        });
        let sent = writer.change(&label, &shown(Some(writer.user), &to), || {
            let answer = client.request("POST", &path, &body)?;
            expect(&answer, 201).map(|()| answer)
        })?;
        if writer.below(3) == 0 {
            let path = sent.location.unwrap_or_default() + "?permanently=true";
            writer.change(&label, &shown(None, &to), || {
                expect(&client.request("DELETE", &path, &Value::Null)?, 200)
            })?;
        }
    }
    Ok(())
}

pub(super) fn over_smtp(writer: &mut Writer<'_>) -> io::Result<()> {
    while writer.goes_on() {
        let mut smtp = Smtp::open(writer.world.smtp)?;
        // Several in one connection.
        for _ in 0..=writer.below(3) {
            let (label, to) = (writer.next_label(), writer.others());
            smtp.say("MAIL FROM:<x@example.com>", '2')?;
            for user in &to {
                smtp.say(&format!("RCPT TO:<{}@localhost>", name(*user)), '2')?;
            }
            smtp.say("DATA", '3')?;
            writer.change(&label, &shown(None, &to), || {
                smtp.say(&format!("Subject: {label}\r\n\r\nHello.\r\n."), '2')
            })?;
        }
    }
    Ok(())
}

struct Smtp(BufReader<TcpStream>);

impl Smtp {
    fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let mut smtp = Self(BufReader::new(stream));
        smtp.hear('2')?;
        smtp.say("EHLO test", '2')?;
        Ok(smtp)
    }

    fn hear(&mut self, digit: char) -> io::Result<()> {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line)?;
            if !line.ends_with('\n') {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if line.as_bytes().get(3) == Some(&b'-') {
                continue;
            }
            return match line.starts_with(digit) {
                true => Ok(()),
                false => Err(io::Error::other(line)),
            };
        }
    }

    fn say(&mut self, line: &str, digit: char) -> io::Result<()> {
        let line = format!("{line}\r\n");
        self.0.get_mut().write_all(line.as_bytes())?;
        self.hear(digit)
    }
}

/// The session of a browser's form, beside its fields.
struct Session {
    client: Client,
    cookie: String,
    proof: String,
}

const HERE: (&str, &str) = ("sec-fetch-site", "same-origin");

impl Session {
    fn begin(world: &World, user: usize) -> io::Result<Self> {
        let stream = TcpStream::connect(world.server.address())?;
        let mut client = Client::over(stream, String::new())?;
        let body = format!("username={}&password={}", name(user), world.passwords[user]);
        let form = ("content-type", "application/x-www-form-urlencoded");
        let answer = client.send("POST", "/sign-in", &[HERE, form], body.as_bytes())?;
        let cookie = answer
            .header("set-cookie")
            .and_then(|it| it.split(';').next());
        let cookie = cookie
            .map(str::to_owned)
            .ok_or_else(|| io::Error::other(format!("no session: {answer:?}")))?;
        let page = client.send("GET", "/write", &[("cookie", &cookie)], b"")?;
        let page = String::from_utf8_lossy(&page.body);
        let proof = page.split("name=\"proof\" value=\"").nth(1);
        let proof = proof.and_then(|rest| rest.split('"').next());
        let proof = proof.ok_or_else(|| io::Error::other("no form"))?.to_owned();
        Ok(Self {
            client,
            cookie,
            proof,
        })
    }

    fn write(&mut self, subject: &str, to: &[usize]) -> io::Result<()> {
        let to: Vec<_> = to.iter().map(|user| name(*user)).collect();
        let fields = [
            ("proof", self.proof.as_str()),
            ("to", &to.join(", ")),
            ("subject", subject),
            ("text", "Hello."),
            ("do", "send"),
        ];
        let mut body = String::new();
        for (name, value) in fields {
            body += &format!(
                "--part\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            );
        }
        body += "--part--\r\n";
        let headers = [
            HERE,
            ("cookie", self.cookie.as_str()),
            ("content-type", "multipart/form-data; boundary=part"),
        ];
        let answer = self
            .client
            .send("POST", "/write", &headers, body.as_bytes())?;
        match answer.status {
            303 => Ok(()),
            status => Err(io::Error::other(format!("{status} to a form"))),
        }
    }
}

pub(super) fn over_pages(writer: &mut Writer<'_>) -> io::Result<()> {
    let mut session = Session::begin(writer.world, writer.user)?;
    while writer.goes_on() {
        let (label, to) = (writer.next_label(), writer.others());
        let shows = shown(Some(writer.user), &to);
        writer.change(&label, &shows, || session.write(&label, &to))?;
    }
    Ok(())
}

/// Returns all letters, in whichever folder.
pub(super) fn look(world: &World, _: &Things) -> io::Result<BTreeMap<String, String>> {
    let mut seen = Seen::default();
    for user in 0..USERS {
        let mut client = world.client(user)?;
        for folder in ["inbox", "sent"] {
            let base = format!("/mail/{}/api/mail/folders/{folder}", name(user));
            let mut found = 0;
            loop {
                let path = format!("{base}/messages?count=1000&start={found}");
                let answer = client.request("GET", &path, &Value::Null)?;
                expect(&answer, 200)?;
                let lines = answer.body.as_array().map_or(&[][..], Vec::as_slice);
                if lines.is_empty() {
                    break;
                }
                found += lines.len();
                for line in lines {
                    let subject = line["subject"].as_str().unwrap_or("without a subject");
                    seen.add(subject, format!("{folder} {user}"));
                }
            }
            let counted = client.request("GET", &base, &Value::Null)?;
            if counted.body["messages"] != found {
                let counted = &counted.body["messages"];
                let text = format!("{folder} of {user} has {found} messages and counts {counted}");
                return Err(io::Error::other(text));
            }
        }
    }
    Ok(seen.together())
}
