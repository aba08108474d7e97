//! What a query asks for, and whether a registration is that.

use crate::limits::{CONDITIONS, RESULTS, VISITS};
use crate::registration::Registration;
use crate::{Id, LookupError};

/// Longest value of a condition.
const PATTERN_BYTES: usize = 512;
/// Most `*` in one value.
const STARS: usize = 8;
/// A parameter with this ending says how the values of its key are taken.
const OPERATOR: &str = "-operator";

/// A query: conditions on keys, and which of the results are wanted.
///
/// A condition is met by a value of the record that equals one of its own, where `*` stands for any
/// text and letters of ASCII are alike in both cases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    any: bool,
    conditions: Vec<Condition>,
    /// Results that are left out at the beginning.
    pub skip: usize,
    /// Most results.
    pub max_results: usize,
    pub(crate) visits: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    key: String,
    any: bool,
    patterns: Vec<Pattern>,
}

/// A text in which each `*` stands for any text: what lies between the stars, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern(Vec<String>);

/// Where an index may find what a query asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path<'a> {
    /// Registrations in which a key has this value, in lower case.
    Value { key: &'a str, value: &'a str },
    /// Registrations in which a key has a value that begins so.
    Prefix { key: &'a str, prefix: &'a str },
    /// The registration of this name.
    Name(Id),
}

impl Query {
    /// The same, which looks at this many records at most, and is too wide where that isn't enough.
    #[must_use]
    pub fn looking_at(self, visits: usize) -> Self {
        Self { visits, ..self }
    }

    /// Reads the parameters of a query, decoded, in their order.
    ///
    /// # Errors
    /// For an operator or a number that isn't one, and for too many conditions.
    pub fn parse<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Self, LookupError> {
        let mut query = Self {
            any: false,
            conditions: Vec::new(),
            skip: 0,
            max_results: RESULTS,
            visits: VISITS,
        };
        let mut operators = Vec::new();
        for (key, value) in pairs {
            match key {
                "operator" => query.any = is_any(value)?,
                "skip" => query.skip = number(key, value)?,
                "maxresults" => query.max_results = number(key, value)?.min(RESULTS),
                _ => match key.strip_suffix(OPERATOR) {
                    Some(key) if operators.len() < CONDITIONS => {
                        operators.push((key, is_any(value)?));
                    }
                    Some(_) => return Err(too_many()),
                    None => query.add(key, value)?,
                },
            }
        }
        for (key, any) in operators {
            if let Some(condition) = query.conditions.iter_mut().find(|known| known.key == key) {
                condition.any = any;
            }
        }
        Ok(query)
    }

    fn add(&mut self, key: &str, values: &str) -> Result<(), LookupError> {
        let so_far: usize = self
            .conditions
            .iter()
            .map(|known| known.patterns.len())
            .sum();
        let patterns: Vec<Pattern> = values
            .split(',')
            .take(CONDITIONS + 1)
            .map(Pattern::parse)
            .collect::<Result<_, _>>()?;
        if so_far + patterns.len() > CONDITIONS {
            return Err(too_many());
        }
        match self.conditions.iter_mut().find(|known| known.key == key) {
            Some(condition) => condition.patterns.extend(patterns),
            None => self.conditions.push(Condition {
                key: key.to_owned(),
                any: false,
                patterns,
            }),
        }
        Ok(())
    }

    /// Whether the registration is asked for, whatever its lease.
    pub(crate) fn matches(&self, found: &Registration) -> bool {
        let met = |condition: &Condition| condition.is_met(found);
        match self.any {
            true => self.conditions.is_empty() || self.conditions.iter().any(met),
            false => self.conditions.iter().all(met),
        }
    }

    /// Where to look for everything that the query can match, by the keys that are indexed;
    /// `None` if that may be anywhere.
    pub(crate) fn paths(&self, is_indexed: impl Fn(&str) -> bool) -> Option<Vec<Path<'_>>> {
        let of = |condition| paths_of(condition, &is_indexed);
        if self.any && !self.conditions.is_empty() {
            let all: Option<Vec<_>> = self.conditions.iter().map(of).collect();
            return Some(all?.into_iter().flatten().collect());
        }
        // Any one condition will do: the one that needs the fewest looks, exact ones first.
        let width = |paths: &Vec<Path<'_>>| {
            let wide = |path: &&Path<'_>| matches!(path, Path::Prefix { .. });
            (paths.iter().filter(wide).count(), paths.len())
        };
        self.conditions.iter().filter_map(of).min_by_key(width)
    }
}

fn paths_of<'a>(
    condition: &'a Condition,
    is_indexed: &impl Fn(&str) -> bool,
) -> Option<Vec<Path<'a>>> {
    let path = |pattern: &'a Pattern| pattern.path(&condition.key, is_indexed);
    match condition.any {
        true => condition.patterns.iter().map(path).collect(),
        false => {
            let all = || condition.patterns.iter().filter_map(path);
            let exact = all().find(|path| !matches!(path, Path::Prefix { .. }));
            exact.or_else(|| all().next()).map(|path| vec![path])
        }
    }
}

impl Condition {
    fn is_met(&self, found: &Registration) -> bool {
        let values = |pattern: &Pattern| match self.key.as_str() {
            "uri" => pattern.matches(&found.uri()),
            "state" => pattern.matches(found.head.state.text()),
            key => {
                let values = found.content.record.values(key);
                values.iter().any(|value| pattern.matches(value))
            }
        };
        match self.any {
            true => self.patterns.iter().any(values),
            false => self.patterns.iter().all(values),
        }
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, LookupError> {
        let text = text.trim();
        if text.len() > PATTERN_BYTES {
            return Err(LookupError::bad(format!(
                "A value of a query has at most {PATTERN_BYTES} bytes."
            )));
        }
        let parts: Vec<String> = text
            .to_ascii_lowercase()
            .split('*')
            .map(str::to_owned)
            .collect();
        if parts.len() > STARS + 1 {
            return Err(LookupError::bad(format!(
                "A value of a query has at most {STARS} wildcards."
            )));
        }
        Ok(Self(parts))
    }

    fn path<'a>(&'a self, key: &'a str, is_indexed: &impl Fn(&str) -> bool) -> Option<Path<'a>> {
        match self.0.as_slice() {
            [value] if key == "uri" => {
                let id = value.rsplit('/').next().and_then(Id::parse);
                id.map(Path::Name)
            }
            [value] if is_indexed(key) => Some(Path::Value { key, value }),
            [prefix, _, ..] if is_indexed(key) && !prefix.is_empty() => {
                Some(Path::Prefix { key, prefix })
            }
            _ => None,
        }
    }

    fn matches(&self, value: &str) -> bool {
        let value = value.as_bytes();
        let (first, last) = match self.0.as_slice() {
            [] => return false,
            [only] => return value.eq_ignore_ascii_case(only.as_bytes()),
            [first, .., last] => (first.as_bytes(), last.as_bytes()),
        };
        if value.len() < first.len() + last.len() {
            return false;
        }
        let (head, rest) = value.split_at(first.len());
        let (mut rest, tail) = rest.split_at(rest.len() - last.len());
        if !head.eq_ignore_ascii_case(first) || !tail.eq_ignore_ascii_case(last) {
            return false;
        }
        for part in &self.0[1..self.0.len() - 1] {
            match find(rest, part.as_bytes()) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        true
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() {
        return Some(0);
    }
    text.windows(part.len())
        .position(|window| window.eq_ignore_ascii_case(part))
}

fn is_any(operator: &str) -> Result<bool, LookupError> {
    match operator {
        "any" => Ok(true),
        "all" => Ok(false),
        _ => Err(LookupError::bad("An operator is any or all.")),
    }
}

fn number(key: &str, value: &str) -> Result<usize, LookupError> {
    let number: Result<u32, _> = value.parse();
    number
        .map(|number| number as usize)
        .map_err(|_| LookupError::bad(format!("The parameter {key} is a whole number.")))
}

fn too_many() -> LookupError {
    LookupError::bad(format!("A query has at most {CONDITIONS} conditions."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(pairs: &[(&str, &str)]) -> Result<Query, LookupError> {
        Query::parse(pairs.iter().copied())
    }

    #[test]
    fn stars_stand_for_any_text() {
        let check = |pattern: &str, value: &str, expected| {
            let pattern = Pattern::parse(pattern).unwrap();
            assert_eq!(pattern.matches(value), expected, "{pattern:?} {value}");
        };
        check("", "", true);
        check("abc", "ABC", true);
        check("abc", "abcd", false);
        check("*", "", true);
        check("a*", "abc", true);
        check("*c", "abc", true);
        check("a*a", "a", false);
        check("a*b*c", "aXbXc", true);
        check("a*b*c", "acb", false);
        check("*b*b*", "abba", true);
        check("*b*b*b*", "abba", false);
        check("**", "x", true);
    }

    #[test]
    fn operators_and_numbers_are_checked() {
        assert!(query(&[("operator", "some")]).is_err());
        assert!(query(&[("a", "b"), ("a-operator", "")]).is_err());
        for wrong in ["-1", "x", "99999999999999", ""] {
            assert!(query(&[("skip", wrong)]).is_err(), "{wrong}");
            assert!(query(&[("maxresults", wrong)]).is_err(), "{wrong}");
        }
        let many = "a,".repeat(CONDITIONS);
        assert!(query(&[("key", &many)]).is_err());
        assert!(query(&[("key", &"*".repeat(100))]).is_err());
        assert!(query(&[("key", &"x".repeat(1000))]).is_err());
        let most = query(&[("maxresults", "1000000")]).unwrap();
        assert_eq!(most.max_results, RESULTS);
    }

    #[test]
    fn the_narrowest_way_is_taken() {
        let paths = |pairs: &[(&str, &str)]| {
            let query = query(pairs).unwrap();
            let paths = query.paths(|key| key.starts_with('i'));
            paths.map(|paths| format!("{paths:?}"))
        };
        let check = |pairs: &[(&str, &str)], expected: &str| {
            let found = paths(pairs).unwrap();
            assert_eq!(found, expected);
        };
        assert_eq!(paths(&[]), None);
        assert_eq!(paths(&[("a", "b")]), None);
        assert_eq!(paths(&[("i", "*b")]), None);
        let exact = r#"[Value { key: "i", value: "b" }]"#;
        check(&[("a", "b"), ("i", "B")], exact);
        check(&[("i2", "x*"), ("i", "b")], exact);
        check(&[("i", "x*,b")], exact);
        check(&[("i", "x*y")], r#"[Prefix { key: "i", prefix: "x" }]"#);
        let both = r#"[Value { key: "i", value: "a" }, Value { key: "i", value: "b" }]"#;
        check(&[("i", "a,b"), ("i-operator", "any")], both);
        assert_eq!(paths(&[("operator", "any"), ("i", "b"), ("a", "c")]), None);
        check(&[("operator", "any"), ("i", "b")], exact);
    }
}
