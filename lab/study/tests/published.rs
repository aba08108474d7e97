//! Published figures: the errors that `check` finds in them, and their names in an archive.

use std::collections::BTreeMap;

use crate::faults::seen;
use lab_study::{Files, load_study};

struct Folder(BTreeMap<&'static str, String>);

impl Files for Folder {
    fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error> {
        let found = self.0.get(path).cloned();
        found
            .map(String::into_bytes)
            .ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }
}

fn folder(figures: &str) -> Folder {
    let study = crate::faults::STUDY.replace(
        "published: figures.csv",
        "published: [figures.csv, ../other/figures.csv, ../other/study.yaml]",
    );
    let good = "# Source.\n\nusers,\"response, ms\"\n10,5\n20,\n".to_owned();
    Folder(BTreeMap::from([
        ("studies/pages.study.yaml", study),
        (
            "workloads/pages.workload.yaml",
            crate::faults::WORKLOAD.to_owned(),
        ),
        ("published/figures.csv", figures.to_owned()),
        ("other/figures.csv", good.clone()),
        ("other/study.yaml", good),
    ]))
}

#[test]
fn files_of_one_name_keep_apart() {
    let loaded = load_study("studies/pages.study.yaml", &folder("a,b\n1,2\n"), &[]).unwrap();
    let names: Vec<&str> = loaded.files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "study.yaml",
            "workload.yaml",
            "figures.csv",
            "figures-2.csv",
            "study-2.yaml"
        ]
    );
    let published: Vec<&str> = loaded
        .study
        .published
        .iter()
        .map(|p| p.name.as_str())
        .collect();
    assert_eq!(published, &names[2..]);
}

#[test]
fn faults_of_tables() {
    let mut out = String::new();
    for (name, text) in [
        ("a value too many", "users,ms\n10,5\n20,6,7\n"),
        ("a value missing", "# Source.\nusers,ms\n10\n"),
        ("a column without a name", "users,,ms\n1,2,3\n"),
        ("a column twice", "users,ms,ms\n1,2,3\n"),
        ("an open quote", "users,ms\n\"10,5\n"),
        ("nothing but its source", "# Source.\n"),
    ] {
        let error = load_study("studies/pages.study.yaml", &folder(text), &[]).unwrap_err();
        out.push_str(&format!("=== {name}\n{}\n", seen(&error)));
    }
    insta::assert_snapshot!(out);
}
