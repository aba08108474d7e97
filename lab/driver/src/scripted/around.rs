//! The functions of a script around a load: `setup` before it, whose result all sessions receive, `teardown`, and the
//! summary of the run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lab_client::ErrorClass;
use lab_recorder::ScriptNote;
use lab_recorder::event::{DriverEvent, Window};
use lab_recorder::report::{Example, Report};
use lab_script::{Call, Outcome, Runtime, Turn};
use lab_workload::{ALL_CHECKS_MEASURE, CHECK_MEASURE, Scripted, Workload};
use serde_json::Value;

use crate::assignment::Assignment;
use crate::error::DriverError;
use crate::mix::Mix;
use crate::worker::rehearsal::{Called, SETUP, TEARDOWN, call};

/// The results of the calls of a script before or after a load.
#[derive(Debug, Default)]
pub struct Calls {
    /// Requests that met their `expect`.
    pub transactions: u64,
    /// Failed requests.
    pub errors: u64,
    /// Examples of errors, and facts that the script caused.
    pub events: Vec<DriverEvent>,
}

/// Calls the `setup` of each script of a load once. Returns the load with the results; `None` if `interrupt` became
/// true before the end.
///
/// # Errors
/// When a script can't be loaded, throws, or ends the test.
pub fn set_up(mut mix: Mix, interrupt: &AtomicBool) -> Result<Option<(Mix, Calls)>, DriverError> {
    let mut calls = Calls::default();
    let mut made: Vec<Arc<Scripted>> = Vec::new();
    for drive in mix.assignments_mut() {
        let scripted = drive.workload.scripted.clone();
        let Some(scripted) = scripted.filter(|scripted| scripted.exports(SETUP)) else {
            continue;
        };
        let same = |known: &&Arc<Scripted>| known.sources == scripted.sources;
        let data = match made.iter().find(same) {
            Some(known) => known.data.clone(),
            None => match calls.call(drive, SETUP, interrupt)? {
                Some(value) => value.map(Arc::new),
                None => return Ok(None),
            },
        };
        let with_data = Arc::new(Scripted {
            data,
            ..(*scripted).clone()
        });
        made.push(Arc::clone(&with_data));
        let drive = Arc::make_mut(drive);
        Arc::make_mut(&mut drive.workload).scripted = Some(with_data);
    }
    Ok(Some((mix, calls)))
}

/// Calls the `teardown` of each script of a load once. Returns the results, and sentences on what failed.
pub fn tear_down(mix: &Mix, interrupt: &AtomicBool) -> (Calls, Vec<String>) {
    let (mut all, mut problems) = (Calls::default(), Vec::new());
    let mut done: Vec<&Scripted> = Vec::new();
    for drive in mix.assignments() {
        let Some(scripted) = &drive.workload.scripted else {
            continue;
        };
        let is_done = done.iter().any(|known| known.sources == scripted.sources);
        if !scripted.exports(TEARDOWN) || is_done {
            continue;
        }
        done.push(scripted);
        let mut calls = Calls::default();
        if let Err(error) = calls.call(drive, TEARDOWN, interrupt) {
            problems.push(format!("{error}."));
        }
        problems.extend(calls.failed_requests());
        all.add(calls);
    }
    (all, problems)
}

impl Calls {
    /// Calls a function of a population's script, and adds what it did. Returns its value.
    fn call(
        &mut self,
        drive: &Assignment,
        function: &str,
        interrupt: &AtomicBool,
    ) -> Result<Option<Option<Value>>, DriverError> {
        let Some(Called { end, reports }) = call(drive, function, interrupt)? else {
            return Ok(None);
        };
        let mask = |text: &str| drive.workload.inputs.mask(text);
        for report in reports {
            match report {
                Report::Script(ScriptNote::Aborted(reason)) => {
                    return Err(DriverError::Aborted(mask(&reason)));
                }
                Report::Script(note) => self.events.push(DriverEvent::Script(note.map(mask))),
                Report::Example(example) => self.example(drive, function, example),
                Report::Window { window, .. } => self.window(drive, &window),
                _ => {}
            }
        }
        end.map(Some).map_err(|why| {
            DriverError::Script(format!("`{function}` of the script: {}", mask(&why)))
        })
    }

    fn example(&mut self, drive: &Assignment, function: &str, example: Example) {
        let steps = &drive.workload.session.steps;
        let name = steps.get(example.step).map_or("", |step| &step.name);
        // The call fails with an uncaught error.
        if example.class != ErrorClass::Script {
            self.events.push(DriverEvent::ErrorExample {
                t: Duration::ZERO,
                step: format!("{function}: {name}"),
                class: example.class,
                detail: drive.workload.inputs.mask(&example.detail),
                trace: None,
            });
        }
    }

    /// Adds the counts of all requests. No figure has the checks and metrics of these calls; a check that passed changes
    /// no verdict.
    fn window(&mut self, drive: &Assignment, window: &Window) {
        let steps = &drive.workload.session.steps;
        let Some((script, requests)) = steps.split_last() else {
            return;
        };
        for one in &window.steps[..requests.len()] {
            self.transactions += one.transactions();
            self.errors += one.failed();
        }
        let values = &window.steps[requests.len()].times.measures;
        for (measure, values) in script.measures.iter().zip(values) {
            let is_check =
                measure.name == ALL_CHECKS_MEASURE || measure.name.starts_with(CHECK_MEASURE);
            let count = match is_check {
                true => values.count_at(0),
                false => values.len(),
            };
            if count > 0 {
                self.events
                    .push(DriverEvent::Script(ScriptNote::NotCounted {
                        name: measure.name.clone(),
                        values: count,
                    }));
            }
        }
    }

    /// Returns a sentence on the requests that failed, if any did.
    fn failed_requests(&self) -> Option<String> {
        let first = self.events.iter().find_map(|event| match event {
            DriverEvent::ErrorExample { step, detail, .. } => Some(format!("“{step}”: {detail}")),
            _ => None,
        });
        let (failed, all) = (self.errors, self.transactions + self.errors);
        let first = first.map_or_else(String::new, |first| format!("; the first, {first}"));
        (failed > 0).then(|| {
            format!("{failed} of {all} requests of `{TEARDOWN}` of the script failed{first}.")
        })
    }

    fn add(&mut self, other: Self) {
        self.transactions += other.transactions;
        self.errors += other.errors;
        self.events.extend(other.events);
    }
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
                return Err(failed("it can't send requests: the run is over".to_owned()));
            }
        };
    }
}
