//! `docs/workloads.md` documents every key of a workload, and each of its examples is valid; so is
//! each of the book's other pages and of the README.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lab_study::plan::{PlanOptions, plan};
use lab_study::{Files, load_study, load_workload};
use lab_workload::template::{FILTERS, FUNCTIONS};
use miette::{GraphicalReportHandler, GraphicalTheme};

pub(crate) fn page(path: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).expect(path)
}

/// Returns the text after the opening of each block of YAML, and the block's text.
pub(crate) fn examples(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("\n```yaml").skip(1);
    let parted = blocks.map(|block| {
        let (kind, rest) = block.split_once('\n').expect("a line");
        let (text, _) = rest.split_once("\n```").expect("the block ends");
        (kind.trim(), text)
    });
    parted.collect()
}

/// One file, and the names that it may use.
struct Example(String);

impl Files for Example {
    fn read(&self, path: &str) -> std::io::Result<Vec<u8>> {
        match path {
            "example.workload.yaml" => Ok(self.0.clone().into_bytes()),
            "users.csv" => Ok(b"email,password\nada@example.org,secret\n".to_vec()),
            "shop.js" => Ok(SCRIPT.into()),
            "desks.csv" => Ok(b"desk\na\nb\n".to_vec()),
            "sessions.csv" => Ok(b"sid;name\n0a1b2c;ada\n".to_vec()),
            "photo.jpg" | "report.pdf" => Ok(b"content".to_vec()),
            "api.pem" => Ok(include_bytes!("../../filters/src/tests/ed25519.pem").to_vec()),
            "shop.proto" => Ok(SHOP.into()),
            "chat.proto" => Ok(CHAT.into()),
            "order.schema.json" => Ok(b"{ \"required\": [\"items\"] }".to_vec()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        }
    }
}

/// A script.
const SCRIPT: &str = r"
    import http from 'k6/http';
    export function checkout() {
        http.get('http://127.0.0.1:8080/');
    }
";

/// The descriptions of services.
const SHOP: &str = r#"
    syntax = "proto3";
    package shop;
    message Page { int32 size = 1; }
    message Query { string query = 1; Page page = 2; }
    message Thing { string thing = 1; string id = 2; repeated Thing things = 3; }
    service Catalog {
        rpc Find(Query) returns (Thing);
        rpc Get(Thing) returns (Thing);
        rpc Prices(Thing) returns (stream Thing);
    }
"#;
const CHAT: &str = r#"
    syntax = "proto3";
    package chat;
    message Room { string room = 1; }
    message Text { string text = 1; }
    message Said { Room join = 1; Text say = 2; }
    message Heard { string by = 1; }
    service Rooms { rpc Talk(stream Said) returns (stream Heard); }
"#;

/// Whom a study's provisioning may name.
const NAMED: &str = "user: { name: \"user{{ index }}\" }\n";
/// The parameters that a study's populations may set.
const PARAMETERS: &str = "parameters: { page_size: 20 }\n";

/// The pages with examples of workloads, and of studies.
pub(crate) const OF_WORKLOADS: [&str; 10] = [
    "docs/workloads.md",
    "docs/http.md",
    "docs/clients.md",
    "docs/recipes.md",
    "docs/transactions.md",
    "docs/assets.md",
    "docs/signing.md",
    "docs/credentials.md",
    "docs/shared.md",
    "docs/scripts.md",
];
pub(crate) const OF_STUDIES: [&str; 7] = [
    "docs/studies.md",
    "docs/counted.md",
    "docs/http.md",
    "docs/clients.md",
    "docs/recipes.md",
    "docs/machines.md",
    "README.md",
];

/// A study, and the workload that it names by whatever name.
struct Folder(String);

impl Files for Folder {
    fn read(&self, path: &str) -> std::io::Result<Vec<u8>> {
        // A sequence keeps no pace, and cycles need one.
        let pace = match self.0.contains("sequence:") {
            true => "",
            false => "pace: 10s, ",
        };
        let request = "\"GET /?size={{ page_size }}\"";
        let session = format!("session: {{ {pace}steps: [{{ step: s, request: {request} }}] }}");
        if path.ends_with(".csv") {
            return Ok(b"time,path\n1000,/a\n2500,/b\n3800,/c\n9000,/d\n".to_vec());
        }
        let rows = match self.0.contains("timeline:") {
            true => "data: { file: requests.csv, each: session }\n",
            false => "",
        };
        Ok(match path.ends_with(".study.yaml") {
            true => self.0.clone().into_bytes(),
            false => {
                format!("workload: example\n{PARAMETERS}{rows}{NAMED}{session}\n").into_bytes()
            }
        })
    }
}

/// Returns an example as a whole workload: steps become a session.
pub(crate) fn whole(kind: &str, text: &str) -> String {
    match kind {
        "step" => {
            let steps: String = text.lines().map(|line| format!("    {line}\n")).collect();
            format!("workload: example\nsession:\n  steps:\n{steps}")
        }
        _ => text.to_owned(),
    }
}

/// The keys that an example of a few keys lacks.
const STUDY: [(&str, &str); 5] = [
    ("study", "study: example\n"),
    ("title", "title: Example\n"),
    ("workload", "workload: example.workload.yaml\n"),
    ("system", "system: { groupware: {} }\n"),
    ("load", "load: { users: 100, ramp: 10s, hold: 1m }\n"),
];

/// An example of a few keys as a whole study: users that it varies are the load's, and other factors that
/// it names nowhere change a timeout.
pub(crate) fn whole_study(text: &str) -> String {
    let says = |key: &str| {
        text.lines()
            .any(|line| line.starts_with(&format!("{key}:")))
    };
    let mut study = format!("{text}\n");
    for (key, line) in STUDY {
        let instead = key == "system" && says("variants");
        if !says(key) && !instead {
            let varied = key == "load" && text.contains("\n  users: [");
            let users = if varied { "\"{{ users }}\"" } else { "100" };
            study.push_str(&line.replace("100", users));
        }
    }
    study
}

/// Returns the loaded value; panics with the error message that a user would read.
fn right<T>(loaded: Result<T, impl miette::Diagnostic>, text: &str) -> T {
    loaded.unwrap_or_else(|error| {
        let mut said = String::new();
        let theme = GraphicalTheme::unicode_nocolor();
        let handler = GraphicalReportHandler::new_themed(theme);
        handler.render_report(&mut said, &error).expect("renders");
        panic!("{said}\n{text}");
    })
}

#[test]
fn every_example_of_a_workload_is_a_right_one() {
    let pages = OF_WORKLOADS.map(page);
    let found = pages.each_ref().map(|page| examples(page));
    let counts = found.each_ref().map(Vec::len);
    let (long, short) = counts.split_at(4);
    assert!(long.iter().all(|count| *count > 5), "{counts:?} examples");
    assert!(short.iter().all(|count| *count > 2), "{counts:?} examples");
    let all = found.concat().into_iter();
    for (kind, text) in all.filter(|(kind, _)| *kind != "study") {
        let text = whole(kind, text);
        let loaded = load_workload("example.workload.yaml", &Example(text.clone()));
        right(loaded, &text);
    }
}

#[test]
fn every_example_of_a_study_is_a_right_one() {
    let pages = OF_STUDIES.map(page);
    let blocks = pages.each_ref().map(|page| examples(page)).concat();
    let blocks: Vec<&str> = blocks
        .iter()
        .filter(|(kind, _)| *kind == "study")
        .map(|(_, text)| *text)
        .collect();
    assert!(blocks.len() >= 10, "{} examples found", blocks.len());
    for text in blocks {
        let study = whole_study(text);
        let loaded = load_study("example.study.yaml", &Folder(study.clone()), &[]);
        // A high speed, so that long loads take little time.
        let options = PlanOptions {
            speed: 60.0,
            seed: None,
        };
        let planned = plan(&right(loaded, &study).study, &options);
        planned.unwrap_or_else(|error| panic!("{error}\n{study}"));
    }
}

#[test]
fn the_workload_of_the_readme_is_a_right_one() {
    let page = page("README.md");
    let examples = examples(&page);
    let text = examples.iter().find(|(kind, _)| *kind == "workload");
    let text = text.expect("a workload").1.to_owned();
    right(
        load_workload("example.workload.yaml", &Example(text.clone())),
        &text,
    );
}

#[test]
fn nothing_that_a_workload_can_say_is_left_out() {
    let page = OF_WORKLOADS.map(page).concat();
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
    assert!(
        missing.is_empty(),
        "the pages of workloads lack {missing:?}"
    );
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
