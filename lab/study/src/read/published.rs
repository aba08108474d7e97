//! Published figures that a study names: CSV files, whose lines with `#` are their source.

use lab_language::{Files, Problems, SourceFile, Span, first_file, node};

use crate::file::StudyFile;
use crate::model::Published;

/// Returns the figures that a study names, each with a name of its own.
pub(super) fn published(
    path: &str,
    file: &StudyFile,
    files: &dyn Files,
    archived: &mut Vec<(String, Vec<u8>)>,
    problems: &mut Problems,
) -> Vec<Published> {
    let mut found = Vec::new();
    for name in file.published.iter().flat_map(|p| p.as_slice()) {
        let text = name.text();
        let candidates = match text.contains('/') {
            true => vec![text.clone()],
            false => vec![format!("../published/{text}"), text.clone()],
        };
        let place = first_file("published file", path, name, &candidates, files, problems);
        let Some((place, bytes)) = place else {
            continue;
        };
        match node::text_file(&place, &bytes) {
            Ok(source) => {
                check_table(&source, problems);
                let name = own_name(&place, archived);
                found.push(Published {
                    name: name.clone(),
                    text: source.text.to_string(),
                });
                archived.push((name, bytes));
            }
            Err(problem) => problems.push(problem),
        }
    }
    found
}

/// The file's name without its folder; with a number where another file of the archive has it.
fn own_name(place: &str, archived: &[(String, Vec<u8>)]) -> String {
    let name = place.rsplit('/').next().unwrap_or(place);
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, "csv"));
    let taken = |name: &str| archived.iter().any(|(other, _)| other == name);
    let numbered = (2..).map(|number| format!("{stem}-{number}.{ending}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !taken(name)).unwrap_or_default()
}

/// Notes the first fault of a table: names of its columns, and as many values in each row.
fn check_table(file: &SourceFile, problems: &mut Problems) {
    let mut columns = None;
    let mut at = 0;
    for line in file.text.split_inclusive('\n') {
        let text = line.trim_end();
        let place = Span::new(file, at..at + text.len());
        at += line.len();
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let fault = match (fields(text), columns) {
            (None, _) => Some(("a quote is not closed".to_owned(), "this line")),
            (Some(names), None) => {
                columns = Some(names.len());
                head_fault(&names).map(|fault| (fault, "the names of the columns"))
            }
            (Some(values), Some(count)) => (values.len() != count).then(|| {
                let message = format!("{count} columns, and {} here", values.len());
                (message, "this row")
            }),
        };
        if let Some((message, label)) = fault {
            return problems.push(place.first_line().problem(message, label));
        }
    }
    if columns.is_none() {
        let problem = Span::new(file, 0..0).problem("a table without columns", "it begins here");
        problems.push(problem.help("the first line that is no `#` names the columns"));
    }
}

fn head_fault(names: &[&str]) -> Option<String> {
    if names.iter().any(|name| name.trim().is_empty()) {
        return Some("a column has no name".to_owned());
    }
    let again = (1..names.len()).find(|i| names[..*i].contains(&names[*i]));
    again.map(|i| format!("two columns are called `{}`", names[i]))
}

/// The fields of a line (RFC 4180); `None` where a quote isn't closed.
fn fields(line: &str) -> Option<Vec<&str>> {
    let mut fields = Vec::new();
    let (mut start, mut quoted) = (0, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                fields.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    fields.push(&line[start..]);
    (!quoted).then_some(fields)
}
