//! The data of responses of any kind as JSON: IMAP has numbers, texts, and lists, and extensions add responses without
//! a fixed list of kinds. Items of messages and mailboxes become mappings by name.

use serde_json::{Map, Value};

/// Deepest nesting of lists: that of the parts of a mail.
const MAX_DEPTH: usize = 64;

/// Kinds of responses whose rest is a text.
const TEXTS: [&[u8]; 5] = [b"OK", b"NO", b"BAD", b"BYE", b"PREAUTH"];

/// Returns true if an untagged response, without its star, ends with a text, which announces no literal.
pub(super) fn is_text(response: &[u8]) -> bool {
    let word = response.split(|byte| b" \r".contains(byte)).next();
    let word = word.unwrap_or_default();
    TEXTS.iter().any(|text| word.eq_ignore_ascii_case(text))
}

/// Returns the length of the literal that a line announces at its end.
pub(super) fn announced(line: &[u8]) -> Option<usize> {
    let line = line.strip_suffix(b"}")?;
    let open = memchr::memrchr(b'{', line)?;
    std::str::from_utf8(&line[open + 1..]).ok()?.parse().ok()
}

/// Adds the text of a status: its code, such as `[UIDNEXT 7]`, and its words.
pub(super) fn status(text: &str, told: &mut Map<String, Value>) {
    let mut words = text;
    if let Some((code, after)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        words = after.trim_start();
        let (name, rest) = code.split_once(' ').unwrap_or((code, ""));
        let value = match Data::of(rest.as_bytes()).all() {
            Ok(values) if values.is_empty() => Value::Bool(true),
            Ok(values) => match <[Value; 1]>::try_from(values) {
                Ok([value]) => value,
                Err(values) => Value::Array(values),
            },
            // An unknown code of an extension: its value stays as it is.
            Err(_) => rest.into(),
        };
        let codes = told
            .entry("code")
            .or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(codes) = codes {
            codes.insert(name.to_ascii_lowercase(), value);
        }
    }
    told.insert("text".to_owned(), words.into());
}

/// Adds the data of an untagged response, without its star and the end of its line.
pub(super) fn untagged(response: &[u8], told: &mut Map<String, Value>) -> Result<(), String> {
    if is_text(response) {
        let text = String::from_utf8_lossy(response);
        let words = text.split_once(' ').map_or("", |(_, words)| words);
        status(words, told);
        return Ok(());
    }
    let mut data = Data::of(response);
    let first = data.next()?.ok_or("a response says nothing")?;
    let (number, name) = match first {
        Value::Number(_) => (Some(first), data.next()?.unwrap_or_default()),
        name => (None, name),
    };
    let Value::String(name) = name else {
        return Err("a response has no name".to_owned());
    };
    let name = name.to_ascii_lowercase();
    let rest = data.all()?;
    let value = match (name.as_str(), number) {
        ("exists" | "recent", Some(number)) => {
            told.insert(name, number);
            return Ok(());
        }
        ("fetch", Some(number)) => items("seq", number, rest.into_iter().next()),
        ("status", None) => {
            let mut rest = rest.into_iter();
            items("mailbox", rest.next().unwrap_or_default(), rest.next())
        }
        ("list" | "lsub", None) => mailbox(rest),
        (_, Some(number)) => number,
        // Lists of numbers that several responses may share.
        ("search" | "sort", None) => {
            add(told, name, rest);
            return Ok(());
        }
        ("flags" | "capability" | "enabled", None) => {
            told.insert(name, Value::Array(rest));
            return Ok(());
        }
        (_, None) => Value::Array(rest),
    };
    add(told, name, [value]);
    Ok(())
}

/// Adds to the list with this name.
fn add(told: &mut Map<String, Value>, name: String, values: impl IntoIterator<Item = Value>) {
    let list = told.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = list {
        list.extend(values);
    }
}

/// Converts alternating names and values to a mapping, with one more entry at its start.
fn items(key: &str, of: Value, list: Option<Value>) -> Value {
    let mut map = Map::new();
    map.insert(key.to_owned(), of);
    let mut list = match list {
        Some(Value::Array(list)) => list.into_iter(),
        _ => return Value::Object(map),
    };
    while let (Some(Value::String(name)), Some(value)) = (list.next(), list.next()) {
        map.insert(name.to_ascii_lowercase(), value);
    }
    Value::Object(map)
}

/// `(\HasNoChildren) "/" INBOX`.
fn mailbox(rest: Vec<Value>) -> Value {
    let names = ["flags", "delimiter", "mailbox"].map(str::to_owned);
    names.into_iter().zip(rest).collect()
}

/// The unread rest of a response's data.
struct Data<'a> {
    rest: &'a [u8],
}

impl<'a> Data<'a> {
    fn of(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    fn all(&mut self) -> Result<Vec<Value>, String> {
        let mut all = Vec::new();
        while let Some(value) = self.next()? {
            all.push(value);
        }
        Ok(all)
    }

    /// Returns the next value; `None` at the end.
    fn next(&mut self) -> Result<Option<Value>, String> {
        let mut open: Vec<Vec<Value>> = Vec::new();
        loop {
            self.rest = self.rest.trim_ascii_start();
            let value = match self.rest.first() {
                None if open.is_empty() => return Ok(None),
                None => return Err("a list doesn't end".to_owned()),
                Some(b'(') if open.len() == MAX_DEPTH => {
                    return Err(format!("lists within lists, more than {MAX_DEPTH} deep"));
                }
                Some(b'(') => {
                    self.rest = &self.rest[1..];
                    open.push(Vec::new());
                    continue;
                }
                Some(b')') => {
                    self.rest = &self.rest[1..];
                    let list = open.pop().ok_or("a list ends that doesn't begin")?;
                    Value::Array(list)
                }
                Some(b'"') => self.quoted()?,
                Some(b'{') => self.literal()?,
                Some(_) => self.atom()?,
            };
            match open.last_mut() {
                Some(list) => list.push(value),
                None => return Ok(Some(value)),
            }
        }
    }

    fn quoted(&mut self) -> Result<Value, String> {
        let mut text = Vec::new();
        let mut bytes = self.rest[1..].iter();
        loop {
            match bytes.next() {
                Some(b'"') => break,
                Some(b'\\') => text.extend(bytes.next()),
                Some(byte) => text.push(*byte),
                None => return Err("a text within quotes doesn't end".to_owned()),
            }
        }
        self.rest = bytes.as_slice();
        Ok(as_text(&text))
    }

    fn literal(&mut self) -> Result<Value, String> {
        let end = memchr::memchr(b'\n', self.rest).ok_or("a literal doesn't begin")?;
        let (line, after) = self.rest.split_at(end + 1);
        let length = announced(line.trim_ascii_end()).ok_or("a literal has no length")?;
        let (text, rest) = after
            .split_at_checked(length)
            .ok_or("a literal doesn't end")?;
        self.rest = rest;
        Ok(as_text(text))
    }

    /// Reads a number, NIL, or a word, such as `\Seen` or `BODY[HEADER.FIELDS (DATE)]`, including the text in brackets.
    fn atom(&mut self) -> Result<Value, String> {
        let mut within = 0_usize;
        let end = self.rest.iter().position(|byte| {
            match byte {
                b'[' => within += 1,
                b']' => within = within.saturating_sub(1),
                _ => {}
            }
            within == 0 && b" ()\r\n\"{".contains(byte)
        });
        let (atom, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if atom.is_empty() {
            return Err("what the server says is none of IMAP".to_owned());
        }
        self.rest = rest;
        if atom.eq_ignore_ascii_case(b"NIL") {
            return Ok(Value::Null);
        }
        let text = as_text(atom);
        let number = text.as_str().and_then(|text| text.parse::<u64>().ok());
        Ok(number.map_or(text, Value::from))
    }
}

fn as_text(bytes: &[u8]) -> Value {
    Value::String(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests;
