//! Queries, and whether a registration matches one.

use memchr::memmem;

use crate::limits::{COMPARED_BYTES, CONDITIONS, RESULTS, VISITS};
use crate::registration::Registration;
use crate::{Id, LookupError};

/// The longest value of a condition.
const PATTERN_BYTES: usize = 512;
/// The maximum number of `*` in one value.
const STARS: usize = 8;
/// The suffix of a parameter that sets how the values of its key are combined.
const OPERATOR: &str = "-operator";

/// A query: conditions on keys, and the range of results.
///
/// A condition matches if a value of the record equals one of its own, where `*` stands for any
/// text and ASCII letters are compared case-insensitively.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupQuery {
    any: bool,
    conditions: Vec<Condition>,
    /// The number of results to skip.
    pub skip: usize,
    /// The maximum number of results.
    pub max_results: usize,
    pub(crate) visits: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    key: String,
    any: bool,
    patterns: Vec<Pattern>,
}

/// A text in which each `*` stands for any text: the parts between the stars, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern(Vec<String>);

/// The remaining budget of comparisons to match a query: few records can have many values, and one
/// query many patterns for them.
#[derive(Debug)]
pub(crate) struct Effort {
    left: usize,
}

impl Effort {
    /// Returns the budget that corresponds to the query's limit of visits.
    pub(crate) fn of(query: &LookupQuery) -> Self {
        Self {
            left: query.visits.saturating_mul(COMPARED_BYTES / VISITS),
        }
    }

    /// Returns true if the budget is exhausted: the last comparison is then invalid.
    pub(crate) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Spends bytes; returns true if some are left.
    fn spend(&mut self, bytes: usize) -> bool {
        self.left = self.left.saturating_sub(bytes);
        !self.is_spent()
    }
}

/// The place in an index that a query needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path<'a> {
    /// Registrations in which a key has this value, in lower case.
    Value { key: &'a str, value: &'a str },
    /// Registrations in which a key has a value with this prefix.
    Prefix { key: &'a str, prefix: &'a str },
    /// The registration with this id.
    Name(Id),
}

impl LookupQuery {
    /// The same query with a limit of visits, which fails as too wide if it needs more.
    #[must_use]
    pub fn looking_at(self, visits: usize) -> Self {
        Self { visits, ..self }
    }

    /// Parses the decoded parameters of a query, in order.
    ///
    /// # Errors
    /// For an invalid operator or number, and for too many conditions.
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

    /// Returns true if the registration matches, whatever its lease; false once the budget is exhausted.
    pub(crate) fn matches(&self, found: &Registration, effort: &mut Effort) -> bool {
        let met = |condition: &Condition| condition.is_met(found, effort);
        match self.any {
            true => self.conditions.is_empty() || self.conditions.iter().any(met),
            false => self.conditions.iter().all(met),
        }
    }

    /// Returns the index places of everything that the query can match, by the indexed keys; `None`
    /// if it needs a full scan.
    pub(crate) fn paths(&self, is_indexed: impl Fn(&str) -> bool) -> Option<Vec<Path<'_>>> {
        let of = |condition| paths_of(condition, &is_indexed);
        if self.any && !self.conditions.is_empty() {
            let all: Option<Vec<_>> = self.conditions.iter().map(of).collect();
            return Some(all?.into_iter().flatten().collect());
        }
        // Any one condition is enough: the one with the fewest lookups, exact ones first.
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
    fn is_met(&self, found: &Registration, effort: &mut Effort) -> bool {
        let values = |pattern: &Pattern| match self.key.as_str() {
            "uri" => pattern.matches(&found.uri(), effort),
            "state" => pattern.matches(found.head.state.text(), effort),
            key => {
                let values = found.content.record.values(key);
                values.iter().any(|value| pattern.matches(value, effort))
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

    fn matches(&self, value: &str, effort: &mut Effort) -> bool {
        let value = value.as_bytes();
        let (first, last) = match self.0.as_slice() {
            [] => return false,
            // Others differ in length.
            [only] => {
                return value.len() == only.len()
                    && effort.spend(value.len() + 1)
                    && value.eq_ignore_ascii_case(only.as_bytes());
            }
            [first, .., last] => (first.as_bytes(), last.as_bytes()),
        };
        let inner = &self.0[1..self.0.len() - 1];
        let least = self.0.iter().map(String::len).sum::<usize>();
        if value.len() < least {
            return false;
        }
        let compared = match inner.is_empty() {
            true => least,
            false => value.len(),
        };
        if !effort.spend(compared + 1) {
            return false;
        }
        let (head, rest) = value.split_at(first.len());
        let (rest, tail) = rest.split_at(rest.len() - last.len());
        if !head.eq_ignore_ascii_case(first) || !tail.eq_ignore_ascii_case(last) {
            return false;
        }
        inner.is_empty() || are_in(inner, &rest.to_ascii_lowercase())
    }
}

/// Returns true if a lower-case text contains all these parts in order. Takes linear time, whatever
/// repeats in it.
fn are_in(parts: &[String], text: &[u8]) -> bool {
    let mut rest = text;
    for part in parts {
        match memmem::find(rest, part.as_bytes()) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// Case-insensitive: perfSONAR's client validates its input, and sends it unchanged.
fn is_any(operator: &str) -> Result<bool, LookupError> {
    match operator {
        any if any.eq_ignore_ascii_case("any") => Ok(true),
        all if all.eq_ignore_ascii_case("all") => Ok(false),
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

    fn query(pairs: &[(&str, &str)]) -> Result<LookupQuery, LookupError> {
        LookupQuery::parse(pairs.iter().copied())
    }

    #[test]
    fn stars_stand_for_any_text() {
        let check = |pattern: &str, value: &str, expected| {
            let pattern = Pattern::parse(pattern).unwrap();
            let found = pattern.matches(value, &mut Effort { left: 1000 });
            assert_eq!(found, expected, "{pattern:?} {value}");
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
        check("*BC*d*", "abcXD", true);
        check("*b*b", "ab", false);
    }

    #[test]
    fn what_is_alike_takes_no_longer() {
        let value = "a".repeat(4000);
        let pattern = Pattern::parse(&format!("*{}b*", "a".repeat(500))).unwrap();
        let mut effort = Effort { left: 100_000 };
        for left in (1..=24).map(|number| 100_000 - number * 4001) {
            assert!(!pattern.matches(&value, &mut effort));
            assert_eq!(effort.left, left);
        }
        let value = value + &"a".repeat(500) + "b";
        assert!(!pattern.matches(&value, &mut effort) && effort.is_spent());
        assert!(pattern.matches(&value, &mut Effort { left: 4503 }));
    }

    #[test]
    fn operators_and_numbers_are_checked() {
        assert!(query(&[("operator", "some")]).is_err());
        assert!(query(&[("a", "b"), ("a-operator", "")]).is_err());
        let any = |name| query(&[("operator", name)]).map(|query| query.any).ok();
        assert_eq!(
            ["any", "ANY", "All", "anyone"].map(any),
            [Some(true), Some(true), Some(false), None]
        );
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
