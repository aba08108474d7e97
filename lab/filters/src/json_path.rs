//! JSON paths (RFC 9535) of captures and expectations. What a body has there is looked up elsewhere.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// A compiled JSON path that knows how it was written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JsonPath {
    text: String,
    singular: bool,
    plain: Option<Box<[JsonStep]>>,
    compiled: serde_json_path::JsonPath,
}

/// A step of a path that can be followed while a body goes by, since it asks nothing of what lies around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonStep {
    /// The member of an object that has this name.
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

    /// Whether it finds one value at most, which is then no list.
    #[must_use]
    pub fn is_singular(&self) -> bool {
        self.singular
    }

    /// Its steps, at least one, where all of them are plain: no filter, slice, or list of places, nothing counted
    /// from an end, nothing at any depth.
    #[must_use]
    pub fn plain(&self) -> Option<&[JsonStep]> {
        self.plain.as_deref()
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Whether a path that is one can find one value at most: names and indexes alone (RFC 9535, singular
/// query).
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

/// The steps of a path that is one, unless it has others than plain ones. What is written in a rarer way, with white
/// space or escapes, counts as others.
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

/// `name` or `*`, and what follows.
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

/// `0]`, `*]`, `'name']`, or `"name"]`, and what follows.
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
