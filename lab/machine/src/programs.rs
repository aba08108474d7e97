//! Checks the programs and folders that a study names, before anything starts. It starts nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use lab_study::model::Requires;
use lab_study::plan::{Plan, Trial};
use lab_study::{Action, By, CommandSpec, Preparation, SystemSpec};

/// The start of a placeholder that a trial fills in.
const FILLED_IN: &str = "{{";

/// Missing programs and folders of the plan, one sentence each. Missing programs that the study requires are listed in
/// one sentence, with the command that installs them.
#[must_use]
pub fn check(plan: &Plan, requires: &Requires) -> Vec<String> {
    let is_here = |trial: &Trial| trial.host.on.is_none();
    if plan.every_trial().any(is_here)
        && let Some(problem) = required(requires)
    {
        return vec![problem];
    }
    let mut problems: Vec<String> = Vec::new();
    // On a remote machine its agent checks.
    for trial in plan.every_trial().filter(|trial| trial.host.on.is_none()) {
        let found: Vec<String> = match &trial.system {
            SystemSpec::Command(spec) => {
                let before = spec.before.iter().map(|(_, spec)| spec);
                before.chain([spec]).flat_map(of_command).collect()
            }
            SystemSpec::Attach(spec) => {
                let reset = spec.reset.iter().flatten().take(1);
                let programs = reset.chain(prepared(&spec.preparation));
                programs
                    .filter_map(|program| in_path(program, None))
                    .collect()
            }
            _ => Vec::new(),
        };
        let asks = trial.ask.iter().filter_map(|ask| match &ask.by {
            By::Command(argv) => in_path(argv.first()?, None),
            By::Http(_) => None,
        });
        for problem in found.into_iter().chain(asks) {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }
    problems
}

/// The missing ones among these programs, in a sentence.
fn required(requires: &Requires) -> Option<String> {
    let is_missing = |program: &&String| match program.strip_prefix('/') {
        Some(path) => !is_below(Path::new("/"), path),
        None => in_path(program, None).is_some(),
    };
    let missing = requires.programs.iter().filter(is_missing);
    let missing: Vec<String> = missing.map(|program| format!("`{program}`")).collect();
    if missing.is_empty() {
        return None;
    }
    let install = match requires.debian.as_slice() {
        [] => String::new(),
        packages => format!("; on Debian, type: apt-get install {}", packages.join(" ")),
    };
    Some(format!(
        "the study requires programs that this machine doesn't have: {}{install}",
        missing.join(", ")
    ))
}

/// Returns true if a program exists at this path below a folder; a `*` stands for any one folder.
fn is_below(folder: &Path, path: &str) -> bool {
    match path.split_once('/') {
        None => runs(&folder.join(path)),
        Some(("*", rest)) => {
            let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.any(|entry| is_below(&entry.path(), rest))
        }
        Some((first, rest)) => is_below(&folder.join(first), rest),
    }
}

fn of_command(spec: &CommandSpec) -> Vec<String> {
    if let Some(problem) = spec
        .folder
        .as_deref()
        .and_then(|folder| no_folder(folder, spec))
    {
        return vec![problem];
    }
    let programs = [spec.start.first(), spec.reset.first()]
        .into_iter()
        .flatten();
    let programs = programs.chain(prepared(&spec.preparation));
    programs
        .filter_map(|program| missing(program, spec))
        .collect()
}

/// Programs that prepare a system.
fn prepared(preparation: &Preparation) -> impl Iterator<Item = &String> {
    let actions = preparation.provision.iter().chain(&preparation.fill);
    actions.filter_map(|action| match action {
        Action::Command(words) => words.first(),
        Action::Request(_) => None,
    })
}

/// Returns true if the trial itself may make what is missing.
fn may_be_made(spec: &CommandSpec) -> bool {
    !spec.reset.is_empty() || spec.preparation.keep.is_some() || !spec.preparation.fill.is_empty()
}

/// The problem with the folder that a system starts in, if any.
fn no_folder(folder: &str, spec: &CommandSpec) -> Option<String> {
    if folder.contains(FILLED_IN) {
        return None;
    }
    let said = |what: &str| Some(format!("`folder` of the command names {folder}: {what}"));
    if folder.starts_with('/') {
        return match fs::metadata(folder) {
            Ok(found) if found.is_dir() => None,
            Ok(_) => said("this is no folder"),
            Err(error) => said(&error.to_string()),
        };
    }
    let inside = |(name, _): &(String, String)| Path::new(name).starts_with(folder);
    if may_be_made(spec) || spec.files.iter().any(inside) || Path::new(folder) == Path::new(".") {
        return None;
    }
    said(
        "the scratch folder of a trial, which it lies in, has none of that name; write a whole path",
    )
}

/// The problem with a program, if any. A program that the trial itself makes may be missing.
fn missing(program: &str, spec: &CommandSpec) -> Option<String> {
    let is_relative = program.contains('/') && !program.starts_with('/');
    if !is_relative || program.contains(FILLED_IN) {
        let path = spec.env.iter().find(|(name, _)| name == "PATH");
        return in_path(program, path.map(|(_, value)| value.as_str()));
    }
    match spec.folder.as_deref() {
        Some(folder) if folder.contains(FILLED_IN) => None,
        Some(folder) if folder.starts_with('/') => {
            let there = runs(&Path::new(folder).join(program));
            (!there).then(|| format!("there is no program {program} in {folder}"))
        }
        folder => {
            let place = Path::new(folder.unwrap_or("")).join(program);
            let plain = place.strip_prefix("./").unwrap_or(&place);
            let is_made = spec.files.iter().any(|(name, _)| Path::new(name) == plain);
            (!is_made && !may_be_made(spec)).then(|| {
                format!(
                    "there is no program {program} in the scratch folder of a trial, where the system \
                     starts; write its whole path, or name its folder under `folder`"
                )
            })
        }
    }
}

/// The problem with a program that is named by an absolute path, or found in PATH.
fn in_path(program: &str, own: Option<&str>) -> Option<String> {
    if program.contains(FILLED_IN) || (program.contains('/') && !program.starts_with('/')) {
        return None;
    }
    if program.starts_with('/') {
        let there = runs(Path::new(program));
        return (!there).then(|| format!("there is no program {program}"));
    }
    let paths = own.map(Into::into).or_else(|| std::env::var_os("PATH"));
    let found = std::env::split_paths(&paths?).any(|folder| runs(&folder.join(program)));
    (!found).then(|| format!("there is no program `{program}` in PATH"))
}

fn runs(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use lab_study::{Ready, StopSignal};

    use super::*;

    fn spec(start: &str, folder: Option<&str>) -> CommandSpec {
        CommandSpec {
            start: vec![start.to_owned()],
            env: vec![],
            folder: folder.map(str::to_owned),
            files: vec![],
            port: None,
            ready: Ready::Port,
            ready_within_ms: 1,
            reset: vec![],
            stop_signal: StopSignal::Term,
            stop_grace_ms: 1,
            preparation: Preparation::default(),
            preset: None,
            name: None,
            before: vec![],
        }
    }

    #[track_caller]
    fn check(spec: &CommandSpec, expected: &str) {
        let said = of_command(spec).join("");
        match expected.is_empty() {
            true => assert_eq!(said, ""),
            false => assert!(said.contains(expected), "{said}"),
        }
    }

    #[test]
    fn programs_and_folders_are_looked_for_where_the_system_will_start() {
        check(&spec("sh", None), "");
        check(
            &spec("no-such-program", None),
            "no program `no-such-program` in PATH",
        );
        check(&spec("/bin/sh", Some("/")), "");
        check(&spec("/bin/no-such", None), "no program /bin/no-such");
        check(&spec("./sh", Some("/bin")), "");
        check(&spec("./no-such", Some("/bin")), "./no-such in /bin");
        check(
            &spec("sh", Some("/no-such-folder")),
            "names /no-such-folder: No such file",
        );
        check(&spec("sh", Some("/bin/sh")), "this is no folder");
        check(&spec("sh", Some("data")), "write a whole path");
        check(&spec("sh", Some("{{ scratch }}/x")), "");
        check(&spec("./run", None), "write its whole path");
        check(&spec("{{ scratch }}/run", None), "");
    }

    #[test]
    fn required_programs_come_with_the_command_that_installs_them() {
        let requires = |programs: &[&str], debian: &[&str]| Requires {
            programs: programs.iter().map(|name| (*name).to_owned()).collect(),
            debian: debian.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(required(&Requires::default()), None);
        assert_eq!(
            required(&requires(&["sh", "/bin/sh", "/*/sh"], &["dash"])),
            None
        );
        let missing = required(&requires(&["sh", "no-such", "/bin/*/no"], &["one", "two"]));
        assert_eq!(
            missing.as_deref(),
            Some(
                "the study requires programs that this machine doesn't have: `no-such`, `/bin/*/no`; \
                 on Debian, type: apt-get install one two"
            )
        );
        let missing = required(&requires(&["no-such"], &[]));
        assert_eq!(
            missing.as_deref(),
            Some("the study requires programs that this machine doesn't have: `no-such`")
        );
    }

    #[test]
    fn what_the_trial_makes_is_not_missed() {
        let mut made = spec("./run", None);
        made.files = vec![("run".to_owned(), "#!/bin/sh".to_owned())];
        check(&made, "");
        let mut reset = spec("./run", Some("data"));
        reset.reset = vec!["sh".to_owned()];
        check(&reset, "");
        let mut filled = spec("sh", None);
        filled.preparation.fill = vec![Action::Command(vec!["/no/such".to_owned()])];
        check(&filled, "there is no program /no/such");
    }
}
