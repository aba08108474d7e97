//! What went on around the trial: other programs, a hypervisor, memory pressure, the clock, and limits
//! of ports, files, and quotas.

use lab_archive::{LimitsReached, Throttled, Used};

use super::facts::Facts;
use super::outcome::{check, graded, not_judged};
use crate::format::{count, list, ms, percent, plain};
use crate::model::{Check, CheckOutcome};
use crate::number::as_f64;

/// CPU time that a hypervisor gave to others, in per cent of all cores.
const STEAL_WARN: f64 = 1.0;
const STEAL_INVALID: f64 = 10.0;
/// CPU that other programs used, in per cent of all cores.
const OTHERS_WARN: f64 = 5.0;
const OTHERS_INVALID: f64 = 20.0;
/// Time in which some task waited for memory, in per cent. It may be the system's own fault, so it
/// never invalidates.
const MEMORY_WARN: f64 = 1.0;
/// Clocks may drift apart by this: NTP slews by at most 500 ppm (adjtimex(2)).
const DRIFT_PART: f64 = 0.000_5;
const DRIFT_MS: f64 = 10.0;
/// A clock that jumps by more was set, or the machine slept.
const JUMP_INVALID_MS: f64 = 1000.0;
/// A limit used to this part is near.
const NEAR: f64 = 0.9;
/// Part of the trial that a CPU quota may hold the generator back.
const THROTTLED_INVALID: f64 = 0.01;

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
    check(
        name,
        graded(stolen, STEAL_WARN, STEAL_INVALID),
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
    check(
        name,
        graded(used, OTHERS_WARN, OTHERS_INVALID),
        format!("they used {} of all cores{named}", percent(used)),
        "Other programs competed with the system or the generator: stop them, and run again.",
    )
}

fn memory(facts: &Facts<'_>) -> Check {
    let name = "memory pressure";
    let Some(waited) = counter(facts, "pressure_memory_some_percent") else {
        return not_judged(name, "the kernel tells none");
    };
    check(
        name,
        graded(waited, MEMORY_WARN, f64::INFINITY),
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
    let usual = DRIFT_MS + DRIFT_PART * clocks.monotonic_ms;
    check(
        name,
        graded(off.abs(), usual, JUMP_INVALID_MS.max(usual)),
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
    let mut found = used_up(limits);
    found.extend(counted(limits.listen_overflows, |n| {
        format!("{n} connections found a listener's queue full")
    }));
    found.extend(held_back(limits, facts.sums.hold_span.end_ms.max(1.0)));
    found.extend(counted(limits.thermal_throttles, |n| {
        format!("cores lowered their frequency for heat {n} times")
    }));
    let Some(worst) = found.iter().map(|(outcome, _)| *outcome).max() else {
        return not_judged(name, "the kernel tells none");
    };
    let said: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
    check(
        name,
        worst,
        said.join("; "),
        "A limit of the machine or of a process was near or reached: what it held back is in the \
         figures. Raise it (`ulimit -n`, net.ipv4.ip_local_port_range, net.core.somaxconn, the \
         control group's quota), or say in the study that it belongs to the system.",
    )
}

/// What is limited in number, and how near the limit it came.
fn used_up(limits: &LimitsReached) -> Vec<(CheckOutcome, String)> {
    let (warned, invalid) = (CheckOutcome::Warn, CheckOutcome::Invalid);
    let told = |(what, used, full): (&str, Option<Used>, CheckOutcome)| {
        let used = used.filter(|used| used.limit > 0)?;
        let part = as_f64(used.most) / as_f64(used.limit);
        let outcome = match part {
            part if part >= 1.0 => full,
            part if part >= NEAR => warned,
            _ => CheckOutcome::Pass,
        };
        Some((outcome, used_text(what, used)))
    };
    [
        (
            "files of the generator",
            limits.generator_open_files,
            invalid,
        ),
        ("files of the system", limits.system_open_files, warned),
        ("ports", limits.ports, warned),
    ]
    .into_iter()
    .filter_map(told)
    .collect()
}

/// What happened so often, if it did.
fn counted(n: Option<u64>, words: impl Fn(String) -> String) -> Option<(CheckOutcome, String)> {
    let n = n.filter(|n| *n > 0)?;
    Some((CheckOutcome::Warn, words(count(n))))
}

/// CPU quotas that were used up.
fn held_back(limits: &LimitsReached, trial_ms: f64) -> Vec<(CheckOutcome, String)> {
    let told = |(whose, throttled, most): (&str, Option<Throttled>, f64)| {
        let throttled = throttled.filter(|throttled| throttled.periods > 0)?;
        let outcome = if as_f64(throttled.ms) / trial_ms > most {
            CheckOutcome::Invalid
        } else {
            CheckOutcome::Warn
        };
        Some((outcome, throttled_text(whose, throttled)))
    };
    [
        (
            "the generator",
            limits.generator_throttled,
            THROTTLED_INVALID,
        ),
        ("the system", limits.system_throttled, f64::INFINITY),
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
