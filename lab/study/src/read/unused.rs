//! Factors and parameters that change nothing, since nothing names them: their levels would be compared
//! with all statistics, though nothing differs.

use lab_language::Problems;
use lab_language::node::{Node, Value};
use lab_language::template_words::{Words, gather};

use crate::file::{MatrixFile, StudyFile};

/// Whether a study is yet to be run. A study that an earlier version accepted is read as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    New,
    Archived,
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
        let help = format!(
            "write `{{{{ {name_of} }}}}` where its levels belong, such as under `load`, `system`, or \
             `parameters`; or leave it out"
        );
        problems.push(name.span.problem(message, "this factor").help(help));
    }
}

/// Returns true if its levels are linked to those of a used factor: then they are labels.
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
        problems.push(name.span.problem(message, "set here").help(format!(
            "write `{{{{ {} }}}}` in the workload where its value belongs, or leave it out",
            name.value
        )));
    }
}
