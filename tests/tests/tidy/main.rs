//! Rules about the tree that no compiler checks: borders between crates, the head of each file, forbidden leftovers.

mod book;
mod edges;
mod modules;
mod names;
mod programs;
mod sizes;
mod source;
mod tree;
mod words;

use std::fs;
use std::path::PathBuf;

use tree::{complain, files, root, show};

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
fn the_lab_knows_no_product_but_in_the_preset_of_a_study() {
    let of_lab = files(".rs").into_iter().map(|path| (show(&path), path));
    let of_lab = of_lab.filter(|(name, _)| name.starts_with("lab/") && name.contains("/src/"));
    let mut offenders = Vec::new();
    for (name, path) in of_lab.filter(|(name, _)| !name.starts_with("lab/study/")) {
        let text = fs::read_to_string(&path).expect("readable");
        for (index, line) in source::shipped(&text).iter().enumerate() {
            if line.to_lowercase().contains("groupware") {
                offenders.push(format!("{name}:{}", index + 1));
            }
        }
    }
    complain("what any system can have is no preset's", &offenders);
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
