//! A site with two users, the content of their calendars and accounts, and a record of their pages.

use groupware_server::Server;

use crate::browser::{Browser, FORM, HERE, HTML, between, encode, text, two_users};
use crate::support::{Reply, send};
use crate::transcript::{reply_text, starred};

/// The fields of a meeting on a distant day.
pub(crate) fn meeting<'f>(title: &'f str, people: &'f str) -> Vec<(&'f str, &'f str)> {
    vec![
        ("title", title),
        ("start_day", "2061-03-04"),
        ("start_time", "10:00"),
        ("end_day", "2061-03-04"),
        ("end_time", "11:30"),
        ("place", "Room Tern"),
        ("people", people),
        ("about", "One & two\r\n<three>"),
    ]
}

/// Ada, Ben, and a visitor without a session.
pub(crate) struct Site<'a> {
    pub(crate) server: &'a Server,
    pub(crate) ada: Browser<'a>,
    pub(crate) ben: Browser<'a>,
    said: String,
}

impl<'a> Site<'a> {
    pub(crate) fn new(server: &'a Server) -> Self {
        let (ada, ben) = two_users(server);
        Self {
            server,
            ada,
            ben,
            said: String::new(),
        }
    }

    /// Takes the record since the last call.
    pub(crate) fn take(&mut self) -> String {
        starred(&std::mem::take(&mut self.said))
    }

    pub(crate) fn note(&mut self, what: &str, reply: &Reply) {
        self.said += &format!("### {what}\n{}", reply_text(reply));
    }

    /// Records a page for each kind of user: not signed in, its owner, another user.
    pub(crate) fn look(&mut self, path: &str) {
        let nobody = send(self.server.address(), "GET", path, &[HTML], b"");
        self.note(&format!("Nobody: GET {path}"), &nobody);
        for (name, reply) in [("Ada", self.ada.ask(path)), ("Ben", self.ben.ask(path))] {
            self.note(&format!("{name}: GET {path}"), &reply);
        }
    }

    /// Records a page for ada.
    pub(crate) fn look_as_ada(&mut self, path: &str) {
        let reply = self.ada.ask(path);
        self.note(&format!("Ada: GET {path}"), &reply);
    }

    /// Sends a form of ada.
    pub(crate) fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let reply = self.ada.send(path, fields);
        self.note(&form_text("Ada", path, fields), &reply);
        reply
    }

    /// Sends a form without permission: not signed in, without proof, from another site, and as another user.
    pub(crate) fn submit_wrongly(&mut self, path: &str, fields: &[(&str, &str)]) {
        let cookie = self.ada.cookie.clone();
        let here = ("sec-fetch-site", "same-origin");
        let there = ("sec-fetch-site", "cross-site");
        for (name, cookie, site) in [
            ("Nobody", "", here),
            ("Ada without proof", cookie.as_str(), here),
            ("Ada from another site", cookie.as_str(), there),
        ] {
            let headers = [HTML, FORM, site, ("cookie", cookie)];
            let body: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
                .collect();
            let address = self.server.address();
            let reply = send(address, "POST", path, &headers, body.join("&").as_bytes());
            self.note(&form_text(name, path, fields), &reply);
        }
        let reply = self.ben.send(path, fields);
        self.note(&form_text("Ben", path, fields), &reply);
    }

    /// Delivers a message of ben unchanged through the interface for programs.
    pub(crate) fn deliver(&self, message: &str) {
        let headers = [
            ("cookie", self.ben.cookie.as_str()),
            ("content-type", "message/rfc822"),
        ];
        let message = message.replace('\n', "\r\n");
        let path = "/mail/ben/api/mail/outbox";
        let body = message.as_bytes();
        let reply = send(self.server.address(), "POST", path, &headers, body);
        assert_eq!(reply.status, 201, "{}", text(&reply));
    }

    /// Stores a draft of ada.
    pub(crate) fn keep(&self, message: &str) {
        let headers = [
            ("cookie", self.ada.cookie.as_str()),
            ("content-type", "message/rfc822"),
        ];
        let message = message.replace('\n', "\r\n");
        let path = "/mail/ada/api/mail/drafts";
        let body = message.as_bytes();
        let reply = send(self.server.address(), "POST", path, &headers, body);
        assert_eq!(reply.status, 201, "{}", text(&reply));
    }

    /// Sends ada's mail form, with files.
    pub(crate) fn write(&mut self, fields: &[(&str, &str)], files: &[(&str, &str)]) -> Reply {
        let mut body = String::new();
        let proof = ("proof", self.ada.proof.as_str());
        for (name, value) in [&[proof], fields].concat() {
            body += "--line\r\ncontent-disposition: form-data; ";
            body += &format!("name=\"{name}\"\r\n\r\n{value}\r\n");
        }
        for (name, data) in files {
            body += "--line\r\ncontent-disposition: form-data; name=\"files\"; ";
            body += &format!("filename=\"{name}\"\r\ncontent-type: text/plain\r\n\r\n{data}\r\n");
        }
        body += "--line--\r\n";
        let kind = ("content-type", "multipart/form-data; boundary=line");
        let headers = [HTML, HERE, kind, ("cookie", self.ada.cookie.as_str())];
        let address = self.server.address();
        let reply = send(address, "POST", "/write", &headers, body.as_bytes());
        self.note(&form_text("Ada", "/write", fields), &reply);
        reply
    }
}

fn form_text(who: &str, path: &str, fields: &[(&str, &str)]) -> String {
    let mut text = format!("{who}: POST {path}");
    for (name, value) in fields {
        match value.len() > 300 {
            true => text += &format!("\n> {name}: ({} bytes)", value.len()),
            false => text += &format!("\n> {name}: {}", value.replace("\r\n", " ¶ ")),
        }
    }
    text
}

/// Returns the first path with this prefix on a page.
pub(crate) fn link(page: &str, beginning: &str) -> String {
    format!(
        "{beginning}{}",
        between(page, &format!("href=\"{beginning}"), "\"")
    )
}

/// Returns the path of the newest mail of a folder.
pub(crate) fn newest(browser: &Browser<'_>, folder: &str) -> String {
    let beginning = match folder {
        "drafts" => "/write?draft=",
        _ => "/message/",
    };
    link(&browser.get(&format!("/box/{folder}")), beginning)
}
