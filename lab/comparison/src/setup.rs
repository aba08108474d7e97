//! Differences between two runs besides their results: the machine, its settings, the study.

use lab_analysis::Analysis;
use lab_analysis::format::count;
use lab_archive::model::Environment;
use lab_plan::Decides;
use lab_trial::as_f64;

use crate::model::SetupDifference;

/// Memory sizes within this part are equal: kernels reserve different amounts.
const SAME_MEMORY: f64 = 0.02;

/// An aspect of the setup, its text, and whether a difference in it may cause one in the results.
type Aspect<T> = (&'static str, fn(&T) -> String, bool);

/// Aspects of the machine and this program, in the order of reports.
const MACHINE: [Aspect<Environment>; 8] = [
    ("processor", |of| of.cpu.clone(), true),
    ("cores", |of| of.cores.to_string(), true),
    (MEMORY, memory, true),
    ("kernel", |of| of.kernel.clone(), true),
    ("operating system", |of| of.os.clone(), false),
    (
        "file system of the data",
        |of| of.data_filesystem.clone(),
        true,
    ),
    ("cores of each side", pinning, true),
    ("plimsoll", |of| of.plimsoll_version.clone(), false),
];

/// Aspects of the study.
const ASKED: [Aspect<Analysis>; 8] = [
    ("speed", |of| of.study.speed.to_string(), true),
    ("ramp and hold", phases, true),
    ("what a load line is", line_thresholds, true),
    ("settings of the system", settings, false),
    ("overrides", overrides, false),
    (
        "study file (SHA-256)",
        |of| of.study.file_sha256.clone().unwrap_or_default(),
        false,
    ),
    (
        "measure that decides",
        |of| of.study.decides.map_or("", Decides::name).to_owned(),
        false,
    ),
    ("seed", |of| of.study.seed.to_string(), false),
];

const MEMORY: &str = "memory";

/// The differences between two runs.
pub(crate) fn differences(a: &Analysis, b: &Analysis) -> Vec<SetupDifference> {
    let mut all = machine_differences(&a.environment, &b.environment);
    all.extend(ASKED.iter().filter_map(|aspect| differs(aspect, a, b)));
    all
}

/// The differences between the machines of two runs, or in this program.
#[must_use]
pub fn machine_differences(a: &Environment, b: &Environment) -> Vec<SetupDifference> {
    let each = MACHINE.iter().filter_map(|aspect| differs(aspect, a, b));
    let told = each.map(|one| SetupDifference {
        matters: one.matters && !(one.what == MEMORY && is_same_memory(a, b)),
        ..one
    });
    told.collect()
}

fn differs<T>((what, of, matters): &Aspect<T>, a: &T, b: &T) -> Option<SetupDifference> {
    let (a, b) = (of(a), of(b));
    (a != b).then_some(SetupDifference {
        what,
        a,
        b,
        matters: *matters,
    })
}

/// Returns true if both ran the same study, with the same plan except its seed, on the same machine.
pub(crate) fn is_same_study(a: &Analysis, b: &Analysis) -> bool {
    let plan = |of: &Analysis| {
        (
            of.study.name.clone(),
            of.study.workload_sha256.clone(),
            of.study.file_sha256.clone(),
            overrides(of),
        )
    };
    let is_elsewhere = || differences(a, b).into_iter().any(|one| one.matters);
    plan(a) == plan(b) && !is_elsewhere()
}

/// The identity of a run's build: the system's settings, and this program's version, which includes the embedded one.
pub(crate) fn build(of: &Analysis) -> String {
    format!("{}\n{}", of.environment.plimsoll_version, settings(of))
}

fn is_same_memory(a: &Environment, b: &Environment) -> bool {
    let mb = |of: &Environment| as_f64(of.memory_mb);
    lab_stats::relative_difference(mb(a), mb(b)).is_some_and(|off| off.abs() <= SAME_MEMORY)
}

fn memory(of: &Environment) -> String {
    format!("{} MB", count(of.memory_mb))
}

fn pinning(of: &Environment) -> String {
    let cores = |of: &[u32]| of.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let pinning = &of.pinning;
    format!(
        "generator {}, system {}",
        cores(&pinning.generator),
        cores(&pinning.system)
    )
}

fn phases(of: &Analysis) -> String {
    let trials = of.trials.iter();
    each_once(trials.map(|trial| format!("{} + {} ms", trial.ramp_ms, trial.hold_ms)))
}

fn line_thresholds(of: &Analysis) -> String {
    each_once(
        of.load_lines
            .iter()
            .flat_map(|line| line.thresholds.iter().cloned()),
    )
}

fn settings(of: &Analysis) -> String {
    let settings = of.trials.iter().flat_map(|trial| &trial.system_settings);
    each_once(settings.map(|(name, value)| format!("{name} {value}")))
}

fn overrides(of: &Analysis) -> String {
    let all = of.study.overrides.iter();
    all.map(|(key, value)| format!("{key}={value}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Sorted, without duplicates.
fn each_once(texts: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = texts.collect();
    all.sort_unstable();
    all.dedup();
    all.join(", ")
}
