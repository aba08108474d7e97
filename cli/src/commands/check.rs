//! `plimsoll check`: is a study or workload file valid?

use lab_study::{LoadedAny, load_any};

use crate::beginning::CheckArgs;
use crate::commands::{load, print};
use crate::exit::{Exit, Failure};
use crate::files::Disk;
use lab_terminal::stderr::say;

/// Checks every file, so that one call shows all faults.
pub(crate) fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    let mut exit = Exit::Success;
    for path in &args.files {
        let name = load::text(path)?;
        match load_any(name, &Disk) {
            Ok(any) => {
                print(&format!("{name}: {}\n", describe(&any)))?;
            }
            Err(error) => {
                say(format_args!("{}", load::bad_file(&error)));
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
            let mut workloads = vec![study.workload.name.as_str()];
            for of in &study.populations {
                if !workloads.contains(&of.workload.name.as_str()) {
                    workloads.push(&of.workload.name);
                }
            }
            let agents = study.agents();
            let agents = agents.map_or(String::new(), |agents| format!(", driven by {agents}"));
            format!(
                "valid study “{}”: {}, {}, workload “{}”{agents}",
                study.name,
                plural(study.cells.len(), "cell"),
                plural(study.trials as usize, "block"),
                workloads.join("”, “")
            )
        }
        LoadedAny::Workload(workload) => format!(
            "valid workload “{}”: {}, {}",
            workload.name,
            plural(workload.session.steps.len(), "step"),
            plural(workload.setup.len(), "setup step")
        ),
    }
}

fn plural(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}
