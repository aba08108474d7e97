//! Plans of earlier versions convert to the plan that the present version would have written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lab_study::plan::{PlanOptions, plan};
use lab_study::{ArchivedError, Files, Loaded, load_study, present_plan};
use serde_json::Value;

struct Repository(PathBuf);

impl Files for Repository {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        fs::read(self.0.join(path))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn load(path: &str, overrides: &[(String, String)]) -> (Loaded, Value) {
    let loaded = load_study(path, &Repository(root()), overrides)
        .unwrap_or_else(|error| panic!("{path}: {:?}", error.problems()));
    let options = PlanOptions {
        speed: 60.0,
        seed: None,
    };
    let plan = plan(&loaded.study, &options).unwrap_or_else(|error| panic!("{path}: {error}"));
    (loaded, serde_json::to_value(plan).expect("JSON"))
}

/// Returns the plan as version 1 wrote it.
fn version_1(plan: &Value) -> Value {
    let mut plan = plan.clone();
    let fields = plan.as_object_mut().expect("an object");
    fields.remove("question").expect("a question");
    fields.insert("schema".to_owned(), "plimsoll.plan/1".into());
    plan
}

#[test]
fn every_shipped_study_gives_the_same_question_from_its_archived_files() {
    let mut seen = 0;
    for entry in fs::read_dir(root().join("studies")).expect("studies/") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_str().expect("UTF-8");
        // Descriptors stand in files of their own, and are younger than archives without a question.
        if !name.ends_with(".study.yaml") || name == "etcd.study.yaml" {
            continue;
        }
        let (loaded, written) = load(&format!("studies/{name}"), &[]);
        let brought = present_plan(version_1(&written), &loaded.files, &[]);
        assert!(brought.expect(name) == written, "{name}");
        seen += 1;
    }
    assert!(seen >= 5, "only {seen} studies");
}

#[test]
fn overrides_count_as_they_did() {
    let overrides = vec![("matrix.users".to_owned(), "[7]".to_owned())];
    let (loaded, written) = load("studies/calendar.study.yaml", &overrides);
    let old = version_1(&written);
    let brought = present_plan(old.clone(), &loaded.files, &overrides).expect("a plan");
    assert_eq!(brought, written);
    let without = present_plan(old, &loaded.files, &[]).expect("a plan");
    assert_ne!(without["question"]["cells"], written["question"]["cells"]);
}

#[test]
fn what_has_a_question_needs_no_files() {
    let (_, written) = load("studies/calendar.study.yaml", &[]);
    assert_eq!(
        present_plan(written.clone(), &[], &[]).expect("a plan"),
        written
    );
    let unknown = serde_json::json!({ "schema": "plimsoll.plan/9" });
    assert_eq!(
        present_plan(unknown.clone(), &[], &[]).expect("as it is"),
        unknown
    );
}

#[test]
fn what_is_missing_is_said() {
    let (loaded, written) = load("studies/calendar.study.yaml", &[]);
    let old = version_1(&written);
    let error = present_plan(old.clone(), &[], &[]).expect_err("no file");
    assert_eq!(error.to_string(), "the archive holds no study file");
    let mut files = loaded.files.clone();
    files[0].1 = b"study: [".to_vec();
    let error = present_plan(old, &files, &[]).expect_err("no study");
    assert!(matches!(error, ArchivedError::Study(_)), "{error:?}");
}
