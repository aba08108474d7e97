//! `plimsoll plan`: the trials in order, the time they need, and whether this machine can do them.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use lab_conduct::preflight;
use lab_study::model::{Cell, Level};
use lab_study::plan::{Plan, Search, Trial};

use crate::args::PlanArgs;
use crate::commands::run::failure;
use crate::commands::{load, print, request, shows};
use crate::exit::{Exit, Failure};

/// What starting, provisioning, and setting up cost beside ramp and hold; measured at 1000 to 3000
/// users with the built-in server, rounded up.
const START_ALLOWANCE: Duration = Duration::from_secs(5);
const SETUP_ALLOWANCE_PER_USER: Duration = Duration::from_millis(6);

pub(crate) fn run(args: &PlanArgs) -> Result<Exit, Failure> {
    let (loaded, plan) = load::study(&args.study)?;
    let earlier = match &args.from {
        Some(dir) => Some(shows::earlier(dir, &plan)?),
        None => None,
    };
    print(&describe(&plan))?;
    print(&shows::describe(&loaded.study, &plan, earlier.as_ref()))?;
    let request = request::new(&args.study, (loaded, plan), PathBuf::from("runs"), false)?;
    preflight(&request).map_err(|error| failure(&error))?;
    print("this machine's limits allow it\n")
}

/// The plan as a person reads it, at most 80 columns wide.
pub(crate) fn describe(plan: &Plan) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}: {}", plan.study, plan.title);
    let _ = writeln!(text, "seed {}, speed {}", plan.seed, plan.speed);
    if (plan.speed - 1.0).abs() > f64::EPSILON {
        let _ = writeln!(
            text,
            "at this speed each user makes {} times the load of a real one",
            plan.speed
        );
    }
    let _ = writeln!(text);
    if let Some(search) = &plan.search {
        text.push_str(&searches(plan, search));
        return text;
    }
    let _ = writeln!(
        text,
        "{:>5}  {:>5}  {:<22}{:>8}{:>9}{:>9}{:>12}{:>8}",
        "trial", "block", "cell", "users", "ramp", "hold", "expected tx", "tx/s"
    );
    for trial in &plan.trials {
        let (transactions, offered) = match &trial.prediction {
            Some(p) => (
                format!("{:.0}", p.transactions),
                format!("{:.0}", p.offered_per_s),
            ),
            None => ("-".to_owned(), "-".to_owned()),
        };
        let _ = writeln!(
            text,
            "{:>5}  {:>5}  {:<22}{:>8}{:>9}{:>9}{:>12}{:>8}",
            trial.id,
            trial.block + 1,
            if trial.control {
                "control".to_owned()
            } else {
                cell_words(&trial.cell)
            },
            trial.load.users,
            duration(Duration::from_millis(trial.load.ramp_ms)),
            duration(Duration::from_millis(trial.load.hold_ms)),
            transactions,
            offered
        );
    }
    let _ = writeln!(text);
    let _ = writeln!(
        text,
        "about {} for all trials, setup included\n{}",
        duration(total(plan)),
        disk(plan)
    );
    text
}

/// The disk that the run needs, and how that is known.
fn disk(plan: &Plan) -> String {
    let gib = lab_conduct::disk_needed(plan) as f64 / f64::from(1 << 30);
    let needed = if gib < 1.0 {
        format!("{:.0} MiB", (gib * 1024.0).ceil())
    } else {
        format!("{gib:.1} GiB")
    };
    format!(
        "at most {needed} of free disk: windows and histograms at the sizes of past runs,\n\
         and the largest trial's data as far as the lab fills it"
    )
}

/// What a search will do, as far as it can be told before.
fn searches(plan: &Plan, search: &Search) -> String {
    let find = &search.find;
    let mut text = format!(
        "searches for the most users, from {} to {}, that stay within\n",
        find.min_users, find.max_users
    );
    for threshold in &find.subject_to {
        let step = threshold.step.as_ref();
        let step = step.map_or(String::new(), |step| format!(" in “{step}”"));
        let _ = writeln!(text, "  {}{step}", threshold.text);
    }
    if search.cells.len() > 1 {
        let cells: Vec<String> = search.cells.iter().map(|t| cell_words(&t.cell)).collect();
        let _ = writeln!(text, "for each of {}", cells.join("; "));
    }
    let (usual, most) = lab_conduct::expected_trials(plan).unwrap_or_default();
    let middle = (f64::from(find.min_users) * f64::from(find.max_users)).sqrt() as u32;
    let each = search.cells.iter().map(|trial| length(trial, middle)).max();
    let each = each.unwrap_or_default();
    let _ = writeln!(
        text,
        "\nabout {usual} trials, at most {most}; about {} for {usual}, setup included",
        duration(each * usual)
    );
    text
}

/// The time that all trials need, setup included.
pub(crate) fn total(plan: &Plan) -> Duration {
    let trials = plan.trials.iter();
    trials.map(|trial| length(trial, trial.load.users)).sum()
}

/// The time that a trial needs with so many users.
fn length(trial: &Trial, users: u32) -> Duration {
    Duration::from_millis(trial.load.ramp_ms + trial.load.hold_ms)
        + START_ALLOWANCE
        + SETUP_ALLOWANCE_PER_USER * users
}

/// `users 1000, threads 4`.
pub(crate) fn cell_words(cell: &Cell) -> String {
    let mut words = Vec::with_capacity(cell.len());
    for (factor, level) in cell {
        let level = match level {
            Level::Int(n) => n.to_string(),
            Level::Float(x) => x.to_string(),
            Level::Text(text) => text.clone(),
            Level::Bool(on) => on.to_string(),
        };
        words.push(format!("{factor} {level}"));
    }
    words.join(", ")
}

/// A length of time with its two largest units: `1 h 4 min`, `12 min`, `48 s`, `0.25 s`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 10.0 && time.subsec_millis() != 0 {
        return format!("{seconds:.2} s");
    }
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;
    use std::time::Duration;

    #[test]
    fn durations_read_well() {
        for (ms, text) in [
            (250, "0.25 s"),
            (48_000, "48 s"),
            (720_000, "12 min"),
            (3_240_000, "54 min"),
            (3_840_000, "1 h 4 min"),
            (95_000, "1 min 35 s"),
        ] {
            assert_eq!(duration(Duration::from_millis(ms)), text);
        }
    }
}
