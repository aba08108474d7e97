//! Finds the values at JSON paths in one pass over a body, without a tree of unused parts. Paths with filters or
//! indexes from the end need a tree. Either way, whether a body is valid JSON does not depend on the paths.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use crate::json_path::{JsonPath, JsonStep};
use crate::json_text;
use crate::number::is_same_number;
use crate::text_list::JsonValue;
use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Maximum paths that are followed at once; more need a tree.
const MOST: usize = 16;

/// Bit set of the paths that are followed at once.
type Paths = u16;

/// A JSON body, parsed when its first value is requested.
pub struct Json<'a> {
    body: &'a [u8],
    /// Paths to find in one pass; empty if a tree is needed.
    paths: Vec<&'a [JsonStep]>,
    found: Option<Found>,
    tree: Option<Value>,
}

/// Returns all values at each path, in the order of the body, as texts: a text itself, any other value as JSON with its
/// number's digits.
///
/// # Errors
/// Describes invalid JSON.
pub fn values(body: &[u8], paths: &[JsonPath]) -> Result<Vec<Vec<String>>, String> {
    let mut json = Json::new(body, paths.iter().map(Some));
    let all = |path| {
        let values = json.values(path)?;
        Ok(values.into_iter().map(Cow::into_owned).collect())
    };
    paths.iter().map(all).collect()
}

impl<'a> Json<'a> {
    /// Creates a body for these paths; `None` stands for a use that needs a tree.
    pub fn new(body: &'a [u8], asked: impl Iterator<Item = Option<&'a JsonPath>>) -> Self {
        let mut json = Self {
            // As "UTF-8 decode" of the WHATWG's Encoding Standard, by which browsers read JSON.
            body: body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body),
            paths: Vec::new(),
            found: None,
            tree: None,
        };
        for path in asked {
            match path.and_then(JsonPath::plain) {
                Some(steps) if json.paths.contains(&steps) => {}
                Some(steps) if json.paths.len() < MOST => json.paths.push(steps),
                _ => {
                    json.paths.clear();
                    break;
                }
            }
        }
        json
    }

    /// Returns all values at a path, including null.
    pub fn values(&mut self, path: &JsonPath) -> Result<Vec<Cow<'_, str>>, String> {
        let leaves = self.leaves(path)?.into_iter();
        Ok(leaves.map(|leaf| leaf.text).collect())
    }

    /// Returns all values except null: a response with `"next": null` has no next page.
    pub fn present(&mut self, path: &JsonPath) -> Result<Vec<JsonValue<'_>>, String> {
        let leaves = self.leaves(path)?.into_iter();
        let present = leaves.filter(|leaf| leaf.kind != Kind::Null);
        Ok(present.map(JsonValue::from).collect())
    }

    /// Returns all values at a path, each with its kind.
    pub fn leaves(&mut self, path: &JsonPath) -> Result<Vec<Leaf<'_>>, String> {
        let steps = path.plain();
        let number = steps.and_then(|steps| self.paths.iter().position(|one| *one == steps));
        if number.is_some() && self.found.is_none() && self.tree.is_none() {
            self.found = scan(self.body, &self.paths);
        }
        match (number, self.found.is_some()) {
            (Some(number), true) => {
                let found = self.found.iter().flat_map(|found| found.at(number));
                Ok(found.collect())
            }
            _ => self.of_tree(path),
        }
    }

    /// Returns a path's values from the tree, with the body's text.
    fn of_tree(&mut self, path: &JsonPath) -> Result<Vec<Leaf<'static>>, String> {
        let body = self.body;
        let tree = self.tree()?;
        let nodes = path.query(tree).all();
        // A body with a tree is valid text; an empty one has no values.
        let text = std::str::from_utf8(body).unwrap_or_default();
        let leaf = |raw: &str| {
            let mut text = String::new();
            json_text::push(raw, 0, &mut text)?;
            Ok(Leaf {
                kind: Kind::of(raw),
                text: Cow::Owned(text),
            })
        };
        let raws = json_text::raws(text, tree, &nodes).into_iter();
        let leaves: Result<Vec<_>, serde_json::Error> =
            raws.filter(|raw| !raw.is_empty()).map(leaf).collect();
        leaves.map_err(|error| format!("not JSON: {error}"))
    }

    /// Returns the whole tree; an empty body is null.
    pub fn tree(&mut self) -> Result<&Value, String> {
        let tree = match self.tree.take() {
            Some(tree) => tree,
            None if self.body.trim_ascii().is_empty() => Value::Null,
            None => {
                serde_json::from_slice(self.body).map_err(|error| format!("not JSON: {error}"))?
            }
        };
        Ok(self.tree.insert(tree))
    }
}

/// A value that a path finds.
pub struct Leaf<'a> {
    /// Its JSON type.
    pub kind: Kind,
    /// A text itself, any other value as JSON.
    pub text: Cow<'a, str>,
}

impl Leaf<'_> {
    /// Returns true if the value is the expected one; numbers are equal if their values are.
    pub fn is(&self, expected: &str) -> bool {
        *self.text == *expected
            || (self.kind == Kind::Number && is_same_number(&self.text, expected))
    }
}

impl<'a> From<Leaf<'a>> for JsonValue<'a> {
    fn from(leaf: Leaf<'a>) -> Self {
        Self {
            is_text: leaf.kind == Kind::Text,
            text: leaf.text,
        }
    }
}

/// The kind of a value, as far as comparisons and captures need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`.
    Null,
    /// A number.
    Number,
    /// A text.
    Text,
    /// A boolean, a list, or an object.
    Other,
}

impl Kind {
    fn of(raw: &str) -> Self {
        match raw.as_bytes().first() {
            Some(b'n') => Self::Null,
            Some(b'-' | b'0'..=b'9') => Self::Number,
            Some(b'"') => Self::Text,
            _ => Self::Other,
        }
    }
}

/// Returns the paths' values; `None` if a tree is needed, also to report invalid JSON.
fn scan(body: &[u8], paths: &[&[JsonStep]]) -> Option<Found> {
    let body = std::str::from_utf8(body).ok()?;
    let mut found = Found::default();
    if body.trim_ascii().is_empty() {
        return Some(found);
    }
    let mut reader = serde_json::Deserializer::from_str(body);
    let place = Cursor {
        paths,
        depth: 0,
        on: paths
            .iter()
            .enumerate()
            .fold(0, |on, (number, _)| on | 1 << number),
    };
    let going = Going {
        place,
        found: &mut found,
    };
    let read = going.deserialize(&mut reader);
    read.and_then(|()| reader.end()).ok()?;
    Some(found)
}

/// Values found, in the order of the body.
#[derive(Default)]
struct Found {
    text: String,
    values: Vec<One>,
}

struct One {
    /// The paths that end at it.
    at: Paths,
    kind: Kind,
    text: Range<usize>,
}

impl Found {
    fn at(&self, number: usize) -> impl Iterator<Item = Leaf<'_>> {
        let wanted = move |one: &&One| one.at & (1 << number) != 0;
        let leaf = |one: &One| Leaf {
            kind: one.kind,
            text: Cow::Borrowed(&self.text[one.text.clone()]),
        };
        self.values.iter().filter(wanted).map(leaf)
    }

    /// Forgets values on these paths when an object repeats a name: the last one counts.
    fn forget(&mut self, from: usize, paths: Paths) {
        for one in &mut self.values[from..] {
            one.at &= !paths;
        }
        // Otherwise a frequent name would rescan all its earlier values each time.
        while self.values.len() > from && self.values.last().is_some_and(|one| one.at == 0) {
            self.values.pop();
        }
    }
}

/// A position in a body.
#[derive(Clone, Copy)]
struct Cursor<'p> {
    paths: &'p [&'p [JsonStep]],
    depth: usize,
    /// The paths that continue through here.
    on: Paths,
}

/// The paths that a member or an element is on.
#[derive(Clone, Copy)]
struct Reached {
    /// Paths that end there.
    ends: Paths,
    /// Paths that continue.
    on: Paths,
}

impl<'p> Cursor<'p> {
    /// Returns the paths whose next step matches.
    fn next(&self, goes: impl Fn(&JsonStep) -> bool) -> Reached {
        let mut reached = Reached { ends: 0, on: 0 };
        let mut left = self.on;
        while left != 0 {
            let number = left.trailing_zeros() as usize;
            left &= left - 1;
            let steps = self.paths[number];
            if goes(&steps[self.depth]) {
                match steps.len() == self.depth + 1 {
                    true => reached.ends |= 1 << number,
                    false => reached.on |= 1 << number,
                }
            }
        }
        reached
    }

    fn within(self, on: Paths) -> Self {
        Self {
            depth: self.depth + 1,
            on,
            ..self
        }
    }
}

/// Any value, scanned for the paths within it.
struct Going<'p, 'f> {
    place: Cursor<'p>,
    found: &'f mut Found,
}

impl Going<'_, '_> {
    /// Returns how to read the next value, given the paths that reach it.
    fn value(&mut self, reached: Reached) -> Part<'_, '_> {
        let Reached { ends, on } = reached;
        match ends {
            0 => Part::Through(Going {
                place: self.place.within(on),
                found: self.found,
            }),
            _ => Part::Whole {
                at: ends,
                through: on != 0,
                depth: self.place.depth + 1,
                found: self.found,
            },
        }
    }
}

impl<'de> DeserializeSeed<'de> for Going<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Going<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        let mut place = 0;
        loop {
            let goes = |step: &JsonStep| match step {
                JsonStep::Each => true,
                JsonStep::Index(index) => *index == place,
                JsonStep::Name(_) => false,
            };
            let reached = self.place.next(goes);
            if elements.next_element_seed(self.value(reached))?.is_none() {
                return Ok(());
            }
            place += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        // Only a tree knows the order, and which member of a repeated name counts.
        let each = self.place.next(|step| *step == JsonStep::Each);
        if each.ends | each.on != 0 {
            return Err(A::Error::custom("a tree is needed"));
        }
        let begun = self.found.values.len();
        let mut met = 0;
        while let Some(reached) = members.next_key_seed(Key(self.place))? {
            let reaches = reached.ends | reached.on;
            if met & reaches != 0 {
                self.found.forget(begun, met & reaches);
            }
            met |= reaches;
            members.next_value_seed(self.value(reached))?;
        }
        Ok(())
    }
}

/// The name of a member.
struct Key<'p>(Cursor<'p>);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Reached;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Reached, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Reached;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E>(self, key: &str) -> Result<Reached, E> {
        let goes = |step: &JsonStep| matches!(step, JsonStep::Name(name) if **name == *key);
        Ok(self.0.next(goes))
    }
}

/// The value of a member or an element.
enum Part<'p, 'f> {
    /// Scanned.
    Through(Going<'p, 'f>),
    /// Kept.
    Whole {
        /// The paths that end at it.
        at: Paths,
        /// Whether other paths continue.
        through: bool,
        /// Number of enclosing lists and objects.
        depth: usize,
        found: &'f mut Found,
    },
}

impl<'de> DeserializeSeed<'de> for Part<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        match self {
            Self::Through(going) => going.deserialize(reader),
            // Paths that end and paths that continue here share a text, which is read once.
            Self::Whole { through: true, .. } => Err(D::Error::custom("a tree is needed")),
            Self::Whole {
                at, depth, found, ..
            } => {
                let raw = <&RawValue>::deserialize(reader)?.get();
                let begun = found.text.len();
                json_text::push(raw, depth, &mut found.text).map_err(D::Error::custom)?;
                found.values.push(One {
                    at,
                    kind: Kind::of(raw),
                    text: begun..found.text.len(),
                });
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn paths(texts: &[&str]) -> Vec<JsonPath> {
        let parse = |text: &&str| JsonPath::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        texts.iter().map(parse).collect()
    }

    /// Returns the values from a tree.
    fn of_tree(body: &[u8], paths: &[JsonPath]) -> Result<Vec<Vec<String>>, String> {
        let mut json = Json::new(body, [None].into_iter());
        let all = |path| {
            let values = json.values(path)?;
            Ok(values.into_iter().map(Cow::into_owned).collect())
        };
        paths.iter().map(all).collect()
    }

    fn check(body: &str, path: &str, expected: &[&str]) {
        let paths = paths(&[path]);
        let steps: Vec<_> = paths.iter().filter_map(JsonPath::plain).collect();
        let found = scan(body.as_bytes(), &steps).expect("no tree is needed");
        assert_eq!(
            found.at(0).map(|leaf| leaf.text).collect::<Vec<_>>(),
            expected,
            "{path}"
        );
        let tree = of_tree(body.as_bytes(), &paths).unwrap();
        assert_eq!(tree, [expected], "{path}");
    }

    const BODY: &str = r#" { "a": {"b": [1, 2.50, "x\"é\n", null, true, {"c": -0, "d": [ ]}]}, "a.b": 1e2,
        "twice": {"in": 1, "out": 2}, "n": [[1,2],[3],4], "twice": {"in": 3}, "größe": "\u00e9" } "#;

    #[test]
    fn values_are_found_while_the_body_goes_by() {
        check(BODY, "$.a.b[0]", &["1"]);
        check(BODY, "$.a.b[1]", &["2.50"]);
        check(BODY, "$.a.b[2]", &["x\"é\n"]);
        check(BODY, "$.a.b[3]", &["null"]);
        check(BODY, "$.a.b[5]", &[r#"{"c":-0,"d":[]}"#]);
        check(BODY, "$.a.b[5].c", &["-0"]);
        check(BODY, "$.a.b[6]", &[]);
        check(BODY, "$['a.b']", &["1e2"]);
        check(BODY, "$.n[*][0]", &["1", "3"]);
        check(BODY, "$.n[*]", &["[1,2]", "[3]", "4"]);
        check(BODY, "$.größe", &["é"]);
        check(BODY, "$.a.b.c", &[]);
        check(BODY, "$.a[0]", &[]);
        check("", "$.a", &[]);
        check("[]", "$[0]", &[]);
        check("7", "$.a", &[]);
    }

    #[test]
    fn numbers_keep_their_digits() {
        const AMOUNTS: &str = r#"{"a": [3.20, 987654321098765432109876543210, 9223372036854775808,
            {"b" : 7.000, "a": "x y"}, 6E2], "a\u00e9": 0.10, "twice": 1.50, "twice": 1.5}"#;
        check(
            AMOUNTS,
            "$.a[*]",
            &[
                "3.20",
                "987654321098765432109876543210",
                "9223372036854775808",
                r#"{"b":7.000,"a":"x y"}"#,
                "6E2",
            ],
        );
        check(AMOUNTS, "$['aé']", &["0.10"]);
        check(AMOUNTS, "$.twice", &["1.5"]);
        // A path that needs a tree.
        let last = of_tree(AMOUNTS.as_bytes(), &paths(&["$.a[-1]", "$..b"])).unwrap();
        assert_eq!(last, [["6E2"], ["7.000"]]);
    }

    #[test]
    fn numbers_are_expected_by_value() {
        let path = JsonPath::parse("$.n").unwrap();
        let is = |body: &str, expected: &str| {
            let mut json = Json::new(body.as_bytes(), [Some(&path)].into_iter());
            json.leaves(&path).unwrap()[0].is(expected)
        };
        assert!(is(r#"{"n": 25e2}"#, "2500") && is(r#"{"n": 2500.0}"#, "2500"));
        assert!(!is(r#"{"n": "25e2"}"#, "2500") && !is(r#"{"n": 2501}"#, "2500"));
        assert!(is(r#"{"n": "x"}"#, "x") && !is(r#"{"n": null}"#, "0"));
    }

    #[test]
    fn of_members_of_one_name_the_last_counts() {
        check(BODY, "$.twice.in", &["3"]);
        check(BODY, "$.twice.out", &[]);
        check(
            r#"[{"a":1,"b":2,"a":3},{"a":4,"a":[]}]"#,
            "$[*].a",
            &["3", "[]"],
        );
        check(
            r#"{"a":[{"b":1},{"b":2}],"a":[{"b":3}]}"#,
            "$.a[*].b",
            &["3"],
        );
    }

    #[test]
    fn what_is_said_again_and_again_is_kept_once() {
        let body = format!("{{{}\"a\":[1,2]}}", "\"a\":[7,8,9],".repeat(1000));
        let paths = paths(&["$.a[*]"]);
        let steps: Vec<_> = paths.iter().filter_map(JsonPath::plain).collect();
        let found = scan(body.as_bytes(), &steps).expect("no tree is needed");
        assert_eq!(
            found.at(0).map(|leaf| leaf.text).collect::<Vec<_>>(),
            ["1", "2"]
        );
        assert_eq!(found.values.len(), 2);
    }

    #[test]
    fn a_tree_is_made_where_the_body_alone_does_not_tell() {
        let of = |body: &str, texts: &[&str]| {
            let paths = paths(texts);
            let steps: Vec<_> = paths.iter().filter_map(JsonPath::plain).collect();
            let scanned = scan(body.as_bytes(), &steps).is_some();
            (scanned, values(body.as_bytes(), &paths))
        };
        let (scanned, found) = of(r#"{"b":1,"a":2}"#, &["$.*"]);
        assert!(!scanned);
        let found = found.unwrap();
        let mut found = found[0].clone();
        found.sort();
        assert_eq!(found, ["1", "2"]);
        let (scanned, found) = of(r#"{"a":{"b":1}}"#, &["$.a", "$.a.b"]);
        assert!(!scanned);
        assert_eq!(found.unwrap(), [[r#"{"b":1}"#], ["1"]]);
        // A repeated path finds its value once.
        let twice = values(b"[1]", &paths(&["$[0]", "$[0]"]));
        assert_eq!(twice.unwrap(), [["1"], ["1"]]);
        let many: Vec<String> = (0..40).map(|place| format!("$[{place}]")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let found = values(b"[1, 2]", &paths(&many)).unwrap();
        assert_eq!((&found[1], &found[2]), (&vec!["2".to_owned()], &Vec::new()));
    }

    #[test]
    fn what_is_no_json_is_told_whatever_is_asked_of_it() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for body in [
            "{\"a\":1",
            "{\"a\":1} x",
            "{\"a\":1,}",
            "{\"a\":1,\"b\":1e999}",
            "{\"a\":1,\"b\":\"\\ud800\"}",
            "{\"a\":1,\"b\\ud800\":1}",
            "{\"a\":1,\"b\":01}",
            &format!("{{\"a\":1,\"b\":{deep}}}"),
        ] {
            let told = values(body.as_bytes(), &paths(&["$.a"])).unwrap_err();
            assert!(told.starts_with("not JSON: "), "{told}");
            assert_eq!(
                of_tree(body.as_bytes(), &paths(&["$.a"])),
                Err(told),
                "{body}"
            );
        }
        let told = values(b"{\"a\":1,\"b\":\"\xff\"}", &paths(&["$.a"])).unwrap_err();
        assert!(told.starts_with("not JSON: "), "{told}");
    }

    /// JSON text with repeated names.
    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            any::<i64>().prop_map(|number| number.to_string()),
            any::<u64>().prop_map(|number| number.to_string()),
            any::<f64>()
                .prop_filter_map("a number", |number| { serde_json::to_string(&number).ok() }),
            "-?[0-9]{1,3}(\\.[0-9]{1,2})?([eE][+-]?[0-9]{1,3})?",
            any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap_or_default()),
            r#""(\\u[0-9a-f]{4}|\\n|é|a){0,3}""#,
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5)
                    .prop_map(|all| format!("[{}]", all.join(" ,"))),
                prop::collection::vec(("[a-c]", inner), 0..5).prop_map(|all| {
                    let member = |(name, value): &(String, String)| format!("\"{name}\" : {value}");
                    format!(
                        "{{{}}}",
                        all.iter().map(member).collect::<Vec<_>>().join(", ")
                    )
                }),
            ]
        })
    }

    fn path() -> impl Strategy<Value = String> {
        let step = prop_oneof![
            4 => "\\.[a-c]",
            1 => "\\['[a-c]'\\]",
            2 => "\\[[0-2]\\]",
            2 => Just("[*]".to_owned()),
            1 => Just(".*".to_owned()),
            1 => Just("[-1]".to_owned()),
            1 => Just("..a".to_owned()),
            1 => Just("[?@.a]".to_owned()),
        ];
        prop::collection::vec(step, 0..4).prop_map(|steps| format!("${}", steps.concat()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// For any paths and any body, whole or torn, a tree gives the same values or the same error.
        #[test]
        fn a_tree_has_the_same(
            body in json(),
            texts in prop::collection::vec(path(), 1..4),
            tear in prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let mut body = body.into_bytes();
            if let Some((place, byte)) = tear {
                let place = place.index(body.len());
                body[place] = byte;
            }
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let paths = paths(&texts);
            prop_assert_eq!(values(&body, &paths), of_tree(&body, &paths));
            // One by one, so that paths that need a tree don't affect the others.
            for path in &paths {
                let path = std::slice::from_ref(path);
                prop_assert_eq!(values(&body, path), of_tree(&body, path));
            }
        }
    }
}
