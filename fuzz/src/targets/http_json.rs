//! Any text as a JSON answer: what is found while it goes by is what a tree of it has.

use lab_filters::reading::json::values as json_values;
use lab_workload::JsonPath;
use serde_json::Value;

/// A name that the library takes for its own in a tree, and for a name elsewhere.
const OF_THE_LIBRARY: &[u8] = b"$serde_json::private::RawValue";

pub(crate) fn run(bytes: &[u8]) {
    let paths = ["$.a", "$[*].a", "$.a.b[0]", "$[1]", "$.b[*][*]", "$.c.*"];
    let paths = paths.map(|path| JsonPath::parse(path).expect("a path"));
    let found = json_values(bytes, &paths);
    if bytes.trim_ascii().is_empty()
        || bytes
            .windows(OF_THE_LIBRARY.len())
            .any(|part| part == OF_THE_LIBRARY)
    {
        return;
    }
    match (found, serde_json::from_slice::<Value>(bytes)) {
        (Ok(found), Ok(tree)) => {
            for (path, found) in paths.iter().zip(found) {
                let in_tree = path.query(&tree).all();
                let is_same = in_tree.len() == found.len()
                    && in_tree
                        .iter()
                        .zip(&found)
                        .all(|(value, found)| is(value, found));
                assert!(is_same, "{}: {found:?}", path.as_str());
            }
        }
        (found, tree) => assert_eq!(found.is_ok(), tree.is_ok()),
    }
}

/// Whether a text is what a value is captured as: a text itself, anything else as the answer has it.
fn is(value: &Value, found: &str) -> bool {
    match value {
        Value::String(text) => text == found,
        other => serde_json::from_str::<Value>(found).is_ok_and(|found| found == *other),
    }
}
