//! The files that git knows, and their names in messages.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's root folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ has a parent")
        .to_path_buf()
}

/// Files with this suffix that git tracks or would add.
pub(crate) fn files(ending: &str) -> Vec<PathBuf> {
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

/// A file's path from the root.
pub(crate) fn show(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Folders that hold a crate of the workspace, deepest first, so that a file finds its own.
pub(crate) fn crates() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = files("Cargo.toml")
        .iter()
        .filter_map(|manifest| manifest.parent())
        .filter(|folder| folder.join("src").is_dir())
        .map(Path::to_path_buf)
        .collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
    folders
}

/// Fails with the rule and all its violations.
pub(crate) fn complain(rule: &str, offenders: &[String]) {
    assert!(
        offenders.is_empty(),
        "{rule}:\n  {}",
        offenders.join("\n  ")
    );
}
