//! Studies of scripts in the form of k6: made in memory from the script's options and the flags.

use std::path::Path;
use std::sync::Arc;

use lab_k6::{self as k6, Flags, Refused, StudyFiles};
use lab_study::plan::Plan;
use lab_study::{Environment, Files, Loaded, ScriptFacts, Secrets, read_script};

use crate::args::StudyArgs;
use crate::commands::quick::{self, Made, process, reach, server};
use crate::commands::script_end::ScriptEnd;
use crate::commands::{load, print, written};
use crate::exit::{Exit, Failure};
use crate::files::DiskAndEnvironment;
use crate::trying::{QuickArgs, ReachArgs, ScriptArgs};
use lab_terminal::stderr::say;

/// The study is in no file; the archive has it under this name.
const PREFIX: &str = "plimsoll-script";

/// Returns true if the file is a script, by its name.
pub(crate) fn is_script(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("js" | "mjs" | "cjs" | "ts" | "mts"))
}

/// A study, or that of a script or of a workload under the load of flags.
pub(crate) fn or_study(
    args: &StudyArgs,
    files: &dyn Files,
    (quick, flags): (&QuickArgs, &ScriptArgs),
) -> Result<((Loaded, Plan), Option<ScriptEnd>), Failure> {
    if is_script(&args.study) {
        let (made, end) = run(args, (quick, flags))?;
        return Ok((made, Some(end)));
    }
    refuse_flags(flags)?;
    let made = match &quick.url {
        Some(url) => quick::run(args, (url, files), quick)?,
        None => load::study(args, files)?,
    };
    Ok((made, None))
}

/// A script under the load of its options, or of flags. Both may depend on variables of the environment.
fn run(
    args: &StudyArgs,
    (quick, flags): (&QuickArgs, &ScriptArgs),
) -> Result<((Loaded, Plan), ScriptEnd), Failure> {
    let (quick_load, url) = (&quick.load, quick.url.as_deref());
    let unused = [
        ("--rate", quick_load.rate.is_some()),
        ("--ramp", quick_load.ramp.is_some()),
        ("--timeout", quick_load.timeout.is_some()),
    ];
    if let Some((flag, _)) = unused.iter().find(|(_, is_given)| *is_given) {
        let message = format!("{flag} can't be used with a script");
        let failure = Failure::text(Exit::BadInput, message);
        return Err(
            failure.hint("set it in the script's `options` or in the params of its requests")
        );
    }
    let load = Flags {
        vus: flags.vus.or(quick_load.users),
        duration: flags.duration.or(quick_load.hold),
        iterations: flags.iterations,
        is_attempt: false,
    };
    made(
        args,
        &DiskAndEnvironment,
        (url, &quick.reach),
        (load, &flags.variables.env),
    )
}

/// Refuses flags of scripts beside a study or a workload.
fn refuse_flags(flags: &ScriptArgs) -> Result<(), Failure> {
    let given = [
        ("--vus", flags.vus.is_some()),
        ("--duration", flags.duration.is_some()),
        ("--iterations", flags.iterations.is_some()),
        ("--env", !flags.variables.env.is_empty()),
    ];
    let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given) else {
        return Ok(());
    };
    let message = format!("{flag} can be used only with a script");
    let failure = Failure::text(Exit::BadInput, message);
    Err(failure.hint(
        "--set changes a study, such as --set load.users=50; its variables are those of the shell",
    ))
}

/// Returns the flags that a resumed run needs again, each followed by a space. A variable with a secret has its value
/// from the shell.
pub(crate) fn again(flags: &ScriptArgs, secrets: &Secrets) -> String {
    let load = [
        ("--vus", flags.vus.map(|users| users.to_string())),
        (
            "--duration",
            flags.duration.map(|time| format!("{}ms", time.as_millis())),
        ),
        ("--iterations", flags.iterations.map(|n| n.to_string())),
    ];
    let load = load.into_iter();
    let load = load.filter_map(|(name, value)| Some(format!("{name} {} ", value?)));
    let variables = flags.variables.env.iter().map(|(name, value)| {
        match secrets.shown(name, value) == *value {
            true => format!("-e '{name}={}' ", value.replace('\'', r"'\''")),
            false => format!("-e {name}=\"${name}\" "),
        }
    });
    load.chain(variables).collect()
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
        is_attempt: true,
        ..Flags::default()
    };
    made(args, files, reached, (one, env)).map(|(made, _)| made)
}

/// Writes a study and the workloads of a script beside it.
pub(crate) fn write(
    script: &Path,
    (url, name): (Option<&str>, Option<&str>),
    force: bool,
) -> Result<Exit, Failure> {
    let own = script.file_stem().and_then(|name| name.to_str());
    let name = name.or(own).unwrap_or("script");
    let reached = ReachArgs::default();
    let what = (Flags::default(), &[][..]);
    let (made, facts) = texts(script, &DiskAndEnvironment, (url, &reached), what, name)?;
    let set = address(&facts, url);
    let set = set.map_or(String::new(), |(name, url)| format!("{name}={url} "));
    let folder = script.parent().unwrap_or(Path::new(""));
    let study = folder.join(format!("{name}.study.yaml"));
    let workloads = made.workloads.iter();
    let files = workloads.map(|(file, text)| (folder.join(file), text));
    let files: Vec<_> = files.chain([(study.clone(), &made.study)]).collect();
    if !force {
        files
            .iter()
            .try_for_each(|(path, _)| written::is_free(path))?;
    }
    for (path, text) in &files {
        written::write(path, text)?;
        say(format_args!("{}", path.display()));
    }
    let study = study.display();
    print(&format!(
        "next:\n  {set}plimsoll try {study}    one user: every request and answer\n  \
         {set}plimsoll run {study}    measures, and writes a report\n"
    ))?;
    Ok(Exit::Success)
}

fn made(
    args: &StudyArgs,
    files: &dyn Files,
    reached: (Option<&str>, &ReachArgs),
    (flags, env): (Flags, &[(String, String)]),
) -> Result<((Loaded, Plan), ScriptEnd), Failure> {
    let path = load::text(&args.study)?;
    let (made, facts) = texts(&args.study, files, reached, (flags, env), PREFIX)?;
    let address = address(&facts, reached.0);
    if let Some((name, url)) = &address {
        say(format_args!("{name} is {url}, as --url says"));
    }
    let place = |file: &str| match path.rsplit_once('/') {
        Some(("", _)) => format!("/{file}"),
        Some((folder, _)) => format!("{folder}/{file}"),
        None => file.to_owned(),
    };
    let study = place(&format!("{PREFIX}.study.yaml"));
    let mut texts = vec![(study.clone(), made.study)];
    let workloads = made.workloads.into_iter();
    texts.extend(workloads.map(|(file, text)| (place(&file), text)));
    let made = Made {
        texts,
        given: env.iter().cloned().chain(address).collect(),
        disk: files,
    };
    let (loaded, plan) = load::study_from(&study, &made, args)?;
    let end = ScriptEnd {
        workload: Arc::clone(&loaded.study.workload),
        options: facts.options,
    };
    Ok(((loaded, plan), end))
}

/// Returns the script's unset variable for the address of the server, with the given address.
fn address(facts: &ScriptFacts, url: Option<&str>) -> Option<(String, String)> {
    let url = url?.trim_end_matches('/');
    let mut unset = facts.variables.iter().filter(|(_, value)| value.is_none());
    let (name, _) = unset.find(|(name, _)| name.ends_with("URL"))?;
    Some((name.clone(), url.to_owned()))
}

/// Returns the texts of a study and of workloads for a script, and prints what differs from k6.
fn texts(
    script: &Path,
    files: &dyn Files,
    (url, reached): (Option<&str>, &ReachArgs),
    (flags, env): (Flags, &[(String, String)]),
    prefix: &str,
) -> Result<(StudyFiles, ScriptFacts), Failure> {
    let path = load::text(script)?;
    let given = With { env, files };
    let facts = read_script(path, &given).map_err(|error| load::bad_file(&error))?;
    let base = match url {
        Some(url) => server(url)?,
        None => server(&usual_server(path, &facts)?)?,
    };
    let file = path.rsplit_once('/').map_or(path, |(_, file)| file);
    let name = file.split('.').next().unwrap_or(file);
    let script = k6::Script {
        name: name.to_owned(),
        prefix: prefix.to_owned(),
        file: format!("./{file}"),
        text: facts.texts.first().map_or("", String::as_str),
        options: &facts.options,
        steps: &facts.steps,
        groups: &facts.groups,
        measures: &facts.measures,
        url: base.to_string(),
        pid: process(&base),
        reach: reach(reached)?,
        flags,
    };
    let made = k6::files(&script).map_err(|refused| refusal(path, &refused))?;
    for note in &made.notes {
        say(format_args!("note: {note}"));
    }
    Ok((made, facts))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trying::VariableArgs;

    #[test]
    fn a_resumed_run_gets_the_flags_of_its_script_without_secrets() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let flags = ScriptArgs {
            vus: Some(3),
            duration: Some(std::time::Duration::from_secs(5)),
            iterations: None,
            variables: VariableArgs {
                env: vec![
                    pair("WHERE", "Joe's"),
                    pair("API_TOKEN", "x"),
                    pair("BASE_URL", "https://ann:s3cret@shop.test"),
                ],
            },
        };
        let expected = r#"--vus 3 --duration 5000ms -e 'WHERE=Joe'\''s' -e API_TOKEN="$API_TOKEN" -e BASE_URL="$BASE_URL" "#;
        assert_eq!(again(&flags, &Secrets::default()), expected);
        assert_eq!(again(&ScriptArgs::default(), &Secrets::default()), "");
        assert!(refuse_flags(&flags).is_err());
        assert!(refuse_flags(&ScriptArgs::default()).is_ok());
    }
}
