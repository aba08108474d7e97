//! The functions of a script around a load: `setup` before it, whose result all sessions receive, and `teardown`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lab_workload::Scripted;

use crate::drive::Drive;
use crate::error::DriverError;
use crate::mix::Mix;
use crate::worker::rehearsal::call;

/// The functions.
const SETUP: &str = "setup";
const TEARDOWN: &str = "teardown";

/// Calls the `setup` of each script of a load once. Returns the load with the results; `None` if `interrupt` became
/// true before the end.
///
/// # Errors
/// When a script can't be loaded, or throws.
pub fn set_up(mix: Mix, interrupt: &AtomicBool) -> Result<Option<Mix>, DriverError> {
    let mut made: Vec<Arc<Scripted>> = Vec::new();
    let mut drives = Vec::new();
    for drive in mix.drives() {
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
    let mut done: Vec<&Drive> = Vec::new();
    for drive in mix.drives() {
        let Some(scripted) = &drive.workload.scripted else {
            continue;
        };
        let sources = |drive: &&Drive| {
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
