//! The target of a request in a form that can be sent again: a path of visible characters, without secrets.

use lab_workload::looks_secret;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};

use super::entry::Skip;
use super::known::Known;

/// Longest path.
const MAX_BYTES: usize = 8 << 10;

/// A path with its query.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) text: String,
    /// The start of the query; the length if there is none.
    pub(super) path_bytes: usize,
    /// The host, if the request line has one.
    pub(super) host: Option<String>,
    /// Names of the values that were dropped.
    pub(super) dropped: Vec<String>,
}

/// Whether the values of a query parameter are dropped, cached by name because names recur.
pub(super) type Names = Known<bool>;

/// Reads a target of a request line.
pub(super) fn target(raw: &[u8], names: &mut Names) -> Result<Target, Skip> {
    if raw.len() > MAX_BYTES {
        return Err(Skip::TooLong);
    }
    let (host, rest) = match absolute(raw) {
        Some((host, rest)) => (Some(String::from_utf8_lossy(host).into_owned()), rest),
        None => (None, raw),
    };
    let rest = rest.split(|b| *b == b'#').next().unwrap_or_default();
    let (path, query) = match rest.iter().position(|b| *b == b'?') {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let mut found = Target {
        text: String::with_capacity(rest.len() + 1),
        path_bytes: 0,
        host,
        dropped: Vec::new(),
    };
    let path = without_session(path);
    match path {
        [b'/', ..] => push(path, &mut found.text),
        // `http://host` and `http://host?a=b` request the root.
        [] if found.host.is_some() => found.text.push('/'),
        _ => return Err(Skip::Path),
    }
    found.path_bytes = found.text.len();
    let mut sign = '?';
    for pair in query
        .into_iter()
        .flat_map(|query| query.split(|b| *b == b'&'))
    {
        let name = pair.split(|b| *b == b'=').next().unwrap_or_default();
        let decoded = || percent_decode(name).decode_utf8_lossy();
        let is_dropped = names.get(name, || {
            let name = decoded();
            looks_secret(&name) || is_session(&name)
        });
        if is_dropped {
            found.dropped.push(decoded().into_owned());
            continue;
        }
        found.text.push(sign);
        push(pair, &mut found.text);
        sign = '&';
    }
    match found.text.len() > MAX_BYTES {
        true => Err(Skip::TooLong),
        false => Ok(found),
    }
}

/// A path without the identifier of a session, as servlets append it: `/cart;jsessionid=…`.
fn without_session(path: &[u8]) -> &[u8] {
    let at = path.iter().position(|b| *b == b';');
    let named = at.filter(|at| {
        let name = path[at + 1..].split(|b| *b == b'=').next();
        is_session(&String::from_utf8_lossy(name.unwrap_or_default()))
    });
    named.map_or(path, |at| &path[..at])
}

/// Returns true if a value of this name authorizes its bearer, without looking like a secret.
fn is_session(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let ends = ["sessionid", "session", "sessid", "signature"];
    matches!(&*name, "sid" | "code" | "sig") || ends.iter().any(|end| name.ends_with(end))
}

/// Host, with its port unless it is a default one, and the rest of `http://user@host:port/path`.
fn absolute(raw: &[u8]) -> Option<(&[u8], &[u8])> {
    const SCHEMES: [(&[u8], &[u8]); 2] = [(b"http://", b":80"), (b"https://", b":443")];
    let (rest, port) = SCHEMES
        .iter()
        .find_map(|(scheme, port)| Some((raw.strip_prefix(*scheme)?, *port)))?;
    let end = rest.iter().position(|b| b"/?#".contains(b));
    let (host, path) = rest.split_at(end.unwrap_or(rest.len()));
    let host = host.rsplit(|b| *b == b'@').next().unwrap_or_default();
    Some((host.strip_suffix(port).unwrap_or(host), path))
}

/// Characters that a URL can't contain (RFC 3986, section 2).
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Appends text of a URL; characters that a URL can't contain are percent-encoded.
fn push(raw: &[u8], out: &mut String) {
    out.extend(percent_encode(raw, ESCAPED));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_paths_of_visible_characters_without_secrets() {
        let check = |raw: &str, expected: &str, host: Option<&str>, dropped: &[&str]| {
            let found = target(raw.as_bytes(), &mut Names::default()).unwrap();
            assert_eq!(found.text, expected, "{raw}");
            assert_eq!(found.host.as_deref(), host, "{raw}");
            assert_eq!(found.dropped, dropped, "{raw}");
        };
        check("/", "/", None, &[]);
        check("/a b/ä?q=1&q=2", "/a%20b/%C3%A4?q=1&q=2", None, &[]);
        check("/a%20b?x#frag", "/a%20b?x", None, &[]);
        check(
            "/a?token=1&n=2&api%5Fkey=3",
            "/a?n=2",
            None,
            &["token", "api_key"],
        );
        check("/a?password=x", "/a", None, &["password"]);
        check(
            "/cart;jsessionid=AB12?PHPSESSID=1&n=2",
            "/cart?n=2",
            None,
            &["PHPSESSID"],
        );
        check("/a;v=1?q=2", "/a;v=1?q=2", None, &[]);
        check(
            "http://ada:pw@shop.example:80/a?b",
            "/a?b",
            Some("shop.example"),
            &[],
        );
        check(
            "https://shop.example:8443?b=1",
            "/?b=1",
            Some("shop.example:8443"),
            &[],
        );
        check(
            "/{{ 7 * 7 }}{%x%}",
            "/%7B%7B%207%20*%207%20%7D%7D%7B%x%%7D",
            None,
            &[],
        );
        for bad in ["", "*", "example.org:443", "\\x16\\x03"] {
            let found = target(bad.as_bytes(), &mut Names::default());
            assert_eq!(found, Err(Skip::Path), "{bad}");
        }
        let long = format!("/{}", "x".repeat(MAX_BYTES));
        let found = target(long.as_bytes(), &mut Names::default());
        assert_eq!(found, Err(Skip::TooLong));
    }
}
