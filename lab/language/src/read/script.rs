//! A session that a script plays: its files are loaded, and its call sites become the steps that count its requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use lab_script::{Program, Variables};
use lab_scripted::{metric_kinds, session_of};
use lab_workload::{InputName, Inputs, MetricKind, Scripted, Session, looks_secret};

use super::files::{Environment, Files, open, read_all, unreadable};
use crate::error::{LoadError, Problem, Problems};
use crate::file::WorkloadFile;
use crate::source::{SourceFile, Span, offset};
use lab_units::parts::{At, Scalar};
use lab_units::source::sibling_path;

/// Longest file of a script.
const MAX_FILE: usize = 64 << 20;
/// The function of a script that is a session unless another is named.
const USUAL_FUNCTION: &str = "default";

/// A loaded script with the session that it plays.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) session: Session,
    pub(super) scripted: Arc<Scripted>,
    /// The variables of the environment that it reads, with their values if known.
    variables: Vec<(String, Option<String>)>,
}

impl Script {
    /// Returns the script of a workload that was read before.
    pub(super) fn of(session: &Session, scripted: &Arc<Scripted>) -> Self {
        Self {
            session: session.clone(),
            scripted: Arc::clone(scripted),
            variables: Vec::new(),
        }
    }

    /// Adds the values of its variables.
    pub(super) fn inputs(&self, asked: Vec<InputName>) -> Inputs {
        inputs(&self.variables, asked)
    }
}

/// Returns the values of variables, of which those with such a name are secret.
fn inputs(variables: &[(String, Option<String>)], mut asked: Vec<InputName>) -> Inputs {
    asked.extend(variables.iter().map(|(name, _)| InputName {
        name: name.clone(),
        secret: looks_secret(name),
    }));
    let mut given = Inputs::unknown(asked);
    for (name, value) in variables {
        if let Some(value) = value {
            given.set(name, value);
        }
    }
    given
}

/// Reads the script that plays the session, if there is one; the outer `None` if a problem was reported.
pub(super) fn read(
    file: &WorkloadFile,
    files: &dyn Files,
    problems: &mut Problems,
) -> Option<Option<Script>> {
    let Some(named) = &file.session.script else {
        return Some(None);
    };
    refuse_beside(file, named, problems)?;
    let (program, variables) = load(named, files, problems)?;
    let function = file.session.function.as_ref();
    let name = function.map_or_else(|| USUAL_FUNCTION.to_owned(), |at| at.text());
    if !program.functions().contains(&name) {
        let place = function.unwrap_or(named).span.first_line();
        let known: Vec<&str> = program.functions().iter().map(String::as_str).collect();
        let message = format!("the script exports no function `{name}`");
        let problem = place.problem(message, "asked for here");
        let help = match crate::nearest(&name, &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "write `export default function () { … }` into the script".to_owned(),
        };
        problems.push(problem.help(help));
        return None;
    }
    let (session, scripted) = session_of(&program, &name);
    Some(Some(Script {
        session,
        scripted: Arc::new(scripted),
        variables,
    }))
}

/// Refuses keys that have no meaning beside a script.
fn refuse_beside(file: &WorkloadFile, named: &At<Scalar>, problems: &mut Problems) -> Option<()> {
    let session = &file.session;
    let beside = [
        ("steps", !session.steps.value.is_empty()),
        ("protocol", file.protocol.is_some()),
        ("auth", file.auth.is_some()),
        ("sign", file.sign.is_some()),
        ("data", file.data.is_some()),
        ("repeatable", session.repeatable.is_some()),
        ("on_failure", session.on_failure.is_some()),
    ];
    let (key, _) = beside.into_iter().find(|(_, is_given)| *is_given).unzip();
    let Some(key) = key else { return Some(()) };
    let message = format!("`{key}` has no meaning where a script plays the session");
    let problem = named.span.first_line().problem(message, "this script");
    problems.push(problem.help(format!("leave `{key}` out, or do it in the script")));
    None
}

/// The facts of a script that is run without a workload's file.
#[derive(Debug, Clone)]
pub struct ScriptFacts {
    /// The value of its `options`.
    pub options: serde_json::Value,
    /// The names of its requests.
    pub steps: Vec<String>,
    /// The names of its groups.
    pub groups: Vec<String>,
    /// Its measures, with their kinds: its metrics, all checks, and each.
    pub measures: Vec<(String, MetricKind)>,
    /// The texts of all its files, that of its entry first.
    pub texts: Vec<String>,
    /// The variables of the environment that it reads, with their values if known.
    pub variables: Vec<(String, Option<String>)>,
}

/// Loads the script at a path.
///
/// # Errors
/// All problems of the script.
pub fn read_script(path: &str, files: &dyn Files) -> Result<ScriptFacts, LoadError> {
    let mut problems = Problems::default();
    if let Err(error) = files.open(path) {
        return Err(unreadable(path, &error, files));
    }
    let loaded = load_at(path, files, &mut problems);
    let (program, variables) = problems.finish(loaded)?;
    let (session, scripted) = session_of(&program, USUAL_FUNCTION);
    let sources = scripted.sources.iter();
    let texts = sources.filter_map(|one| String::from_utf8(one.content.clone()).ok());
    let texts: Vec<String> = texts.collect();
    let kinds = metric_kinds(&program);
    let kind = |name: &str| kinds.get(name).copied().unwrap_or(MetricKind::Rate);
    let measures = session.steps.iter().flat_map(|step| &step.measures);
    let measures = measures.map(|one| (one.name.clone(), kind(&one.name)));
    Ok(ScriptFacts {
        options: program.options().clone(),
        steps: scripted.names.into_keys().collect(),
        groups: session
            .transactions
            .into_iter()
            .map(|one| one.name)
            .collect(),
        measures: measures.collect(),
        texts,
        variables,
    })
}

type Loaded = (Program, Vec<(String, Option<String>)>);

/// Loads the program, with the variables of the environment that it reads.
fn load(named: &At<Scalar>, files: &dyn Files, problems: &mut Problems) -> Option<Loaded> {
    let path = sibling_path(&named.span.file.name, &named.text());
    // A missing entry is a problem of the workload's file.
    open(named, files, problems)?;
    load_at(&path, files, problems)
}

fn load_at(path: &str, files: &dyn Files, problems: &mut Problems) -> Option<Loaded> {
    let (folder, entry) = match path.rsplit_once('/') {
        Some(("", entry)) => ("/", entry),
        Some(parts) => parts,
        None => ("", path),
    };
    let disk = ScriptFolder { folder, files };
    let load = |variables: &Variables, given: &Inputs, problems: &mut Problems| {
        let loaded = Program::load(entry, &disk, variables);
        let noted = |errors: Vec<lab_script::LoadError>| {
            for mut error in errors {
                error.message = given.mask(&error.message);
                problems.push(problem(&disk, &error));
            }
        };
        loaded.map_err(noted).ok()
    };
    let none = Inputs::unknown(Vec::new());
    let program = load(&Variables::default(), &none, problems)?;
    let given = program.variables().iter().map(|name| {
        let value = match files.environment(name) {
            Environment::Set(value) => Some(value),
            Environment::Unset | Environment::Untold => None,
        };
        (name.clone(), value)
    });
    let given: Vec<(String, Option<String>)> = given.collect();
    let known = given.iter();
    let known: BTreeMap<String, String> = known
        .filter_map(|(name, value)| Some((name.clone(), value.clone()?)))
        .collect();
    let program = match known.is_empty() {
        true => program,
        // Its options may depend on them.
        false => load(&Variables(known), &inputs(&given, Vec::new()), problems)?,
    };
    Some((program, given))
}

/// The files beside a script.
struct ScriptFolder<'a> {
    folder: &'a str,
    files: &'a dyn Files,
}

impl ScriptFolder<'_> {
    fn path(&self, name: &str) -> String {
        match self.folder {
            "" => sibling_path("", name),
            "/" => sibling_path("/", name),
            folder => sibling_path(&format!("{folder}/"), name),
        }
    }
}

impl lab_script::Files for ScriptFolder<'_> {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        if name.starts_with('/') {
            return Err("name files relative to the script: it may run on other machines".into());
        }
        let opened = self.files.open(&self.path(name));
        let bytes = opened.map_err(|error| error.to_string())?;
        let all = read_all(&*bytes, MAX_FILE)?;
        match all.len() > MAX_FILE {
            true => Err(format!("it has more than {} MiB", MAX_FILE >> 20)),
            false => Ok(all),
        }
    }
}

/// Returns the problem of a script, with its place in its file.
fn problem(disk: &ScriptFolder<'_>, error: &lab_script::LoadError) -> Problem {
    let path = disk.path(&error.file);
    let text = lab_script::Files::read(disk, &error.file).unwrap_or_default();
    let problem = match String::from_utf8(text) {
        Ok(text) if !text.is_empty() => {
            let at = offset(&text, error.line as usize, error.column as usize);
            let file = SourceFile {
                name: path.into(),
                text: text.into(),
            };
            let rest = file.text[at.min(file.text.len())..].lines().next();
            let end = at + rest.map_or(0, str::len);
            Span::new(&file, at..end).problem(&error.message, "here")
        }
        _ => Problem::without_place(&path, error.message.clone()),
    };
    match error.help.as_str() {
        "" => problem,
        help => problem.help(help),
    }
}
