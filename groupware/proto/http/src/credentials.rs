//! Parses credentials: the `Authorization` and `Cookie` headers and the sign-in form. Pure
//! functions over untrusted bytes.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use percent_encoding::percent_decode;

/// The session cookie's name.
const SESSION_COOKIE: &str = "plimsoll_session";
/// Its name over TLS: browsers accept it from this host alone, and only within TLS.
const SECURE_SESSION_COOKIE: &str = "__Host-plimsoll_session";
/// The prefix of tokens in cookies with the secure name, which are valid under no other: a host
/// that can set cookies for the whole domain could otherwise plant its own session. Plain tokens
/// contain no dot, so that none begins so by chance.
const SECURE_PREFIX: &str = "h.";

/// Longest `Authorization` header that is parsed.
const MAX_HEADER_BYTES: usize = 4096;

/// The credentials in an `Authorization` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authorization {
    /// A user's name and password (RFC 7617).
    Basic {
        /// The text before the first colon.
        user: String,
        /// The text after it.
        password: String,
    },
    /// A token (RFC 6750).
    Bearer(String),
}

/// Parses the value of an `Authorization` header; `None` for an unknown scheme or a malformed
/// value.
pub fn authorization(header: &[u8]) -> Option<Authorization> {
    let header = std::str::from_utf8(header)
        .ok()
        .filter(|h| h.len() <= MAX_HEADER_BYTES)?;
    let (scheme, rest) = header.split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("basic") {
        let decoded = STANDARD
            .decode(rest)
            .or_else(|_| STANDARD_NO_PAD.decode(rest))
            .ok()?;
        let text = String::from_utf8(decoded).ok()?;
        let (user, password) = text.split_once(':')?;
        return Some(Authorization::Basic {
            user: user.into(),
            password: password.into(),
        });
    }
    (scheme.eq_ignore_ascii_case("bearer") && !rest.is_empty())
        .then(|| Authorization::Bearer(rest.into()))
}

/// Returns the session token in the value of a `Cookie` header (RFC 6265, 4.2): the first of
/// several, which has the most specific path.
pub fn session_cookie(header: &[u8]) -> Option<&str> {
    let header = std::str::from_utf8(header).ok()?;
    header.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let value = value.trim();
        let value = value
            .strip_prefix('"')
            .and_then(|v| v.strip_suffix('"'))
            .unwrap_or(value);
        let secure = value.strip_prefix(SECURE_PREFIX);
        let token = match (name.trim(), secure) {
            (SECURE_SESSION_COOKIE, Some(token)) => token,
            (SESSION_COOKIE, None) => value,
            _ => return None,
        };
        (!token.is_empty()).then_some(token)
    })
}

/// Returns name and value of the cookie that carries a session token.
pub fn session_pair(token: &str, is_secure: bool) -> String {
    match is_secure {
        true => format!("{SECURE_SESSION_COOKIE}={SECURE_PREFIX}{token}"),
        false => format!("{SESSION_COOKIE}={token}"),
    }
}

/// Parses name and password from a form as browsers send it (`application/x-www-form-urlencoded`).
/// Field names are `username` and `password`, in any case, as in Domino's log-in form.
pub fn login_form(body: &[u8]) -> Option<(String, String)> {
    let mut user = None;
    let mut password = None;
    for pair in body.split(|byte| *byte == b'&') {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let name = decode(halves.next()?)?;
        let value = halves.next().unwrap_or_default();
        if name.eq_ignore_ascii_case("username") {
            user = Some(decode(value)?);
        } else if name.eq_ignore_ascii_case("password") {
            password = Some(decode(value)?);
        }
    }
    Some((user?, password?))
}

/// Decodes a name or value of a form. A `%` without two hexadecimal digits behind it stands for
/// itself, as in browsers; `None` if the result is not UTF-8.
fn decode(text: &[u8]) -> Option<String> {
    let spaced: Vec<u8> = text
        .iter()
        .map(|byte| if *byte == b'+' { b' ' } else { *byte })
        .collect();
    let decoded = percent_decode(&spaced).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn authorization_headers() {
        let basic = |user: &str, password: &str| {
            Some(Authorization::Basic {
                user: user.into(),
                password: password.into(),
            })
        };
        let check = |header: &str, expected| assert_eq!(authorization(header.as_bytes()), expected);
        check(
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
            basic("Aladdin", "open sesame"),
        );
        check("basic  YTo", basic("a", ""));
        check("Basic YTpiOmM=", basic("a", "b:c"));
        check("Basic YQ==", None);
        check("Basic !!!!", None);
        check("Basic", None);
        check("Bearer t0k3n", Some(Authorization::Bearer("t0k3n".into())));
        check("Bearer ", None);
        check("Digest x", None);
        check("", None);
        check(&format!("Bearer {}", "x".repeat(5000)), None);
        assert_eq!(authorization(b"Basic \xFF"), None);
        assert_eq!(authorization(b"Basic /w=="), None);
    }

    #[test]
    fn cookies() {
        let check =
            |header: &str, expected| assert_eq!(session_cookie(header.as_bytes()), expected);
        check("plimsoll_session=abc", Some("abc"));
        check("a=b; plimsoll_session=abc; c=d", Some("abc"));
        check("a=b;plimsoll_session=\"abc\"", Some("abc"));
        check("plimsoll_session=a; plimsoll_session=b", Some("a"));
        check("plimsoll_session=; plimsoll_session=b", Some("b"));
        check("xplimsoll_session=abc", None);
        check("__Host-plimsoll_session=h.abc", Some("abc"));
        // A token is valid only under the name that it was made for.
        check("plimsoll_session=h.abc", None);
        check("__Host-plimsoll_session=abc", None);
        check("plimsoll_session=h-abc", Some("h-abc"));
        check(
            "plimsoll_session=h.x; __Host-plimsoll_session=h.abc",
            Some("abc"),
        );
        check("plimsoll_session", None);
        check("", None);
    }

    #[test]
    fn forms() {
        let check = |body: &str, expected: Option<(&str, &str)>| {
            let expected = expected.map(|(user, word)| (user.to_owned(), word.to_owned()));
            assert_eq!(login_form(body.as_bytes()), expected, "{body}");
        };
        check("username=ada&password=a+b%26c", Some(("ada", "a b&c")));
        check("Password=x&RedirectTo=%2f&Username=a", Some(("a", "x")));
        check("username=a&password=100%", Some(("a", "100%")));
        check("username=a&password=", Some(("a", "")));
        check("username=a&password", Some(("a", "")));
        check("username=a", None);
        check("username=%ff&password=x", None);
        check("", None);
    }

    fn encode(text: &str) -> String {
        text.bytes().map(|byte| format!("%{byte:02X}")).collect()
    }

    proptest! {
        #[test]
        fn no_input_panics(bytes: Vec<u8>) {
            let _ = authorization(&bytes);
            let _ = session_cookie(&bytes);
            let _ = login_form(&bytes);
        }

        #[test]
        fn basic_comes_back(user in "[^:]{0,40}", password: String) {
            let header = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
            prop_assume!(header.len() <= MAX_HEADER_BYTES);
            let expected = Authorization::Basic { user, password };
            prop_assert_eq!(authorization(header.as_bytes()), Some(expected));
        }

        #[test]
        fn forms_come_back(user: String, password: String) {
            let body = format!("x=1&username={}&password={}", encode(&user), encode(&password));
            prop_assert_eq!(login_form(body.as_bytes()), Some((user, password)));
        }

        #[test]
        fn cookies_come_back(before in "[a-z=; ]{0,20}", value in "[A-Za-z0-9_-]{1,40}") {
            for is_secure in [false, true] {
                let pair = session_pair(&value, is_secure);
                let header = format!("{before}; {pair}; x=y");
                prop_assert_eq!(session_cookie(header.as_bytes()), Some(&*value));
            }
        }
    }
}
