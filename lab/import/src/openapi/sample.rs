//! Values for schemas: their examples, or generated values within their limits.

use std::cell::Cell;

use regex::RegexBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value, json};

use super::refs::Spec;

/// Deepest generated value.
const DEPTH: usize = 6;
/// Largest generated example: schemas that reference each other may describe more than fits into memory.
pub(super) const MADE_BYTES: usize = 64 << 10;
/// Most parts of schemas that are searched for the properties of one example.
const MAX_LOOKS: usize = 20_000;
/// Most entries of a list of choices or examples.
const CHOICES: usize = 8;
/// Largest compiled expression.
const MAX_COMPILED: usize = 256 << 10;
/// Longest generated text.
const MAX_TEXT: usize = 1000;
/// Longest generated list.
const MAX_ITEMS: usize = 50;
/// Longest expression for which a text is generated.
const MAX_PATTERN: usize = 1000;
/// Placeholder of a random UUID until the file is written.
pub(super) const UUID: &str = "00000000-0000-4000-8000-000000000000";

/// Generates values.
pub(super) struct Sampler<'m, 'v> {
    pub(super) spec: &'m Spec<'v>,
    /// Remaining bytes for the present example.
    room: Cell<usize>,
    /// True if a part did not fit.
    is_cut: Cell<bool>,
    /// Remaining parts of schemas to search for properties of the present example.
    looks: Cell<usize>,
}

impl<'m, 'v> Sampler<'m, 'v> {
    pub(super) fn new(spec: &'m Spec<'v>) -> Self {
        Self {
            spec,
            room: Cell::new(MADE_BYTES),
            is_cut: Cell::new(false),
            looks: Cell::new(MAX_LOOKS),
        }
    }

    /// Returns true if a value did not fit since the last call.
    pub(super) fn was_cut(&self) -> bool {
        self.is_cut.take()
    }

    /// The example of a media type or a parameter, or one by its schema. In Swagger 2 the parameter itself has the
    /// schema's keys.
    pub(super) fn of(&self, described: &'v Value) -> Value {
        self.looks.set(MAX_LOOKS);
        let content = described.get("content").and_then(Value::as_object);
        if let Some(media) = content.and_then(|content| content.values().next()) {
            return self.of(self.spec.of(media));
        }
        let schema = described.get("schema");
        let examples = described.get("examples").and_then(Value::as_object);
        let first = examples.and_then(|examples| examples.values().next());
        let given = described
            .get("example")
            .or_else(|| described.get("x-example"))
            .or_else(|| self.spec.of(first?).get("value"));
        match given {
            Some(given) => self.fitted(given, schema.or(Some(described))),
            None => self.made_up(schema.unwrap_or(described)),
        }
    }

    /// A value of a schema, as large as allowed.
    pub(super) fn made_up(&self, schema: &'v Value) -> Value {
        self.room.set(MADE_BYTES);
        self.value("", schema, 0)
    }

    /// Reserves bytes; returns true if there is room for them.
    fn has_room(&self, bytes: usize) -> bool {
        let left = self.room.get().checked_sub(bytes);
        match left {
            Some(left) => self.room.set(left),
            None => self.is_cut.set(true),
        }
        left.is_some()
    }

    /// A value of the description, with the types of its schema: a YAML number or boolean is the text of the file if
    /// the schema needs a text.
    fn fitted(&self, given: &'v Value, schema: Option<&'v Value>) -> Value {
        let schema = schema.map(|schema| self.spec.of(schema));
        match given {
            Value::Array(items) => {
                let of = |index: usize| {
                    let listed = schema?.get("prefixItems").and_then(|list| list.get(index));
                    listed.or_else(|| schema?.get("items"))
                };
                let items = items.iter().enumerate();
                items
                    .map(|(index, item)| self.fitted(item, of(index)))
                    .collect()
            }
            Value::Object(map) => {
                let fit = |(name, inner): (&String, &'v Value)| {
                    let of = schema.and_then(|schema| self.property(schema, name, 0));
                    (name.clone(), self.fitted(inner, of))
                };
                Value::Object(map.iter().map(fit).collect())
            }
            Value::Bool(_) | Value::Number(_)
                if schema.is_some_and(|schema| kind(schema) == "string") =>
            {
                Value::String(self.spec.text_of(given))
            }
            other => other.clone(),
        }
    }

    /// The schema of a property, which may be in a part of its object's.
    pub(super) fn property(
        &self,
        schema: &'v Value,
        name: &str,
        depth: usize,
    ) -> Option<&'v Value> {
        let own = schema.get("properties").and_then(|all| all.get(name));
        let parts = ["allOf", "oneOf", "anyOf"]
            .into_iter()
            .filter_map(|key| schema.get(key)?.as_array());
        own.or_else(|| {
            let mut parts = parts.flatten().filter(|_| depth < DEPTH && self.may_look());
            parts.find_map(|part| self.property(self.spec.of(part), name, depth + 1))
        })
        .or_else(|| {
            schema
                .get("additionalProperties")
                .filter(|more| more.is_object())
        })
    }

    fn may_look(&self) -> bool {
        let left = self.looks.get().checked_sub(1);
        self.looks.set(left.unwrap_or(0));
        left.is_some()
    }

    /// A value of a schema.
    fn value(&self, name: &str, schema: &'v Value, depth: usize) -> Value {
        let schema = self.spec.of(schema);
        if let Some(given) = given(schema) {
            // An example of the whole is used unchanged.
            return match depth == 0 || self.has_room(bytes(given)) {
                true => self.fitted(given, Some(schema)),
                false => Value::Null,
            };
        }
        if depth >= DEPTH || !self.has_room(name.len() + 1) {
            return Value::Null;
        }
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            return self.all_of(name, parts, schema, depth);
        }
        let choices = ["oneOf", "anyOf"]
            .into_iter()
            .filter_map(|key| schema.get(key)?.as_array());
        if let Some(first) = choices
            .flatten()
            .take(CHOICES)
            .find(|one| kind(self.spec.of(one)) != "null")
        {
            let chosen = self.value(name, first, depth + 1);
            return match (chosen, schema.get("properties")) {
                (Value::Object(mut chosen), Some(_)) => {
                    if let Value::Object(own) = self.object(schema, depth) {
                        chosen.extend(own);
                    }
                    Value::Object(chosen)
                }
                (chosen, _) => chosen,
            };
        }
        match kind(schema) {
            "object" => self.object(schema, depth),
            "array" => self.array(name, schema, depth),
            "integer" => integer(schema),
            "number" => number(schema),
            "boolean" => json!(true),
            "string" | "file" => string(name, schema),
            _ => Value::Null,
        }
    }

    fn all_of(&self, name: &str, parts: &'v [Value], schema: &'v Value, depth: usize) -> Value {
        let mut all = Map::new();
        let mut other = Value::Null;
        let own = schema.get("properties").map(|_| self.object(schema, depth));
        let parts = parts.iter().map(|part| self.value(name, part, depth + 1));
        for part in parts.chain(own) {
            match part {
                Value::Object(part) => all.extend(part),
                part if other.is_null() => other = part,
                _ => {}
            }
        }
        match all.is_empty() && !other.is_null() {
            true => other,
            false => Value::Object(all),
        }
    }

    fn array(&self, name: &str, schema: &'v Value, depth: usize) -> Value {
        let limit = |key: &str| {
            schema
                .get(key)
                .and_then(Value::as_u64)
                .and_then(|n| usize::try_from(n).ok())
        };
        let most = limit("maxItems").unwrap_or(MAX_ITEMS).min(MAX_ITEMS);
        let least = limit("minItems").unwrap_or(1).min(most);
        let listed = schema
            .get("prefixItems")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        let mut items: Vec<Value> = Vec::new();
        for part in listed.iter().take(most) {
            items.push(self.value(name, part, depth + 1));
        }
        let further = schema.get("items").filter(|items| !items.is_boolean());
        let is_unique = schema.get("uniqueItems").and_then(Value::as_bool) == Some(true);
        if let Some(further) = further {
            let one = self.value(name, further, depth + 1);
            while items.len() < least {
                let nth = items.len();
                let item = match is_unique && items.contains(&one) {
                    true => self.other(&one, self.spec.of(further), nth),
                    false => one.clone(),
                };
                if !self.has_room(bytes(&item)) || (is_unique && items.contains(&item)) {
                    break;
                }
                items.push(item);
            }
        }
        Value::Array(items)
    }

    /// Another value of a schema than the first one.
    fn other(&self, first: &Value, schema: &'v Value, nth: usize) -> Value {
        if let Some(listed) = schema.get("enum").and_then(|all| all.get(nth)) {
            return self.fitted(listed, Some(schema));
        }
        match first {
            Value::Number(number) if number.is_i64() => {
                let step = schema
                    .get("multipleOf")
                    .and_then(Value::as_i64)
                    .unwrap_or(1);
                let moved = i64::try_from(nth).unwrap_or(0).saturating_mul(step);
                json!(number.as_i64().unwrap_or(0).saturating_add(moved))
            }
            Value::String(text) => {
                let number = nth.to_string();
                let most = schema
                    .get("maxLength")
                    .and_then(Value::as_u64)
                    .unwrap_or(u64::MAX);
                let most = usize::try_from(most).unwrap_or(usize::MAX);
                let kept = text.chars().take(most.saturating_sub(number.len()));
                json!(kept.collect::<String>() + &number)
            }
            other => other.clone(),
        }
    }

    /// Its required properties, and those with an example; all if none is required.
    fn object(&self, schema: &'v Value, depth: usize) -> Value {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)))
        };
        let least = schema
            .get("minProperties")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        let least = usize::try_from(least).unwrap_or(0).min(MAX_ITEMS);
        let mut object = Map::new();
        let mut optional = Vec::new();
        for (name, property) in properties.into_iter().flatten() {
            let described = self.spec.of(property);
            if described.get("readOnly").and_then(Value::as_bool) == Some(true) {
                continue;
            }
            let has_example = described.get("example").is_some();
            if required.is_some() && !is_required(name) && !has_example {
                optional.push((name, property));
                continue;
            }
            self.add(name, property, depth, &mut object);
        }
        let further = schema
            .get("additionalProperties")
            .filter(|more| more.is_object());
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let is_described = properties.is_some_and(|all| all.contains_key(name));
            if !is_described && self.has_room(name.len() + 1) {
                match further {
                    Some(further) => self.add(name, further, depth, &mut object),
                    None => {
                        object.insert(name.to_owned(), string(name, &Value::Null));
                    }
                }
            }
        }
        for (name, property) in optional {
            if object.len() >= least {
                break;
            }
            self.add(name, property, depth, &mut object);
        }
        if schema.get("additionalProperties").and_then(Value::as_bool) != Some(false) {
            for nth in 1..=least {
                if object.len() >= least {
                    break;
                }
                let name = format!("key{nth}");
                match further {
                    Some(further) => self.add(&name, further, depth, &mut object),
                    None => {
                        object.insert(name, json!("text"));
                    }
                }
            }
        }
        Value::Object(object)
    }

    fn add(&self, name: &str, property: &'v Value, depth: usize, object: &mut Map<String, Value>) {
        let value = self.value(name, property, depth + 1);
        let may_be_null = || {
            let described = self.spec.of(property);
            kind(described) == "null" || described.get("const").is_some_and(Value::is_null)
        };
        if !value.is_null() || may_be_null() {
            object.insert(name.to_owned(), value);
        }
    }
}

/// An example or default within a schema.
fn given(schema: &Value) -> Option<&Value> {
    let listed = |key: &str| {
        let all = schema.get(key)?.as_array()?;
        let mut first = all.iter().take(CHOICES);
        first.find(|one| !one.is_null()).or(all.first())
    };
    schema
        .get("example")
        .or_else(|| listed("examples"))
        .or_else(|| schema.get("default"))
        .or_else(|| schema.get("const"))
        .or_else(|| listed("enum"))
}

/// The type of a schema, explicit or implied.
pub(super) fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => {
            let mut named = kinds.iter().filter_map(Value::as_str);
            named.find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() || schema.get("additionalProperties").is_some() => {
            "object"
        }
        _ if schema.get("items").is_some() || schema.get("prefixItems").is_some() => "array",
        _ if ["pattern", "minLength", "maxLength"]
            .iter()
            .any(|key| schema.get(key).is_some()) =>
        {
            "string"
        }
        _ => "",
    }
}

/// Approximate size of a value in bytes.
fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len(),
        Value::Array(all) => all.iter().fold(1, |sum, one| sum + bytes(one)),
        Value::Object(map) => map
            .iter()
            .fold(1, |sum, (name, value)| sum + name.len() + bytes(value)),
        _ => 1,
    }
}

/// A limit of a number, and whether it is exclusive.
type NumberLimit = (f64, bool);

/// The limits of a number: minimum and maximum, and whether each is exclusive.
fn limits(schema: &Value) -> (Option<NumberLimit>, Option<NumberLimit>) {
    let limit = |key: &str, exclusive: &str, tighter: fn(f64, f64) -> f64| {
        let own = schema.get(key).and_then(Value::as_f64);
        // OpenAPI 3.0 has a boolean there, 3.1 a number.
        let other = schema.get(exclusive);
        let is_excluded = other.and_then(Value::as_bool) == Some(true);
        match (own, other.and_then(Value::as_f64)) {
            (Some(own), Some(other)) if tighter(own, other) == own && own != other => {
                Some((own, false))
            }
            (_, Some(other)) => Some((other, true)),
            (Some(own), None) => Some((own, is_excluded)),
            (None, None) => None,
        }
    };
    (
        limit("minimum", "exclusiveMinimum", f64::max),
        limit("maximum", "exclusiveMaximum", f64::min),
    )
}

fn integer(schema: &Value) -> Value {
    let (low, high) = limits(schema);
    let low = low.map(|(low, excluded)| match excluded && low.fract() == 0.0 {
        true => low as i128 + 1,
        false => low.ceil() as i128,
    });
    let high = high.map(|(high, excluded)| match excluded && high.fract() == 0.0 {
        true => high as i128 - 1,
        false => high.floor() as i128,
    });
    let step = schema.get("multipleOf").and_then(Value::as_f64);
    let step = step.map_or(1, |step| step as i128).max(1);
    let start = 1_i128
        .max(low.unwrap_or(i128::MIN))
        .min(high.unwrap_or(i128::MAX));
    let up = start
        .saturating_add(step - 1)
        .div_euclid(step)
        .saturating_mul(step);
    let value = match high.is_some_and(|high| up > high) {
        true => high.unwrap_or(0).div_euclid(step).saturating_mul(step),
        false => up,
    };
    // Integral limits beyond 2^53 are exact.
    let exact = |key: &str| {
        schema
            .get(key)
            .filter(|limit| limit.is_i64() || limit.is_u64())
    };
    match (i64::try_from(value), u64::try_from(value)) {
        _ if value.unsigned_abs() > 1 << 53
            && step == 1
            && exact("minimum").is_some()
            && low == Some(value) =>
        {
            exact("minimum").cloned().unwrap_or(Value::Null)
        }
        (Ok(value), _) => json!(value),
        (_, Ok(value)) => json!(value),
        _ => json!(value as f64),
    }
}

fn number(schema: &Value) -> Value {
    let (low, high) = limits(schema);
    let is_above =
        |value: f64| low.is_none_or(|(low, excluded)| value > low || (!excluded && value == low));
    let is_below = |value: f64| {
        high.is_none_or(|(high, excluded)| value < high || (!excluded && value == high))
    };
    let bounds = (low.map(|(low, _)| low), high.map(|(high, _)| high));
    let start = match bounds {
        _ if is_above(1.0) && is_below(1.0) => 1.0,
        (Some(low), _) if is_above(low) && is_below(low) => low,
        (Some(low), Some(high)) => low + (high - low) / 2.0,
        (Some(low), None) => low + 1.0,
        (None, Some(high)) if is_below(high) => high,
        (None, Some(high)) => high - 1.0,
        (None, None) => 1.0,
    };
    let step = schema
        .get("multipleOf")
        .filter(|step| step.as_f64().is_some_and(|step| step > 0.0));
    let value = match step {
        Some(step) => {
            let size = step.as_f64().unwrap_or(1.0);
            // As many decimals as the step has, since rounding could break multiples.
            let decimals = step
                .to_string()
                .split_once('.')
                .map_or(0, |(_, digits)| digits.len());
            let rounded = |value: f64| {
                format!("{value:.decimals$}")
                    .parse::<f64>()
                    .unwrap_or(value)
            };
            let up = rounded((start / size).ceil() * size);
            match is_above(up) && is_below(up) {
                true => up,
                false => rounded((start / size).floor() * size),
            }
        }
        None => start,
    };
    match value.fract() == 0.0 && value.abs() < 1e15 {
        true => json!(value as i64),
        false => json!(value),
    }
}

fn string(name: &str, schema: &Value) -> Value {
    let limit = |key: &str, otherwise: usize| {
        let limit = schema.get(key).and_then(Value::as_u64);
        limit
            .map_or(otherwise, |limit| {
                usize::try_from(limit).unwrap_or(MAX_TEXT)
            })
            .min(MAX_TEXT)
    };
    let least = limit("minLength", 0);
    let most = limit("maxLength", 64).max(least);
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && let Some(text) = matching(pattern, least, limit("maxLength", MAX_TEXT).max(least))
    {
        return json!(text);
    }
    let format = schema
        .get("format")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let made = match format {
        "date" => "2026-01-05",
        "date-time" => "2026-01-05T09:00:00Z",
        "time" => "09:00:00Z",
        "duration" => "P1D",
        "email" | "idn-email" => "someone@example.com",
        "uuid" => UUID,
        "uri" | "url" | "iri" => "https://example.com/",
        "uri-reference" | "iri-reference" => "/",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "byte" => "cGxpbXNvbGw=",
        "json-pointer" => "/a",
        "regex" => "a+",
        _ => "",
    };
    if !made.is_empty() && (least..=most).contains(&made.chars().count()) {
        return json!(made);
    }
    let word = if name.is_empty() { "text" } else { name };
    let mut made = word.to_owned();
    while made.chars().count() < least {
        made.push_str(word);
    }
    json!(made.chars().take(most).collect::<String>())
}

/// A text that matches a regular expression, with a length within the limits.
fn matching(pattern: &str, least: usize, most: usize) -> Option<String> {
    if pattern.len() > MAX_PATTERN {
        return None;
    }
    let hir = regex_syntax::parse(pattern).ok()?;
    let mut builder = RegexBuilder::new(pattern);
    let regex = builder.size_limit(MAX_COMPILED).build().ok()?;
    // Optional repetitions increase until the text is long enough.
    let tries = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256]
        .into_iter()
        .chain([least as u32]);
    for more in tries {
        let mut text = String::new();
        write(&hir, more, &mut text)?;
        let length = text.chars().count();
        if (least..=most).contains(&length) && regex.is_match(&text) {
            return Some(text);
        }
        // An unanchored expression matches within a longer text.
        if length < least {
            text.extend(std::iter::repeat_n('a', least - length));
            if regex.is_match(&text) {
                return Some(text);
            }
        }
    }
    None
}

/// Appends a match of an expression, with `more` repetitions than the minimum; `None` if the text becomes too long.
fn write(hir: &Hir, more: u32, out: &mut String) -> Option<()> {
    if out.len() > MAX_TEXT {
        return None;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => out.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => out.push(one_of(class)?),
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX);
            for _ in 0..repetition.min.saturating_add(more).min(most) {
                write(&repetition.sub, more, out)?;
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, more, out)?,
        HirKind::Concat(parts) => {
            for part in parts {
                write(part, more, out)?;
            }
        }
        HirKind::Alternation(choices) => write(choices.first()?, more, out)?,
    }
    Some(())
}

/// A character of a class: a letter or a digit if possible.
fn one_of(class: &Class) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class
            .iter()
            .map(|range| (range.start(), range.end()))
            .collect(),
        Class::Bytes(class) => class
            .iter()
            .map(|range| (char::from(range.start()), char::from(range.end())))
            .collect(),
    };
    let holds = |c: &char| ranges.iter().any(|(from, to)| (*from..=*to).contains(c));
    let usual = ('a'..='z')
        .chain('A'..='Z')
        .chain('0'..='9')
        .chain('!'..='~')
        .find(holds);
    usual.or_else(|| ranges.first().map(|(from, _)| *from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regex::Regex;

    #[test]
    fn texts_match_their_patterns() {
        for (pattern, least, most) in [
            ("^[A-Z]{2}[0-9]{6}$", 0, 64),
            ("^(red|blue)-\\d+$", 9, 20),
            ("\\.pdf$", 0, 64),
            ("^[^aeiou]*$", 5, 5),
            ("[a-f0-9]{4}(:[a-f0-9]{4}){3}", 0, 100),
            ("^\\+?[1-9]\\d{7,14}$", 10, 15),
        ] {
            let text = matching(pattern, least, most).unwrap_or_else(|| panic!("{pattern}"));
            assert!(
                Regex::new(pattern).unwrap().is_match(&text),
                "{pattern}: {text}"
            );
            assert!((least..=most).contains(&text.len()), "{pattern}: {text}");
        }
        assert_eq!(matching("(?=x)y", 0, 9), None);
        assert_eq!(matching("^a{2000}$", 0, 9), None);
    }

    proptest! {
        /// Numbers satisfy all satisfiable limits.
        #[test]
        fn numbers_keep_to_their_limits(low in -500..500_i64, width in 20..300_i64, step in 1..10_i64) {
            let schema = json!({ "minimum": low, "exclusiveMaximum": low + width, "multipleOf": step });
            for made in [integer(&schema), number(&schema)] {
                let made = made.as_f64().unwrap_or(f64::NAN);
                prop_assert!(made >= low as f64 && made < (low + width) as f64, "{}", made);
                prop_assert_eq!(made as i64 % step, 0);
            }
        }
    }
}
