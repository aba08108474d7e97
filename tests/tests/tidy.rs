//! Rules about the tree that no compiler checks: borders between crates, the head of each file,
//! what must not lie about.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Longer files hold more than one idea.
const MAX_LINES: usize = 700;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ has a parent")
        .to_path_buf()
}

/// Files that git knows or would add, with this ending.
fn files(ending: &str) -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git is installed");
    assert!(output.status.success(), "git ls-files failed");
    let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
    names
        .lines()
        .filter(|name| name.ends_with(ending))
        .map(|name| root().join(name))
        .filter(|path| path.exists())
        .collect()
}

fn complain(rule: &str, offenders: &[String]) {
    assert!(
        offenders.is_empty(),
        "{rule}:\n  {}",
        offenders.join("\n  ")
    );
}

fn show(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

#[test]
fn the_lab_and_the_groupware_never_depend_on_each_other() {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 8, "the workspace is all here");
    let mut offenders = Vec::new();
    for package in packages {
        let name = package["name"].as_str().expect("name");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let on = dependency["name"].as_str().expect("name");
            let crossing = (name.starts_with("lab-") && on.starts_with("groupware-"))
                || (name.starts_with("groupware-") && on.starts_with("lab-"));
            if crossing {
                offenders.push(format!("{name} -> {on}"));
            }
        }
    }
    complain("they meet only in cli and on the wire", &offenders);
}

#[test]
fn each_source_file_opens_with_what_it_is_for() {
    let sources = files(".rs");
    assert!(sources.len() > 20, "found only {} files", sources.len());
    let offenders: Vec<String> = sources
        .iter()
        .filter(|path| {
            let text = fs::read_to_string(path).expect("readable");
            // A fuzz target must begin with its attribute.
            let head = text.strip_prefix("#![no_main]\n").unwrap_or(&text);
            !head.trim_start().starts_with("//!")
        })
        .map(|path| show(path))
        .collect();
    complain("a source file opens with `//!`", &offenders);
}

#[test]
fn no_source_file_holds_more_than_one_idea() {
    let offenders: Vec<String> = files(".rs")
        .iter()
        .map(|path| {
            (
                path,
                fs::read_to_string(path).expect("readable").lines().count(),
            )
        })
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(path, lines)| format!("{} has {lines} lines", show(path)))
        .collect();
    complain("split files of over 700 lines by idea", &offenders);
}

#[test]
fn no_test_is_ignored_and_no_place_is_unfinished() {
    let marks = [
        concat!("#[ig", "nore"),
        concat!("FIX", "ME"),
        concat!("unimple", "mented!("),
    ];
    let mut offenders = Vec::new();
    for path in files(".rs") {
        let text = fs::read_to_string(&path).expect("readable");
        for (index, line) in text.lines().enumerate() {
            // A test may need a process of its own to kill; it starts itself with `--ignored`.
            let helper = line.contains("= \"a helper of ");
            if !helper && marks.iter().any(|mark| line.contains(mark)) {
                offenders.push(format!("{}:{}", show(&path), index + 1));
            }
        }
    }
    complain("finish it, or leave it out", &offenders);
}

#[test]
fn shipped_study_and_workload_files_name_their_schema() {
    let shipped: Vec<PathBuf> = files(".yaml")
        .into_iter()
        .filter(|path| {
            let name = path.to_string_lossy();
            name.ends_with(".study.yaml") || name.ends_with(".workload.yaml")
        })
        .filter(|path| !show(path).contains("tests/"))
        .collect();
    assert!(
        shipped.len() >= 2,
        "the calendar study and its workload are shipped"
    );
    let offenders: Vec<String> = shipped
        .iter()
        .filter(|path| {
            let text = fs::read_to_string(path).expect("readable");
            !text.starts_with("# yaml-language-server: $schema=../docs/")
        })
        .map(|path| show(path))
        .collect();
    complain(
        "the first line names the JSON Schema, for editors",
        &offenders,
    );
}

#[test]
fn the_map_in_the_architecture_names_every_crate() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let mut offenders = Vec::new();
    for manifest in files("Cargo.toml") {
        let folder = show(manifest.parent().expect("a folder"));
        if !folder.is_empty() && !text.contains(&format!("`{folder}/`")) {
            offenders.push(folder);
        }
    }
    complain(
        "ARCHITECTURE.md has a line for each crate's folder",
        &offenders,
    );
}
