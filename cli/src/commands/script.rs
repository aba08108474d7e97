//! Studies of scripts in the form of k6: made in memory from the script's options and the flags.

use std::path::Path;
use std::sync::Arc;

use lab_k6::{self as k6, Flags, Made as Files4Script, Refused};
use lab_study::plan::Plan;
use lab_study::{Environment, Files, Loaded, ScriptFacts, read_script};

use crate::args::StudyArgs;
use crate::commands::load;
use crate::commands::quick::{Made, process, reach, server};
use crate::commands::script_end::ScriptEnd;
use crate::exit::{Exit, Failure};
use crate::trying::{QuickArgs, ReachArgs, ScriptArgs};
use lab_terminal::talk::say;

/// The study is in no file; the archive has it under this name.
const STUDY: &str = "plimsoll-script.study.yaml";

/// Returns true if the file is a script, by its name.
pub(crate) fn is_script(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("js" | "mjs" | "cjs" | "ts" | "mts"))
}

/// A script under the load of its options, or of flags.
pub(crate) fn run(
    args: &StudyArgs,
    files: &dyn Files,
    (quick, flags): (&QuickArgs, &ScriptArgs),
) -> Result<((Loaded, Plan), ScriptEnd), Failure> {
    let (quick_load, url) = (&quick.load, quick.url.as_deref());
    let load = Flags {
        vus: flags.vus.or(quick_load.users),
        duration: flags.duration.or(quick_load.hold),
        iterations: flags.iterations,
    };
    made(
        args,
        files,
        (url, &quick.reach),
        (load, &flags.variables.env),
    )
}

/// A script for one of its users.
pub(crate) fn attempt(
    args: &StudyArgs,
    files: &dyn Files,
    reached: (Option<&str>, &ReachArgs),
    env: &[(String, String)],
) -> Result<(Loaded, Plan), Failure> {
    let one = Flags {
        iterations: Some(1),
        vus: Some(1),
        ..Flags::default()
    };
    made(args, files, reached, (one, env)).map(|(made, _)| made)
}

fn made(
    args: &StudyArgs,
    files: &dyn Files,
    (url, reached): (Option<&str>, &ReachArgs),
    (flags, env): (Flags, &[(String, String)]),
) -> Result<((Loaded, Plan), ScriptEnd), Failure> {
    let path = load::text(&args.study)?;
    let given = With { env, files };
    let facts = read_script(path, &given).map_err(|error| load::bad_file(&error))?;
    let base = match url {
        Some(url) => server(url)?,
        None => server(&usual_server(path, &facts)?)?,
    };
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let name = file.split('.').next().unwrap_or(file);
    let script = k6::Script {
        name: name.to_owned(),
        file: format!("./{file}"),
        text: &facts.text,
        options: &facts.options,
        steps: &facts.steps,
        groups: &facts.groups,
        metrics: &facts.metrics,
        url: base.to_string(),
        pid: process(&base),
        reach: reach(reached)?,
        flags,
    };
    let made = k6::files(&script).map_err(|refused| refusal(path, &refused))?;
    tell(&made, &facts);
    let place = |file: &str| match (folder, path.starts_with('/')) {
        ("", true) => format!("/{file}"),
        ("", false) => file.to_owned(),
        (folder, _) => format!("{folder}/{file}"),
    };
    let limits = made.limits;
    let mut texts = vec![(place(STUDY), made.study)];
    let workloads = made.workloads.into_iter();
    texts.extend(workloads.map(|(file, text)| (place(&file), text)));
    let made = Made {
        texts,
        given: env.to_vec(),
        disk: files,
    };
    let (loaded, plan) = load::study_from(&place(STUDY), &made, args)?;
    let end = ScriptEnd {
        limits,
        workload: Arc::clone(&loaded.study.workload),
        options: facts.options,
    };
    Ok(((loaded, plan), end))
}

/// Files with further variables.
struct With<'a> {
    env: &'a [(String, String)],
    files: &'a dyn Files,
}

impl Files for With<'_> {
    fn read(&self, path: &str) -> std::io::Result<Vec<u8>> {
        self.files.read(path)
    }

    fn names(&self, folder: &str) -> Vec<String> {
        self.files.names(folder)
    }

    fn environment(&self, name: &str) -> Environment {
        match self.env.iter().find(|(given, _)| given == name) {
            Some((_, value)) => Environment::Set(value.clone()),
            None => self.files.environment(name),
        }
    }
}

/// Prints what differs from k6, once.
fn tell(made: &Files4Script, facts: &ScriptFacts) {
    for note in made.notes.iter().chain(&facts.notes) {
        say(format_args!("note: {note}"));
    }
}

/// The failure for options that can't be run.
fn refusal(path: &str, refused: &[Refused]) -> Failure {
    let one = |one: &Refused| {
        let place = one.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{path}{place}: {}\n  {}", one.message, one.help)
    };
    let all: Vec<String> = refused.iter().map(one).collect();
    Failure::text(Exit::BadInput, all.join("\n"))
}

/// Returns the server that the script names.
fn usual_server(path: &str, facts: &ScriptFacts) -> Result<String, Failure> {
    let variables = facts.variables.iter();
    let variables = variables.map(|(name, value)| (name.as_str(), value.as_deref()));
    let Some(found) = k6::server(variables, &facts.texts) else {
        let message = format!("{path} doesn't show which server it tests");
        let failure = Failure::text(Exit::BadInput, message);
        return Err(failure.hint(format!("plimsoll run --url http://HOST:PORT {path}")));
    };
    say(format_args!(
        "the server is {found}, as in the script; --url names another one"
    ));
    Ok(found)
}
