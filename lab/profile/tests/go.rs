//! Files that Go's runtime writes are read here, and `go tool pprof` reads ours.

use std::process::Command;

use lab_profile::waits::Class;
use lab_profile::{Profile, Sums};

use crate::made::Stacks;

/// Written by `runtime/pprof` of Go 1.26: 38 samples of a program with `main.work` and `main.fib`.
const GO: &[u8] = include_bytes!("data/go-runtime.pb.gz");

#[test]
fn reads_a_profile_of_the_go_runtime() {
    let profile = Profile::from_pprof(GO).unwrap();
    let sums = Sums::of(&profile);
    let own = |name: &str| {
        let sum = sums.functions.iter().find(|sum| sum.key.name == name);
        sum.map(|sum| (sum.own.ns / 1_000_000, sum.total.ns / 1_000_000))
    };
    // As `go tool pprof -top` shows it.
    assert_eq!(own("main.work"), Some((190, 210)));
    assert_eq!(own("main.fib"), Some((150, 170)));
    assert_eq!(own("main.main"), Some((0, 380)));
    assert_eq!((sums.all.count, sums.all.ns), (38, 380_000_000));
    assert!(profile.mappings[0].file.ends_with("/sampled"));
}

#[test]
fn go_tool_pprof_reads_our_file() {
    let profile = Stacks::default()
        .with("http-0", 1, "main;serve;work", 6)
        .with("http-1", 2, "main;serve", 2)
        .profile();
    let Some(text) = top(&profile, "-top") else {
        return;
    };
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let row = |name: &str| {
        rows.iter()
            .find(|row| row.last() == Some(&name))
            .map(|row| (row[0], row[3]))
    };
    assert_eq!(row("work"), Some(("30ms", "30ms")), "{text}");
    assert_eq!(row("serve"), Some(("10ms", "40ms")), "{text}");
    assert!(text.contains("File: server"), "{text}");
}

/// Returns the output of `go tool pprof` for a profile; `None` without Go.
fn top(profile: &Profile, what: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.pb.gz");
    std::fs::write(&path, profile.to_pprof().bytes).unwrap();
    let top = Command::new("go")
        .args(["tool", "pprof", what])
        .arg(&path)
        .output();
    let Ok(top) = top else {
        eprintln!("skipped: there is no go here");
        return None;
    };
    let text = String::from_utf8(top.stdout).unwrap();
    assert!(
        top.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&top.stderr)
    );
    Some(text)
}

#[test]
fn go_tool_pprof_reads_our_waits() {
    let profile = Stacks::of_waits()
        .waiting(
            ("http-0", 1),
            "main;serve;~futex_wait",
            (6, Class::Lock, Some("http-* in handle")),
        )
        .waiting(("http-1", 2), "main;poll", (2, Class::Poll, None))
        .profile();
    let Some(text) = top(&profile, "-top") else {
        return;
    };
    assert!(text.contains("Type: off"), "{text}");
    assert!(text.contains("30ms"), "{text}");
    let tags = top(&profile, "-tags").expect("go is here");
    for tag in ["class", "lock", "poll", "waker", "http-* in handle"] {
        assert!(tags.contains(tag), "{tags}");
    }
}
