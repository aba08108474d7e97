//! Profiles of real processes.

use std::collections::HashMap;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use lab_archive::{Frames, Profiled};
use lab_profile::{Profile, Sample};
use lab_sampling::{Refused, Sampler, Spec};

use crate::subject::{FUNCTIONS, Subject};

fn spec(subject: &Subject, frames: Option<Frames>) -> Spec {
    Spec {
        pid: subject.pid(),
        hold: None,
        rate: Some(499.0),
        frames,
        budget: 0.02,
        length: Duration::from_secs(60),
        seed: 11,
        waits: None,
        idle: Vec::new(),
    }
}

/// Opens a sampler; `None` where this user may not sample, which is printed.
fn open(spec: Spec) -> Option<Sampler> {
    match Sampler::open(spec) {
        Ok(sampler) => Some(sampler),
        Err(refused @ (Refused::NotAllowed { .. } | Refused::Blocked | Refused::NoEvents)) => {
            eprintln!("not tested: {refused}");
            None
        }
        Err(other) => panic!("{other}"),
    }
}

#[expect(clippy::disallowed_methods, reason = "the tests' clock")]
fn clock() -> Instant {
    Instant::now()
}

/// A timer: nothing is ever sent.
fn wait(time: Duration) {
    let (_sender, receiver) = sync_channel::<()>(0);
    let _ = receiver.recv_timeout(time);
}

/// Samples until the system has used so much CPU time.
fn sample(mut sampler: Sampler, cpu: Duration, pid: u32) -> (Profile, Profiled) {
    let clock = clock();
    sampler.begin(|| clock.elapsed()).unwrap();
    let used = |pid: u32| {
        let stat = procfs::process::Process::new(pid as i32)
            .unwrap()
            .stat()
            .unwrap();
        Duration::from_millis((stat.utime + stat.stime) * 1000 / procfs::ticks_per_second())
    };
    let before = used(pid);
    while used(pid) - before < cpu {
        let next = sampler.turn(|| clock.elapsed());
        wait(next.saturating_sub(clock.elapsed()));
    }
    sampler.end(|| clock.elapsed());
    sampler.finish().cpu.unwrap()
}

/// Names of the functions of a stack, from the innermost on.
fn functions<'p>(profile: &'p Profile, sample: &Sample) -> Vec<&'p str> {
    let locations = sample.stack.iter().map(|at| &profile.locations[*at]);
    let lines = locations.flat_map(|location| &location.lines);
    lines
        .map(|line| profile.functions[line.function].name.as_str())
        .collect()
}

/// Samples of each function of the subject, with its callees.
fn shares(profile: &Profile) -> HashMap<usize, u64> {
    let mut found = HashMap::new();
    for sample in &profile.samples {
        let names = functions(profile, sample);
        let function = names.iter().find_map(|name| {
            let (_, number) = name.split_once("spin_")?;
            number[..1].parse::<usize>().ok()
        });
        if let Some(function) = function {
            *found.entry(function).or_default() += sample.count;
        }
    }
    found
}

/// Every position leads somewhere, and sums agree.
fn check(profile: &Profile, facts: &Profiled) {
    for sample in &profile.samples {
        assert!(sample.thread < profile.threads.len());
        assert!(!sample.stack.is_empty() && sample.stack.len() <= 127);
        assert!(sample.stack.iter().all(|at| *at < profile.locations.len()));
    }
    for location in &profile.locations {
        assert!(
            location
                .mapping
                .is_none_or(|at| at < profile.mappings.len())
        );
        assert!(!location.lines.is_empty());
        assert!(
            location
                .lines
                .iter()
                .all(|line| line.function < profile.functions.len())
        );
        assert!(location.address < 1 << 40, "an address of a process");
    }
    let count: u64 = profile.samples.iter().map(|sample| sample.count).sum();
    assert_eq!(count, facts.samples);
    let ns: u64 = profile.samples.iter().map(|sample| sample.ns).sum();
    let ratio = ns as f64 / 1e6 / facts.cpu_ms;
    assert!((ratio - 1.0).abs() < 0.005, "{ratio}");
    let off: Vec<u32> = facts.off_seconds.clone();
    assert!(
        profile
            .samples
            .iter()
            .all(|sample| !off.contains(&sample.second))
    );
}

#[test]
fn equal_functions_have_equal_shares() {
    let subject = Subject::start();
    let Some(sampler) = open(spec(&subject, Some(Frames::Copies))) else {
        return;
    };
    let (profile, facts) = sample(sampler, Duration::from_secs(6), subject.pid());
    eprintln!("{facts:?}");
    check(&profile, &facts);
    let shares = shares(&profile);
    let all: u64 = shares.values().sum();
    let expected = all as f64 / FUNCTIONS as f64;
    let part = 1.0 / FUNCTIONS as f64;
    let error = (all as f64 * part * (1.0 - part)).sqrt();
    eprintln!("{shares:?}, ±{error:.0}");
    assert!(all > 1000 && shares.len() == FUNCTIONS, "{shares:?}");
    for (function, count) in &shares {
        // 3 standard errors for each of eight would fail in one of fifty runs.
        assert!(
            (*count as f64 - expected).abs() < 4.0 * error,
            "{function}: {shares:?}"
        );
    }
    assert!(facts.whole * 100 >= facts.samples * 99, "{facts:?}");
    assert!(facts.named * 100 >= facts.samples * 98, "{facts:?}");
    assert!(
        profile.threads.iter().any(|name| name == "spin-*"),
        "{:?}",
        profile.threads
    );
    let expected = facts.expected;
    assert!(
        (facts.samples as f64 / expected - 1.0).abs() < 0.15 || facts.lost > 0,
        "{facts:?}"
    );
}

#[test]
fn stripped_programs_have_whole_stacks_and_functions_by_their_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let subject = Subject::stripped(folder.path());
    let Some(sampler) = open(spec(&subject, Some(Frames::Copies))) else {
        return;
    };
    let (profile, facts) = sample(sampler, Duration::from_secs(3), subject.pid());
    eprintln!("{facts:?}");
    check(&profile, &facts);
    assert!(facts.whole * 100 >= facts.samples * 99, "{facts:?}");
    let mut by_function: HashMap<&str, u64> = HashMap::new();
    for sample in &profile.samples {
        let names = functions(&profile, sample);
        if let Some(name) = names.iter().find(|name| name.starts_with("stripped+0x")) {
            *by_function.entry(name).or_default() += sample.count;
        }
    }
    eprintln!("{by_function:?}");
    let large = by_function
        .values()
        .filter(|count| **count * 20 > facts.samples);
    assert_eq!(large.count(), FUNCTIONS, "{by_function:?}");
}

#[test]
fn the_way_to_find_stacks_is_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let subject = Subject::stripped(folder.path());
    let Some(mut sampler) = open(spec(&subject, None)) else {
        return;
    };
    let clock = clock();
    sampler.try_out().unwrap();
    while clock.elapsed() < Duration::from_secs(2) {
        let next = sampler.turn(|| clock.elapsed());
        wait(next.saturating_sub(clock.elapsed()));
    }
    assert_eq!(sampler.frames(), None);
    sampler.begin(|| clock.elapsed()).unwrap();
    let chosen = sampler.frames();
    let (profile, facts) = sample(sampler, Duration::from_secs(1), subject.pid());
    check(&profile, &facts);
    assert_eq!(
        chosen,
        Some(Frames::Copies),
        "its code keeps no frame pointers"
    );
}

#[test]
fn low_rates_give_samples() {
    let subject = Subject::start();
    let low = Spec {
        rate: Some(7.0),
        ..spec(&subject, Some(Frames::Pointers))
    };
    let Some(sampler) = open(low) else { return };
    let (profile, facts) = sample(sampler, Duration::from_secs(6), subject.pid());
    check(&profile, &facts);
    assert!(facts.samples >= 10, "{facts:?}");
}

#[test]
fn a_process_that_is_gone_is_not_sampled() {
    let subject = Subject::start();
    let gone = spec(&subject, None);
    drop(subject);
    assert!(matches!(Sampler::open(gone), Err(Refused::NoProcess)));
}
