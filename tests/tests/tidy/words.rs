//! The first lines of doc comments name things by nouns and standard verbs.

use std::fs;

use crate::tree::{complain, files, show};

/// Pronouns as subjects, and verbs for which the field has better ones (report, send, receive, return).
const WORDS: [&str; 14] = [
    "Who", "Whoever", "whoever", "whomever", "told", "tell", "tells", "Somebody", "somebody",
    "Nobody", "nobody", "hear", "hears", "heard",
];

#[test]
fn first_lines_of_doc_comments_name_things() {
    let mut offenders = Vec::new();
    for path in files(".rs") {
        let text = fs::read_to_string(&path).expect("readable");
        let lines = first_lines(&text).filter(|(_, line)| has_such_a_word(line));
        offenders.extend(
            lines.map(|(number, line)| format!("{}:{number}: {}", show(&path), line.trim())),
        );
    }
    complain("begin doc comments with the name of the thing", &offenders);
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
