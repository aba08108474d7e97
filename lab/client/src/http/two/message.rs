//! Converts a rendered message to HTTP/2. Pure.

use std::collections::VecDeque;

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Uri};

use super::super::message::{Message, Piece};
use lab_units::BaseUrl;

/// Headers that apply to a connection of HTTP/1.1 (RFC 9113, section 8.2.2).
const OF_CONNECTION: [&str; 5] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

/// Returns the head of a message to `server`, and the pieces of its body.
///
/// # Errors
/// A message, if HTTP/2 can't carry the request.
pub(super) fn request(
    message: &Message,
    server: &BaseUrl,
) -> Result<(Request<()>, VecDeque<Bytes>), String> {
    let text = &message.text;
    let end = text.find("\r\n\r\n");
    let head = &text[..end.unwrap_or(text.len())];
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or("/");
    let method = Method::from_bytes(method.as_bytes())
        .map_err(|_| format!("`{method}` is not a method that HTTP/2 can carry"))?;
    let mut host = None;
    let mut headers = HeaderMap::with_capacity(8);
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim_matches([' ', '\t']);
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{name}` is not a header's name"))?;
        match name {
            header::HOST => host = Some(value),
            header::TE if !value.eq_ignore_ascii_case("trailers") => {}
            name if OF_CONNECTION.contains(&name.as_str()) => {}
            name => {
                let value = HeaderValue::from_bytes(value.as_bytes())
                    .map_err(|_| format!("the value of header `{name}` can't be sent"))?;
                headers.append(name, value);
            }
        }
    }
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri(host, target, server)?;
    *request.headers_mut() = headers;
    *request.version_mut() = http::Version::HTTP_2;
    let body = message.pieces(end.map_or(text.len(), |end| end + 4));
    let body = body.filter_map(|piece| match piece {
        Piece::Text("") => None,
        Piece::Text(text) => Some(Bytes::copy_from_slice(text.as_bytes())),
        Piece::File(content) => Some(content.clone()),
    });
    Ok((request, body.collect()))
}

fn uri(host: Option<&str>, target: &str, server: &BaseUrl) -> Result<Uri, String> {
    let authority = match host {
        Some(host) => Authority::try_from(host),
        None => Authority::try_from(server.authority()),
    };
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(match server.secure {
        true => Scheme::HTTPS,
        false => Scheme::HTTP,
    });
    parts.authority =
        Some(authority.map_err(|_| "the `Host` header is not the name of a server".to_owned())?);
    let path = PathAndQuery::try_from(target)
        .map_err(|_| format!("the target “{target}” can't be sent over HTTP/2"))?;
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).map_err(|error| error.to_string())
}

/// Returns the head of a response as HTTP/1.1 would write it, for the tap.
pub(super) fn head_in_words(status: http::StatusCode, headers: &HeaderMap) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or_default();
    let mut text = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for (name, value) in headers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn server(text: &str) -> BaseUrl {
        text.parse().unwrap()
    }

    fn of_text(text: &str, server: &BaseUrl) -> Result<(Request<()>, Vec<u8>), String> {
        let (request, body) = request(&Message::new(text.to_owned()), server)?;
        Ok((request, Vec::from(body).concat()))
    }

    #[test]
    fn a_message_is_the_same_request() {
        let text = "POST /a?b=1 HTTP/1.1\r\nUser-Agent: p\r\nHost: shop.example\r\nConnection: close\r\n\
                    TE: gzip\r\nX-Two: a\r\nX-Two: b\r\nCookie: a=1; b=2\r\nContent-Length: 4\r\n\r\nbody";
        let (request, body) = of_text(text, &server("https://127.0.0.1:8443")).unwrap();
        assert_eq!(request.method(), "POST");
        assert_eq!(request.uri(), "https://shop.example/a?b=1");
        let headers: Vec<(&str, &str)> = request
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        let expected = [
            ("user-agent", "p"),
            ("x-two", "a"),
            ("x-two", "b"),
            ("cookie", "a=1; b=2"),
            ("content-length", "4"),
        ];
        assert_eq!(headers, expected);
        assert_eq!(body, b"body");
    }

    #[test]
    fn without_a_host_the_server_is_the_authority() {
        let (request, body) =
            of_text("GET / HTTP/1.1\r\n\r\n", &server("http://[::1]:81")).unwrap();
        assert_eq!(request.uri(), "http://[::1]:81/");
        assert!(body.is_empty());
    }

    proptest! {
        #[test]
        fn no_message_panics(text in ".{0,200}") {
            let _answer = of_text(&text, &server("http://h"));
        }

        #[test]
        fn bodies_and_targets_stay(path in "/[a-z0-9/?=&%]{0,30}", body in ".{0,50}") {
            let text = format!("PUT {path} HTTP/1.1\r\nHost: h\r\n\r\n{body}");
            let (request, sent) = of_text(&text, &server("http://h")).unwrap();
            prop_assert_eq!(request.uri().path_and_query().unwrap().as_str(), path);
            prop_assert_eq!(&sent[..], body.as_bytes());
        }
    }
}
