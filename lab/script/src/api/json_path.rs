//! Fields of JSON texts by a path as `Response.json` takes it: `data.items.0.id`, `items.#`, `items.#.id`,
//! `items.#(price>10).name`, `items.#(price>10)#.name`, `*` and `?` in names, `\` before a literal `.`, `|` beside `.`.
//! The syntax is that of gjson's documentation. The part of a path before the first `#` or wildcard is followed in one
//! pass over the text; only what is found there becomes values. It knows no JavaScript.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The longest path in bytes.
const LONGEST: usize = 4096;
/// The most parts of a path.
const MOST_PARTS: usize = 64;

/// One part of a path.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// A member of this name, or the element of this number.
    Name(String),
    /// The first member whose name matches a pattern with `*` and `?`.
    Pattern(String),
    /// The number of elements, or what follows of each element.
    Each,
    /// The first element that passes a test, or all of them.
    Test(Test, bool),
    /// A change of the value: `@reverse`, `@keys`, …
    Change(String),
}

/// A test of elements: `#(name=="x")`.
#[derive(Debug, Clone, PartialEq)]
struct Test {
    path: Vec<Part>,
    relation: Relation,
    value: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Exists,
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
    Like,
    Unlike,
}

/// What a path finds: a piece of the text, or a value made of it.
#[derive(Debug)]
pub(crate) enum Found<'t> {
    Text(&'t str),
    Made(Value),
}

/// Finds the value at `path`; `None` if there is none.
///
/// # Errors
/// A sentence if the text isn't JSON, or the path can't be followed.
pub(crate) fn find<'t>(text: &'t str, path: &str) -> Result<Option<Found<'t>>, String> {
    let parts = parse(path)?;
    let plain = parts
        .iter()
        .take_while(|part| matches!(part, Part::Name(_)))
        .count();
    let mut reader = serde_json::Deserializer::from_str(text);
    let found = Follow(&parts[..plain])
        .deserialize(&mut reader)
        .and_then(|found| reader.end().map(|()| found))
        .map_err(|error| syntax(&error))?;
    let Some(raw) = found else {
        return Ok(None);
    };
    if plain == parts.len() {
        return Ok(Some(Found::Text(raw.get())));
    }
    let value: Value = serde_json::from_str(raw.get()).map_err(|error| syntax(&error))?;
    Ok(follow(value, &parts[plain..]).map(Found::Made))
}

/// Where a text stops being JSON, without what it contains there.
///
/// # Errors
/// A sentence with the place.
pub(crate) fn check(text: &str) -> Result<(), String> {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(syntax(&error)),
    }
}

fn syntax(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    match error.classify() {
        Category::Eof => "it ends too early".to_owned(),
        _ => format!("line {line}, column {column}"),
    }
}

/// Follows names in one pass and keeps the text of what is there.
struct Follow<'p>(&'p [Part]);

impl<'de> DeserializeSeed<'de> for Follow<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() {
            return serde::Deserialize::deserialize(reader).map(Some);
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Follow<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Part::Name(wanted) = &self.0[0] else {
            return Ok(None);
        };
        let mut found = None;
        while let Some(same) = map.next_key_seed(Same(wanted))? {
            if same && found.is_none() {
                found = Some(map.next_value_seed(Follow(&self.0[1..]))?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found.flatten())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let wanted = match &self.0[0] {
            Part::Name(name) => name.parse::<usize>().ok(),
            _ => None,
        };
        let mut found = None;
        let mut place = 0;
        loop {
            if wanted == Some(place) {
                match list.next_element_seed(Follow(&self.0[1..]))? {
                    Some(value) => found = value,
                    None => break,
                }
            } else if list.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
            place += 1;
        }
        Ok(found)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Compares the name of a member without keeping it.
struct Same<'p>(&'p str);

impl<'de> DeserializeSeed<'de> for Same<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<bool, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Same<'_> {
    type Value = bool;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

fn follow(value: Value, parts: &[Part]) -> Option<Value> {
    let Some((part, rest)) = parts.split_first() else {
        return Some(value);
    };
    match part {
        Part::Name(name) => follow(member(value, name)?, rest),
        Part::Pattern(pattern) => match value {
            Value::Object(members) => {
                let found = members.into_iter().find(|(name, _)| like(name, pattern));
                follow(found?.1, rest)
            }
            _ => None,
        },
        Part::Each => match value {
            Value::Array(all) if rest.is_empty() => Some(Value::from(all.len())),
            Value::Array(all) => Some(each(all, rest)),
            _ => None,
        },
        Part::Test(test, every) => match value {
            Value::Array(all) if *every => {
                let passed = all.into_iter().filter(|one| test.passes(one)).collect();
                if rest.is_empty() {
                    return Some(Value::Array(passed));
                }
                Some(each(passed, rest))
            }
            Value::Array(all) => follow(all.into_iter().find(|one| test.passes(one))?, rest),
            _ => None,
        },
        Part::Change(change) => follow(changed(value, change)?, rest),
    }
}

/// As [`follow`], and copies nothing on the way through names.
fn seen<'v>(value: &'v Value, parts: &[Part]) -> Option<Cow<'v, Value>> {
    let Some((part, rest)) = parts.split_first() else {
        return Some(Cow::Borrowed(value));
    };
    match (part, value) {
        (Part::Name(name), Value::Object(members)) => seen(members.get(name)?, rest),
        (Part::Name(name), Value::Array(all)) => seen(all.get(name.parse::<usize>().ok()?)?, rest),
        (Part::Name(_), _) => None,
        (Part::Pattern(pattern), Value::Object(members)) => {
            let found = members.iter().find(|(name, _)| like(name, pattern));
            seen(found?.1, rest)
        }
        (Part::Pattern(_), _) => None,
        _ => follow(value.clone(), parts).map(Cow::Owned),
    }
}

fn member(value: Value, name: &str) -> Option<Value> {
    match value {
        Value::Object(mut members) => members.remove(name),
        Value::Array(mut all) => {
            let place: usize = name.parse().ok()?;
            (place < all.len()).then(|| all.swap_remove(place))
        }
        _ => None,
    }
}

fn each(all: Vec<Value>, rest: &[Part]) -> Value {
    all.into_iter()
        .filter_map(|one| follow(one, rest))
        .collect()
}

fn changed(value: Value, change: &str) -> Option<Value> {
    Some(match (change, value) {
        ("reverse", Value::Array(mut all)) => {
            all.reverse();
            Value::Array(all)
        }
        ("keys", Value::Object(members)) => members
            .into_iter()
            .map(|(name, _)| Value::from(name))
            .collect(),
        ("values", Value::Object(members)) => members.into_iter().map(|(_, value)| value).collect(),
        ("flatten", Value::Array(all)) => {
            let mut flat = Vec::new();
            for one in all {
                match one {
                    Value::Array(inner) => flat.extend(inner),
                    other => flat.push(other),
                }
            }
            Value::Array(flat)
        }
        ("join", Value::Array(all)) => {
            let mut joined = Map::new();
            for one in all {
                if let Value::Object(members) = one {
                    joined.extend(members);
                }
            }
            Value::Object(joined)
        }
        (_, value) => value,
    })
}

impl Test {
    fn passes(&self, element: &Value) -> bool {
        let Some(found) = seen(element, &self.path) else {
            return false;
        };
        let order = match (&*found, &self.value) {
            (Value::String(one), Value::String(other)) => Some(one.as_str().cmp(other.as_str())),
            (Value::Number(one), Value::Number(other)) => one.as_f64().partial_cmp(&other.as_f64()),
            (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
            (Value::Null, Value::Null) => Some(std::cmp::Ordering::Equal),
            _ => None,
        };
        let alike = || match (&*found, &self.value) {
            (Value::String(text), Value::String(pattern)) => Some(like(text, pattern)),
            _ => None,
        };
        match self.relation {
            Relation::Exists => true,
            Relation::Equal => order.is_some_and(std::cmp::Ordering::is_eq),
            Relation::Unequal => !order.is_some_and(std::cmp::Ordering::is_eq),
            Relation::Less => order.is_some_and(std::cmp::Ordering::is_lt),
            Relation::AtMost => order.is_some_and(std::cmp::Ordering::is_le),
            Relation::More => order.is_some_and(std::cmp::Ordering::is_gt),
            Relation::AtLeast => order.is_some_and(std::cmp::Ordering::is_ge),
            Relation::Like => alike() == Some(true),
            Relation::Unlike => alike() == Some(false),
        }
    }
}

/// Returns true if `text` matches a pattern of literal characters, `*`, and `?`. Its cost is at most the product of the
/// lengths.
fn like(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let (mut t, mut p) = (0, 0);
    let mut back = None;
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            back = Some((p, t));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == b'?' || pattern[p] == text[t]) {
            p += 1;
            t += 1;
        } else if let Some((star, from)) = back {
            p = star + 1;
            t = from + 1;
            back = Some((star, t));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

fn parse(path: &str) -> Result<Vec<Part>, String> {
    if path.len() > LONGEST {
        return Err(format!("a path has at most {LONGEST} characters"));
    }
    let mut parts = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if parts.len() == MOST_PARTS {
            return Err(format!("a path has at most {MOST_PARTS} parts"));
        }
        let (part, after) = if let Some(inner) = rest.strip_prefix("#(") {
            test(inner).ok_or_else(|| format!("the test in the path '{path}' isn't understood"))?
        } else {
            name(rest)?
        };
        parts.push(part);
        rest = match after.strip_prefix(['.', '|']) {
            Some("") => return Err(format!("the path '{path}' ends with '.'")),
            Some(after) => after,
            None if after.is_empty() => after,
            None => return Err(format!("the path '{path}' isn't understood at '{after}'")),
        };
    }
    if parts.is_empty() {
        return Err("the path is empty".to_owned());
    }
    Ok(parts)
}

/// Reads one name, up to the next `.` or `|` without `\`.
fn name(text: &str) -> Result<(Part, &str), String> {
    let mut name = String::new();
    let mut pattern = false;
    let mut escaped = false;
    let mut end = text.len();
    for (place, c) in text.char_indices() {
        match c {
            _ if escaped => {
                name.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '.' | '|' => {
                end = place;
                break;
            }
            '*' | '?' => {
                pattern = true;
                name.push(c);
            }
            _ => name.push(c),
        }
    }
    let part = if &text[..end] == "#" {
        Part::Each
    } else if let Some(change) = name.strip_prefix('@').filter(|_| text.starts_with('@')) {
        if ![
            "reverse", "keys", "values", "flatten", "join", "this", "valid", "ugly", "pretty",
        ]
        .contains(&change)
        {
            return Err(format!(
                "'@{change}' isn't supported in paths: take the value and change it in the script"
            ));
        }
        Part::Change(change.to_owned())
    } else if pattern {
        Part::Pattern(name)
    } else {
        Part::Name(name)
    };
    Ok((part, &text[end..]))
}

/// Reads a test after `#(`, with its `)` or `)#`.
fn test(text: &str) -> Option<(Part, &str)> {
    let mut depth = 1;
    let mut quoted = false;
    let mut escaped = false;
    let mut end = None;
    for (place, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    end = Some(place);
                    break;
                }
            }
            _ => {}
        }
    }
    let end = end?;
    let after = &text[end + 1..];
    let (every, after) = match after.strip_prefix('#') {
        Some(after) => (true, after),
        None => (false, after),
    };
    Some((Part::Test(comparison(&text[..end])?, every), after))
}

fn comparison(text: &str) -> Option<Test> {
    const RELATIONS: [(&str, Relation); 9] = [
        ("==", Relation::Equal),
        ("!=", Relation::Unequal),
        ("<=", Relation::AtMost),
        (">=", Relation::AtLeast),
        ("!%", Relation::Unlike),
        ("=", Relation::Equal),
        ("<", Relation::Less),
        (">", Relation::More),
        ("%", Relation::Like),
    ];
    let place = relation_at(text);
    let (path, relation, value) = match place {
        None => (text, Relation::Exists, Value::Null),
        Some(place) => {
            let (sign, relation) = RELATIONS
                .into_iter()
                .find(|(sign, _)| text[place..].starts_with(sign))?;
            let value = text[place + sign.len()..].trim();
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            (&text[..place], relation, value)
        }
    };
    let path = path.trim();
    let path = if path.is_empty() {
        Vec::new()
    } else {
        parse(path).ok()?
    };
    Some(Test {
        path,
        relation,
        value,
    })
}

/// The place of the relation in a test, outside of tests within it and of quotes.
fn relation_at(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut quoted = false;
    let mut escaped = false;
    for (place, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            '=' | '!' | '<' | '>' | '%' if depth == 0 && !quoted => return Some(place),
            _ => {}
        }
    }
    None
}
