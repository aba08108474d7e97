//! `plimsoll compare`: two runs of one workload, from their archives alone.

use std::fs;
use std::path::{Path, PathBuf};

use lab_analysis::Analysis;
use lab_comparison::{RunComparison, RunOutcome, Runs};
use lab_plan::Decides;
use lab_report::write;

use crate::args::{CompareArgs, Format};
use crate::commands::report;
use crate::commands::{earlier, print};
use crate::exit::{Exit, Failure, unless_lenient};
use lab_terminal::width;

pub(crate) fn run(args: &CompareArgs) -> Result<Exit, Failure> {
    let (a, b) = sides(args)?;
    earlier::each_once(a)?;
    earlier::each_once(b)?;
    let named = named(args.decides, a, b);
    let earlier = match args.no_history {
        true => Vec::new(),
        false => earlier::runs(args.history.as_deref(), a, b, named)?,
    };
    let runs = Runs {
        a: &read_all(a, named)?,
        b: &read_all(b, named)?,
        earlier: &earlier,
        decides: args.decides,
    };
    let runs = runs.compare();
    let runs = runs.map_err(|error| Failure::new(Exit::BadInput, &error))?;
    if !args.force {
        same_setup(&runs)?;
    }
    print(&match args.format {
        Format::Terminal => write::runs_terminal(&runs, width::of_reports()),
        Format::Html => write::runs_html(&runs),
        Format::Md => write::runs_markdown(&runs),
        Format::Json => {
            write::runs_json(&runs).map_err(|error| Failure::new(Exit::Internal, &error))?
        }
        Format::Csv => write::runs_csv(&runs),
        Format::Junit => write::junit_of_runs(&runs),
        Format::Github => write::runs_github(&runs),
        Format::Gitlab => {
            let newest = b.last().map(|dir| report::open(dir)).transpose()?;
            let study_file = newest.as_ref().map(report::study_file).unwrap_or_default();
            write::runs_gitlab(&runs, &study_file)
                .map_err(|error| Failure::new(Exit::Internal, &error))?
        }
        Format::K6 => return Err(no_k6()),
    })?;
    Ok(unless_lenient(exit(runs.outcome), args.gate, Exit::Success))
}

/// Missing data is not inconclusive: `--lenient` doesn't forgive it.
fn exit(outcome: RunOutcome) -> Exit {
    match outcome {
        RunOutcome::Ok => Exit::Success,
        RunOutcome::Regression => Exit::Regression,
        RunOutcome::CouldNotTell => Exit::CouldNotTell,
        RunOutcome::TooFewValidTrials => Exit::TooFewValidTrials,
    }
}

fn no_k6() -> Failure {
    Failure::text(
        Exit::BadInput,
        "k6 has no summary of a comparison".to_owned(),
    )
    .hint("`plimsoll report RUN --format k6` writes that of a run")
}

/// The archives of both sides.
fn sides(args: &CompareArgs) -> Result<(&[PathBuf], &[PathBuf]), Failure> {
    match (&args.runs[..], &args.new[..]) {
        (a @ [_, ..], b @ [_, ..]) => Ok((a, b)),
        (both @ [_, .., _], []) => Ok(both.split_at(both.len() - 1)),
        _ => Err(Failure::text(
            Exit::BadInput,
            "a comparison needs a run of the baseline and one to compare with it".to_owned(),
        )
        .hint("plimsoll compare runs/before runs/after")),
    }
}

/// Returns the measure that decides, by which all runs are judged: the requested one, else that of a study of `b`, or
/// of `a`.
fn named(asked: Option<Decides>, a: &[PathBuf], b: &[PathBuf]) -> Option<Decides> {
    let mut studies = b.iter().chain(a);
    let decides = asked.or_else(|| studies.find_map(|dir| by_study(dir)));
    decides.filter(|one| matches!(one, Decides::Named(_)))
}

/// Returns the measure that a study names. Faults of the archive are reported when it is read.
fn by_study(archive: &Path) -> Option<Decides> {
    let text = fs::read(archive.join("plan.json")).ok()?;
    let plan: serde_json::Value = serde_json::from_slice(&text).ok()?;
    plan.pointer("/question/decides")?.as_str()?.parse().ok()
}

fn read_all(dirs: &[PathBuf], by: Option<Decides>) -> Result<Vec<Analysis>, Failure> {
    let read = |dir: &PathBuf| {
        let _shown = report::Reading::begin(dir);
        report::read_figures(dir, by)
    };
    dirs.iter().map(read).collect()
}

/// Refuses runs whose machines or loads differ in a way that affects their results.
fn same_setup(runs: &RunComparison) -> Result<(), Failure> {
    let differences: Vec<String> = runs
        .that_matter()
        .map(|one| {
            format!(
                "\n  {}: {} in the first run, {} in the second",
                one.what, one.a, one.b
            )
        })
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    let text = format!(
        "the runs differ in what their results can't be told from:{}",
        differences.concat()
    );
    Err(Failure::text(Exit::BadInput, text)
        .hint("--force compares them all the same, and lists the differences"))
}

#[cfg(test)]
mod tests {
    use lab_comparison::RunOutcome;

    use super::exit;
    use crate::args::GateArgs;
    use crate::exit::{Exit, unless_lenient};

    #[test]
    fn lenient_forgives_noise_and_nothing_that_is_missing() {
        let of =
            |outcome, lenient| unless_lenient(exit(outcome), GateArgs { lenient }, Exit::Success);
        for (outcome, plain, lenient) in [
            (RunOutcome::Ok, Exit::Success, Exit::Success),
            (RunOutcome::Regression, Exit::Regression, Exit::Regression),
            (RunOutcome::CouldNotTell, Exit::CouldNotTell, Exit::Success),
            (
                RunOutcome::TooFewValidTrials,
                Exit::TooFewValidTrials,
                Exit::TooFewValidTrials,
            ),
        ] {
            assert_eq!(
                (of(outcome, false), of(outcome, true)),
                (plain, lenient),
                "{outcome:?}"
            );
        }
    }
}
