//! URLs of a command line: their credentials, and their sendable form. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A URL without the user before its host, and the header with the user's credentials, as curl does.
#[must_use]
pub fn without_user(url: &str) -> (String, Option<(String, String)>) {
    let parts = url.split_once("://").and_then(|(scheme, rest)| {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (user, host) = rest[..end].rsplit_once('@')?;
        Some((scheme, user, host, &rest[end..]))
    });
    let Some((scheme, user, host, path)) = parts else {
        return (url.to_owned(), None);
    };
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let credentials = [decoded(name), b":".to_vec(), decoded(password)].concat();
    let value = format!("Basic {}", STANDARD.encode(credentials));
    let header = ("Authorization".to_owned(), value);
    (format!("{scheme}://{host}{path}"), Some(header))
}

/// The bytes of a percent-encoded text.
fn decoded(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let byte = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    bytes
}

/// A target with percent-encoding for characters that a request line can't contain, as browsers do.
#[must_use]
pub fn sendable(target: &str) -> String {
    let mut out = String::from(if target.starts_with('/') { "" } else { "/" });
    for c in target.chars() {
        match c.is_whitespace() || c.is_control() {
            true => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    out.push_str(&format!("%{byte:02X}"));
                }
            }
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_in_a_url_becomes_a_header() {
        let (url, header) = without_user("http://me%40home:p%3Ass%zz@h:81/a@b?c");
        assert_eq!(url, "http://h:81/a@b?c");
        let value = format!("Basic {}", STANDARD.encode("me@home:p:ss%zz"));
        assert_eq!(header, Some(("Authorization".to_owned(), value)));
        assert_eq!(without_user("http://h/a@b").1, None);
    }

    #[test]
    fn a_target_with_a_space_is_sent_as_browsers_send_it() {
        assert_eq!(sendable("/a b\tc%20ä?x=\u{a0}"), "/a%20b%09c%20ä?x=%C2%A0");
    }
}
