//! Factors and parameters that change nothing, since nothing names them: their levels would be compared
//! with all statistics, though nothing differs.

use std::collections::HashSet;

use lab_language::node::{Node, Value};
use lab_language::{Problem, Problems};

use crate::file::{MatrixFile, StudyFile};

/// Whether a study is yet to be run. What an earlier version let pass is read as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    New,
    Archived,
}

/// Names in the code of a file's templates, with others that look like it: a word too many finds a
/// mistake less, and never one that is none.
pub(super) type Words = HashSet<String>;

/// All words of the templates below a node.
pub(super) fn words(root: &Node) -> Words {
    let mut words = Words::new();
    gather(root, &mut words);
    words
}

fn gather(node: &Node, words: &mut Words) {
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

/// Notes factors that no setting of the study names.
pub(super) fn factors(root: &Node, file: &StudyFile, problems: &mut Problems) {
    let (Some(matrix), Value::Map(entries)) = (&file.matrix, &root.value) else {
        return;
    };
    let mut used = Words::new();
    let is_setting = |key: &str| !matches!(key, "matrix" | "title" | "about");
    for (_, value) in entries.iter().filter(|(key, _)| is_setting(&key.text)) {
        gather(value, &mut used);
    }
    for (name, _) in matrix.value.iter() {
        if used.contains(&name.value) || is_linked(&name.value, &matrix.value, &used) {
            continue;
        }
        let name_of = &name.value;
        let message = format!("the factor `{name_of}` changes nothing: no setting names it");
        problems.push(Problem {
            help: Some(format!(
                "write `{{{{ {name_of} }}}}` where its levels belong, such as under `load`, `system`, or \
                 `parameters`; or leave it out"
            )),
            ..name.span.problem(message, "this factor")
        });
    }
}

/// Whether its levels go with those of a factor that is used: then they are labels.
fn is_linked(name: &str, matrix: &MatrixFile, used: &Words) -> bool {
    matrix.zip.iter().any(|group| {
        let mut names = group.value.iter().map(|one| one.text());
        names.clone().any(|one| one == name) && names.any(|one| used.contains(&one))
    })
}

/// Notes parameters that the study sets and the workload names nowhere.
pub(super) fn parameters(file: &StudyFile, workload: &Words, problems: &mut Problems) {
    for (name, _) in file.parameters.iter() {
        if workload.contains(&name.value) {
            continue;
        }
        let message = format!(
            "the parameter `{}` changes nothing: the workload names it nowhere",
            name.value
        );
        problems.push(Problem {
            help: Some(format!(
                "write `{{{{ {} }}}}` in the workload where its value belongs, or leave it out",
                name.value
            )),
            ..name.span.problem(message, "set here")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_code() {
        let check = |text: &str, expected: &[&str]| {
            let mut words = Words::new();
            of_template(text, &mut words);
            let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
            words.sort_unstable();
            assert_eq!(words, expected, "{text}");
        };
        check("users", &[]);
        check("{{ users }} users", &["users"]);
        check(
            "a {{ a_1 * 2 }}{% if b %}c{% endif %}",
            &["2", "a_1", "b", "endif", "if"],
        );
        check("{{ open", &["open"]);
    }
}
