//! Parses fields with parameters, such as `Content-Type` (RFC 2045, 5.1), with file names in every
//! form in use: extended and continued (RFC 2231), as encoded words, and raw.

use crate::charset::{self, text_of_head};
use crate::transfer::hex;
use crate::words;

/// A field's value and its parameters, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Field {
    /// The value before the parameters, without comments, in lower case.
    pub(crate) value: String,
    /// Names in lower case, each once.
    params: Vec<(String, String)>,
}

/// Most parameters of a field that are parsed.
const PARAMS: usize = 100;

impl Field {
    /// Parses the text behind a field's colon.
    pub(crate) fn parse(said: &[u8]) -> Self {
        let said = text_of_head(said).replace(['\r', '\n'], "");
        let (value, mut rest) = value(&said);
        let mut found = Vec::new();
        while let Some((name, raw, after)) = next(rest) {
            rest = after;
            if !name.is_empty() && found.len() < PARAMS {
                found.push((name.to_ascii_lowercase(), raw));
            }
        }
        Self {
            value,
            params: assembled(&found),
        }
    }

    /// Returns the parameter of this name.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        let found = self.params.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the first word of the parameter of this name: the rest is a comment.
    pub(crate) fn word(&self, name: &str) -> Option<&str> {
        let value = self.param(name)?.trim();
        let end = value.find(|sign: char| sign.is_whitespace() || sign == '(');
        Some(&value[..end.unwrap_or(value.len())]).filter(|word| !word.is_empty())
    }

    /// Returns the field in one line, parameters quoted.
    pub(crate) fn rendered(&self) -> String {
        let mut text = self.value.clone();
        for (name, value) in &self.params {
            let value = value.replace(['"', '\\'], "_");
            text += &format!("; {name}=\"{value}\"");
        }
        text
    }
}

/// Returns the value before the first parameter, without comments, and the rest.
fn value(said: &str) -> (String, &str) {
    let (mut value, mut comments) = (String::new(), 0_usize);
    for (at, letter) in said.char_indices() {
        match letter {
            '(' => comments += 1,
            ')' if comments > 0 => comments -= 1,
            ';' if comments == 0 => return (clean(&value), &said[at + 1..]),
            _ if comments == 0 => value.push(letter),
            _ => {}
        }
    }
    match comments {
        0 => (clean(&value), ""),
        // An unclosed comment is no comment.
        _ => {
            let (value, rest) = said.split_once(';').unwrap_or((said, ""));
            (clean(value), rest)
        }
    }
}

fn clean(value: &str) -> String {
    let value: String = value
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .collect();
    value.trim_matches('"').to_ascii_lowercase()
}

/// Returns the next parameter's name and raw value, without quotes, and the rest.
fn next(rest: &str) -> Option<(&str, String, &str)> {
    let rest = rest.trim_start_matches(|sign: char| sign.is_whitespace() || sign == ';');
    if rest.is_empty() {
        return None;
    }
    let end = rest.find([';', '=']).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    let Some(after) = after.strip_prefix('=') else {
        return Some(("", String::new(), after));
    };
    let after = after.trim_start();
    let Some(quoted) = after.strip_prefix('"') else {
        let end = after.find(';').unwrap_or(after.len());
        return Some((name.trim(), after[..end].trim().to_owned(), &after[end..]));
    };
    let (mut value, mut letters) = (String::new(), quoted.char_indices().peekable());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => {
                let after = &quoted[at + 1..];
                let end = after.find(';').unwrap_or(after.len());
                return Some((name.trim(), value, &after[end..]));
            }
            // Other backslashes are part of paths.
            '\\' => match letters.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                Some((_, next)) => value.push(next),
                None => value.push('\\'),
            },
            _ => value.push(letter),
        }
    }
    Some((name.trim(), value, ""))
}

/// Joins the pieces of parameters. The RFC 2231 form takes precedence over the fallback for older clients.
fn assembled(found: &[(String, String)]) -> Vec<(String, String)> {
    let mut params: Vec<(String, String)> = Vec::new();
    for (written, _) in found {
        let name = written.split('*').next().unwrap_or_default();
        if params.iter().any(|(known, _)| known == name) {
            continue;
        }
        let exact = |wanted: &str| found.iter().find(|(known, _)| known == wanted);
        let value = match exact(&format!("{name}*")) {
            Some((_, value)) => extended(&[(true, value)]),
            None => continued(name, found)
                .or_else(|| exact(name).map(|(_, value)| words::decoded(value).into_owned()))
                .unwrap_or_default(),
        };
        params.push((name.to_owned(), value));
    }
    params
}

/// Joins the values of `name*0`, `name*1*`, and so on.
fn continued(name: &str, found: &[(String, String)]) -> Option<String> {
    let mut pieces: Vec<(u32, bool, &str)> = Vec::new();
    for (written, value) in found {
        let number = written
            .strip_prefix(name)
            .and_then(|it| it.strip_prefix('*'));
        let Some(number) = number else { continue };
        let (digits, is_encoded) = match number.strip_suffix('*') {
            Some(digits) => (digits, true),
            None => (number, false),
        };
        if let Ok(number) = digits.parse() {
            pieces.push((number, is_encoded, value));
        }
    }
    pieces.sort_by_key(|(number, ..)| *number);
    let is_encoded = pieces.iter().any(|(_, is_encoded, _)| *is_encoded);
    let pieces: Vec<(bool, &str)> = pieces.iter().map(|(_, is, value)| (*is, *value)).collect();
    if pieces.is_empty() {
        return None;
    }
    match is_encoded {
        true => Some(extended(&pieces)),
        // Some programs continue encoded words.
        false => {
            let all: String = pieces.iter().map(|(_, value)| *value).collect();
            Some(words::decoded(&all).into_owned())
        }
    }
}

/// Joins pieces, some of them percent-encoded: a letter may be split between two of them.
fn extended(pieces: &[(bool, impl AsRef<str>)]) -> String {
    let mut label = None;
    let mut bytes = Vec::new();
    for (number, (is_encoded, value)) in pieces.iter().enumerate() {
        let mut value = value.as_ref();
        let parts: Vec<&str> = value.splitn(3, '\'').collect();
        if let [charset, _language, text] = parts[..]
            && number == 0
            && *is_encoded
        {
            label = Some(charset.to_owned()).filter(|charset| !charset.is_empty());
            value = text;
        }
        match is_encoded {
            true => push_percent_decoded(&mut bytes, value.as_bytes()),
            false => bytes.extend_from_slice(value.as_bytes()),
        }
    }
    charset::decode(&bytes, label.as_deref())
}

fn push_percent_decoded(bytes: &mut Vec<u8>, text: &[u8]) {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let code = match text.get(at..at + 3) {
            Some([b'%', high, low]) => hex(*high, *low),
            _ => None,
        };
        bytes.push(code.unwrap_or(*byte));
        at += if code.is_some() { 3 } else { 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_of_files_in_many_forms() {
        for (written, name) in [
            ("filename=plan.pdf", "plan.pdf"),
            ("filename=\"plan; b.pdf\"; x=y", "plan; b.pdf"),
            ("FileName = \"plan.pdf\"", "plan.pdf"),
            ("filename=the plan (1).pdf", "the plan (1).pdf"),
            ("filename=\"a\\\"b\\\\c.pdf\"", "a\"b\\c.pdf"),
            ("filename=\"C:\\temp\\plan.pdf\"", "C:\\temp\\plan.pdf"),
            ("filename=\"no end.pdf", "no end.pdf"),
            ("size=5; filename=plan.pdf", "plan.pdf"),
            ("size; filename=plan.pdf", "plan.pdf"),
            (";; filename=plan.pdf;", "plan.pdf"),
            ("filename*=UTF-8''Gr%C3%BC%C3%9Fe.pdf", "Grüße.pdf"),
            ("filename*=iso-8859-1'de'Gr%FC%DFe.pdf", "Grüße.pdf"),
            ("filename*=''Gr%C3%BC%C3%9Fe.pdf", "Grüße.pdf"),
            ("filename*=Gr%C3%BC%C3%9Fe.pdf", "Grüße.pdf"),
            ("filename*=UTF-8''100%.pdf", "100%.pdf"),
            ("filename*=\"UTF-8''Gr%C3%BC%C3%9Fe.pdf\"", "Grüße.pdf"),
            (
                "filename=\"Gr__e.pdf\"; filename*=UTF-8''Gr%C3%BC%C3%9Fe.pdf",
                "Grüße.pdf",
            ),
            (
                "filename*=UTF-8''Gr%C3%BC%C3%9Fe.pdf; filename=\"Gr__e.pdf\"",
                "Grüße.pdf",
            ),
            (
                "filename*0=pla; filename*1=n.pdf; filename=p.pdf",
                "plan.pdf",
            ),
            ("filename*1=n.pdf; filename*0=pla", "plan.pdf"),
            (
                "filename*0*=utf-8''Gr%C3; filename*1*=%BC%C3%9Fe; filename*2=\".pdf\"",
                "Grüße.pdf",
            ),
            (
                "filename*0*=iso-8859-1''Gr%FC; filename*1*=%DFe.pdf",
                "Grüße.pdf",
            ),
            (
                "filename*0*=utf-8''a%20(1)%20b.pdf.pg;\r\n filename*1=p",
                "a (1) b.pdf.pgp",
            ),
            (
                "filename*0=\"it's\"; filename*1=\" a 'plan'.pdf\"",
                "it's a 'plan'.pdf",
            ),
            (
                "filename=\"=?utf-8?Q?Gr=C3=BC=C3?=\r\n =?utf-8?Q?=9Fe.pdf?=\"",
                "Grüße.pdf",
            ),
            ("filename==?utf-8?B?R3LDvMOfZS5wZGY=?=", "Grüße.pdf"),
            (
                "filename*0=\"=?utf-8?Q?Gr=C3=BC\"; filename*1=\"=C3=9Fe.pdf?=\"",
                "Grüße.pdf",
            ),
            ("filename=Grüße.pdf", "Grüße.pdf"),
            ("filename=\"a\r\n b.pdf\"", "a b.pdf"),
        ] {
            let field = Field::parse(format!(" attachment; {written}").as_bytes());
            assert_eq!(field.param("filename"), Some(name), "{written}");
            assert_eq!(field.value, "attachment", "{written}");
        }
        let raw = Field::parse(b"attachment; filename=\"Gr\xfc\xdfe aus S\xfcden.pdf\"");
        assert_eq!(raw.param("filename"), Some("Grüße aus Süden.pdf"));
    }

    #[test]
    fn comments_are_no_part_of_a_value() {
        let field = Field::parse(b"(a) Text/(b; c)Plain (d); charset=utf-8 (e); format=flowed;x");
        assert_eq!(field.value, "text/plain");
        assert_eq!(field.word("charset"), Some("utf-8"));
        assert_eq!(
            field.rendered(),
            "text/plain; charset=\"utf-8 (e)\"; format=\"flowed\""
        );
        assert_eq!(
            Field::parse(b"text/plain (no end; charset=x").word("charset"),
            Some("x")
        );
        assert_eq!(Field::parse(b""), Field::default());
    }
}
