//! `plimsoll bench`: one request under load, whether the result is valid, and the figures.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lab_analysis::Analysis;
use lab_conduct::IdleWait;
use lab_import::quick::by_flags;
use lab_report::bench::{is_unanswered, page};

use crate::args::{GateArgs, StudyArgs};
use crate::commands::folder::Folder;
use crate::commands::report;
use crate::commands::run::{conduct, now};
use crate::commands::{RUNS, print, quick, request};
use crate::exit::{Exit, Failure};
use crate::live::Page;
use crate::trying::BenchArgs;
use lab_terminal::stderr::say;

pub(crate) fn run(args: &BenchArgs) -> Result<Exit, Failure> {
    let study = StudyArgs {
        study: PathBuf::from("bench"),
        speed: 1.0,
        set: Vec::new(),
        seed: None,
        state: args.state.clone(),
    };
    let (loaded, plan) = quick::bench(args, &study)?;
    let out = match &args.out {
        Some(out) => Folder::named(out.clone()),
        None => Folder::new(Path::new(RUNS), &plan.study, now()),
    };
    let mut request = request::new(&study, (loaded, plan), out.path.clone(), false)?;
    // A quick measurement doesn't wait for an idle machine; disturbances are reported.
    request.idle_wait = IdleWait {
        trial: Duration::ZERO,
        run: Duration::ZERO,
    };
    let outcome = conduct(&request, (Page::None, None))?;
    if outcome.completed == 0 {
        say(format_args!("interrupted: nothing was measured"));
        return Ok(Exit::Interrupted);
    }
    let analysis = report::read(&outcome.dir)?;
    report::write_files(&analysis, &outcome.dir)?;
    print(&summary(&analysis, &outcome.dir))?;
    if analysis.trials.last().is_some_and(is_unanswered) {
        return Ok(Exit::SystemFailed);
    }
    Ok(report::exit(&analysis, GateArgs { lenient: false }))
}

fn summary(analysis: &Analysis, dir: &Path) -> String {
    let report = dir.join("report.html").display().to_string();
    page(analysis, &report, &by_flags)
}

#[cfg(test)]
mod tests {
    use lab_report::bench::WIDTH;

    use super::*;

    #[test]
    fn a_page_that_says_first_whether_it_is_a_measurement() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
        let pages = ["workload", "search"].map(|name| {
            let analysis = report::read(&golden.join(name)).unwrap();
            summary(&analysis, Path::new("runs/bench"))
        });
        let widest = pages.iter().flat_map(|page| page.lines().skip(1));
        assert!(widest.map(|line| line.chars().count()).max() <= Some(WIDTH));
        insta::assert_snapshot!(pages.join("\n════\n"));
    }
}
