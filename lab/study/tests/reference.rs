//! `docs/workloads.md` says all that a workload can say, and each of its examples is a right one.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lab_study::{Files, load_workload};
use lab_workload::template::{FILTERS, FUNCTIONS};
use miette::{GraphicalReportHandler, GraphicalTheme};

fn page() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/workloads.md");
    std::fs::read_to_string(path).expect("docs/workloads.md")
}

/// One file, and what it may name.
struct Example(String);

impl Files for Example {
    fn read(&self, path: &str) -> std::io::Result<Vec<u8>> {
        match path {
            "example.workload.yaml" => Ok(self.0.clone().into_bytes()),
            "users.csv" => Ok(b"email,password\nada@example.org,secret\n".to_vec()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        }
    }
}

/// An example as a whole workload: that of steps becomes a session.
fn whole(kind: &str, text: &str) -> String {
    match kind {
        "step" => {
            let steps: String = text.lines().map(|line| format!("    {line}\n")).collect();
            format!("workload: example\nsession:\n  steps:\n{steps}")
        }
        _ => text.to_owned(),
    }
}

#[test]
fn every_example_is_a_right_one() {
    let page = page();
    let mut checked = 0;
    for block in page.split("\n```yaml").skip(1) {
        let (kind, rest) = block.split_once('\n').expect("a line");
        let (text, _) = rest.split_once("\n```").expect("the block ends");
        let text = whole(kind.trim(), text);
        if let Err(error) = load_workload("example.workload.yaml", &Example(text.clone())) {
            let mut said = String::new();
            let theme = GraphicalTheme::unicode_nocolor();
            let handler = GraphicalReportHandler::new_themed(theme);
            handler.render_report(&mut said, &error).expect("renders");
            panic!("{said}\n{text}");
        }
        checked += 1;
    }
    assert!(checked >= 6, "{checked} examples found");
}

#[test]
fn nothing_that_a_workload_can_say_is_left_out() {
    let page = page();
    let mut names = BTreeSet::new();
    properties(&lab_study::schema_workload(), &mut names);
    assert!(names.contains("session") && names.len() > 20, "{names:?}");
    let functions = FUNCTIONS.iter().map(|f| format!("{}(", f.name));
    let filters = FILTERS.iter().map(|f| format!("`{f}`"));
    let all = names.iter().map(|name| format!("`{name}`"));
    let missing: Vec<String> = all
        .chain(functions)
        .chain(filters)
        .filter(|name| !page.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "docs/workloads.md lacks {missing:?}");
}

/// The names of all keys that a schema knows.
fn properties(schema: &serde_json::Value, names: &mut BTreeSet<String>) {
    match schema {
        serde_json::Value::Object(entries) => {
            if let Some(serde_json::Value::Object(keys)) = entries.get("properties") {
                names.extend(keys.keys().cloned());
            }
            entries.values().for_each(|value| properties(value, names));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| properties(item, names)),
        _ => {}
    }
}
