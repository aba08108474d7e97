//! `plimsoll report`: a run's report again, from its archive alone.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lab_analysis::model::{Decision, Outcome};
use lab_analysis::{Analysis, analyse_by};
use lab_archive::{Run, TrialData};
use lab_plan::Decides;
use lab_report::write;
use lab_study::{ArchivedError, present_plan};

use crate::args::{Format, GateArgs, ReportArgs};
use crate::commands::{print, written};
use crate::exit::{Exit, Failure, unless_lenient};
use lab_terminal::width;

pub(crate) fn run(args: &ReportArgs) -> Result<Exit, Failure> {
    let shown = Reading::begin(&args.run);
    let run = open(&args.run)?;
    let study_file = study_file(&run);
    let analysis = analysed_by(run, args.decides)?;
    drop(shown);
    match args.format {
        Format::Terminal => {
            // Shown first: the archive may be read-only.
            print(&write::terminal(&analysis, width::of_reports()))?;
            write_files(&analysis, &args.run)?;
        }
        Format::Html => drop(print(&write::html(&analysis))?),
        Format::Md => drop(print(&write::markdown(&analysis))?),
        Format::Json => drop(print(&json(&analysis)?)?),
        Format::Csv => drop(print(&write::steps_csv(&analysis))?),
        Format::Junit => drop(print(&write::junit(&analysis))?),
        Format::Github => drop(print(&write::github(&analysis))?),
        Format::Gitlab => {
            let findings = write::gitlab(&analysis, &study_file).map_err(internal)?;
            print(&findings)?;
        }
        Format::K6 => drop(print(&write::k6(&analysis).map_err(internal)?)?),
    }
    // A written file is a success of its own: a script continues to upload it.
    match args.format == Format::Terminal || args.exit_code {
        true => Ok(exit(&analysis, args.gate)),
        false => Ok(Exit::Success),
    }
}

/// Shows the progress on a terminal: an archive of half a day takes a minute.
pub(crate) struct Reading(ProgressBar);

impl Reading {
    pub(crate) fn begin(archive: &Path) -> Self {
        let bar = ProgressBar::new_spinner();
        // The template is a constant; a fault in it shows as the default style.
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.set_message(format!("reading {}", archive.display()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn json(analysis: &Analysis) -> Result<String, Failure> {
    write::json(analysis).map_err(internal)
}

fn internal(error: serde_json::Error) -> Failure {
    Failure::new(Exit::Internal, &error)
}

/// Opens and analyses an archive.
pub(crate) fn read(dir: &Path) -> Result<Analysis, Failure> {
    analysed(open(dir)?)
}

/// Analyses the figures alone, without what explains them, as if the study named this measure as the one that decides.
pub(crate) fn read_figures(dir: &Path, decides: Option<Decides>) -> Result<Analysis, Failure> {
    let mut run = open(dir)?;
    run.trials.iter_mut().for_each(TrialData::drop_explanations);
    analysed_by(run, decides)
}

pub(crate) fn open(dir: &Path) -> Result<Run, Failure> {
    Run::open(dir).map_err(|error| Failure::new(Exit::BadInput, &error))
}

/// Returns the name of the study's file, as given to its run.
pub(crate) fn study_file(run: &Run) -> String {
    run.files
        .first()
        .map_or_else(String::new, |(name, _)| name.clone())
}

/// Analyses an archive of any version.
pub(crate) fn analysed(run: Run) -> Result<Analysis, Failure> {
    analysed_by(run, None)
}

fn analysed_by(run: Run, decides: Option<Decides>) -> Result<Analysis, Failure> {
    let run = present(run).map_err(|error| Failure::new(Exit::BadInput, &error))?;
    analyse_by(&run, decides).map_err(|error| Failure::new(Exit::BadInput, &error))
}

/// Converts an archive of any version to the present form of the plan.
pub(crate) fn present(run: Run) -> Result<Run, ArchivedError> {
    let plan = present_plan(run.plan, &run.files, &run.manifest.overrides)?;
    Ok(Run { plan, ..run })
}

/// Writes the report's files into the archive, each atomically.
pub(crate) fn write_files(analysis: &Analysis, dir: &Path) -> Result<(), Failure> {
    let files = [
        ("report.html", write::html(analysis)),
        ("report.md", write::markdown(analysis)),
        ("steps.csv", write::steps_csv(analysis)),
        ("transactions.csv", write::transactions_csv(analysis)),
        ("comparisons.csv", write::comparisons_csv(analysis)),
        ("junit.xml", write::junit(analysis)),
        ("result.json", json(analysis)?),
    ];
    for (name, text) in files {
        written::replace(&dir.join(name), text.as_bytes()).map_err(|error| {
            Failure::text(Exit::Internal, format!("can't write {name}: {error}"))
        })?;
    }
    Ok(())
}

/// The exit code for a run's outcome.
pub(crate) fn exit(analysis: &Analysis, gate: GateArgs) -> Exit {
    // A run whose system can't start ends by itself.
    let summary = &analysis.summary;
    if summary.complete < summary.planned && summary.unstarted.is_none() {
        return Exit::Interrupted;
    }
    let otherwise = match analysis.summary.is_beyond_limit() {
        false => Exit::Success,
        true => Exit::ThresholdFailed,
    };
    let decision = analysis.answer.as_ref().map(|answer| answer.decision);
    let mut trials = analysis.trials.iter();
    let by_script = match trials.any(|trial| trial.test_failed.is_some()) {
        false => Exit::Success,
        true => Exit::ThresholdFailed,
    };
    by_script.max(unless_lenient(
        of_outcome(analysis.summary.outcome, decision),
        gate,
        otherwise,
    ))
}

fn of_outcome(outcome: Outcome, decision: Option<Decision>) -> Exit {
    match outcome {
        Outcome::Ok => Exit::Success,
        // Noise left the decision open; without a decision there is nothing to be lenient about.
        Outcome::CouldNotTell if decision == Some(Decision::NotAnswered) => Exit::TooFewValidTrials,
        Outcome::CouldNotTell => Exit::CouldNotTell,
        Outcome::Regression => Exit::Regression,
        Outcome::ThresholdFailed => Exit::ThresholdFailed,
        Outcome::TooFewValidTrials | Outcome::SearchNotFinished => Exit::TooFewValidTrials,
        Outcome::SystemFailed | Outcome::PreparationFailed => Exit::SystemFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_search_is_no_success_and_no_leniency_forgives_it() {
        let table = [
            (Outcome::Ok, Exit::Success),
            (Outcome::ThresholdFailed, Exit::ThresholdFailed),
            (Outcome::Regression, Exit::Regression),
            (Outcome::CouldNotTell, Exit::CouldNotTell),
            (Outcome::SearchNotFinished, Exit::TooFewValidTrials),
            (Outcome::TooFewValidTrials, Exit::TooFewValidTrials),
            (Outcome::PreparationFailed, Exit::SystemFailed),
            (Outcome::SystemFailed, Exit::SystemFailed),
        ];
        for (outcome, exit) in table {
            assert_eq!(of_outcome(outcome, None), exit, "{outcome:?}");
        }
        let lenient = GateArgs { lenient: true };
        let exit = of_outcome(Outcome::SearchNotFinished, None);
        assert_eq!(unless_lenient(exit, lenient, Exit::Success), exit);
    }
}
