//! Systems on another machine with prepare commands there, and with a file system for each trial: as far as the owner
//! of the machine allows it, and removed whichever process is killed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::wait_until;
use serde_json::Value;

use crate::stage::{DEADLINE, SESSIONS, Stage, counts, record, sequence, study};

/// A server on the other machine; `more` belongs to its command, and `around` to its environment.
fn on_db(load: &str, more: &str, around: &str) -> String {
    study("{{ plimsoll }}", load, &format!("{more}  on: db\n{around}"))
}

/// Returns the first trial of a finished run.
#[track_caller]
fn first(stage: &Stage, name: &str, study: &str) -> Value {
    let output = stage.output(name, study);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let run = stage.path(name);
    assert!(run.join("trials/001/trial.json").exists(), "{told}");
    record(&run, 1)
}

#[track_caller]
fn refused(stage: &Stage, name: &str, study: &str, expected: &str) {
    let output = stage.output(name, study);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && told.contains(expected),
        "{told}"
    );
    let began = stage.path(name).join("trials/001").exists();
    assert!(!began, "a trial began");
}

fn log(stage: &Stage, name: &str) -> String {
    let file = stage.path(name).join("trials/001/system.log");
    fs::read_to_string(file).expect("its output")
}

#[test]
fn commands_prepare_a_system_on_its_machine() {
    let Some(stage) = Stage::start() else { return };
    let command = |words: &str| format!("    provision: [ {{ command: [{words}] }} ]\n");
    let cat = |file: &str| command(&format!("cat, \"{file}\""));
    let whole = on_db(&sequence(), &cat("{{ users_file }}"), "");
    let done = first(&stage, "whole", &whole);
    assert_eq!(done["end"]["how"], "complete", "{done}");
    assert_eq!(counts(&stage.path("whole")), (SESSIONS * 4, 0));
    // Its output is kept with the system's output, as on this machine.
    let said = log(&stage, "whole");
    assert!(said.contains("{\"index\":0}"), "{said}");
    let broken = on_db(&sequence(), &cat("{{ scratch }}/nothing"), "");
    let failed = first(&stage, "broken", &broken);
    assert_eq!(failed["end"]["how"], "preparation_failed", "{failed}");
    let why = failed["end"]["message"].as_str().expect("a reason");
    let trials = stage.path("trials");
    assert!(
        why.starts_with("users were not provisioned: the command of the preparation ended with")
            && why.contains(trials.to_str().expect("UTF-8")),
        "{why}"
    );
    for program in ["sh", "./cat", "{{ scratch }}/cat"] {
        let study = on_db(&sequence(), &command(&format!("\"{program}\", x")), "");
        let expected = format!("the program {program} is not allowed");
        refused(&stage, "refused", &study, &expected);
    }
    stage.nothing_is_left();
}

#[test]
fn what_a_system_prints_that_does_not_start_is_told_and_kept() {
    let Some(stage) = Stage::start() else { return };
    let study = study("{{ plimsoll }}", &sequence(), "  on: db\n");
    let study = study.replace("--engine, memory", "--engine, abacus");
    let failed = first(&stage, "abacus", &study);
    assert_eq!(failed["end"]["how"], "system_failed", "{failed}");
    let why = failed["end"]["message"].as_str().expect("a reason");
    let said = log(&stage, "abacus");
    assert!(
        why.contains("before it was ready") && why.contains("abacus") && said.contains("abacus"),
        "{why}; {said}"
    );
    stage.nothing_is_left();
}

/// Returns `false`, with a message, if no file system can be created and mounted.
fn makes_filesystems() -> bool {
    let succeeds = |program: &str, words: &[&str]| {
        let mut command = Command::new(program);
        command
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let dir = tempfile::tempdir().expect("a folder");
    let at = dir.path().to_str().expect("UTF-8");
    let does = succeeds("mount", &["-t", "tmpfs", "tmpfs", at])
        && succeeds("umount", &[at])
        && succeeds("losetup", &["--find"])
        && succeeds("mkfs.ext4", &["-V"]);
    if !does {
        println!("SKIPPED: no ext4 can be made and mounted here");
    }
    does
}

fn is_mounted(folder: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("a list of mounts");
    mounts.contains(folder.to_str().expect("UTF-8"))
}

const STORAGE: &str = "  storage: { filesystem: ext4, size: 320 MB, options: noatime }\n";

#[test]
fn each_trial_elsewhere_has_a_file_system_of_its_own() {
    if !makes_filesystems() {
        return;
    }
    let Some(mut stage) = Stage::start() else {
        return;
    };
    let done = first(&stage, "made", &on_db(&sequence(), "", STORAGE));
    assert_eq!(done["end"]["how"], "complete", "{done}");
    assert_eq!(counts(&stage.path("made")), (SESSIONS * 4, 0));
    let told = |name: &str| done["system_settings"][name].as_str().unwrap_or_default();
    let storage = told("storage");
    assert!(
        storage.starts_with("ext4 of 320 MB, in a file in the agent's folder"),
        "{storage}"
    );
    assert!(told("storage mounted with").contains("noatime"), "{done}");
    assert!(!is_mounted(&stage.path("trials")));
    stage.nothing_is_left();
    let load = "{ users: 2, hold: 10m }";
    let mut conductor = stage.begin("killed", &on_db(load, "", STORAGE));
    assert!(is_mounted(&stage.path("trials")));
    stage.kill_agent();
    wait_until(DEADLINE, "the trial has its verdict", || {
        stage.path("killed/trials/001/trial.json").exists()
    });
    kill(Pid::from_raw(conductor.id().cast_signed()), Signal::SIGINT).expect("it runs");
    conductor.wait().expect("it ends");
    let lost = record(&stage.path("killed"), 1);
    assert_eq!(lost["end"]["how"], "agent_lost", "{lost}");
    assert!(
        is_mounted(&stage.path("trials")),
        "nobody is there to take it away"
    );
    // Whatever its next start allows.
    stage.start_agent(false);
    assert!(!is_mounted(&stage.path("trials")));
    stage.kill_agent();
    stage.start_agent(true);
    stage.nothing_is_left();
}

#[test]
fn file_systems_that_the_owner_does_not_allow_are_refused() {
    let Some(stage) = Stage::start() else { return };
    let made = |more: &str| format!("  storage: {{ filesystem: ext4, size: 320 MB{more} }}\n");
    for (storage, expected) in [
        (
            "  storage: { filesystem: xfs, size: 320 MB }\n".to_owned(),
            "(xfs) is not allowed",
        ),
        (
            "  storage: { filesystem: ext4, size: 500 MB }\n".to_owned(),
            "of 500 MB is not allowed",
        ),
        (
            made(", options: \"noatime,journal_path=/dev/sda\""),
            "journal_path=/dev/sda is not allowed",
        ),
        (
            made(", mkfs: [-d, /root]"),
            "mkfs.ext4 with \"-d /root\" is not allowed",
        ),
        (made(", folder: /var"), "the storage /var is not allowed"),
    ] {
        refused(
            &stage,
            "refused",
            &on_db(&sequence(), "", &storage),
            expected,
        );
    }
    stage.nothing_is_left();
}
