//! JSON paths (RFC 9535) of captures and expectations. Evaluation is elsewhere.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// A compiled JSON path with its source text.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JsonPath {
    text: String,
    singular: bool,
    plain: Option<Box<[JsonStep]>>,
    compiled: serde_json_path::JsonPath,
}

/// Two paths are the same if their texts are: all else follows from it.
impl PartialEq for JsonPath {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for JsonPath {}

/// A step of a path that can be followed in one pass over the body, without its context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonStep {
    /// The member of an object with this name.
    Name(Box<str>),
    /// The element of an array, counted from 0.
    Index(usize),
    /// All elements of an array, or all members of an object.
    Each,
}

impl JsonPath {
    /// Compiles a path.
    ///
    /// # Errors
    /// A text that is no JSON path, with the place in it.
    pub fn parse(text: &str) -> Result<Self, serde_json_path::ParseError> {
        Ok(Self {
            text: text.to_owned(),
            singular: is_singular(text),
            plain: plain(text),
            compiled: serde_json_path::JsonPath::parse(text)?,
        })
    }

    /// Returns true if it finds at most one value, which is then no list.
    #[must_use]
    pub fn is_singular(&self) -> bool {
        self.singular
    }

    /// Returns its steps, at least one, if all are plain: no filter, slice, union, index from the end, or descendant
    /// segment.
    #[must_use]
    pub fn plain(&self) -> Option<&[JsonStep]> {
        self.plain.as_deref()
    }

    /// Returns the text that it was parsed from.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Returns true if a valid path finds at most one value: names and indexes only (RFC 9535, singular query).
fn is_singular(text: &str) -> bool {
    let mut quote = None;
    let mut escaped = false;
    let mut before = ' ';
    for c in text.chars() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if "*?:,".contains(c) || (c == '.' && before == '.') => return false,
            None => {}
        }
        before = c;
    }
    true
}

impl Deref for JsonPath {
    type Target = serde_json_path::JsonPath;

    fn deref(&self) -> &Self::Target {
        &self.compiled
    }
}

impl TryFrom<String> for JsonPath {
    type Error = serde_json_path::ParseError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<JsonPath> for String {
    fn from(path: JsonPath) -> Self {
        path.text
    }
}

/// Returns the steps of a valid path if all are plain. Rare notations, with white space or escapes, count as not plain.
fn plain(text: &str) -> Option<Box<[JsonStep]>> {
    let mut rest = text.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, after) = match rest.strip_prefix('.') {
            Some(after) => after_dot(after)?,
            None => in_brackets(rest.strip_prefix('[')?)?,
        };
        steps.push(step);
        rest = after;
    }
    (!steps.is_empty()).then(|| steps.into())
}

/// Parses `name` or `*`; returns the rest.
fn after_dot(text: &str) -> Option<(JsonStep, &str)> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, after) = text.split_at(end);
    if name == "*" {
        return Some((JsonStep::Each, after));
    }
    let sound = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
    let named = !name.is_empty() && name.chars().all(sound);
    named.then(|| (JsonStep::Name(name.into()), after))
}

/// Parses `0]`, `*]`, `'name']`, or `"name"]`; returns the rest.
fn in_brackets(text: &str) -> Option<(JsonStep, &str)> {
    if let Some(quote) = text.chars().next().filter(|c| "'\"".contains(*c)) {
        let (name, after) = text[1..].split_once(quote)?;
        let after = after.strip_prefix(']')?;
        return (!name.contains('\\')).then(|| (JsonStep::Name(name.into()), after));
    }
    let (place, after) = text.split_once(']')?;
    let step = match place {
        "*" => JsonStep::Each,
        _ if place.bytes().all(|b| b.is_ascii_digit()) => JsonStep::Index(place.parse().ok()?),
        _ => return None,
    };
    Some((step, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Option<Vec<JsonStep>> {
        let path = JsonPath::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        path.plain().map(<[_]>::to_vec)
    }

    #[test]
    fn plain_paths_are_told_from_others() {
        use JsonStep::{Each, Index};
        let name = |name: &str| JsonStep::Name(name.into());
        assert_eq!(steps("$.a"), Some(vec![name("a")]));
        assert_eq!(
            steps("$['a.b'][0][\"c]\"].*"),
            Some(vec![name("a.b"), Index(0), name("c]"), Each])
        );
        assert_eq!(
            steps("$.größe[*].x_1[17]"),
            Some(vec![name("größe"), Each, name("x_1"), Index(17)])
        );
        for other in [
            "$",
            "$..a",
            "$.a[-1]",
            "$.a[1:3]",
            "$.a[0,1]",
            "$['a','b']",
            "$.a[?@.b == 1]",
            "$ .a",
            "$['a\\'b']",
            "$[ 0 ]",
        ] {
            assert_eq!(steps(other), None, "{other}");
        }
    }
}
