//! The checked-in JSON Schemas are those of the file types.

use std::path::PathBuf;

/// Compares a schema with its file under `docs/`; `UPDATE_SCHEMAS=1` writes it instead.
fn check(name: &str, schema: serde_json::Value) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    let text = format!("{schema:#}\n");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let on_disk = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        on_disk == text,
        "{name} is out of date: run the tests with UPDATE_SCHEMAS=1"
    );
}

#[test]
fn the_study_schema_is_current() {
    check("study.schema.json", lab_study::schema_study());
}

#[test]
fn the_workload_schema_is_current() {
    check("workload.schema.json", lab_study::schema_workload());
}
