//! Which crate may depend on which, and that no modules of a crate import each other in a circle.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::modules::Graph;
use crate::tree::{complain, crates, files, root, show};

#[test]
fn the_lab_and_the_groupware_never_depend_on_each_other() {
    let offenders: Vec<String> = dependencies()
        .into_iter()
        .filter(|(name, on)| {
            (name.starts_with("lab-") && on.starts_with("groupware-"))
                || (name.starts_with("groupware-") && on.starts_with("lab-"))
        })
        .map(|(name, on)| format!("{name} -> {on}"))
        .collect();
    complain("they meet only in cli and on the wire", &offenders);
}

/// Each crate's direct dependencies as (crate, on what), tests' own left out.
fn dependencies() -> Vec<(String, String)> {
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
    packages
        .iter()
        .flat_map(|package| {
            let name = package["name"].as_str().expect("name");
            package["dependencies"]
                .as_array()
                .expect("dependencies")
                .iter()
                .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
                .map(move |on| {
                    (
                        name.to_owned(),
                        on["name"].as_str().expect("name").to_owned(),
                    )
                })
        })
        .collect()
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let sources = files(".rs");
    let mut offenders = Vec::new();
    for folder in crates() {
        for src in roots_of_modules(&folder.join("src"), &sources) {
            for circle in Graph::read(&src, &sources).circles() {
                offenders.push(format!("{}: {}", show(&src), circle.join(", ")));
            }
        }
    }
    complain("cut these circles", &offenders);
}

/// A crate's `src`, and the folders below it that are programs of their own.
fn roots_of_modules(src: &Path, sources: &[PathBuf]) -> Vec<PathBuf> {
    let programs = sources
        .iter()
        .filter(|file| file.ends_with("main.rs"))
        .filter_map(|file| file.parent())
        .filter(|folder| folder.starts_with(src) && *folder != src)
        .map(Path::to_path_buf);
    std::iter::once(src.to_path_buf()).chain(programs).collect()
}
