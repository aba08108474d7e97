//! `plimsoll check`: is a study or workload file valid?

use lab_study::{LoadedAny, load_any};

use crate::args::CheckArgs;
use crate::commands::{load, print};
use crate::exit::{Exit, Failure};
use crate::files::Disk;

/// Checks every file, so that one look shows all faults.
pub(crate) fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    let mut exit = Exit::Success;
    for path in &args.files {
        let name = load::text(path)?;
        match load_any(name, &Disk) {
            Ok(any) => {
                print(&format!("{name}: {}\n", describe(&any)))?;
            }
            Err(error) => {
                eprintln!("{}", load::bad_file(&error));
                exit = Exit::BadInput;
            }
        }
    }
    Ok(exit)
}

fn describe(any: &LoadedAny) -> String {
    match any {
        LoadedAny::Study(loaded) => {
            let study = &loaded.study;
            let cells = study.cells.len();
            format!(
                "valid study “{}”: {cells} cells, {} blocks, workload “{}”",
                study.name, study.trials, study.workload.name
            )
        }
        LoadedAny::Workload(workload) => format!(
            "valid workload “{}”: {} steps, {} setup steps",
            workload.name,
            workload.session.steps.len(),
            workload.setup.len()
        ),
    }
}
