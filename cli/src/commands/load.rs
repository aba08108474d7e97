//! Loads a study or a workload for a command, with errors for people.

use std::path::Path;

use lab_study::plan::{Plan, PlanOptions, plan};
use lab_study::{Files, LoadError, Loaded, LoadedAny, load_any, load_study};
use miette::{GraphicalReportHandler, GraphicalTheme};

use crate::args::StudyArgs;
use crate::exit::{Exit, Failure};
use crate::files::Disk;

/// Narrow enough for a terminal of 80 columns.
const WIDTH: usize = 80;
/// The prefix of the names of files that stand for flags.
const MADE: &str = "plimsoll-quick.";

/// Loads and plans a study with these arguments, from `files`.
pub(crate) fn study(args: &StudyArgs, files: &dyn Files) -> Result<(Loaded, Plan), Failure> {
    let path = text(&args.study)?;
    match study_from(path, files, args) {
        Err(failure) => Err(workload_instead(path).unwrap_or(failure)),
        found => found,
    }
}

/// The failure for a workload file that is given in place of a study.
fn workload_instead(path: &str) -> Option<Failure> {
    match load_any(path, &Disk) {
        Ok(LoadedAny::Workload(_)) => Some(is_workload(path)),
        Err(error) if path.ends_with(".workload.yaml") => Some(bad_file(&error)),
        _ => None,
    }
}

/// The failure with the right commands for a workload file.
fn is_workload(path: &str) -> Failure {
    Failure::text(
        Exit::BadInput,
        format!(
            "{path} is a workload: it says what one user does, and a study who many are, and where"
        ),
    )
    .hint(format!(
        "on a server that runs, without a study:\n  \
         plimsoll try --url http://HOST:PORT {path}     one user, every request\n  \
         plimsoll run --url http://HOST:PORT {path} --users 50 --for 1m"
    ))
}

/// Loads and plans a study from files that may be elsewhere than on the disk.
pub(crate) fn study_from(
    path: &str,
    files: &dyn Files,
    args: &StudyArgs,
) -> Result<(Loaded, Plan), Failure> {
    let loaded = load_study(path, files, &args.set).map_err(|error| bad_file(&error))?;
    let options = PlanOptions {
        speed: args.speed,
        seed: args.seed,
    };
    let plan =
        plan(&loaded.study, &options).map_err(|error| Failure::new(Exit::BadInput, &error))?;
    Ok((loaded, plan))
}

/// The path as text; names in error messages and in archives are text.
pub(crate) fn text(path: &Path) -> Result<&str, Failure> {
    path.to_str()
        .ok_or_else(|| Failure::text(Exit::BadInput, format!("{} is not UTF-8", path.display())))
}

/// A load error with its excerpts, ready to print.
pub(crate) fn bad_file(error: &LoadError) -> Failure {
    // A file that stands for flags has no place to show.
    let mut problems = error.problems().iter();
    if let Some(problem) = problems.find(|problem| problem.file.starts_with(MADE)) {
        let failure = Failure::text(Exit::BadInput, problem.message.clone());
        return match &problem.help {
            Some(help) => failure.hint(help.clone()),
            None => failure,
        };
    }
    let theme = if std::env::var_os("NO_COLOR").is_none()
        && std::io::IsTerminal::is_terminal(&std::io::stderr())
    {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let mut report = String::new();
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(WIDTH)
        .with_links(false);
    if handler.render_report(&mut report, error).is_err() {
        report = error.to_string();
    }
    report.push_str(&format!("\n{}", where_to_read(error)));
    Failure::rendered(Exit::BadInput, report)
}

/// The pages of the book about the invalid files.
fn where_to_read(error: &LoadError) -> String {
    let mut files = error.problems().iter().map(|problem| &problem.file);
    let page = match files.any(|file| file.ends_with(".workload.yaml")) {
        true => "docs/workloads.md",
        false => "docs/studies.md",
    };
    format!("See {page}; docs/reference.md has every key.")
}
