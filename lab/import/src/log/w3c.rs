//! Logs whose `#Fields:` line names their fields (the W3C's Extended Log File Format): standard logs of Amazon
//! CloudFront, with tabs between values, and logs of IIS, with spaces.

use std::borrow::Cow;

use percent_encoding::percent_decode;

use super::entry::{Entry, Skip, number};
use super::moment::{Moment, length};

/// Starts the line with the names.
pub(super) const FIELDS: &[u8] = b"#Fields:";

/// The field of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Ignored,
    Date,
    Time,
    Millis,
    Client,
    Method,
    Host,
    /// The name of the distribution, if the log lacks the requested host.
    Domain,
    Stem,
    Query,
    Status,
    Bytes,
    Agent,
    Took,
}

impl Field {
    fn named(name: &[u8]) -> Self {
        match name {
            b"date" => Self::Date,
            b"time" => Self::Time,
            b"timestamp(ms)" => Self::Millis,
            b"c-ip" => Self::Client,
            b"cs-method" => Self::Method,
            b"x-host-header" | b"cs-host" => Self::Host,
            b"cs(Host)" => Self::Domain,
            b"cs-uri-stem" => Self::Stem,
            b"cs-uri-query" => Self::Query,
            b"sc-status" => Self::Status,
            b"sc-bytes" => Self::Bytes,
            b"cs(User-Agent)" => Self::Agent,
            b"time-taken" => Self::Took,
            _ => Self::Ignored,
        }
    }
}

/// The fields of the lines, from the last line that named them.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(Vec<Field>);

impl Fields {
    /// Parses a line; `None` if it is no request.
    pub(super) fn entry<'l>(&mut self, line: &'l [u8]) -> Result<Option<Entry<'l>>, Skip> {
        if let Some(names) = line.strip_prefix(FIELDS) {
            let names = names.split(|b| b.is_ascii_whitespace());
            let names = names.filter(|name| !name.is_empty());
            self.0 = names.map(Field::named).collect();
            return Ok(None);
        }
        if line.starts_with(b"#") {
            return Ok(None);
        }
        let is_tabbed = line.contains(&b'\t');
        let split = if is_tabbed { b'\t' } else { b' ' };
        let mut entry = Entry::default();
        let (mut date, mut time, mut domain) = (&b""[..], &b""[..], &b""[..]);
        let (mut stem, mut query) = (&b""[..], &b""[..]);
        let mut fields = self.0.iter();
        for value in line.split(|b| *b == split) {
            let field = *fields.next().ok_or(Skip::Format)?;
            if value == b"-" {
                continue;
            }
            match field {
                Field::Ignored => {}
                Field::Date => date = value,
                Field::Time => time = value,
                Field::Millis => entry.moment = Moment::epoch(value, 3),
                Field::Client => entry.client = value.into(),
                Field::Method => entry.method = value.into(),
                Field::Host => entry.host = value.into(),
                Field::Domain => domain = value,
                Field::Stem => stem = value,
                Field::Query => query = value,
                Field::Status => entry.status = number(value),
                Field::Bytes => entry.bytes = number(value),
                Field::Agent => entry.agent = Some(agent(value, is_tabbed)),
                // CloudFront writes seconds, IIS milliseconds.
                Field::Took => entry.took_us = length(value, if is_tabbed { 6 } else { 3 }),
            }
        }
        if fields.next().is_some() || self.0.is_empty() {
            return Err(Skip::Format);
        }
        if entry.moment.is_none() {
            entry.moment = Moment::iso(&[date, b" ", time].concat());
        }
        if self.0.contains(&Field::Agent) {
            entry.agent.get_or_insert_default();
        }
        if entry.host.is_empty() {
            entry.host = domain.into();
        }
        // IIS writes a path decoded, with `+` for spaces.
        let stem = match stem.contains(&b'+') && !is_tabbed {
            true => Cow::Owned(
                String::from_utf8_lossy(stem)
                    .replace('+', "%20")
                    .into_bytes(),
            ),
            false => Cow::Borrowed(stem),
        };
        if entry.method.is_empty() || stem.is_empty() {
            return Err(Skip::Request);
        }
        entry.target = match query {
            b"" => stem,
            query => Cow::Owned([&*stem, b"?", query].concat()),
        };
        Ok(Some(entry))
    }
}

/// The user agent. CloudFront escapes it as in URLs, some of its logs twice; IIS writes a space as `+`.
fn agent(value: &[u8], is_tabbed: bool) -> Cow<'_, [u8]> {
    if !is_tabbed {
        let space = |b: &u8| if *b == b'+' { b' ' } else { *b };
        return value.iter().map(space).collect();
    }
    let once: Cow<'_, [u8]> = percent_decode(value).into();
    match once.contains(&b'%') {
        true => Cow::Owned(percent_decode(&once).collect()),
        false => once,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_have_their_spaces() {
        for text in ["Mozilla/5.0%20(X)", "Mozilla/5.0%2520(X)"] {
            assert_eq!(&*agent(text.as_bytes(), true), b"Mozilla/5.0 (X)", "{text}");
        }
        assert_eq!(&*agent(b"Mozilla/5.0+(X)", false), b"Mozilla/5.0 (X)");
    }
}
