//! What went on around the trial: other programs, a hypervisor, memory pressure, the clock, and limits
//! of ports, files, and quotas.

use lab_archive::{LimitsReached, Throttled, Used};
use lab_plan::checks::{
    CLOCK_JUMPS, Cause, GENERATOR_THROTTLED, InForce, LIMITS_NEAR, MEMORY_PRESSURE, OTHER_PROGRAMS,
    STOLEN_CPU,
};

use super::facts::Facts;
use super::outcome::{check, held, judged, not_judged};
use crate::format::{count, list, ms, percent, plain};
use crate::model::{Check, CheckOutcome, Figure};
use crate::number::as_f64;

/// Clocks may drift apart by this: NTP slews by at most 500 ppm (adjtimex(2)).
const DRIFT_PART: f64 = 0.000_5;

/// All of them; what was not recorded is not judged.
pub(super) fn all(facts: &Facts<'_>) -> [Check; 5] {
    [
        steal(facts),
        others(facts),
        memory(facts),
        clocks(facts),
        limits(facts),
    ]
}

fn counter(facts: &Facts<'_>, name: &str) -> Option<f64> {
    facts.monitored.host.get(name).copied().flatten()
}

fn steal(facts: &Facts<'_>) -> Check {
    let name = "stolen CPU";
    let Some(stolen) = counter(facts, "cpu_steal_percent") else {
        return not_judged(name, "the kernel tells none");
    };
    judged(
        name,
        vec![facts.held(stolen, &STOLEN_CPU)],
        format!("{} of all cores", percent(stolen)),
        "The hypervisor gave this machine's CPU to others: measure on a machine of its own.",
    )
}

fn others(facts: &Facts<'_>) -> Check {
    let name = "other programs";
    let around = &facts.data.record.circumstances;
    if around.clocks.is_none() {
        return not_judged(name, "not recorded");
    }
    let cores = f64::from(facts.cores.max(1));
    let used: f64 = around.others_during.iter().map(|one| one.cpu_percent).sum();
    let used = used / cores;
    let named: Vec<String> = around
        .others_during
        .iter()
        .map(|one| format!("{} {}", plain(&one.name), percent(one.cpu_percent / cores)))
        .collect();
    let named = if named.is_empty() {
        String::new()
    } else {
        format!(": {}", list(&named))
    };
    judged(
        name,
        vec![facts.held(used, &OTHER_PROGRAMS)],
        format!("they used {} of all cores{named}", percent(used)),
        "Other programs competed with the system or the generator: stop them, and run again.",
    )
}

fn memory(facts: &Facts<'_>) -> Check {
    let name = "memory pressure";
    let Some(waited) = counter(facts, "pressure_memory_some_percent") else {
        return not_judged(name, "the kernel tells none");
    };
    judged(
        name,
        vec![facts.held(waited, &MEMORY_PRESSURE)],
        format!(
            "some task waited for memory {} of the time",
            percent(waited)
        ),
        "The machine was short of memory: figures include its search for some.",
    )
}

/// The calendar's clock beside the monotonic one, which neither steps nor counts a suspension.
fn clocks(facts: &Facts<'_>) -> Check {
    let name = "clock jumps";
    let Some(clocks) = facts.data.record.circumstances.clocks else {
        return not_judged(name, "not recorded");
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds of a trial stay far below 2^52"
    )]
    let wall_ms = (clocks.wall_end_ms - clocks.wall_start_ms) as f64;
    let off = wall_ms - clocks.monotonic_ms;
    let slewed = DRIFT_PART * clocks.monotonic_ms;
    judged(
        name,
        vec![facts.held((off.abs() - slewed).max(0.0), &CLOCK_JUMPS)],
        format!(
            "the calendar's clock counted {} ms {} than the monotonic one",
            ms(off.abs()),
            if off < 0.0 { "less" } else { "more" }
        ),
        "The clock was set, or the machine slept during the trial: times that the system itself \
         counts by the calendar are off.",
    )
}

/// Ports, files, listen queues, CPU quotas, heat. The worst of them counts, all are told.
fn limits(facts: &Facts<'_>) -> Check {
    let name = "limits";
    let around = &facts.data.record.circumstances;
    if around.clocks.is_none() {
        return not_judged(name, "not recorded");
    }
    let limits = &around.limits;
    let mut found = used_up(limits, facts.limit(&LIMITS_NEAR));
    let overflows = |n| format!("{n} connections found a listener's queue full");
    found.extend(counted(limits.listen_overflows, Cause::System, overflows));
    let trial_ms = facts.sums.hold_span.end_ms.max(1.0);
    let throttled = facts.limit(&GENERATOR_THROTTLED);
    found.extend(held_back(limits, trial_ms, throttled));
    let heat = |n| format!("cores lowered their frequency for heat {n} times");
    found.extend(counted(limits.thermal_throttles, Cause::Outside, heat));
    let Some(worst) = found.iter().max_by_key(|one| one.outcome) else {
        return not_judged(name, "the kernel tells none");
    };
    let said: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
    check(
        name,
        worst.outcome,
        said.join("; "),
        "A limit of the machine or of a process was near or reached: what it held back is in the \
         figures. Raise it (`ulimit -n`, net.ipv4.ip_local_port_range, net.core.somaxconn, the \
         control group's quota), or say in the study that it belongs to the system.",
    )
    .caused_by(worst.cause)
    .by(found.iter().filter_map(|one| one.figure).collect())
}

/// A limit of the machine or of a process, and how near it was.
struct Near {
    outcome: CheckOutcome,
    text: String,
    cause: Cause,
    figure: Option<Figure>,
}

/// What is limited in number, and how near the limit it came. All of the generator's files in use is
/// load that was not sent.
fn used_up(limits: &LimitsReached, near: InForce) -> Vec<Near> {
    let (generator, system) = (Cause::Generator, Cause::System);
    let told = |(what, used, cause): (&str, Option<Used>, Cause)| {
        let used = used.filter(|used| used.limit > 0)?;
        let part = 100.0 * as_f64(used.most) / as_f64(used.limit);
        let figure = held(part, &LIMITS_NEAR, near);
        let outcome = match cause {
            Cause::Generator if part >= 100.0 => CheckOutcome::Invalid,
            _ => figure.outcome(),
        };
        Some(Near {
            outcome,
            text: used_text(what, used),
            cause,
            figure: Some(figure),
        })
    };
    [
        (
            "files of the generator",
            limits.generator_open_files,
            generator,
        ),
        ("files of the system", limits.system_open_files, system),
        ("ports", limits.ports, system),
    ]
    .into_iter()
    .filter_map(told)
    .collect()
}

/// What happened so often, if it did.
fn counted(n: Option<u64>, cause: Cause, words: impl Fn(String) -> String) -> Option<Near> {
    let n = n.filter(|n| *n > 0)?;
    Some(Near {
        outcome: CheckOutcome::Warn,
        text: words(count(n)),
        cause,
        figure: None,
    })
}

/// CPU quotas that were used up.
fn held_back(limits: &LimitsReached, trial_ms: f64, generators: InForce) -> Vec<Near> {
    let told = |(whose, throttled, cause): (&str, Option<Throttled>, Cause)| {
        let throttled = throttled.filter(|throttled| throttled.periods > 0)?;
        let part = 100.0 * as_f64(throttled.ms) / trial_ms;
        let figure = held(part, &GENERATOR_THROTTLED, generators);
        let figure = (cause == Cause::Generator).then_some(figure);
        let outcome = figure.map_or(CheckOutcome::Warn, |figure| figure.outcome());
        Some(Near {
            outcome: outcome.max(CheckOutcome::Warn),
            text: throttled_text(whose, throttled),
            cause,
            figure,
        })
    };
    [
        (
            "the generator",
            limits.generator_throttled,
            Cause::Generator,
        ),
        ("the system", limits.system_throttled, Cause::System),
    ]
    .into_iter()
    .filter_map(told)
    .collect()
}

fn used_text(what: &str, used: Used) -> String {
    format!("{what} {} of {}", count(used.most), count(used.limit))
}

fn throttled_text(whose: &str, throttled: Throttled) -> String {
    format!(
        "a CPU quota held {whose} back for {} ms in {} periods",
        count(throttled.ms),
        count(throttled.periods)
    )
}
