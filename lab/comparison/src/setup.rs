//! In what two runs differ besides their results: the machine, its settings, what was asked.

use lab_analysis::Analysis;
use lab_analysis::format::count;
use lab_plan::Decides;
use lab_trial::as_f64;

use crate::model::SetupDifference;

/// Memory sizes within this part are the same: a kernel keeps more or less of it for itself.
const SAME_MEMORY: f64 = 0.02;

/// What to look at, in words of a run, and whether a difference in it may make one in the results.
type Aspect = (&'static str, fn(&Analysis) -> String, bool);

/// In the order in which they are told.
const ASPECTS: [Aspect; 16] = [
    ("processor", |of| of.environment.cpu.clone(), true),
    ("cores", |of| of.environment.cores.to_string(), true),
    (MEMORY, memory, true),
    ("kernel", |of| of.environment.kernel.clone(), true),
    ("operating system", |of| of.environment.os.clone(), false),
    (
        "file system of the data",
        |of| of.environment.data_filesystem.clone(),
        true,
    ),
    ("cores of each side", pinning, true),
    ("speed", |of| of.study.speed.to_string(), true),
    ("ramp and hold", phases, true),
    ("what a load line is", line_thresholds, true),
    ("settings of the system", settings, false),
    ("overrides", overrides, false),
    (
        "plimsoll",
        |of| of.environment.plimsoll_version.clone(),
        false,
    ),
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

/// What differs between two runs.
pub(crate) fn differences(a: &Analysis, b: &Analysis) -> Vec<SetupDifference> {
    let differs = |(what, of, matters): Aspect| {
        let (one, other) = (of(a), of(b));
        (one != other).then(|| SetupDifference {
            what,
            a: one,
            b: other,
            matters: matters && !(what == MEMORY && is_same_memory(a, b)),
        })
    };
    ASPECTS.into_iter().filter_map(differs).collect()
}

/// Whether both ran the same study, with the same plan but for its seed, on the same machine.
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

/// What is known of the build that a run measured: the system's settings, and this program's version,
/// which brings the embedded one.
pub(crate) fn build(of: &Analysis) -> String {
    format!("{}\n{}", of.environment.plimsoll_version, settings(of))
}

fn is_same_memory(a: &Analysis, b: &Analysis) -> bool {
    let mb = |of: &Analysis| as_f64(of.environment.memory_mb);
    lab_stats::relative_difference(mb(a), mb(b)).is_some_and(|off| off.abs() <= SAME_MEMORY)
}

fn memory(of: &Analysis) -> String {
    format!("{} MB", count(of.environment.memory_mb))
}

fn pinning(of: &Analysis) -> String {
    let cores = |of: &[u32]| of.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let pinning = &of.environment.pinning;
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

/// Sorted, each of them once.
fn each_once(texts: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = texts.collect();
    all.sort_unstable();
    all.dedup();
    all.join(", ")
}
