//! `plimsoll plan`: the trials in order, the time they need, and whether this machine can do them.

use std::path::{Path, PathBuf};

use lab_analysis::Analysis;
use lab_conduct::{Capacity, IdleWait, RunRequest, disk_needed, preflight};
use lab_estimate::{Earlier, Waits, between_runs, power, rows, schedule, warnings};
use lab_study::Loaded;
use lab_study::plan::Plan;

use crate::args::PlanArgs;
use crate::commands::earlier::{self, Planned};
use crate::commands::{RUNS, print, report, request, script};
use crate::exit::{Exit, Failure, failure};
use crate::files::Disk;

pub(crate) fn run(args: &PlanArgs) -> Result<Exit, Failure> {
    let ((loaded, plan), _) = script::or_study(&args.study, &Disk, (&args.quick, &args.script))?;
    let request = request::new(&args.study, (loaded, plan), PathBuf::from(RUNS), false)?;
    let (loaded, plan) = (&request.loaded, &request.plan);
    let earlier = match &args.from {
        Some(dir) => Some(earlier_run(dir, plan)?),
        None => None,
    };
    let own = (loaded.study.populations.is_empty()).then_some(&loaded.study.workload);
    let of_populations = loaded.study.populations.iter().map(|one| &one.workload);
    for workload in own.into_iter().chain(of_populations) {
        print(&rows(workload, plan))?;
    }
    let waits = waits(IdleWait::default());
    print(&schedule(&loaded.study, plan, disk_needed(plan), waits))?;
    print(&warnings(loaded, plan))?;
    let runs = history(args, loaded, plan)?;
    print(&power(&loaded.study, plan, earlier.as_ref()))?;
    print(&between_runs(&loaded.study, plan, &runs))?;
    preflight(&request).map_err(|error| failure(&error))?;
    print(&room(&request))
}

/// The spread of differences in the run at `dir`.
fn earlier_run(dir: &Path, plan: &Plan) -> Result<Earlier, Failure> {
    let analysis = report::read_figures(dir, None)?;
    Ok(Earlier::of(dir.display().to_string(), &analysis, plan))
}

/// Describes the limits of the load: those of this machine, or of agents.
fn room(request: &RunRequest) -> String {
    if let Some(agents) = request.loaded.study.agents() {
        return format!(
            "driven by {agents}, with their files, ports, and memory;\n`plimsoll run --dry-run` asks who \
             is there\n"
        );
    }
    let room = Capacity::of_largest(&request.plan, &request.out);
    let room = room.map_or(String::new(), |room| format!("{room}\n"));
    format!("this machine's limits allow it\n{room}")
}

/// Reads earlier runs of the study with the planned settings.
fn history(args: &PlanArgs, loaded: &Loaded, plan: &Plan) -> Result<Vec<Analysis>, Failure> {
    if args.no_history || plan.search.is_some() {
        return Ok(Vec::new());
    }
    let planned = Planned {
        study: &plan.study,
        file_hash: &lab_conduct::file_hash(loaded),
        overrides: &args.study.set,
        speed: plan.speed,
    };
    earlier::of_plan(args.history.as_deref(), &planned)
}

/// The maximum times that a run waits for an idle machine.
pub(crate) fn waits(patience: IdleWait) -> Waits {
    Waits {
        trial: patience.trial,
        run: patience.run,
    }
}
