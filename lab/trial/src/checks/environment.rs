//! The environment of the trial, on the machines of system and generator: other programs, a hypervisor, memory
//! pressure, the clock, and limits of ports, files, and quotas.

use lab_archive::{Clocks, LimitsReached, OtherProgram, SystemHost, Throttled, Used};
use lab_plan::checks::{
    CLOCK_JUMPS, Cause, CheckId, GENERATOR_THROTTLED, InForce, LIMITS_NEAR, Limit, MEMORY_PRESSURE,
    OTHER_PROGRAMS, STOLEN_CPU,
};

use super::facts::Facts;
use super::outcome::{check, held, judged, not_judged};
use crate::format::{count, list, ms, percent, plain};
use crate::model::{Check, CheckOutcome, Counters, Figure};
use crate::number::as_f64;

/// Clocks may drift apart by this: NTP slews by at most 500 ppm (adjtimex(2)).
const DRIFT_PART: f64 = 0.000_5;
/// If more of the hold lacks a machine's counters, they are not judged, whatever a study allows for samples.
const MOST_MISSING: f64 = 0.2;

/// A remote system host, and whether its agent inspected it.
enum RemoteHost<'a> {
    /// The agent inspected it.
    Seen(&'a SystemHost),
    /// Describes why nothing is known of it.
    Unseen(String),
}

/// Returns the remote hosts of the system or its parts, each with its name; empty if everything is known to be on the
/// conducting machine.
fn there<'a>(facts: &Facts<'a>) -> Vec<(String, RemoteHost<'a>)> {
    let record = &facts.data.record;
    let around = &record.environment;
    let url = record.system_settings.get("url");
    let own = "the system's machine";
    let own = match &around.system_host {
        Some(host) => Some((own.to_owned(), RemoteHost::Seen(host))),
        None if around.system_agent.is_some() => Some(unseen(own, "")),
        None if url.is_some_and(|url| is_afar(url)) => {
            Some(unseen(own, ", if that is another one,"))
        }
        None => None,
    };
    let parts = around.parts.iter().map(|part| {
        let name = machine_of(&part.name);
        match &part.host {
            Some(host) => (name, RemoteHost::Seen(host)),
            None => unseen(&name, ""),
        }
    });
    own.into_iter().chain(parts).collect()
}

/// Returns the name of the machine of a part of the system.
fn machine_of(part: &str) -> String {
    format!("the machine of {}", plain(part))
}

fn unseen<'a>(machine: &str, if_any: &str) -> (String, RemoteHost<'a>) {
    let why = format!("{machine}{if_any} was not looked at");
    (machine.to_owned(), RemoteHost::Unseen(why))
}

/// Returns true if an address may be another machine's.
fn is_afar(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, host)| host);
    let own = ["localhost", "127.", "[::1]"];
    !own.into_iter().any(|own| host.starts_with(own))
}

/// A counter on the machines of system and generator, as text; of one machine if both share it.
struct MachineCounter {
    values: Vec<f64>,
    words: String,
    /// Whether the value of the system's machine is known.
    is_known: bool,
}

/// Returns a counter of all machines. Counters of the system's machine may be missing, and are then not judged.
fn of_machines(facts: &Facts<'_>, name: &str, words: impl Fn(f64) -> String) -> MachineCounter {
    let coverage = &facts.monitored.coverage;
    let is_sampled = coverage.host_missing <= MOST_MISSING;
    let at = |counters: &Counters| counters.get(name).copied().flatten();
    let host = at(&facts.monitored.host).filter(|_| is_sampled);
    let beside = at(&facts.monitored.generator_host);
    let unknown = || match is_sampled && coverage.rows > 0.0 {
        true => "the kernel tells none".to_owned(),
        false => format!(
            "samples of the machine cover {} of the hold",
            percent(100.0 * coverage.host)
        ),
    };
    let own = host.map_or_else(unknown, &words);
    let mut told = MachineCounter {
        values: host.into_iter().chain(beside).collect(),
        words: own,
        is_known: host.is_some(),
    };
    for part in &facts.monitored.parts {
        let value = at(&part.counters.host).filter(|_| part.missing <= MOST_MISSING);
        let said = value.map_or("not known".to_owned(), &words);
        let machine = machine_of(&part.counters.name);
        told.words.push_str(&format!("; on {machine} {said}"));
        told.values.extend(value);
        told.is_known &= value.is_some();
    }
    if let Some(value) = beside {
        let said = format!("; on the generator's machine {}", words(value));
        told.words.push_str(&said);
    }
    told
}

/// Judges by the worst machine; a good value doesn't make up for an unknown one.
fn by_machines(facts: &Facts<'_>, id: CheckId, limit: &Limit, told: MachineCounter) -> Check {
    let figures = told.values.iter().map(|value| facts.held(*value, limit));
    let found = judged(id, figures.collect(), told.words.clone());
    match told.is_known || found.outcome >= CheckOutcome::Warn {
        true => found,
        false => not_judged(id, told.words),
    }
}

pub(super) fn steal(facts: &Facts<'_>) -> Check {
    let words = |stolen| format!("{} of all cores", percent(stolen));
    let told = of_machines(facts, "cpu_steal_percent", words);
    by_machines(facts, CheckId::StolenCpu, &STOLEN_CPU, told)
}

/// Returns the use of a machine's cores by other programs, in per cent and as text.
fn competed(others: &[OtherProgram], cores: u32) -> (f64, String) {
    let cores = f64::from(cores.max(1));
    let used: f64 = others.iter().map(|one| one.cpu_percent).sum();
    let used = used / cores;
    let named: Vec<String> = others
        .iter()
        .map(|one| format!("{} {}", plain(&one.name), percent(one.cpu_percent / cores)))
        .collect();
    let named = if named.is_empty() {
        String::new()
    } else {
        format!(": {}", list(&named))
    };
    (used, format!("{} of all cores{named}", percent(used)))
}

pub(super) fn others(facts: &Facts<'_>) -> Check {
    let id = CheckId::OtherPrograms;
    let around = &facts.data.record.environment;
    if around.clocks.is_none() {
        return not_judged(id, "not recorded");
    }
    let (used, said) = competed(&around.others_during, facts.cores);
    let mut figures = vec![facts.held(used, &OTHER_PROGRAMS)];
    let mut evidence = format!("they used {said}");
    for (machine, there) in there(facts) {
        match there {
            RemoteHost::Seen(host) if !host.knows_system => evidence.push_str(&format!(
                "; on {machine} not judged: which programs there are the system's is not known"
            )),
            RemoteHost::Seen(host) => {
                let (used, said) = competed(&host.others_during, host.cores);
                figures.push(facts.held(used, &OTHER_PROGRAMS));
                evidence.push_str(&format!("; on {machine} {said}"));
            }
            RemoteHost::Unseen(why) => evidence.push_str(&format!("; {why}")),
        }
    }
    judged(id, figures, evidence)
}

pub(super) fn memory(facts: &Facts<'_>) -> Check {
    let words = |waited| {
        format!(
            "some task waited for memory {} of the time",
            percent(waited)
        )
    };
    let told = of_machines(facts, "pressure_memory_some_percent", words);
    by_machines(facts, CheckId::MemoryPressure, &MEMORY_PRESSURE, told)
}

/// Returns how much more the wall clock advanced than the monotonic one, which neither steps nor counts a suspension;
/// and the excess beyond NTP's slewing.
fn jumped(clocks: &Clocks) -> (f64, f64) {
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds of a trial stay far below 2^52"
    )]
    let wall_ms = (clocks.wall_end_ms - clocks.wall_start_ms) as f64;
    let off = wall_ms - clocks.monotonic_ms;
    let slewed = DRIFT_PART * clocks.monotonic_ms;
    (off, (off.abs() - slewed).max(0.0))
}

pub(super) fn clocks(facts: &Facts<'_>) -> Check {
    let id = CheckId::ClockJumps;
    let Some(clocks) = &facts.data.record.environment.clocks else {
        return not_judged(id, "not recorded");
    };
    let words = |off: f64| {
        let than = if off < 0.0 { "less" } else { "more" };
        format!("{} ms {than} than the monotonic one", ms(off.abs()))
    };
    let (off, beyond) = jumped(clocks);
    let mut figures = vec![facts.held(beyond, &CLOCK_JUMPS)];
    let mut evidence = format!("the calendar's clock counted {}", words(off));
    for (machine, there) in there(facts) {
        match there {
            RemoteHost::Seen(host) => {
                let (off, beyond) = jumped(&host.clocks);
                figures.push(facts.held(beyond, &CLOCK_JUMPS));
                evidence.push_str(&format!("; that of {machine} {}", words(off)));
            }
            RemoteHost::Unseen(why) => evidence.push_str(&format!("; {why}")),
        }
    }
    judged(id, figures, evidence)
}

/// Ports, files, listen queues, CPU quotas, heat. The worst of them decides, all are reported.
pub(super) fn limits(facts: &Facts<'_>) -> Check {
    let id = CheckId::Limits;
    let around = &facts.data.record.environment;
    if around.clocks.is_none() {
        return not_judged(id, "not recorded");
    }
    let mut found = reached(facts, &around.limits);
    let mut unseen = String::new();
    for (machine, there) in there(facts) {
        match there {
            RemoteHost::Seen(host) => {
                found.extend(reached(facts, &host.limits).into_iter().map(|mut one| {
                    one.text.push_str(&format!(", on {machine}"));
                    one
                }))
            }
            RemoteHost::Unseen(why) => unseen.push_str(&format!("; {why}")),
        }
    }
    let Some(worst) = found.iter().max_by_key(|one| one.outcome) else {
        return not_judged(id, format!("the kernel tells none{unseen}"));
    };
    let said: Vec<&str> = found.iter().map(|one| one.text.as_str()).collect();
    check(id, worst.outcome, said.join("; ") + &unseen)
        .caused_by(worst.cause)
        .by(found.iter().filter_map(|one| one.figure).collect())
}

/// Returns the limits of a machine to report.
fn reached(facts: &Facts<'_>, limits: &LimitsReached) -> Vec<Near> {
    let mut found = used_up(limits, facts.limit(&LIMITS_NEAR));
    let overflows = |n| format!("{n} connections found a listener's queue full");
    found.extend(counted(limits.listen_overflows, Cause::System, overflows));
    let throttled = facts.limit(&GENERATOR_THROTTLED);
    found.extend(held_back(limits, workers_ms(facts), throttled));
    let heat = |n| format!("cores lowered their frequency for heat {n} times");
    found.extend(counted(limits.thermal_throttles, Cause::Outside, heat));
    found
}

/// A limit of the machine or of a process, and how nearly it was reached.
struct Near {
    outcome: CheckOutcome,
    text: String,
    cause: Cause,
    figure: Option<Figure>,
}

/// Returns limits by number, and how nearly each was reached. If the generator or the machine used all files, load was
/// not sent. Records with only a sum over processes are not judged.
fn used_up(limits: &LimitsReached, near: InForce) -> Vec<Near> {
    let (generator, system) = (Cause::Generator, Cause::System);
    let told = |(what, used, cause): (&str, Option<Used>, Cause)| {
        let used = used.filter(|used| used.limit > 0 && !used.is_sum())?;
        let part = 100.0 * as_f64(used.most) / as_f64(used.limit);
        let figure = held(part, &LIMITS_NEAR, near);
        let outcome = match cause {
            Cause::Generator | Cause::Outside if part >= 100.0 => CheckOutcome::Invalid,
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
        (
            "files of the machine",
            limits.machine_open_files,
            Cause::Outside,
        ),
        ("ports", limits.ports, system),
    ]
    .into_iter()
    .filter_map(told)
    .collect()
}

/// Reports an event if it occurred, with its count.
fn counted(n: Option<u64>, cause: Cause, words: impl Fn(String) -> String) -> Option<Near> {
    let n = n.filter(|n| *n > 0)?;
    Some(Near {
        outcome: CheckOutcome::Warn,
        text: words(count(n)),
        cause,
        figure: None,
    })
}

/// Returns the time of all workers of the generator in the trial: the kernel counts throttled time on each CPU, so that
/// one moment counts once for each throttled thread.
fn workers_ms(facts: &Facts<'_>) -> f64 {
    let workers = facts.data.record.generator.workers.max(1);
    facts.sums.hold_span.end_ms.max(1.0) * f64::from(workers)
}

/// Returns exhausted CPU quotas.
fn held_back(limits: &LimitsReached, workers_ms: f64, generators: InForce) -> Vec<Near> {
    let told = |(whose, throttled, cause): (&str, Option<Throttled>, Cause)| {
        let throttled = throttled.filter(|throttled| throttled.periods > 0)?;
        let part = (100.0 * as_f64(throttled.ms) / workers_ms).min(100.0);
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
