//! Words in the code of a file's templates: a variable that none of them names has no effect.

use std::collections::HashSet;

use crate::node::{Node, Value};

/// Names in the code of a file's templates, and words that look like names: an extra word may hide a mistake, and never
/// causes a false report.
pub type Words = HashSet<String>;

/// Returns all words of the templates below a node.
#[must_use]
pub fn words(root: &Node) -> Words {
    let mut words = Words::new();
    gather(root, &mut words);
    words
}

/// Adds the words below a node.
pub fn gather(node: &Node, words: &mut Words) {
    match &node.value {
        Value::Text(text) => of_template(text, words),
        Value::List(items) => items.iter().for_each(|item| gather(item, words)),
        Value::Map(entries) => {
            for (key, value) in entries {
                if let ("when" | "until", Value::Text(condition)) = (&*key.text, &value.value) {
                    of_code(condition, words);
                }
                gather(value, words);
            }
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {}
    }
}

fn of_template(text: &str, words: &mut Words) {
    let mut rest = text;
    while let Some(at) = rest.find("{{").into_iter().chain(rest.find("{%")).min() {
        let code = &rest[at + 2..];
        let end = code.find("}}").into_iter().chain(code.find("%}")).min();
        let end = end.unwrap_or(code.len());
        of_code(&code[..end], words);
        rest = &code[end..];
    }
}

fn of_code(code: &str, words: &mut Words) {
    let word = |c: char| !(c.is_alphanumeric() || c == '_');
    let found = code.split(word).filter(|word| !word.is_empty());
    words.extend(found.map(str::to_owned));
}

#[cfg(test)]
mod tests;
