//! The behaviour of a browser on the pages, without one. Each test program uses a part of it.
#![allow(dead_code, reason = "each test program uses its own part")]

use groupware_server::Server;

use crate::support::{Reply, register, send};

pub(crate) const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml");
pub(crate) const HERE: (&str, &str) = ("sec-fetch-site", "same-origin");
pub(crate) const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// A browser with one user's session.
pub(crate) struct Browser<'a> {
    pub(crate) server: &'a Server,
    pub(crate) cookie: String,
    pub(crate) proof: String,
}

impl<'a> Browser<'a> {
    pub(crate) fn sign_in(server: &'a Server, name: &str, password: &str) -> Self {
        let reply = post(
            server,
            "/sign-in",
            &[HERE],
            &[("username", name), ("password", password)],
        );
        assert_eq!(reply.status, 303, "{reply:?}");
        let cookie = reply.cookie();
        let mut browser = Self {
            server,
            cookie,
            proof: String::new(),
        };
        let page = browser.get("/settings");
        browser.proof = between(&page, "name=\"proof\" value=\"", "\"").to_owned();
        browser
    }

    pub(crate) fn ask(&self, path: &str) -> Reply {
        let headers = [HTML, ("cookie", self.cookie.as_str())];
        send(self.server.address(), "GET", path, &headers, b"")
    }

    pub(crate) fn get(&self, path: &str) -> String {
        let reply = self.ask(path);
        assert_eq!(reply.status, 200, "{path}: {}", text(&reply));
        text(&reply)
    }

    pub(crate) fn send(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let fields = [&[("proof", self.proof.as_str())], fields].concat();
        self.send_as_is(path, &[HERE], &fields)
    }

    pub(crate) fn send_as_is(
        &self,
        path: &str,
        more: &[(&str, &str)],
        fields: &[(&str, &str)],
    ) -> Reply {
        let headers = [&[("cookie", self.cookie.as_str())], more].concat();
        post(self.server, path, &headers, fields)
    }
}

pub(crate) fn post(
    server: &Server,
    path: &str,
    more: &[(&str, &str)],
    fields: &[(&str, &str)],
) -> Reply {
    let pairs: Vec<_> = fields
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    let headers = [&[HTML, FORM], more].concat();
    send(
        server.address(),
        "POST",
        path,
        &headers,
        pairs.join("&").as_bytes(),
    )
}

pub(crate) fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

pub(crate) fn text(reply: &Reply) -> String {
    String::from_utf8(reply.body.clone()).unwrap()
}

pub(crate) fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let start = text
        .find(before)
        .unwrap_or_else(|| panic!("no {before} in {text}"))
        + before.len();
    let end = text[start..].find(after).unwrap() + start;
    &text[start..end]
}

pub(crate) fn two_users(server: &Server) -> (Browser<'_>, Browser<'_>) {
    let passwords = register(server, &["ada", "ben"]);
    (
        Browser::sign_in(server, "ada", &passwords[0]),
        Browser::sign_in(server, "ben", &passwords[1]),
    )
}
