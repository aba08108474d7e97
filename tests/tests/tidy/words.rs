//! The first lines of doc comments name things by nouns and standard verbs.

use std::collections::BTreeMap;
use std::fs;

use crate::tree::{complain, files, show};

/// Pronouns as subjects, and verbs for which the field has better ones (report, send, receive, return).
const WORDS: [&str; 14] = [
    "Who", "Whoever", "whoever", "whomever", "told", "tell", "tells", "Somebody", "somebody",
    "Nobody", "nobody", "hear", "hears", "heard",
];

/// Folders with first lines that have such words, and their number: it may only fall. Their help texts and schemas, which
/// users see, change with their snapshots.
const LEFT: &[(&str, usize)] = &[
    ("cli/src", 9),
    ("lab/language", 11),
    ("lab/plan", 1),
    ("lab/result", 7),
    ("lab/study", 1),
    ("lab/trial", 2),
];

#[test]
fn first_lines_of_doc_comments_name_things() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files(".rs") {
        let text = fs::read_to_string(&path).expect("readable");
        let name = show(&path);
        for (number, line) in first_lines(&text) {
            if has_such_a_word(line) {
                let folder: Vec<&str> = name.split('/').take(2).collect();
                let places = found.entry(folder.join("/")).or_default();
                places.push(format!("{name}:{number}: {}", line.trim()));
            }
        }
    }
    let mut offenders = Vec::new();
    for (folder, places) in &found {
        let left = LEFT.iter().find(|(listed, _)| listed == folder);
        let left = left.map_or(0, |(_, left)| *left);
        if places.len() > left {
            offenders.extend(places.iter().cloned());
        }
    }
    complain("begin doc comments with the name of the thing", &offenders);
    let fewer = LEFT.iter().filter_map(|(folder, left)| {
        let now = found.get(*folder).map_or(0, Vec::len);
        (now < *left).then(|| format!("{folder}: {now}"))
    });
    let fewer: Vec<String> = fewer.collect();
    complain("there are fewer of these now: lower their numbers", &fewer);
}

/// The first line of each doc comment, with its number.
fn first_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut before = None;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let mark = ["///", "//!"]
            .into_iter()
            .find(|mark| line.trim_start().starts_with(mark));
        let is_first = mark.is_some() && mark != before;
        before = mark;
        is_first.then_some((index + 1, line))
    })
}

/// Whether a line has one of the words outside code.
fn has_such_a_word(line: &str) -> bool {
    let prose = line.split('`').step_by(2);
    let mut words = prose.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '\''));
    words.any(|word| WORDS.contains(&word))
}
