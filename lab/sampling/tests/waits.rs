//! Waits of real programs.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use lab_profile::Profile;
use lab_profile::waits::{Class, ThreadGroup};
use lab_sampling::{Recorded, RecordedWaits, Refused, Sampler, Spec};

/// A compiled program whose threads wait in known ways.
struct Waiting {
    child: Child,
}

impl Waiting {
    fn start(folder: &Path, words: &[&str]) -> Self {
        let program = folder.join("waits");
        let source = folder.join("waits.c");
        std::fs::write(&source, include_str!("subject/waits.c")).unwrap();
        let compiler = Command::new("cc")
            .args(["-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-o"])
            .args([&program, &source])
            .status();
        assert!(compiler.unwrap().success());
        let child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let waiting = Self {
            child: child.unwrap(),
        };
        wait(Duration::from_millis(300));
        waiting
    }

    /// Returns the fraction of their lives that its threads waited, by their own clock.
    fn ended(mut self) -> f64 {
        drop(self.child.stdin.take());
        let mut text = String::new();
        let output = self.child.stdout.as_mut().unwrap();
        output.read_to_string(&mut text).unwrap();
        let numbers: Vec<f64> = text
            .split_whitespace()
            .map(|one| one.parse().unwrap())
            .collect();
        numbers[0] / numbers[1].max(1.0)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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

fn spec(pid: u32, level: u8) -> Spec {
    Spec {
        pid,
        hold: None,
        rate: Some(199.0),
        frames: Some(lab_archive::Frames::Copies),
        budget: 0.02,
        length: Duration::from_secs(60),
        seed: 5,
        waits: Some(level),
        idle: Vec::new(),
    }
}

/// Records a hold of this many seconds; `None` where this user may not, which is printed.
fn record(spec: Spec, seconds: u64) -> Option<Recorded> {
    let level = spec.waits;
    let mut sampler = Sampler::open(spec).unwrap();
    if let (Some(refused), Some(3)) = (sampler.refused(), level) {
        eprintln!("not tested: {refused}");
        return None;
    }
    let clock = clock();
    sampler.begin(|| clock.elapsed()).unwrap();
    while clock.elapsed() < Duration::from_secs(seconds) {
        let next = sampler.turn(|| clock.elapsed());
        wait(next.saturating_sub(clock.elapsed()));
    }
    sampler.end(|| clock.elapsed());
    Some(sampler.finish())
}

fn waits(spec: Spec, seconds: u64) -> Option<RecordedWaits> {
    let waits = record(spec, seconds)?.waits.unwrap();
    eprintln!("{:?}", waits.facts);
    for (name, group) in &groups(&waits) {
        eprintln!("{name}: {group:?}");
    }
    check(&waits);
    Some(waits)
}

/// The groups of all lines.
fn groups(waits: &RecordedWaits) -> BTreeMap<String, ThreadGroup> {
    let mut groups: BTreeMap<String, ThreadGroup> = BTreeMap::new();
    for line in &waits.threads {
        let sum = groups.entry(line.group.name.clone()).or_default();
        sum.threads = sum.threads.max(line.group.threads);
        sum.wall_ns += line.group.wall_ns;
        sum.on_cpu_ns += line.group.on_cpu_ns;
        sum.no_core_ns += line.group.no_core_ns;
        for (class, ns) in line.group.blocked_ns.iter().flatten() {
            *sum.blocked_ns
                .get_or_insert_default()
                .entry(*class)
                .or_default() += ns;
        }
    }
    groups
}

/// Sums agree, whatever the program does.
fn check(waits: &RecordedWaits) {
    let hold = (waits.hold.1 - waits.hold.0).as_nanos() as f64;
    for (name, group) in &groups(waits) {
        let expected = hold * f64::from(group.threads);
        let ratio = group.wall_ns as f64 / expected;
        assert!((ratio - 1.0).abs() < 0.01, "{name}: {ratio}");
        assert!(
            group.on_cpu_ns + group.no_core_ns <= group.wall_ns,
            "{name}"
        );
    }
    let Some(profile) = &waits.profile else {
        return;
    };
    let mut off: BTreeMap<&str, u64> = BTreeMap::new();
    for sample in &profile.samples {
        assert!(sample.stack.iter().all(|at| *at < profile.locations.len()));
        assert!(sample.wait.is_some());
        *off.entry(&profile.threads[sample.thread]).or_default() += sample.ns;
    }
    for (name, ns) in off {
        let lines = waits.threads.iter().filter(|line| line.group.name == name);
        let lines = lines.filter(|line| line.group.blocked_ns.is_some());
        let times = lines.map(|line| line.group.wall_ns - line.group.on_cpu_ns);
        let expected: u64 = times.sum();
        let ratio = ns as f64 / expected as f64;
        assert!((ratio - 1.0).abs() < 0.01, "{name}: {ratio}");
    }
    if let Some(switched) = waits.facts.switched_on_cpu_ms {
        let ratio = switched / waits.facts.on_cpu_ms;
        eprintln!("on the CPU by switches: {ratio:.4} of what the scheduler counted");
        // The records are made within the switch, a part of which the scheduler counts as time on the CPU.
        let switching = waits.facts.switches as f64 * 0.015;
        let difference = (switched - waits.facts.on_cpu_ms).abs();
        assert!(
            difference < 0.02 * waits.facts.on_cpu_ms + switching,
            "{ratio}"
        );
    }
}

/// Names of the functions of each stack with time in this class, the largest first.
fn stacks(profile: &Profile, class: Class) -> Vec<(f64, Vec<String>)> {
    let mut found: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for sample in &profile.samples {
        if sample.wait.unwrap().class == class {
            let names = profile
                .frames(sample)
                .map(|at| profile.functions[at].name.clone());
            *found.entry(names.collect()).or_default() += sample.ns;
        }
    }
    let all: u64 = found.values().sum();
    let mut found: Vec<_> = found
        .into_iter()
        .map(|(names, ns)| (ns as f64 / all as f64, names))
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found
}

fn part(group: &ThreadGroup, class: Class) -> f64 {
    let blocked = group.blocked_ns.as_ref().unwrap();
    let sum: u64 = blocked.values().sum();
    let off = group.wall_ns - group.on_cpu_ns - group.no_core_ns;
    let of_class = *blocked.get(&class).unwrap_or(&0) as f64 / sum as f64;
    of_class * off as f64 / group.wall_ns as f64
}

#[test]
fn a_lock_convoy_is_found_with_its_function_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let program = Waiting::start(folder.path(), &["convoy"]);
    let Some(waits) = waits(spec(program.child.id(), 3), 8) else {
        return;
    };
    let own = program.ended();
    let workers = &groups(&waits)["worker-*"];
    let found = part(workers, Class::Lock);
    eprintln!("waiting for the lock: {found:.4}, by its own clock {own:.4}");
    assert!((found / own - 1.0).abs() < 0.1, "{found} {own}");
    let stacks = stacks(waits.profile.as_ref().unwrap(), Class::Lock);
    eprintln!("{:?}", stacks.first());
    let first = &stacks[0];
    assert!(
        first.1.iter().any(|name| name == "under_the_lock"),
        "{first:?}"
    );
}

#[test]
fn a_program_that_syncs_waits_for_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let program = Waiting::start(folder.path(), &["sync", folder.path().to_str().unwrap()]);
    let Some(waits) = waits(spec(program.child.id(), 3), 6) else {
        return;
    };
    let own = program.ended();
    let syncer = &groups(&waits)["syncer-*"];
    let found = part(syncer, Class::Disk) + syncer.no_core_ns as f64 / syncer.wall_ns as f64;
    let stacks = stacks(waits.profile.as_ref().unwrap(), Class::Disk);
    eprintln!(
        "{found:.4}, by its own clock {own:.4}: {:?}",
        stacks.first()
    );
    let by_function = stacks
        .iter()
        .filter(|(_, names)| names.iter().any(|name| name == "to_the_disk"));
    assert!(by_function.map(|(part, _)| part).sum::<f64>() > 0.9);
    assert!((found / own - 1.0).abs() < 0.1, "{found} {own}");
}

#[test]
fn threads_without_a_core_are_told_from_blocked_ones() {
    let folder = tempfile::tempdir().unwrap();
    let program = Waiting::start(folder.path(), &["starved", "0"]);
    let Some(waits) = waits(spec(program.child.id(), 3), 6) else {
        return;
    };
    let spinners = &groups(&waits)["spinner-*"];
    let part = spinners.no_core_ns as f64 / spinners.wall_ns as f64;
    assert!(part > 0.6, "three threads share a core: {part}");
    let blocked = spinners.wall_ns - spinners.on_cpu_ns - spinners.no_core_ns;
    assert!((blocked as f64) < 0.02 * spinners.wall_ns as f64);
    let latency = &waits.latency["spinner-*"];
    eprintln!(
        "latency: {} of p50 {} µs",
        latency.len(),
        latency.value_at_quantile(0.5)
    );
    assert!(
        latency.len() > 20 && latency.max() > 1000,
        "{}",
        latency.max()
    );
}

#[test]
fn sleepers_pollers_and_waiters_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let program = Waiting::start(folder.path(), &["others"]);
    for level in [1, 3] {
        let Some(waits) = waits(spec(program.child.id(), level), 6) else {
            return;
        };
        let groups = groups(&waits);
        let idle = if level == 1 {
            Class::LockOrCondition
        } else {
            Class::Idle
        };
        for (name, class) in [
            ("sleeper", Class::Sleep),
            ("poller", Class::Poll),
            ("waiter", idle),
        ] {
            let part = part(&groups[name], class);
            assert!(part > 0.9, "{level} {name}: {part}");
        }
    }
}

#[test]
fn threads_that_live_shortly_count() {
    let folder = tempfile::tempdir().unwrap();
    let program = Waiting::start(folder.path(), &["short"]);
    let Some(recorded) = record(spec(program.child.id(), 3), 4) else {
        return;
    };
    let waits = recorded.waits.unwrap();
    let groups = groups(&waits);
    let spawner = part(&groups["spawner"], Class::Sleep);
    assert!(spawner > 0.1, "{spawner}");
    // Each spins for 200 µs, and most live between two readings of the scheduler's counters.
    if let Some(switched) = waits.facts.switched_on_cpu_ms {
        let ratio = waits.facts.on_cpu_ms / switched;
        eprintln!("{:?}, {ratio}", waits.facts);
        assert!((ratio - 1.0).abs() < 0.2, "{ratio}");
    }
    let ended = groups.get("[ended]").map_or(0, |group| group.on_cpu_ns);
    assert!((ended as f64) < 0.1 * groups["short-*"].on_cpu_ns as f64);
    for (name, group) in &groups {
        eprintln!("{name}: {group:?}");
        assert!(
            group.on_cpu_ns + group.no_core_ns <= group.wall_ns,
            "{group:?}"
        );
    }
}

#[test]
fn slices_show_the_same_waits() {
    let folder = tempfile::tempdir().unwrap();
    let program = Waiting::start(folder.path(), &["convoy"]);
    let cheap = Spec {
        budget: 0.003,
        ..spec(program.child.id(), 3)
    };
    let Some(waits) = waits(cheap, 10) else {
        return;
    };
    let own = program.ended();
    let found = part(&groups(&waits)["worker-*"], Class::Lock);
    eprintln!("waiting for the lock: {found:.4}, by its own clock {own:.4}");
    assert!(waits.facts.slices.is_some(), "{:?}", waits.facts);
    // Some three hundred stacks stand for all waits.
    assert!((found / own - 1.0).abs() < 0.25, "{found} {own}");
}

#[test]
fn too_many_switches_turn_stacks_off() {
    let folder = tempfile::tempdir().unwrap();
    let program = Waiting::start(folder.path(), &["switches", "0"]);
    let cheap = Spec {
        budget: 0.001,
        ..spec(program.child.id(), 3)
    };
    let Some(waits) = waits(cheap, 4) else {
        return;
    };
    assert_eq!(waits.facts.level, 1, "{:?}", waits.facts);
    let said = |text: &String| text.contains("switch") && text.contains("budget");
    assert!(waits.facts.missing.iter().any(said), "{:?}", waits.facts);
}

#[test]
fn level_0_has_times_only() {
    let folder = tempfile::tempdir().unwrap();
    let program = Waiting::start(folder.path(), &["convoy"]);
    let waits = waits(spec(program.child.id(), 0), 3).unwrap();
    assert_eq!((waits.facts.level, waits.profile), (0, None));
    let gone = spec(program.child.id(), 3);
    drop(program);
    assert!(matches!(Sampler::open(gone), Err(Refused::NoProcess)));
}

/// Not a test: prints the records of another user.
#[test]
#[ignore = "a helper of the test below, which runs it as another user"]
fn seen_by_another_user() {
    let folder = tempfile::tempdir().unwrap();
    let program = Waiting::start(folder.path(), &["others"]);
    let recorded = record(spec(program.child.id(), 1), 1);
    assert!(recorded.unwrap().waits.is_some());
    let mut sampler = Sampler::open(spec(program.child.id(), 3)).unwrap();
    assert!(sampler.refused().is_some());
    let clock = clock();
    sampler.begin(|| clock.elapsed()).unwrap();
    while clock.elapsed() < Duration::from_secs(5) {
        let next = sampler.turn(|| clock.elapsed());
        wait(next.saturating_sub(clock.elapsed()));
    }
    sampler.end(|| clock.elapsed());
    let recorded = sampler.finish();
    assert!(recorded.cpu.is_none());
    let waits = recorded.waits.unwrap();
    check(&waits);
    assert_eq!(waits.facts.level, 1);
    let said = &waits.facts.missing[0];
    assert!(
        said.contains("stacks of waits") && said.contains("CAP_PERFMON"),
        "{said}"
    );
    assert!(part(&groups(&waits)["poller"], Class::Poll) > 0.9);
}

#[test]
fn users_without_rights_get_the_rest_and_are_told_what_is_missing() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let strict = paranoid.is_ok_and(|text| text.trim().parse::<i32>().is_ok_and(|one| one > 0));
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root || !strict {
        eprintln!("not tested: this needs root, and a kernel that refuses samples to others");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), all).unwrap();
    let program = folder.path().join("suite");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let output = Command::new(program)
        .args([
            "--ignored",
            "--exact",
            "waits::seen_by_another_user",
            "--nocapture",
        ])
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}
