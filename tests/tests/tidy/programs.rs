//! The test programs: one per crate, since each is linked by itself, and none without tests.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::tree::{complain, crates, files, show};

/// Crates whose tests stay separate programs: they start processes and check locks, and until it calls `exec`, a child
/// holds every lock of its parent program.
const APART: [&str; 4] = [
    "groupware/postgres",
    "lab/conduct",
    "tests",
    "tests/forgetful",
];

/// A crate's manifest, and the Rust files below its folder.
struct Crate {
    folder: PathBuf,
    manifest: Table,
}

fn all() -> Vec<Crate> {
    let read = |folder: PathBuf| {
        let text = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        Crate {
            folder,
            manifest: text.parse().expect("TOML"),
        }
    };
    crates().into_iter().map(read).collect()
}

impl Crate {
    /// The manifest's setting for its library: `test`, `doctest`.
    fn runs(&self, what: &str) -> bool {
        let library = self.manifest.get("lib").and_then(|lib| lib.get(what));
        library.and_then(Value::as_bool).unwrap_or(true)
    }

    /// The sources of the library.
    fn sources(&self) -> Vec<String> {
        let source = self.folder.join("src");
        files(".rs")
            .into_iter()
            .filter(|path| path.starts_with(&source) && !path.starts_with(source.join("bin")))
            .map(|path| fs::read_to_string(path).expect("readable"))
            .collect()
    }

    /// The roots of its test programs that the manifest names.
    fn roots(&self) -> Vec<PathBuf> {
        let tests = self.manifest.get("test").and_then(Value::as_array);
        let paths = tests
            .into_iter()
            .flatten()
            .filter_map(|test| test.get("path"));
        paths
            .filter_map(|path| Some(self.folder.join(path.as_str()?)))
            .collect()
    }
}

fn has_library(one: &Crate) -> bool {
    one.folder.join("src/lib.rs").exists()
}

/// Returns true if a comment has a code block that rustdoc would compile: one without another language.
fn has_example(text: &str) -> bool {
    let comments = text.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("///").or(line.strip_prefix("//!"))
    });
    let fences = comments.filter_map(|comment| comment.trim().strip_prefix("```"));
    // Each second one closes a block.
    let kinds = ["", "rust", "no_run", "should_panic", "compile_fail"];
    fences
        .step_by(2)
        .any(|kind| kinds.contains(&kind.split(',').next().unwrap_or_default()))
}

fn has_test(text: &str) -> bool {
    let starts = ["#[test]", "#[tokio::test", "proptest!"];
    text.lines().any(|line| {
        let line = line.trim_start();
        starts.iter().any(|start| line.starts_with(start))
    })
}

#[test]
fn examples_are_told_from_other_blocks() {
    assert!(has_example(
        "    /// ```\n    /// let one = 1;\n    /// ```\n"
    ));
    assert!(has_example(
        "//! ```text\n//! a\n//! ```\n/// ```no_run,x\n/// ```\n"
    ));
    assert!(!has_example("//! ```text\n//! a\n//! ```\n"));
    assert!(!has_example("let fence = \"```\";\n"));
}

#[test]
fn libraries_have_their_tests_run_where_there_are_any() {
    let mut offenders = Vec::new();
    for one in all().iter().filter(|one| has_library(one)) {
        let (sources, name) = (one.sources(), show(&one.folder));
        if one.runs("doctest") != sources.iter().any(|text| has_example(text)) {
            offenders.push(format!(
                "{name}: `doctest` under [lib] is false exactly where no comment has a ```rust example"
            ));
        }
        if one.runs("test") != sources.iter().any(|text| has_test(text)) {
            offenders.push(format!(
                "{name}: `test` under [lib] is false exactly where no file below src has a test"
            ));
        }
    }
    complain("a program that runs no test is not built", &offenders);
}

#[test]
fn each_file_of_tests_is_in_a_program() {
    let mut offenders = Vec::new();
    for one in all() {
        let (tests, roots) = (one.folder.join("tests"), one.roots());
        let programs: Vec<String> = roots
            .iter()
            .map(|root| fs::read_to_string(root).expect("a root of tests"))
            .collect();
        let beside = files(".rs")
            .into_iter()
            .filter(|path| path.parent() == Some(&tests));
        let beside: Vec<PathBuf> = beside.filter(|path| !roots.contains(path)).collect();
        if roots.is_empty() && beside.len() > 1 && !APART.contains(&&*show(&one.folder)) {
            offenders.push(format!(
                "{}: a program per file; name one in Cargo.toml, as lab/study does",
                show(&tests)
            ));
        }
        let lost =
            |path: &&PathBuf| !roots.is_empty() && !programs.iter().any(|text| names(text, path));
        offenders.extend(beside.iter().filter(lost).map(|path| {
            format!(
                "{} is no module of its crate's program of tests",
                show(path)
            )
        }));
    }
    complain("tests of a crate are one program", &offenders);
}

fn names(program: &str, file: &Path) -> bool {
    let stem = file.file_stem().expect("a name").to_string_lossy();
    let line = format!("mod {stem};");
    program.lines().any(|other| other == line)
}
