//! The functions of a script around a load: `setup` before it, whose result all sessions receive, `teardown`, and the
//! summary of the run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lab_script::{Call, Outcome, Runtime, Turn};
use lab_workload::{Scripted, Workload};
use serde_json::Value;

use crate::assignment::Assignment;
use crate::error::DriverError;
use crate::mix::Mix;
use crate::worker::rehearsal::{SETUP, call};

/// The function after all sessions.
const TEARDOWN: &str = "teardown";

/// Calls the `setup` of each script of a load once. Returns the load with the results; `None` if `interrupt` became
/// true before the end.
///
/// # Errors
/// When a script can't be loaded, or throws.
pub fn set_up(mix: Mix, interrupt: &AtomicBool) -> Result<Option<Mix>, DriverError> {
    let mut made: Vec<Arc<Scripted>> = Vec::new();
    let mut drives = Vec::new();
    for drive in mix.assignments() {
        let mut drive = drive.clone();
        let scripted = drive.workload.scripted.clone();
        if let Some(scripted) = scripted.filter(|scripted| scripted.exports(SETUP)) {
            let same = |known: &&Arc<Scripted>| known.sources == scripted.sources;
            let data = match made.iter().find(same) {
                Some(known) => known.data.clone(),
                None => match call(&drive, SETUP, interrupt)? {
                    Some(value) => value.map(Arc::new),
                    None => return Ok(None),
                },
            };
            let with_data = Arc::new(Scripted {
                data,
                ..(*scripted).clone()
            });
            made.push(Arc::clone(&with_data));
            let mut workload = (*drive.workload).clone();
            workload.scripted = Some(with_data);
            drive.workload = Arc::new(workload);
        }
        drives.push(drive);
    }
    let all = drives.into_iter();
    let all = all.fold(None, |mix: Option<Mix>, drive| match mix {
        Some(mix) => Some(mix.and(drive)),
        None => Some(Mix::from(drive)),
    });
    Ok(all)
}

/// Calls the `teardown` of each script of a load once.
///
/// # Errors
/// As [`set_up`].
pub fn tear_down(mix: &Mix, interrupt: &AtomicBool) -> Result<(), DriverError> {
    let mut done: Vec<&Assignment> = Vec::new();
    for drive in mix.assignments() {
        let Some(scripted) = &drive.workload.scripted else {
            continue;
        };
        let sources = |drive: &&Assignment| {
            let known = drive.workload.scripted.as_ref();
            known.is_some_and(|known| known.sources == scripted.sources)
        };
        if scripted.exports(TEARDOWN) && !done.iter().any(sources) {
            call(drive, TEARDOWN, interrupt)?;
            done.push(drive);
        }
    }
    Ok(())
}

/// The longest time of the function that summarizes a run.
const SUMMARY_TIME: Duration = Duration::from_secs(10);
/// The function.
const SUMMARY: &str = "handleSummary";

/// Calls the `handleSummary` of a workload's script with these figures. Returns its value; `None` without the function.
///
/// # Errors
/// When the script can't be loaded, throws, or sends requests.
pub fn summarize(workload: &Workload, figures: Value) -> Result<Option<Value>, DriverError> {
    let scripted = workload.scripted.as_ref();
    let Some(scripted) = scripted.filter(|scripted| scripted.exports(SUMMARY)) else {
        return Ok(None);
    };
    let program = lab_scripted::load(scripted, &workload.inputs).map_err(DriverError::Script)?;
    let limits = lab_script::Limits {
        turn: SUMMARY_TIME,
        ..lab_script::Limits::default()
    };
    let failed = |why: String| DriverError::Script(format!("`{SUMMARY}` of the script: {why}"));
    let runtime = Runtime::new(&program, limits, 0);
    let mut runtime = runtime.map_err(|thrown| failed(thrown.to_string()))?;
    let call = Call {
        function: SUMMARY.to_owned(),
        data: Some(Arc::new(figures)),
        ..Call::default()
    };
    let mut turn = runtime.begin(0, &call);
    loop {
        turn = match turn {
            Turn::Wait { .. } => runtime.resume(0, Outcome::Waited),
            Turn::Done { value } => return Ok(value),
            Turn::Threw(thrown) => return Err(failed(thrown.to_string())),
            Turn::Request(_) | Turn::Batch(_) => {
                return Err(failed("it sends requests, after the run".to_owned()));
            }
        };
    }
}
