//! Names of types and modules use the terms of the field, not words that only this project has.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::source::blanked;
use crate::tree::{complain, files, show};

/// Words that no type and no module has as a part of its name, with the terms that replace them.
const TERMS: [(&str, &str); 40] = [
    ("afar", "remote"),
    ("aside", "blocking, background"),
    ("attend", "dry run"),
    ("attended", "dry run"),
    ("became", "outcome"),
    ("beside", "parallel, other, sharing"),
    ("came", "outcome, transport"),
    ("circumstances", "environment"),
    ("crowd", "population"),
    ("desk", "connection state"),
    ("doom", "tombstone"),
    ("doomed", "tombstone"),
    ("elsewhere", "remote"),
    ("far", "remote"),
    ("foresight", "estimate"),
    ("given", "inputs"),
    ("ground", "workspace"),
    ("handed", "counters"),
    ("hands", "exec handle"),
    ("heard", "received"),
    ("kept", "stored"),
    ("lane", "mutex"),
    ("noted", "warning"),
    ("owe", "pending"),
    ("owed", "pending"),
    ("parcel", "message and recipients"),
    ("patience", "timeout, maximum wait"),
    ("pulse", "activity"),
    ("rehearsal", "dry run"),
    ("said", "message"),
    ("seat", "slot"),
    ("seldom", "polled on wake"),
    ("shelf", "object storage"),
    ("soon", "prefetch set"),
    ("station", "supervisor"),
    ("surroundings", "environment"),
    ("talk", "exchange"),
    ("told", "report, event"),
    ("watched", "attached, monitored"),
    ("whose", "owner, labels"),
];

/// Files with such names that have not been renamed yet, with the names. Remove what you rename; add nothing.
const LEFT: [(&str, &str); 7] = [
    ("cli/src/main.rs", "watched"),
    ("cli/src/watched.rs", "Watched"),
    ("cli/src/watched.rs", "watched"),
    ("lab/driver/src/worker.rs", "rehearsal"),
    ("lab/driver/src/worker/rehearsal.rs", "Rehearsal"),
    ("lab/driver/src/worker/rehearsal.rs", "rehearsal"),
    ("lab/language/src/file/parallel.rs", "BesideFile"),
];

#[test]
fn types_and_modules_have_the_terms_of_the_field() {
    let mut offenders = Vec::new();
    let mut left: BTreeSet<(&str, &str)> = LEFT.into_iter().collect();
    for path in files(".rs") {
        let (shown, text) = (show(&path), fs::read_to_string(&path).expect("readable"));
        let code = blanked(&text);
        for name in code.lines().filter_map(declared).chain(of_file(&path)) {
            let Some((word, term)) = private_word(name) else {
                continue;
            };
            let known = LEFT
                .iter()
                .find(|(file, known)| *file == shown && *known == name);
            match known {
                Some(known) => drop(left.remove(known)),
                None => offenders.push(format!("{shown}: {name}: {term} instead of {word}")),
            }
        }
    }
    let gone = left
        .iter()
        .map(|(file, name)| format!("{file}: {name} is gone: remove it from LEFT"));
    offenders.extend(gone);
    complain(
        "name types and modules by the terms of the field",
        &offenders,
    );
}

/// The name of the type or module that a line of code declares.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let (kind, rest) = line.split_once(' ')?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    matches!(kind, "struct" | "enum" | "trait" | "type" | "mod")
        .then(|| &rest[..end.unwrap_or(rest.len())])
}

/// The name of a file that is a module or a test program.
fn of_file(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str()
}

/// The first part of a name that is a private word, and the term that replaces it.
fn private_word(name: &str) -> Option<(&'static str, &'static str)> {
    let mut parts = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            parts.push(String::new());
        }
        parts
            .last_mut()
            .expect("never empty")
            .extend(c.to_lowercase().filter(|c| *c != '_'));
    }
    TERMS
        .into_iter()
        .find(|(word, _)| parts.iter().any(|part| part == word))
}

#[test]
fn names_are_split_into_words() {
    for (name, found) in [
        ("KeptBody", true),
        ("set_aside", true),
        ("Dormant", false),
        ("farm", false),
        ("TOLD", false),
    ] {
        assert_eq!(private_word(name).is_some(), found, "{name}");
    }
}
