//! The study and the workloads for a script, as text.

use std::fmt::Write as _;

use lab_import::quick::system;
use lab_units::yaml::{comment, short_name, text};

use crate::known;
use crate::load::{self, Scenario, scenarios};
use crate::options::Options;
use crate::script::{Refused, Script, StudyFiles};
use crate::thresholds;

/// Returns the study and the workloads for a script.
///
/// # Errors
/// All options that can't be run.
pub fn files(script: &Script<'_>) -> Result<StudyFiles, Vec<Refused>> {
    let mut refused = Vec::new();
    let mut notes = Vec::new();
    known::of_script(&mut Options::of(script, &mut refused), &mut notes);
    let scenarios = scenarios(script, &mut refused, &mut notes);
    let thresholds = thresholds::thresholds(script, &scenarios, (&mut refused, &mut notes));
    if !refused.is_empty() {
        return Err(refused);
    }
    notes.extend(load::longer_than_asked(&scenarios));
    if script.flags.is_attempt {
        notes.clear();
    }
    let mut workloads: Vec<(String, String)> = Vec::new();
    for one in &scenarios {
        let file = one.workload_file(&script.prefix);
        if workloads.iter().all(|(known, _)| *known != file) {
            workloads.push((file, workload(script, one)));
        }
    }
    let mut study = comment(0, &format!("Made by plimsoll from {}.", script.file));
    let _ = writeln!(study, "study: {}", short_name(&script.name, "script"));
    let title = format!("{} at {}", script.file, script.url);
    let _ = writeln!(study, "title: {}", text(&title));
    let first = workloads.first().map_or("", |(file, _)| file.as_str());
    let _ = writeln!(study, "workload: {}", text(&format!("./{first}")));
    study.push_str(&system(&script.url, script.pid, &script.reach));
    study.push_str(&load::load(&scenarios, &script.prefix));
    study.push_str(&thresholds);
    Ok(StudyFiles {
        study,
        workloads,
        notes,
    })
}

/// Returns the workload of a scenario.
fn workload(script: &Script<'_>, scenario: &Scenario) -> String {
    let mut out = comment(0, &format!("Made by plimsoll from {}.", script.file));
    let name = match scenario.function.as_str() {
        "default" => script.name.clone(),
        function => format!("{}-{function}", script.name),
    };
    let _ = writeln!(out, "workload: {}", short_name(&name, "script"));
    let _ = writeln!(
        out,
        "session: {{ script: {}, function: {} }}",
        text(&script.file),
        text(&scenario.function)
    );
    out
}
