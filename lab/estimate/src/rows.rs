//! Describes the rows that a plan's workload takes from a file.

use lab_study::plan::{LoadKind, Plan, Trial};
use lab_study::{Data, Each, Workload};

/// The number of rows, and the number that the plan needs; empty if the workload takes none.
#[must_use]
pub fn rows(workload: &Workload, plan: &Plan) -> String {
    let Some(data) = &workload.data else {
        return String::new();
    };
    let (rows, file) = (data.rows, &data.file);
    let whom = match data.each {
        Each::User => "user",
        Each::Session => "session",
    };
    let order = if data.shuffled {
        "shuffled"
    } else {
        "in its order"
    };
    let once = if data.unique {
        ", none given twice"
    } else {
        ""
    };
    let mut text = format!("{file}: {rows} rows, one for each {whom}, {order}{once}\n");
    let needed = plan
        .trials
        .iter()
        .filter_map(|trial| needed(data, trial))
        .max();
    if let Some(needed) = needed.filter(|needed| *needed > rows) {
        let then = match data.unique {
            true => "who comes after the last row has none, and fails",
            false => "rows are given again",
        };
        text.push_str(&format!(
            "  the largest trial has {needed} {whom}s: {then}\n"
        ));
    }
    text + "\n"
}

/// Rows that a trial takes, if known before.
fn needed(data: &Data, trial: &Trial) -> Option<u64> {
    match (data.each, trial.load.kind) {
        (Each::User, _) => Some(u64::from(trial.load.users)),
        (Each::Session, LoadKind::Sequence { .. }) => trial.load.kind.sessions(trial.load.users),
        (Each::Session, LoadKind::Arrival { .. }) => {
            let arrivals = trial.prediction.as_ref()?.arrivals?;
            Some(arrivals.trial.ceil() as u64)
        }
        (Each::Session, LoadKind::Users) => None,
    }
}
