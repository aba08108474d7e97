//! `docs/reference.md`: every key of the hand-written files, from their schemas, with examples. The
//! examples are those of the book and of the bundled files, all of which are read by tests in their present form.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::reference::{OF_STUDIES, OF_WORKLOADS, examples, page, whole, whole_study};

const HEAD: &str = "\
# Every key

<!-- Made from the schemas: don't edit. `UPDATE_SCHEMAS=1` in front of the tests makes it anew. -->

All keys of studies and workloads, with the shortest example that there is of each in this book, or in the files that
come along; the tests read them where they stand. What keys mean together is told in [What a study can ask](studies.md)
and [What a workload can say](workloads.md), and [the checks](checks.md) have limits of their own.
";

/// A schema, and the data derived from it: the kinds of mappings in order of appearance, and by kind and key
/// the shortest example.
struct Found {
    schema: Value,
    kinds: Vec<(String, Map<String, Value>)>,
    examples: BTreeMap<(String, String), String>,
}

impl Found {
    fn of(schema: Value) -> Self {
        let mut found = Self {
            kinds: Vec::new(),
            examples: BTreeMap::new(),
            schema: schema.clone(),
        };
        found.visit("", &schema);
        found
    }

    /// Resolves a reference by its name.
    fn named<'a>(&'a self, node: &'a Value) -> (Option<&'a str>, &'a Value) {
        let name = node["$ref"].as_str().and_then(|to| to.rsplit('/').next());
        match name {
            Some(name) => (Some(name), &self.schema["$defs"][name]),
            None => (None, node),
        }
    }

    /// The schemas that a value may have by this one.
    fn choices(node: &Value) -> impl Iterator<Item = &Value> {
        let some = ["anyOf", "oneOf", "allOf"].into_iter();
        some.filter_map(|of| node[of].as_array()).flatten()
    }

    /// Collects all mappings below, each once, by the name of their kind or the path of keys.
    fn visit(&mut self, path: &str, node: &Value) {
        let (name, at) = self.named(node);
        let (name, at) = (name.unwrap_or(path).to_owned(), at.clone());
        if self.kinds.iter().any(|(kind, _)| *kind == name) {
            return;
        }
        if let Some(Value::Object(keys)) = at.get("properties") {
            self.kinds.push((name.clone(), keys.clone()));
            for (key, of) in keys {
                self.visit(&format!("{name}.{key}"), of);
            }
        }
        for choice in Self::choices(&at) {
            self.visit(&name, choice);
        }
        for inner in ["items", "additionalProperties"] {
            if at[inner].is_object() {
                self.visit(&format!("{name}."), &at[inner]);
            }
        }
    }

    /// Collects the examples of a file.
    fn learn(&mut self, path: &str, node: &Value, value: &Value) {
        let (name, at) = self.named(node);
        let (name, at) = (name.unwrap_or(path).to_owned(), at.clone());
        match value {
            Value::Object(entries) => {
                for (key, of) in at["properties"].as_object().into_iter().flatten() {
                    let Some(given) = entries.get(key) else {
                        continue;
                    };
                    let example = format!("{key}: {}", flow(given));
                    let shortest = self.examples.entry((name.clone(), key.clone()));
                    let shortest = shortest.or_insert_with(|| example.clone());
                    if example.chars().count() < shortest.chars().count() {
                        *shortest = example;
                    }
                    self.learn(&format!("{name}.{key}"), of, given);
                }
                if at["additionalProperties"].is_object() {
                    for given in entries.values() {
                        self.learn(&format!("{name}."), &at["additionalProperties"], given);
                    }
                }
            }
            Value::Array(items) => {
                for given in items {
                    self.learn(&format!("{name}."), &at["items"], given);
                }
            }
            _ => {}
        }
        for choice in Self::choices(&at) {
            let (_, meant) = self.named(choice);
            if fits(meant, value) {
                self.learn(&name, choice, value);
            }
        }
    }

    /// The documented kinds, without limits of checks, which have a page of their own. Kinds used by others come first.
    fn told_of(&self) -> Vec<&(String, Map<String, Value>)> {
        let kinds = self.kinds.iter();
        let mut kinds: Vec<_> = kinds
            .filter(|(kind, _)| !kind.contains(".checks"))
            .collect();
        kinds.sort_by_key(|(kind, _)| match kind.as_str() {
            "" => 0,
            "RequestFile" => 1,
            _ => 2,
        });
        kinds
    }

    /// The shortest example of a key with this description, preferably of this kind.
    fn example(&self, kind: &str, key: &str, says: &str) -> Option<&String> {
        let own = self.examples.get(&(kind.to_owned(), key.to_owned()));
        let mut others = self.kinds.iter().filter_map(|(other, keys)| {
            keys.get(key).filter(|of| self.says(of) == says)?;
            self.examples.get(&(other.clone(), key.to_owned()))
        });
        own.or_else(|| others.next())
    }

    /// The page's part on these files, and the keys without an example. A key with the same description in another
    /// place is documented once.
    fn told(&self, out: &mut String) -> Vec<String> {
        let mut missing = Vec::new();
        let mut before: BTreeMap<(&str, String), String> = BTreeMap::new();
        for (kind, keys) in self.told_of() {
            let title = title(kind);
            let head = "| key | what it says | example |\n| --- | --- | --- |";
            let _ = writeln!(out, "\n### {title}\n\n{head}");
            let mut as_of: BTreeMap<&String, Vec<&str>> = BTreeMap::new();
            let mut new = Vec::new();
            for (key, of) in keys {
                let says = self.says(of);
                if let Some(other) = before.get(&(key.as_str(), says.clone())) {
                    as_of.entry(other).or_default().push(key);
                    continue;
                }
                let example = self.example(kind, key, &says).map(|text| in_code(text));
                if example.is_none() || says.is_empty() {
                    missing.push(format!("{title}: {key}"));
                }
                let cell = says.replace('\n', " ").replace('|', "\\|");
                let _ = writeln!(
                    out,
                    "| `{key}` | {cell} | {} |",
                    example.unwrap_or_default()
                );
                new.push((key.as_str(), says));
            }
            for (other, keys) in as_of {
                let keys = keys.join("`, `");
                let _ = writeln!(out, "\nAs of “{other}”: `{keys}`.");
            }
            before.extend(new.into_iter().map(|told| (told, title.clone())));
        }
        missing
    }

    fn says(&self, node: &Value) -> String {
        let of = |node: &Value| node["description"].as_str().map(str::to_owned);
        let own = of(node).or_else(|| of(self.named(node).1));
        own.or_else(|| Self::choices(node).find_map(|choice| of(self.named(choice).1)))
            .unwrap_or_default()
    }
}

/// Returns true if a value may match this schema, as far as mappings and lists show.
fn fits(node: &Value, value: &Value) -> bool {
    let keys = node["properties"].as_object();
    match value {
        Value::Object(entries) => {
            let known = |key: &String| keys.is_some_and(|keys| keys.contains_key(key));
            node["additionalProperties"].is_object()
                || entries.keys().all(known)
                || Found::choices(node).next().is_some()
        }
        Value::Array(_) => !node["items"].is_null() || Found::choices(node).next().is_some(),
        _ => false,
    }
}

/// A kind's name as a person reads it.
fn title(kind: &str) -> String {
    let kind = kind.strip_suffix("File").unwrap_or(kind);
    let kind = kind.trim_matches('.').replace("..", ".");
    let mut words = String::new();
    for c in kind.chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    match words.as_str() {
        "" => "the file".to_owned(),
        words => words.to_owned(),
    }
}

/// A value in one line of YAML.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let plain = |c: char| c.is_alphanumeric() || "_-./%".contains(c);
            let is_word = text.chars().all(plain) && text.starts_with(char::is_alphanumeric);
            let is_word = is_word && text.parse::<f64>().is_err();
            let is_switch = ["true", "false", "null", "yes", "no", "on", "off"].contains(&&**text);
            match is_word && !is_switch {
                true => text.clone(),
                false => value.to_string(),
            }
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(entries) if entries.is_empty() => "{}".to_owned(),
        Value::Object(entries) => {
            let key = |key: &str| flow(&Value::String(key.to_owned()));
            let entries = entries
                .iter()
                .map(|(name, value)| format!("{}: {}", key(name), flow(value)));
            let entries: Vec<String> = entries.collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

/// Returns an example for a cell of a table, truncated if it is long.
fn in_code(text: &str) -> String {
    const LONGEST: usize = 120;
    let cut: String = text.chars().take(LONGEST).collect();
    let more = if cut.len() < text.len() { " …" } else { "" };
    let ticks = if cut.contains('`') { "``" } else { "`" };
    format!("{ticks}{}{ticks}{more}", cut.replace('|', "\\|"))
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The texts of all files of a folder that end so.
fn shipped(folder: &str, ending: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).expect(folder);
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    paths.sort();
    let text = |path: &PathBuf| fs::read_to_string(path).expect("readable");
    paths.iter().map(text).collect()
}

fn parsed(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}:\n{text}"))
}

/// Studies and workloads that the tests read elsewhere.
fn all_examples() -> (Vec<Value>, Vec<Value>) {
    let mut studies = shipped("studies", ".study.yaml");
    let mut workloads = shipped("workloads", ".workload.yaml");
    for page in OF_STUDIES.map(page) {
        let blocks = examples(&page).into_iter();
        studies.extend(
            blocks
                .filter(|(kind, _)| *kind == "study")
                .map(|(_, text)| whole_study(text)),
        );
    }
    for page in OF_WORKLOADS.map(page) {
        let blocks = examples(&page).into_iter();
        let blocks = blocks.filter(|(kind, _)| *kind != "study");
        workloads.extend(blocks.map(|(kind, text)| whole(kind, text)));
    }
    let parsed = |texts: Vec<String>| texts.iter().map(|text| parsed(text)).collect();
    (parsed(studies), parsed(workloads))
}

#[test]
fn the_reference_is_current() {
    let (studies, workloads) = all_examples();
    let (mut page, mut missing) = (HEAD.to_owned(), Vec::new());
    let files = [
        ("Studies", lab_study::schema_study(), studies),
        ("Workloads", lab_study::schema_workload(), workloads),
    ];
    for (name, schema, examples) in files {
        let mut found = Found::of(schema.clone());
        for example in &examples {
            found.learn("", &schema, example);
        }
        let _ = write!(page, "\n## {name}\n");
        missing.extend(found.told(&mut page));
    }
    let path = root().join("docs/reference.md");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        fs::write(&path, &page).expect("written");
    }
    let on_disk = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        on_disk == page,
        "docs/reference.md is out of date: run the tests with UPDATE_SCHEMAS=1"
    );
    assert!(
        missing.is_empty(),
        "each key is described in its schema, and is in an example of a page under docs/: {missing:?}"
    );
}
