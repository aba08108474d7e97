//! Checks that the dashboard of `packaging/grafana` only queries exported metrics and labels.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lab_export::METRICS;
use serde_json::Value;

/// Labels of exported metrics, and those that Prometheus adds.
const LABELS: [&str; 12] = [
    "run",
    "study",
    "trial",
    "cell",
    "step",
    "transaction",
    "outcome",
    "name",
    "measure",
    "unit",
    "le",
    "job",
];

fn dashboard() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana/plimsoll.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The queries of panels and variables.
fn queries(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let asked = targets.map(|target| &target["expr"]);
    let asked = asked.chain(variables.iter().map(|one| &one["definition"]));
    asked
        .filter_map(|text| text.as_str().map(str::to_owned))
        .collect()
}

/// Words of a query, without its strings.
fn words(query: &str) -> Vec<String> {
    let outside: String = query.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let words = outside.split(|char: char| !(char.is_ascii_alphanumeric() || "_$".contains(char)));
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_query_names_what_is_sent() {
    let forms = |name: &'static str| {
        [
            "",
            "_total",
            "_seconds_bucket",
            "_seconds_sum",
            "_seconds_count",
            "_bucket",
            "_sum",
            "_count",
        ]
        .map(|end| format!("{name}{end}"))
    };
    let sent: BTreeSet<String> = METRICS
        .iter()
        .flat_map(|metric| forms(metric.name))
        .collect();
    let queries = queries(&dashboard());
    assert!(queries.len() > 15, "{}", queries.len());
    let mut asked = BTreeSet::new();
    for word in queries.iter().flat_map(|query| words(query)) {
        if word.starts_with("plimsoll_") {
            assert!(sent.contains(&word), "{word} is not sent");
            asked.insert(word);
        }
    }
    for metric in METRICS {
        let is_asked = asked.iter().any(|word| word.starts_with(metric.name));
        assert!(is_asked, "{} is on no panel", metric.name);
    }
}

#[test]
fn every_label_of_a_query_is_sent() {
    for query in queries(&dashboard()) {
        // The names before `=`, `=~`, or `!=` in braces, and in the brackets after `by`.
        let matched = query.split(['{', ',']).filter_map(|part| {
            let (name, _) = part.split_once(['=', '!'])?;
            Some(name.trim().to_owned())
        });
        let grouped = query
            .split("by (")
            .skip(1)
            .filter_map(|part| part.split_once(')'))
            .flat_map(|(names, _)| names.split(',').map(|name| name.trim().to_owned()));
        for label in matched.chain(grouped) {
            assert!(LABELS.contains(&&*label), "{label} in {query}");
        }
    }
}
