//! `--set key.path=value`: values from the command line put into the tree of a study file.

use lab_language::{
    Problem, Secrets, SourceFile, Span,
    node::{self, Key, Node, Value},
    secrets,
};

/// Deepest path.
const MAX_DEPTH: usize = 16;

/// Puts one value into the tree. Absent keys are added, and validated with the rest.
/// The value of a secret is added to `secrets`, to be masked.
pub(super) fn apply(
    root: &mut Node,
    path: &str,
    value: &str,
    secrets: &mut Secrets,
) -> Result<(), Problem> {
    let is_secret = secrets.is_secret(path);
    let shown = if is_secret {
        "*".repeat(value.len())
    } else {
        value.to_owned()
    };
    let text = format!("{path}={shown}");
    let flag = SourceFile {
        name: "--set".into(),
        text: text.into(),
    };
    let whole = Span::new(&flag, 0..flag.text.len());
    let steps: Vec<&str> = path.split('.').collect();
    if steps.iter().any(|step| step.is_empty()) || steps.len() > MAX_DEPTH {
        let mut problem = whole.problem(format!("`{path}` is not the path of a key"), "this path");
        problem.help = Some("write `--set load.users=100`".to_owned());
        return Err(problem);
    }
    let value = parsed(&flag, path.len() + 1, value)?;
    if is_secret {
        secrets::all(&value, secrets, &mut Vec::new());
    }
    let mut offset = 0;
    let mut at = root;
    for step in steps {
        let span = Span::new(&flag, offset..offset + step.len());
        offset += step.len() + 1;
        at = child(at, step, span)?;
    }
    *at = value;
    Ok(())
}

/// The value after the `=` as YAML, every place in it being the flag's.
fn parsed(flag: &SourceFile, from: usize, value: &str) -> Result<Node, Problem> {
    let value = SourceFile {
        name: flag.name.clone(),
        text: value.into(),
    };
    let mut node = node::parse(&value)?;
    place(&mut node, &Span::new(flag, from..flag.text.len()));
    Ok(node)
}

fn place(node: &mut Node, span: &Span) {
    node.span = span.clone();
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| place(item, span)),
        Value::Map(entries) => entries.iter_mut().for_each(|(key, item)| {
            key.span = span.clone();
            place(item, span);
        }),
        _ => {}
    }
}

/// The entry under `step`, made if it is not there.
fn child<'n>(node: &'n mut Node, step: &str, span: Span) -> Result<&'n mut Node, Problem> {
    if matches!(node.value, Value::Null) {
        node.value = Value::Map(Vec::new());
    }
    let kind = node.kind();
    match &mut node.value {
        Value::Map(entries) => {
            let found = entries.iter().position(|(key, _)| key.text == step);
            let at = found.unwrap_or_else(|| {
                let key = Key {
                    span: span.clone(),
                    text: step.to_owned(),
                };
                entries.push((
                    key,
                    Node {
                        span,
                        value: Value::Null,
                    },
                ));
                entries.len() - 1
            });
            Ok(&mut entries[at].1)
        }
        Value::List(items) => {
            let count = items.len();
            match step.parse::<usize>().ok().filter(|at| *at < count) {
                Some(at) => Ok(&mut items[at]),
                None => Err(span.problem(
                    format!("`{step}` is no place in a list of {count}"),
                    "counted from 0",
                )),
            }
        }
        _ => Err(span.problem(
            format!("there is nothing under `{step}`"),
            format!("above it is {kind}"),
        )),
    }
}
