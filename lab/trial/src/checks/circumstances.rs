//! What went on around the trial, on the machines of system and generator: other programs, a hypervisor, memory
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
/// With more of the hold without a machine's counters it is not judged by them, whatever a study says of samples.
const MOST_MISSING: f64 = 0.2;

/// A machine of the system that did not conduct, and whether somebody looked around there.
enum There<'a> {
    /// Its agent looked.
    Seen(&'a SystemHost),
    /// Why nothing is known of it, in words.
    Unseen(String),
}

/// The machines that had the system, or parts of it, each with what it is called; none where all is on the machine that
/// conducted, as far as is known.
fn there<'a>(facts: &Facts<'a>) -> Vec<(String, There<'a>)> {
    let record = &facts.data.record;
    let around = &record.circumstances;
    let url = record.system_settings.get("url");
    let own = "the system's machine";
    let own = match &around.system_host {
        Some(host) => Some((own.to_owned(), There::Seen(host))),
        None if around.system_agent.is_some() => Some(unseen(own, "")),
        None if url.is_some_and(|url| is_afar(url)) => {
            Some(unseen(own, ", if that is another one,"))
        }
        None => None,
    };
    let parts = around.parts.iter().map(|part| {
        let name = machine_of(&part.name);
        match &part.host {
            Some(host) => (name, There::Seen(host)),
            None => unseen(&name, ""),
        }
    });
    own.into_iter().chain(parts).collect()
}

/// What the machine of a part of the system is called.
fn machine_of(part: &str) -> String {
    format!("the machine of {}", plain(part))
}

fn unseen<'a>(machine: &str, if_any: &str) -> (String, There<'a>) {
    let why = format!("{machine}{if_any} was not looked at");
    (machine.to_owned(), There::Unseen(why))
}

/// Whether an address may be another machine's.
fn is_afar(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, host)| host);
    let own = ["localhost", "127.", "[::1]"];
    !own.into_iter().any(|own| host.starts_with(own))
}

/// What a counter says of the machines of system and generator, in words; of one machine where both are on it.
struct Told {
    values: Vec<f64>,
    words: String,
    /// Whether it is known of the system's.
    is_known: bool,
}

/// Of the system's machine the counters may have stayed away, which are then not judged by.
fn of_machines(facts: &Facts<'_>, name: &str, words: impl Fn(f64) -> String) -> Told {
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
    let mut told = Told {
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

/// By the worse of the machines; a good one says nothing of one that isn't known.
fn by_machines(facts: &Facts<'_>, id: CheckId, limit: &Limit, told: Told) -> Check {
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

/// What other programs used of a machine's cores, in per cent and in words.
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
    let around = &facts.data.record.circumstances;
    if around.clocks.is_none() {
        return not_judged(id, "not recorded");
    }
    let (used, said) = competed(&around.others_during, facts.cores);
    let mut figures = vec![facts.held(used, &OTHER_PROGRAMS)];
    let mut evidence = format!("they used {said}");
    for (machine, there) in there(facts) {
        match there {
            There::Seen(host) if !host.knows_system => evidence.push_str(&format!(
                "; on {machine} not judged: which programs there are the system's is not known"
            )),
            There::Seen(host) => {
                let (used, said) = competed(&host.others_during, host.cores);
                figures.push(facts.held(used, &OTHER_PROGRAMS));
                evidence.push_str(&format!("; on {machine} {said}"));
            }
            There::Unseen(why) => evidence.push_str(&format!("; {why}")),
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

/// By how much the calendar's clock counted more than the monotonic one, which neither steps nor counts a
/// suspension; and that beyond what NTP slews.
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
    let Some(clocks) = &facts.data.record.circumstances.clocks else {
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
            There::Seen(host) => {
                let (off, beyond) = jumped(&host.clocks);
                figures.push(facts.held(beyond, &CLOCK_JUMPS));
                evidence.push_str(&format!("; that of {machine} {}", words(off)));
            }
            There::Unseen(why) => evidence.push_str(&format!("; {why}")),
        }
    }
    judged(id, figures, evidence)
}

/// Ports, files, listen queues, CPU quotas, heat. The worst of them counts, all are told.
pub(super) fn limits(facts: &Facts<'_>) -> Check {
    let id = CheckId::Limits;
    let around = &facts.data.record.circumstances;
    if around.clocks.is_none() {
        return not_judged(id, "not recorded");
    }
    let mut found = reached(facts, &around.limits);
    let mut unseen = String::new();
    for (machine, there) in there(facts) {
        match there {
            There::Seen(host) => {
                found.extend(reached(facts, &host.limits).into_iter().map(|mut one| {
                    one.text.push_str(&format!(", on {machine}"));
                    one
                }))
            }
            There::Unseen(why) => unseen.push_str(&format!("; {why}")),
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

/// What is to be told of a machine's limits.
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

/// A limit of the machine or of a process, and how near it was.
struct Near {
    outcome: CheckOutcome,
    text: String,
    cause: Cause,
    figure: Option<Figure>,
}

/// What is limited in number, and how near the limit it came. All files of the generator or of the machine in use
/// is load that was not sent. Of records that have no more than a sum over processes nobody knows which came near.
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

/// The time of all workers of the generator in the trial: the kernel counts throttled time on each CPU, so that the
/// same moment counts once for each thread that is held back.
fn workers_ms(facts: &Facts<'_>) -> f64 {
    let workers = facts.data.record.generator.workers.max(1);
    facts.sums.hold_span.end_ms.max(1.0) * f64::from(workers)
}

/// CPU quotas that were used up.
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
