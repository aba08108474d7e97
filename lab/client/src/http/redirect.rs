//! Redirects: the new target, method, and content from the previous request (RFC 9110, section 15.4). Pure: a message
//! in, a message out.

use std::fmt::Write as _;

use url::Url;

use super::cookie::Jar;
use super::message::Message;
use lab_units::BaseUrl;

/// The maximum length of a redirect's address.
const MAX_LOCATION: usize = 8 << 10;

/// A request that a redirect asks for.
#[derive(Debug)]
pub(super) struct Hop {
    /// The whole message.
    pub(super) message: Message,
    /// The server, if it is not the base server.
    pub(super) other: Option<Box<BaseUrl>>,
    /// How many further redirects may follow.
    pub(super) left: u32,
}

/// A sent message, and its target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent<'a> {
    /// The whole message.
    pub(super) message: &'a Message,
    /// The server that received it.
    pub(super) server: &'a BaseUrl,
    /// The base server.
    pub(super) base: &'a BaseUrl,
    /// The host name of the base server.
    pub(super) host: &'a str,
}

/// Returns true if a status redirects to the `Location`.
pub(super) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// Returns the request for a redirect of this status.
///
/// # Errors
/// A message, if no request can be sent to the location.
pub(super) fn follow(
    sent: &Sent<'_>,
    status: u16,
    location: &str,
    jar: &Jar,
) -> Result<(Message, Option<Box<BaseUrl>>), String> {
    let text = &sent.message.text;
    let end = text.find("\r\n\r\n");
    let head = &text[..end.unwrap_or(text.len())];
    let body = end.map_or(text.len(), |end| end + 4);
    let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
    let mut words = line.split(' ');
    let method = words.next().unwrap_or("GET");
    let target = words.next().unwrap_or("/");
    let (server, path) = place(sent, target, location)?;
    let same = server == *sent.server;
    let next = method_after(method, status);
    let keeps_body = next == method;
    let mut message = String::with_capacity(text.len() + path.len());
    // Writing to a string can't fail.
    let _infallible = write!(message, "{next} {path} HTTP/1.1\r\n");
    for header in headers.split("\r\n") {
        let name = header.split(':').next().unwrap_or(header);
        let is = |one: &str| name.eq_ignore_ascii_case(one);
        let of_server = is("host") || is("authorization") || is("proxy-authorization");
        let of_body = name.to_ascii_lowercase().starts_with("content-");
        let drops = is("cookie") || (of_server && !same) || (of_body && !keeps_body);
        if !drops && !header.is_empty() {
            message.push_str(header);
            message.push_str("\r\n");
        }
    }
    if !same {
        let _infallible = write!(message, "Host: {}\r\n", server.authority());
    }
    let other = (server != *sent.base).then(|| Box::new(server));
    if other.is_none() {
        let own = &sent.message.cookies;
        jar.write(sent.base.secure, &path, own, &mut message);
    }
    message.push_str("\r\n");
    let mut message = match keeps_body {
        true => sent.message.with_head(body, message),
        false => Message::new(message).of_trace(sent.message.trace),
    };
    message.cookies.clone_from(&sent.message.cookies);
    message.is_foreign = sent.message.is_foreign || !same;
    Ok((message, other))
}

/// Returns the method after a redirect: a POST becomes a GET, as in browsers; after 303 every method but HEAD does.
fn method_after(method: &str, status: u16) -> &str {
    match (status, method) {
        (301 | 302, "POST") => "GET",
        (303, "HEAD") => "HEAD",
        (303, _) => "GET",
        _ => method,
    }
}

/// Returns the server and the path that `location` names, relative to the request's target.
fn place(sent: &Sent<'_>, target: &str, location: &str) -> Result<(BaseUrl, String), String> {
    let shown: String = location.chars().take(200).collect();
    let wrong = |why: &str| Err(format!("a redirect to “{shown}” can't be followed: {why}"));
    if location.len() > MAX_LOCATION {
        return wrong("it is too long");
    }
    let from = Url::parse(&format!("{}{target}", sent.server));
    let to = match from.and_then(|from| from.join(location)) {
        Ok(to) => to,
        Err(error) => return wrong(&error.to_string()),
    };
    if !matches!(to.scheme(), "http" | "https") {
        return wrong("it is neither http nor https");
    }
    let Ok((mut server, path)) = BaseUrl::split(to.as_str()) else {
        return wrong("it names no server that can be asked");
    };
    // By the host name of the base server, if its URL has an address.
    if server.host == sent.host && server.secure == sent.base.secure {
        let own_port = sent.base.port == server.port || sent.base.host != sent.host;
        if own_port {
            server = sent.base.clone();
        }
    }
    let path = match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("/{path}"),
    };
    Ok((server, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POST: &str = "POST /shop/cart?x=1 HTTP/1.1\r\nUser-Agent: p\r\nContent-Type: a/b\r\nHost: \
                        h:81\r\nAuthorization: Basic eA==\r\nCookie: old=1\r\nContent-Length: 4\r\n\r\nbody";

    fn base() -> BaseUrl {
        "http://h:81".parse().unwrap()
    }

    fn after(
        message: &str,
        status: u16,
        location: &str,
    ) -> Result<(String, Option<String>), String> {
        let base = base();
        let sent = Sent {
            message: &Message::new(message.to_owned()),
            server: &base,
            base: &base,
            host: "h",
        };
        let jar = Jar::default();
        jar.store("new=2; Path=/", "h", "/");
        let (message, other) = follow(&sent, status, location, &jar)?;
        Ok((message.text, other.map(|other| other.to_string())))
    }

    #[track_caller]
    fn line(status: u16, location: &str, expected: &str) {
        let (message, _) = after(POST, status, location).unwrap();
        let found = message.split(" HTTP/1.1").next().unwrap();
        assert_eq!(found, expected, "{status} {location}");
    }

    #[test]
    fn methods_follow_the_rfc() {
        line(301, "/a", "GET /a");
        line(302, "/a", "GET /a");
        line(303, "/a", "GET /a");
        line(307, "/a", "POST /a");
        line(308, "/a", "POST /a");
        for (method, status, expected) in [
            ("PUT", 302, "PUT"),
            ("PUT", 303, "GET"),
            ("HEAD", 303, "HEAD"),
            ("DELETE", 308, "DELETE"),
        ] {
            assert_eq!(method_after(method, status), expected, "{method} {status}");
        }
    }

    #[test]
    fn places_are_seen_from_what_was_asked_for() {
        line(302, "next", "GET /shop/next");
        line(302, "../up?y=2#part", "GET /up?y=2");
        line(302, "?only", "GET /shop/cart?only");
        line(302, "", "GET /shop/cart?x=1");
        line(302, "http://h:81", "GET /");
        line(302, "//h:81/a b", "GET /a%20b");
    }

    #[test]
    fn the_same_server_gets_what_belongs_to_it() {
        let (message, other) = after(POST, 307, "/again").unwrap();
        assert_eq!(other, None);
        let expected = "POST /again HTTP/1.1\r\nUser-Agent: p\r\nContent-Type: a/b\r\nHost: h:81\r\n\
                        Authorization: Basic eA==\r\nContent-Length: 4\r\nCookie: new=2\r\n\r\nbody";
        assert_eq!(message, expected);
        let (message, _) = after(POST, 303, "/seen").unwrap();
        let expected = "GET /seen HTTP/1.1\r\nUser-Agent: p\r\nHost: h:81\r\n\
                        Authorization: Basic eA==\r\nCookie: new=2\r\n\r\n";
        assert_eq!(message, expected);
    }

    #[test]
    fn another_server_gets_no_credentials() {
        for location in ["https://h:81/a", "http://h/a", "http://other:81/a"] {
            let (message, other) = after(POST, 308, location).unwrap();
            let server = other.unwrap();
            assert_eq!(location, format!("{server}/a"));
            let host = server.split("//").nth(1).unwrap();
            let expected = format!(
                "POST /a HTTP/1.1\r\nUser-Agent: p\r\nContent-Type: a/b\r\nContent-Length: 4\r\nHost: \
                 {host}\r\n\r\nbody"
            );
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn only_the_same_server_is_signed_for() {
        let (base, jar) = (base(), Jar::default());
        let mut message = Message::new(POST.to_owned());
        for (location, is_foreign) in [
            ("/a", false),
            ("http://h:81/b", false),
            ("http://other/", true),
            ("http://h:81/", true),
        ] {
            let sent = Sent {
                message: &message,
                server: &base,
                base: &base,
                host: "h",
            };
            (message, _) = follow(&sent, 307, location, &jar).unwrap();
            assert_eq!(message.is_foreign, is_foreign, "{location}");
        }
    }

    #[test]
    fn some_places_are_none() {
        for location in [
            "ftp://h/a",
            "javascript:x",
            "http://user@h/",
            "http://[::1",
            "https://",
        ] {
            let said = after(POST, 302, location).unwrap_err();
            assert!(
                said.contains(&format!("a redirect to “{location}” can't be followed")),
                "{said}"
            );
        }
        assert!(after(POST, 302, &"a".repeat(10_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_location_breaks_a_message(location in ".{0,40}", status in 301u16..309) {
            if let Ok((message, _)) = after(POST, status, &location) {
                let (head, body) = message.split_once("\r\n\r\n").unwrap();
                prop_assert!(body.is_empty() || body == "body");
                prop_assert_eq!(head.matches("\r\nHost: ").count(), 1);
                prop_assert_eq!(head.split("\r\n").next().unwrap().split(' ').count(), 3);
                prop_assert!(!head.replace("\r\n", "").contains(['\r', '\n']));
            }
        }
    }
}
