//! Any text as a JSON answer: streaming finds the same values as a parsed tree.

use lab_filters::reading::json::values as json_values;
use lab_workload::JsonPath;
use serde_json::Value;

/// A name that is reserved by the library in a tree, and an ordinary one elsewhere.
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

/// Returns true if the capture is right: a string's text, any other value as in the answer.
fn is(value: &Value, found: &str) -> bool {
    match value {
        Value::String(text) => text == found,
        other => serde_json::from_str::<Value>(found).is_ok_and(|found| found == *other),
    }
}
