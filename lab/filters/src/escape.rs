//! How a substituted value is escaped for its context.

use serde::{Deserialize, Serialize};

/// The context of a substituted value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Escape {
    /// Unescaped.
    None,
    /// Inside a JSON string.
    JsonText,
    /// As a whole JSON value: a number stays a number, anything else becomes a JSON string.
    JsonValue,
    /// As a whole JSON value that is always a string, also for a number.
    JsonString,
    /// As text or an attribute's value of an XML document.
    Xml,
    /// As a value of `application/x-www-form-urlencoded`.
    Form,
    /// Inside the quotes of a name of a part of `multipart/form-data`.
    PartName,
    /// Inside quotes, with a backslash before quotes and backslashes.
    Quoted,
    /// Unescaped, in a signature, whose expressions may name parts of the request ([`crate::sign::PARTS`]).
    Signed,
    /// Not inserted: the whole text is one expression, and its value `true` or `false`.
    Condition,
}

impl Escape {
    /// Escapes the part of `out` from `start` on. Allocates only if something changes.
    pub fn apply(self, out: &mut String, start: usize) {
        match self {
            Self::None | Self::Condition | Self::Signed => {}
            Self::JsonText => escape_json(out, start),
            Self::JsonValue | Self::JsonString => {
                escape_json(out, start);
                out.insert(start, '"');
                out.push('"');
            }
            Self::Xml => {
                let plain =
                    |b: u8| !b"<>&\"'".contains(&b) && (b >= 0x20 || b"\t\r\n".contains(&b));
                if !out[start..].bytes().all(plain) {
                    let raw = out.split_off(start);
                    push_xml(&raw, out);
                }
            }
            Self::Form => {
                if !out[start..].bytes().all(is_plain_in_form) {
                    let raw = out.split_off(start);
                    push_form(&raw, out);
                }
            }
            Self::PartName => {
                if out[start..].contains(['"', '\r', '\n']) {
                    let raw = out.split_off(start);
                    push_part_name(&raw, out);
                }
            }
            Self::Quoted => {
                if out[start..].contains(['"', '\\']) {
                    let raw = out.split_off(start);
                    push_quoted(&raw, out);
                }
            }
        }
    }
}

fn escape_json(out: &mut String, start: usize) {
    let plain = |b: u8| b >= 0x20 && b != b'"' && b != b'\\';
    if !out[start..].bytes().all(plain) {
        let raw = out.split_off(start);
        push_json(&raw, out);
    }
}

/// Appends `raw` as the inside of a JSON string (RFC 8259, section 7).
pub fn push_json(raw: &str, out: &mut String) {
    for c in raw.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 => {
                out.push_str("\\u00");
                push_hex(c as u8, out);
            }
            c => out.push(c),
        }
    }
}

/// Appends `raw` as text of an XML document (XML 1.0, section 2.4). Control characters, which XML can't hold, are
/// dropped (section 2.2).
pub fn push_xml(raw: &str, out: &mut String) {
    for c in raw.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' | '\r' | '\n' => out.push(c),
            c if (c as u32) < 0x20 => {}
            c => out.push(c),
        }
    }
}

/// Appends `raw` in the URL standard's form encoding.
pub fn push_form(raw: &str, out: &mut String) {
    for byte in raw.bytes() {
        match byte {
            b' ' => out.push('+'),
            b if is_plain_in_form(b) => out.push(char::from(b)),
            b => {
                out.push('%');
                push_hex(b, out);
            }
        }
    }
}

/// Appends `raw` as browsers encode a part's name (HTML, “multipart form data”).
pub fn push_part_name(raw: &str, out: &mut String) {
    for c in raw.chars() {
        match c {
            '"' => out.push_str("%22"),
            '\r' => out.push_str("%0D"),
            '\n' => out.push_str("%0A"),
            c => out.push(c),
        }
    }
}

/// Appends `raw` as the inside of a quoted string of IMAP (RFC 3501, section 4.3).
fn push_quoted(raw: &str, out: &mut String) {
    for c in raw.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
}

/// Appends `raw` percent-encoded as one segment of a path or one value of a query (RFC 3986; unreserved characters are
/// unchanged).
pub fn push_url(raw: &str, out: &mut String) {
    for byte in raw.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            push_hex(byte, out);
        }
    }
}

fn is_plain_in_form(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'*' | b'-' | b'.' | b'_')
}

fn push_hex(byte: u8, out: &mut String) {
    for digit in [byte >> 4, byte & 15] {
        let c = char::from_digit(u32::from(digit), 16).unwrap_or('0');
        out.push(c.to_ascii_uppercase());
    }
}

#[cfg(test)]
mod tests;
