//! The two loads: their study, and the figures of its only trial over the hold.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use hdrhistogram::Histogram;
use lab_archive::{Series, TrialData, TrialEnd};
use lab_study::plan::{Plan, PlanOptions, plan};
use lab_study::{Files, Loaded, load_study};
use serde_json::json;

use super::calibration::{CalibrateRequest, Lateness};
use super::error::CalibrateError;

const STUDY: &str = "\
study: calibrate
title: The generator against a server that does nothing
workload: WORKLOAD
system:
  command:
    start: START
load: { users: USERS, ramp: 1s, hold: SECONDSs }
trials: 1
order: listed
";
const WORKLOAD: &str = "\
workload: NAME
session:
  steps:
    - { step: Ask, WAITrequest: GET / }
";
/// The study's file; only its name counts.
const STUDY_FILE: &str = "calibrate.study.yaml";

/// The users of a load and their waits.
pub(super) struct Load {
    pub(super) name: &'static str,
    users: u32,
    /// The step's wait, with the separator from its request.
    wait: &'static str,
}

/// At full speed.
pub(super) const BUSY: Load = Load {
    name: "busy",
    users: 64,
    wait: "",
};
/// Mostly waiting.
pub(super) const WAITING: Load = Load {
    name: "waiting",
    users: 1000,
    wait: "wait: exponential(1s), ",
};

/// The study of a load, with its plan.
pub(super) fn study(
    load: &Load,
    request: &CalibrateRequest,
) -> Result<(Loaded, Plan), CalibrateError> {
    let program = request.program.to_string_lossy().into_owned();
    let start: Vec<&String> = [&program].into_iter().chain(&request.null_server).collect();
    // The command is replaced last, so that nothing within it is replaced.
    let study = STUDY
        .replace("WORKLOAD", load.name)
        .replace("USERS", &load.users.to_string())
        .replace("SECONDS", &request.seconds.to_string())
        .replace("START", &json!(start).to_string());
    let workload = WORKLOAD
        .replace("NAME", load.name)
        .replace("WAIT", load.wait);
    let files = Texts(BTreeMap::from([
        (STUDY_FILE.to_owned(), study),
        (format!("{}.workload.yaml", load.name), workload),
    ]));
    let loaded = load_study(STUDY_FILE, &files, &[]);
    let loaded = loaded.map_err(|error| CalibrateError::Study(Box::new(error)))?;
    let options = PlanOptions {
        speed: 1.0,
        seed: None,
    };
    let plan = plan(&loaded.study, &options)?;
    Ok((loaded, plan))
}

/// Files in memory.
struct Texts(BTreeMap<String, String>);

impl Files for Texts {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let name = Path::new(path).file_name().and_then(|name| name.to_str());
        let found = name.and_then(|name| self.0.get(name));
        let text = found.ok_or(io::ErrorKind::NotFound)?;
        Ok(text.clone().into_bytes())
    }
}

/// Figures of one load, over its hold.
pub(super) struct Figures {
    /// Responses per second; `None` if the trial has no hold to compute it from.
    pub(super) per_s: Option<f64>,
    pub(super) cpu_fraction: Option<f64>,
    pub(super) workers: f64,
    pub(super) lateness: Lateness,
}

impl Figures {
    pub(super) fn of(trial: &TrialData) -> Self {
        let generator = &trial.record.generator;
        Self {
            per_s: answered_per_s(trial),
            cpu_fraction: generator.cpu_fraction.filter(|share| *share > 0.0),
            workers: f64::from(generator.workers),
            lateness: lateness(trial),
        }
    }

    /// Responses per second and fully busy core.
    pub(super) fn per_core_per_s(&self) -> Option<f64> {
        Some(self.per_s? / (self.cpu_fraction? * self.workers))
    }
}

fn answered_per_s(trial: &TrialData) -> Option<f64> {
    if trial.record.end != TrialEnd::Complete {
        return None;
    }
    let ramp_ms = trial.record.ramp_ms as f64;
    let hold = trial.windows.iter().filter(|w| w.start_ms >= ramp_ms);
    let (mut answered, mut ms) = (0_u64, 0.0);
    for window in hold {
        answered += window.steps.values().map(|step| step.ok).sum::<u64>();
        ms += window.end_ms - window.start_ms;
    }
    (ms > 0.0 && answered > 0).then(|| 1e3 * answered as f64 / ms)
}

fn lateness(trial: &TrialData) -> Lateness {
    let ramp_ms = trial.record.ramp_ms;
    let mut sum: Option<Histogram<u64>> = None;
    let intervals = trial.series(Series::Lateness);
    for interval in intervals.filter(|interval| interval.start_ms >= ramp_ms) {
        match &mut sum {
            Some(sum) => interval.add_to(sum),
            None => sum = Some(interval.histogram()),
        }
    }
    let ms = |quantile| {
        let us = sum
            .as_ref()
            .map_or(0, |sum| sum.value_at_quantile(quantile));
        us as f64 / 1e3
    };
    Lateness {
        p50_ms: ms(0.5),
        p99_ms: ms(0.99),
        max_ms: ms(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_any_name_is_started_as_it_is() {
        let request = CalibrateRequest {
            program: "/opt/USERS and SECONDS/\"START\"".into(),
            null_server: vec!["serve".to_owned(), "{{ port }}".to_owned()],
            seconds: 7,
            temporary: "/tmp".into(),
        };
        for load in [BUSY, WAITING] {
            let (loaded, plan) = study(&load, &request).expect("a study");
            let [trial] = &plan.trials[..] else {
                panic!("one trial: {plan:?}");
            };
            assert_eq!(trial.load.users, load.users);
            assert_eq!(trial.load.hold_ms, 7000);
            let text = String::from_utf8_lossy(&loaded.files[0].1).into_owned();
            let start = r#"["/opt/USERS and SECONDS/\"START\"","serve","{{ port }}"]"#;
            assert!(text.contains(start), "{text}");
        }
    }
}
