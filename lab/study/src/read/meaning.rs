//! A hash of the values in a file, independent of its comments, its quotes, and the order of its keys,
//! so that another version of this program computes the same hash.

use std::collections::BTreeMap;

use lab_language::node::{Node, Value};
use serde::Serialize;

/// A value without its place; keys by name.
#[derive(Serialize)]
#[serde(untagged)]
enum Plain<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
    List(Vec<Plain<'a>>),
    Map(BTreeMap<&'a str, Plain<'a>>),
}

/// SHA-256, in hex, of the values as JSON, without these keys of the file itself.
pub(super) fn sha256(root: &Node, without: &[&str]) -> String {
    let mut plain = plain(root);
    if let Plain::Map(entries) = &mut plain {
        entries.retain(|key, _| !without.contains(key));
    }
    // JSON has a form for each of these values, and no writer that could fail.
    let text = serde_json::to_vec(&plain).unwrap_or_default();
    lab_workload::sha256(&text)
}

/// One hash of two.
pub(super) fn with(one: &str, other: &str) -> String {
    lab_workload::sha256(format!("{one} {other}").as_bytes())
}

fn plain(node: &Node) -> Plain<'_> {
    match &node.value {
        Value::Null => Plain::Null,
        Value::Bool(on) => Plain::Bool(*on),
        Value::Int(n) => Plain::Int(*n),
        Value::Float(n) => Plain::Float(n.value),
        Value::Text(text) => Plain::Text(text),
        Value::List(items) => Plain::List(items.iter().map(plain).collect()),
        Value::Map(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| (key.text.as_str(), plain(value)));
            Plain::Map(entries.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use lab_language::SourceFile;
    use lab_language::node;

    fn of(text: &str) -> String {
        let file = SourceFile {
            name: "w.yaml".into(),
            text: text.into(),
        };
        let root = node::parse(&file).unwrap_or_else(|_| panic!("YAML: {text}"));
        super::sha256(&root, &["about"])
    }

    #[test]
    fn what_a_file_says_counts_and_not_how() {
        let one = of("a: 1\nb: [x, \"y\"]\nabout: One.\n");
        assert_eq!(
            one,
            of("# a comment\nabout: Two.\nb:\n  - 'x'\n  - y\na: 1\n")
        );
        assert_ne!(one, of("a: 2\nb: [x, y]\n"));
        assert_ne!(one, of("a: 1\nb: [y, x]\n"));
        // Held still: archives of other versions are compared by it.
        assert_eq!(&one[..16], "4af3259836a1c825");
    }
}
