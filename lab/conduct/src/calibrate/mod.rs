//! Calibrates this machine's generator against a null server.
//!
//! Two loads: one at full speed, for the highest rate; one that mostly waits, for the delays of sends. It knows no
//! command line: the caller provides the command of the server.

mod calibration;
mod error;
mod load;
mod monitor;
mod server;

pub use calibration::{CalibrateRequest, Calibration, Lateness};
pub use error::CalibrateError;
pub use server::serve_nothing;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use lab_archive::{Run, TrialEnd};

use self::load::{BUSY, Figures, Load, WAITING};
use crate::control::Control;
use crate::event::Event;
use crate::idle_gate::IdleWait;
use crate::judged::Judged;
use crate::request::RunRequest;
use crate::run::run;

/// Measures in two runs, one after the other, whose events go to `events`; calls `waited` to judge the archive of the
/// second, in which users mostly wait.
///
/// # Errors
/// When a run can't start or continue, the server fails, or `interrupt` becomes true.
pub fn calibrate(
    request: &CalibrateRequest,
    events: &mut dyn FnMut(Event),
    waited: &mut dyn FnMut(Run),
    interrupt: &AtomicBool,
) -> Result<Calibration, CalibrateError> {
    let folder = Folder::new(&request.temporary)?;
    let mut measure = |load: &Load| measure(request, &folder.0, load, events, interrupt);
    let (busy, _) = measure(&BUSY)?;
    let (waiting, archive) = measure(&WAITING)?;
    waited(archive);
    Ok(Calibration {
        requests_per_s: busy.per_s,
        busy_percent: busy.cpu_fraction.map(|share| 100.0 * share),
        per_core_per_s: busy.per_core_per_s(),
        lateness: waiting.lateness,
        sends_per_s: waiting.per_s,
        monitor_ms: monitor::sample_ms(&request.temporary),
    })
}

fn measure(
    request: &CalibrateRequest,
    folder: &Path,
    load: &Load,
    events: &mut dyn FnMut(Event),
    interrupt: &AtomicBool,
) -> Result<(Figures, Run), CalibrateError> {
    let (loaded, plan) = load::study(load, request)?;
    let request = RunRequest {
        loaded,
        plan,
        out: folder.join(load.name),
        resume: false,
        overrides: vec![],
        program: request.program.clone(),
        state: folder.join("state"),
        idle_wait: IdleWait::NONE,
        control: Control::default(),
        generators: None,
        machines: crate::Machines::new(),
    };
    let mut nothing_to_judge = |_: &Path, _| Judged::default();
    let outcome = run(&request, events, &mut nothing_to_judge, interrupt)?;
    if outcome.interrupted {
        return Err(CalibrateError::Interrupted);
    }
    let run = Run::open(&request.out).map_err(CalibrateError::Archive)?;
    let trial = run.trials.first().ok_or(CalibrateError::NoTrial)?;
    if let TrialEnd::SystemFailed { message } = &trial.record.end {
        return Err(CalibrateError::SystemFailed(message.clone()));
    }
    let figures = Figures::of(trial);
    Ok((figures, run))
}

/// A folder for the archives, removed with this.
struct Folder(PathBuf);

impl Folder {
    fn new(within: &Path) -> Result<Self, CalibrateError> {
        let path = within.join(format!("plimsoll-calibrate-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(CalibrateError::Folder)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The remains are in a temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
