//! A whole run of a small study: report, archive, interruption, resumption, and leftovers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::{program, repository, wait_until};

const DEADLINE: Duration = Duration::from_secs(120);

/// The calendar study with few users, sped up so that a trial takes seconds.
fn small(out: &Path, users: &str, speed: &str) -> Command {
    let mut command = Command::new(program());
    command
        .arg("run")
        .arg(repository().join("studies/calendar.study.yaml"))
        .args([
            "--speed",
            speed,
            "--set",
            &format!("matrix.users={users}"),
            "--set",
            "repeats=0",
            "--out",
        ])
        .arg(out)
        .env("PLIMSOLL_PATIENCE", "0")
        .stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The result of a run with this output.
fn result(out: &Path, output: &Output) -> serde_json::Value {
    let text = fs::read_to_string(out.join("result.json"));
    let text = text.unwrap_or_else(|error| panic!("{error}: {}", self::text(&output.stderr)));
    serde_json::from_str(&text).expect("JSON")
}

fn code(output: &Output) -> i32 {
    output
        .status
        .code()
        .unwrap_or_else(|| panic!("killed: {}", text(&output.stderr)))
}

/// The exit code by a run's own verdict. These tests do not care whether the machine was idle enough for a valid
/// measurement.
fn judged(result: &serde_json::Value) -> i32 {
    match result["summary"]["outcome"].as_str() {
        Some("ok") => 0,
        Some("threshold_failed") => 99,
        Some("too_few_valid_trials") => 120,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_small_run_ends_with_a_report_that_its_archive_gives_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run");
    // A speed that a debug build on a busy machine keeps up with.
    let output = small(&out, "[60, 80]", "200")
        .output()
        .expect("the program runs");
    let first = result(&out, &output);
    assert_eq!(code(&output), judged(&first), "{}", text(&output.stderr));
    assert_eq!(first["schema"], "plimsoll.result/1");
    let trials = first["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 2);
    for (trial, users) in trials.iter().zip([60.0, 80.0]) {
        assert_eq!(trial["errors"], 0, "{trial}");
        let transactions = trial["transactions"].as_f64().expect("a number");
        let planned = users * 21.0 * 4.5;
        // A machine that is too busy to send on time sends less, and then the trial is invalid.
        let lowest = if trial["verdict"] == "valid" {
            0.9
        } else {
            0.0
        };
        let share = transactions / planned;
        assert!(
            share > lowest && share < 1.1,
            "{transactions} of about {planned}: {trial}"
        );
    }
    let stdout = text(&output.stdout);
    assert!(stdout.contains("report.html"), "{stdout}");
    let wide = |line: &&str| line.chars().count() > 80 && !line.starts_with("report:");
    assert_eq!(
        stdout.lines().find(wide),
        None,
        "it fits a terminal of 80 columns"
    );

    fs::remove_file(out.join("result.json")).expect("it is there");
    let again = Command::new(program())
        .arg("report")
        .arg(&out)
        .output()
        .expect("it runs");
    assert_eq!(code(&again), judged(&first), "{}", text(&again.stderr));
    assert_eq!(
        result(&out, &again),
        first,
        "the archive alone gives the same result"
    );
    assert!(!out.join("work").exists(), "the scratch folder is removed");
}

#[test]
fn an_interrupted_run_keeps_its_trials_and_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run");
    let mut child = small(&out, "[60, 70]", "400")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let first_trial = out.join("trials/001/trial.json");
    wait_until(DEADLINE, "the first trial is archived", || {
        first_trial.exists()
    });
    interrupt(&child, Signal::SIGINT);
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(105));
    assert!(first_trial.exists());
    assert!(!out.join("trials/002/trial.json").exists());
    assert!(servers_under(&out).is_empty(), "the server has ended");

    let kept = fs::metadata(&first_trial)
        .and_then(|m| m.modified())
        .expect("a time");
    let output = small(&out, "[60, 70]", "400")
        .arg("--resume")
        .output()
        .expect("it runs");
    assert_eq!(
        code(&output),
        judged(&result(&out, &output)),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(
        result(&out, &output)["trials"].as_array().map(Vec::len),
        Some(2)
    );
    let now = fs::metadata(&first_trial)
        .and_then(|m| m.modified())
        .expect("a time");
    assert_eq!(kept, now, "the finished trial was not run again");
}

#[test]
fn the_server_never_survives_a_killed_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("run");
    let mut child = small(&out, "[60]", "60")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    wait_until(DEADLINE, "the server runs", || {
        !servers_under(&out).is_empty()
    });
    interrupt(&child, Signal::SIGKILL);
    child.wait().expect("it ends");
    wait_until(DEADLINE, "the server has ended", || {
        servers_under(&out).is_empty()
    });
}

fn interrupt(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).expect("the run is there");
}

/// Processes whose command line names a folder below `out`: the servers of that run.
fn servers_under(out: &Path) -> Vec<PathBuf> {
    let needle = out.display().to_string();
    let entries = fs::read_dir("/proc").expect("/proc");
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let line = fs::read(path.join("cmdline")).unwrap_or_default();
            let line = text(&line);
            line.contains("\0serve\0") && line.contains(&needle)
        })
        .collect()
}

#[test]
fn bad_input_names_its_place_and_ends_with_104() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bad.study.yaml");
    fs::write(&file, "study: bad\ntitle: Bad\nworkloud: calendar\n").expect("written");
    let output = Command::new(program())
        .arg("check")
        .arg(&file)
        .output()
        .expect("it runs");
    assert_eq!(code(&output), 104);
    let message = text(&output.stderr);
    assert!(message.contains("bad.study.yaml:3:1"), "{message}");
    assert!(message.contains("workload"), "{message}");

    let missing = folder.path().join("none.study.yaml");
    let output = Command::new(program())
        .arg("run")
        .arg(&missing)
        .output()
        .expect("it runs");
    assert_eq!(code(&output), 104, "{}", text(&output.stderr));
    let output = Command::new(program())
        .args(["run", "--sped", "60"])
        .output()
        .expect("it runs");
    assert_eq!(code(&output), 104);
    assert!(
        text(&output.stderr).contains("--speed"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_load_beyond_this_machines_limits_is_refused_in_words() {
    let study = repository().join("studies/calendar.study.yaml");
    let output = Command::new(program())
        .arg("plan")
        .arg(&study)
        .args(["--set", "matrix.users=[900000]"])
        .output()
        .expect("it runs");
    assert_eq!(code(&output), 104);
    let message = text(&output.stderr);
    assert!(message.contains("900000 users"), "{message}");
    assert!(
        message.contains("ulimit") || message.contains("port"),
        "{message}"
    );
}

#[test]
fn the_generator_is_calibrated_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(program())
        .args(["calibrate", "--seconds", "1", "--format", "json"])
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    let told = text(&output.stderr);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["schema"], "plimsoll.calibration/1");
    // Fitness depends on the load of this machine; exit code and words must agree.
    let is_fit = found["fit"].as_bool().expect("a judgement");
    assert_eq!(code(&output), if is_fit { 0 } else { 120 }, "{told}");
    let why = found["why"].as_array().expect("reasons");
    assert!(is_fit || !why.is_empty(), "{found}");
    assert!(
        found["monitor_ms_per_sample"].as_f64() > Some(0.0),
        "{found}"
    );
    // A generator without CPU has no figure, never a figure of 0.
    for figure in ["requests_per_s", "sends_per_s"] {
        let told = found[figure].as_f64();
        assert!(told > Some(0.0) || told.is_none() && !is_fit, "{found}");
    }
    let late = |at: &str| found["lateness_ms"][at].as_f64();
    assert!(late("p50").is_some() && late("p50") <= late("p99") && late("p99") <= late("max"));
    assert_eq!(
        told.matches(", 0 errors").count(),
        told.matches(" errors").count(),
        "{told}"
    );
    let left = fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(left, 0, "archives are removed");
}

/// A study of `plimsoll serve` with a self-signed certificate for localhost.
fn over_tls(folder: &Path) -> Command {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("written");
    write("cert.pem", &own.cert.pem());
    write("key.pem", &own.signing_key.serialize_pem());
    write(
        "health.workload.yaml",
        "workload: health\nabout: A look.\nsession:\n  steps:\n    - step: Look\n      \
         wait: 50ms\n      request: GET /healthz\n",
    );
    let (program, folder) = (program(), folder.display());
    let study = format!(
        "study: secure\ntitle: Over TLS\nworkload: health\nsystem:\n  command:\n    start: \
         [{}, serve, --listen, \"127.0.0.1:{{{{ port }}}}\", --data, \"{{{{ scratch }}}}/data\", \
         --tls-cert, {folder}/cert.pem, --tls-key, {folder}/key.pem]\n    \
         ready: {{ http: /healthz }}\n  scheme: https\n  \
         tls: {{ ca: cert.pem, server_name: localhost }}\n\
         load: {{ sequence: {{ sessions: 30 }} }}\ntrials: 1\nrepeats: 0\n",
        program.display()
    );
    write("secure.study.yaml", &study);
    let mut command = Command::new(program);
    command
        .arg("run")
        .arg(format!("{folder}/secure.study.yaml"))
        .env("PLIMSOLL_PATIENCE", "0")
        .stdin(Stdio::null());
    command
}

#[test]
fn a_system_that_the_lab_starts_may_speak_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("trusted");
    let mut command = over_tls(folder.path());
    let output = command.arg("--out").arg(&out).output().expect("it runs");
    let trial_of = |out: &Path, output| result(out, output)["trials"][0].clone();
    let trial = trial_of(&out, &output);
    assert!(
        trial["transactions"].as_u64() > Some(20),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(trial["errors"], 0, "{trial}");
    let settings = &trial["system_settings"];
    assert_eq!(settings["scheme"], "https");
    assert_eq!(settings["tls server_name"], "localhost");

    let unchecked = "Certificates were not checked";
    assert!(!text(&output.stdout).contains(unchecked));
    let out = folder.path().join("any");
    let any = ["--set", "system.tls={ insecure: true }", "--out"];
    let mut command = over_tls(folder.path());
    let output = command.args(any).arg(&out).output().expect("it runs");
    assert_eq!(
        trial_of(&out, &output)["errors"],
        0,
        "{}",
        text(&output.stderr)
    );
    assert!(
        text(&output.stdout).contains(unchecked),
        "{}",
        text(&output.stdout)
    );

    let out = folder.path().join("stranger");
    let stranger = ["--set", "system.tls={ server_name: localhost }", "--out"];
    let mut command = over_tls(folder.path());
    let output = command.args(stranger).arg(&out).output().expect("it runs");
    let trial = trial_of(&out, &output);
    assert_eq!(trial["transactions"], 0, "{trial}");
    let said = trial["error_examples"].to_string();
    assert!(said.contains("tls: { ca: FILE }"), "{said}");

    let absent = ["--set", "system.tls.ca=absent.pem", "--out"];
    let mut command = over_tls(folder.path());
    let output = command
        .args(absent)
        .arg(folder.path().join("absent"))
        .output();
    let said = text(&output.expect("it runs").stderr);
    assert!(
        said.contains("`ca` of `tls` names absent.pem: No such file"),
        "{said}"
    );
}
