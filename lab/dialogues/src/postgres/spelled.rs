//! Formats PostgreSQL messages for people, without secrets.

use lab_client::Side;
use std::fmt::Write as _;

/// Returns a line per message; of rows only the values.
pub(super) fn spelled(side: Side, bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        // The startup message has no tag, and the response to the TLS request no length.
        let tag = match (side, rest[0]) {
            (Side::User, 0) => None,
            (Side::Server, _) if rest.len() == 1 => {
                return match rest {
                    b"S" => "TLS".to_owned(),
                    _ => "no TLS".to_owned(),
                };
            }
            (_, tag) => Some(tag),
        };
        let body = &rest[usize::from(tag.is_some())..];
        let Some(length) = body
            .first_chunk()
            .map(|head| u32::from_be_bytes(*head) as usize)
        else {
            break;
        };
        let Some(message) = body.get(4..length) else {
            break;
        };
        rest = &body[length..];
        let line = match (side, tag) {
            (_, None) => opening(message),
            (Side::User, Some(tag)) => user(tag, message),
            (Side::Server, Some(tag)) => server(tag, message),
        };
        if let Some(line) = line {
            let _infallible = writeln!(text, "{}", line.trim_end());
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Returns the zero-terminated texts, up to an empty one.
fn texts(bytes: &[u8]) -> impl Iterator<Item = String> {
    let texts = bytes.split(|byte| *byte == 0);
    texts.map(|text| String::from_utf8_lossy(text).into_owned())
}

fn opening(message: &[u8]) -> Option<String> {
    let texts: Vec<String> = texts(message.get(4..)?).collect();
    let pairs = texts.chunks_exact(2).filter(|pair| !pair[0].is_empty());
    let pairs: Vec<String> = pairs.map(|pair| pair.join("=")).collect();
    Some(match pairs.is_empty() {
        true => "TLS, please".to_owned(),
        false => format!("connect {}", pairs.join(" ")),
    })
}

fn user(tag: u8, message: &[u8]) -> Option<String> {
    let mut texts = texts(message);
    match tag {
        b'Q' => texts.next(),
        b'P' => {
            let (name, sql) = (texts.next()?, texts.next()?);
            Some(match name.is_empty() {
                true => format!("parse: {sql}"),
                false => format!("prepare {name}: {sql}"),
            })
        }
        b'B' => {
            let (portal, name) = (texts.next()?, texts.next()?);
            // After both zero-terminated names: formats (none), then values.
            let values = message.get(portal.len() + name.len() + 4..)?;
            let values = values_of(values).join(", ");
            Some(match name.is_empty() {
                true => format!("execute ({values})"),
                false => format!("execute {name} ({values})"),
            })
        }
        b'p' => Some("password ***".to_owned()),
        _ => None,
    }
}

fn server(tag: u8, message: &[u8]) -> Option<String> {
    match tag {
        b'D' => Some(values_of(message).join(" | ")),
        b'C' => texts(message).next(),
        b'R' => Some(match message {
            [0, 0, 0, 0] => "signed in".to_owned(),
            [0, 0, 0, 10, names @ ..] => format!("password by {}", texts(names).next()?),
            _ => "password, please".to_owned(),
        }),
        b'E' | b'N' => {
            let fields: Vec<String> = texts(message).collect();
            let field = |kind: char| fields.iter().find_map(|field| field.strip_prefix(kind));
            let [severity, code, text] = ['S', 'C', 'M'].map(|kind| field(kind).unwrap_or("?"));
            Some(format!("{severity} {code}: {text}"))
        }
        _ => None,
    }
}

/// Reads a count, then each value after its length; -1 stands for NULL.
fn values_of(bytes: &[u8]) -> Vec<String> {
    let mut values = Vec::new();
    let Some((count, mut rest)) = bytes.split_first_chunk() else {
        return values;
    };
    for _ in 0..u16::from_be_bytes(*count) {
        let Some((length, after)) = rest.split_first_chunk() else {
            break;
        };
        rest = after;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            values.push("NULL".to_owned());
            continue;
        };
        let Some((value, after)) = rest.split_at_checked(length) else {
            break;
        };
        values.push(String::from_utf8_lossy(value).into_owned());
        rest = after;
    }
    values
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn passwords_stay_unsaid() {
        let said = b"\0\0\0\x08\x04\xd2\x16\x2f";
        assert_eq!(spelled(Side::User, said), "TLS, please");
        assert_eq!(spelled(Side::User, b"p\0\0\0\x0bsecret\0"), "password ***");
        assert_eq!(spelled(Side::Server, b"S"), "TLS");
        let row = b"D\0\0\0\x0f\0\x02\0\0\0\x01a\xff\xff\xff\xff";
        assert_eq!(spelled(Side::Server, row), "a | NULL");
    }

    proptest! {
        #[test]
        fn anything_can_be_shown(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _shown = (spelled(Side::User, &bytes), spelled(Side::Server, &bytes));
        }
    }
}
