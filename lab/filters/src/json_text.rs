//! The text of a JSON value as in the body: numbers keep their digits, texts are decoded, and lists and objects lose
//! only the white space between their parts.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::Error as _;
use serde_json::{Number, Value};

/// Deepest nesting that serde_json accepts.
const MAX_DEPTH: usize = 127;
/// Shorter numbers without an exponent are within the range of a double.
const SURELY_FINITE: usize = 300;

/// Appends the value `raw`, at depth `depth`, to `out`.
///
/// # Errors
/// Faults that skipping a value misses but building a tree detects: lone surrogates, numbers out of range, values
/// nested too deep.
pub fn push(raw: &str, depth: usize, out: &mut String) -> Result<(), serde_json::Error> {
    match raw.as_bytes().first() {
        Some(b'"') => out.push_str(&decoded(raw)?),
        Some(b'{' | b'[') => {
            let _validated: Value = serde_json::from_str(raw)?;
            if depth + nesting(raw) > MAX_DEPTH {
                return Err(serde_json::Error::custom("recursion limit exceeded"));
            }
            compact(raw, out);
        }
        Some(b't' | b'f' | b'n') => out.push_str(raw),
        _ => {
            if raw.len() > SURELY_FINITE || raw.contains(['e', 'E']) {
                let _in_range: Number = serde_json::from_str(raw)?;
            }
            out.push_str(raw);
        }
    }
    Ok(())
}

/// Decodes a JSON string.
fn decoded(raw: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    match raw.contains('\\') {
        true => serde_json::from_str::<String>(raw).map(Cow::Owned),
        false => Ok(Cow::Borrowed(&raw[1..raw.len() - 1])),
    }
}

/// Iterates over bytes outside of strings, and whole strings, in order.
fn tokens(raw: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = raw.get(at..).filter(|rest| !rest.is_empty())?;
        let length = match rest.starts_with('"') {
            true => string_end(rest),
            false => rest.find('"').unwrap_or(rest.len()),
        };
        at += length;
        Some(&rest[..length])
    })
}

/// Returns the end of the string that starts `text`.
fn string_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn compact(raw: &str, out: &mut String) {
    for token in tokens(raw) {
        match token.starts_with('"') {
            true => out.push_str(token),
            false => out.extend(token.split_ascii_whitespace()),
        }
    }
}

fn nesting(raw: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for token in tokens(raw).filter(|token| !token.starts_with('"')) {
        for byte in token.bytes() {
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            deepest = deepest.max(depth);
        }
    }
    deepest
}

/// Returns the texts of these nodes of the tree parsed from `text`.
pub fn raws<'t>(text: &'t str, root: &Value, nodes: &[&Value]) -> Vec<&'t str> {
    let mut found: HashMap<*const Value, &'t str> = HashMap::new();
    for node in nodes {
        found.insert(std::ptr::from_ref(*node), "");
    }
    Walk { text, at: 0 }.value(Some(root), &mut found);
    let raw = |node: &&Value| found.get(&std::ptr::from_ref(*node)).copied();
    nodes
        .iter()
        .map(|node| raw(node).unwrap_or_default())
        .collect()
}

/// A text that serde_json has accepted, walked in parallel with its tree.
struct Walk<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Walk<'t> {
    /// Of members with the same name the tree has the last: it overwrites the earlier ones.
    fn value(&mut self, node: Option<&Value>, found: &mut HashMap<*const Value, &'t str>) {
        self.skip_space();
        let begins = self.at;
        match self.peek() {
            Some(b'{') => self.members(node, found),
            Some(b'[') => self.elements(node, found),
            Some(b'"') => {
                self.string();
            }
            _ => {
                let rest = &self.text[self.at..];
                let ends = |c: char| c.is_ascii_whitespace() || ",]}".contains(c);
                self.at += rest.find(ends).unwrap_or(rest.len());
            }
        }
        if let Some(slot) = node.and_then(|node| found.get_mut(&std::ptr::from_ref(node))) {
            *slot = &self.text[begins..self.at];
        }
    }

    fn members(&mut self, node: Option<&Value>, found: &mut HashMap<*const Value, &'t str>) {
        let map = node.and_then(Value::as_object);
        self.at += 1;
        while self.next_part() {
            let key = decoded(self.string()).unwrap_or_default();
            self.skip_space();
            // Skips the colon.
            self.at += 1;
            self.value(map.and_then(|map| map.get(&*key)), found);
        }
    }

    fn elements(&mut self, node: Option<&Value>, found: &mut HashMap<*const Value, &'t str>) {
        let list = node.and_then(Value::as_array);
        let mut index = 0;
        self.at += 1;
        while self.next_part() {
            self.value(list.and_then(|list| list.get(index)), found);
            index += 1;
        }
    }

    /// Skips a comma and returns true; at the end, skips the closing bracket and returns false.
    fn next_part(&mut self) -> bool {
        self.skip_space();
        if self.peek() == Some(b',') {
            self.at += 1;
            self.skip_space();
        }
        match self.peek() {
            Some(b'}' | b']') => {
                self.at += 1;
                false
            }
            Some(_) => true,
            None => false,
        }
    }

    fn string(&mut self) -> &'t str {
        self.skip_space();
        let length = string_end(&self.text[self.at..]);
        let string = &self.text[self.at..self.at + length];
        self.at += length;
        string
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}
