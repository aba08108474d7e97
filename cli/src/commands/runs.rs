//! `plimsoll runs` and `plimsoll serve-reports`: the runs in a folder over time.

use std::fs;
use std::path::{Path, PathBuf};

use groupware_text::encoded;
use lab_history::{History, Recorded};
use lab_live::{Live, Reports};
use lab_report::{render, sections, write};

use crate::commands::{print, report, watch};
use crate::exit::{Exit, Failure};
use crate::history::{RunsArgs, RunsFormat, ServeReportsArgs, Which};
use crate::interrupt::interrupt;
use lab_terminal::stderr::say;
use lab_terminal::width;

/// The maximum bytes of a `result.json`: it has the figures of a run, not its samples.
const LARGEST_RESULT: u64 = 64 << 20;

pub(crate) fn run(args: &RunsArgs) -> Result<Exit, Failure> {
    let history = of_folder(&args.folder, &args.which, &|note| {
        say(format_args!("{note}"))
    })?;
    if history.studies.is_empty() {
        let of = match args.which.study.is_some() || args.which.search.is_some() {
            true => "no such run",
            false => "no run",
        };
        say(format_args!("{of} in {}", args.folder.display()));
    }
    let document = || {
        // A page's address, for any name of the folder.
        let link = |folder: &str| format!("./{}/report.html", encoded(folder));
        sections::history(&history, &link)
    };
    match args.format {
        RunsFormat::Terminal if history.studies.is_empty() => Ok(Exit::Success),
        RunsFormat::Terminal => print(&render::terminal(&document(), width::of_reports())),
        RunsFormat::Html => print(&render::html(&document())),
        RunsFormat::Md => print(&render::markdown(&document())),
        RunsFormat::Json => print(
            &write::history_json(&history).map_err(|error| Failure::new(Exit::Internal, &error))?,
        ),
    }
}

/// Serves the same as pages, until it is interrupted.
pub(crate) fn serve(args: &ServeReportsArgs) -> Result<Exit, Failure> {
    archives(&args.folder)?;
    let interrupt = interrupt()?;
    watch::warn_if_open(args.listen, "read the reports");
    let folder = Folder {
        folder: args.folder.clone(),
        which: args.which.clone(),
    };
    let live =
        Live::reports(args.listen, Box::new(folder)).map_err(|error| watch::failure(&error))?;
    print(&format!("reports: {}\n", live.url()))?;
    say(format_args!("Ctrl-C ends it"));
    watch::until_interrupted(&interrupt);
    drop(live);
    Ok(Exit::Success)
}

/// The pages of a folder.
struct Folder {
    folder: PathBuf,
    which: Which,
}

impl Reports for Folder {
    fn index(&self) -> Result<String, String> {
        let history = of_folder(&self.folder, &self.which, &|_| {});
        let history = history.map_err(|failure| failure.report)?;
        let link = |folder: &str| format!("run/{}", encoded(folder));
        Ok(render::html(&sections::history(&history, &link)))
    }

    fn report(&self, name: &str) -> Result<Option<String>, String> {
        // Opens archives of the list only: a name never leads to another path.
        let archives = archives(&self.folder).map_err(|failure| failure.report)?;
        let Some(dir) = archives.iter().find(|dir| encoded(&name_of(dir)) == name) else {
            return Ok(None);
        };
        let analysis = report::read(dir).map_err(|failure| failure.report)?;
        Ok(Some(write::html(&analysis)))
    }
}

/// Returns the history of the archives in a folder. Unreadable ones are reported and skipped.
pub(crate) fn of_folder(
    folder: &Path,
    which: &Which,
    note: &dyn Fn(String),
) -> Result<History, Failure> {
    let archives = archives(folder)?;
    let stale = archives.iter().filter(|dir| !has_result(dir)).count();
    if stale > 0 {
        note(format!(
            "reading {stale} archive{} without a result.json of their last trial",
            if stale == 1 { "" } else { "s" }
        ));
    }
    let mut runs = Vec::new();
    for dir in &archives {
        match recorded(dir) {
            Ok(run) => runs.push(run),
            Err(why) => note(format!("left out: {}: {why}", dir.display())),
        }
    }
    runs.retain(|run| {
        let is_of = which
            .study
            .as_deref()
            .is_none_or(|study| run.study() == study);
        is_of
            && which
                .search
                .as_deref()
                .is_none_or(|text| run.mentions(text))
    });
    Ok(History::new(runs))
}

/// Returns the folders that hold an archive, by name.
fn archives(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let is_archive = |dir: &Path| dir.join("manifest.json").exists();
    if is_archive(folder) {
        let text = format!("{} is the archive of one run", folder.display());
        return Err(Failure::text(Exit::BadInput, text)
            .hint("name the folder that has it and others; `plimsoll report` shows one"));
    }
    let entries = fs::read_dir(folder).map_err(|error| {
        let text = format!("can't list {}: {error}", folder.display());
        Failure::text(Exit::BadInput, text).hint("name the folder that the archives are in")
    })?;
    let dirs = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut dirs: Vec<PathBuf> = dirs.filter(|dir| is_archive(dir)).collect();
    dirs.sort();
    Ok(dirs)
}

/// Returns true if its result covers all its trials: each is renamed into the folder `trials`.
fn has_result(dir: &Path) -> bool {
    let changed = |name: &str| {
        fs::metadata(dir.join(name))
            .and_then(|of| of.modified())
            .ok()
    };
    match (changed("result.json"), changed("trials")) {
        (Some(result), Some(trials)) => result >= trials,
        (result, None) => result.is_some(),
        (None, _) => false,
    }
}

fn name_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Reads the archive's `result.json`, which is fast; without it, analyses the archive.
fn recorded(dir: &Path) -> Result<Recorded, String> {
    let name = name_of(dir);
    let path = dir.join("result.json");
    let is_small = fs::metadata(&path).is_ok_and(|of| of.len() <= LARGEST_RESULT);
    let written = (is_small && has_result(dir))
        .then(|| fs::read(&path).ok())
        .flatten();
    // The result of another version may have less.
    if let Some(run) = written.and_then(|bytes| Recorded::new(name.clone(), &bytes).ok()) {
        return Ok(run);
    }
    let analysis = report::read(dir).map_err(|failure| failure.report)?;
    let result = write::json(&analysis).map_err(|error| error.to_string())?;
    Recorded::new(name, result.as_bytes()).map_err(|error| error.to_string())
}
