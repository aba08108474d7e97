//! Protocols other than HTTP against real servers, and scripts as users, with every request counted on both sides. Where one of Debian's
//! servers is missing, its tests print that and pass.

mod asked;
mod grpc;
mod imap;
mod mqtt;
mod postgres;
mod raw;
mod redis;
mod requests;
mod script_ends;
mod scripts;
mod smtp;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use plimsoll_tests::program;
use serde_json::Value;

/// Returns true if a program is installed.
fn has(name: &str) -> bool {
    let asked = Command::new(name).arg("--version").output().is_ok();
    if !asked {
        eprintln!("SKIPPED: {name} is not on this machine");
    }
    asked
}

/// A server that is ended on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

fn plimsoll(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(program())
        .args(arguments)
        .current_dir(folder)
        .env("PLIMSOLL_STATE", folder.join("state"))
        .env("PLIMSOLL_PATIENCE", "0")
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("it runs")
}

/// Runs a study beside its workload, `it.workload.yaml`; returns its only trial.
fn measured(folder: &Path, study: &str, workload: &str) -> Value {
    fs::write(folder.join("it.study.yaml"), study).expect("written");
    fs::write(folder.join("it.workload.yaml"), workload).expect("written");
    let output = plimsoll(folder, &["run", "it.study.yaml", "--out", "run"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = fs::read_to_string(folder.join("run/result.json"));
    let text = text.unwrap_or_else(|e| panic!("{e}: {said}"));
    let mut result: Value = serde_json::from_str(&text).expect("JSON");
    result["trials"][0].take()
}

/// Returns the output of `try` and its exit code.
fn tried(folder: &Path, study: &str, workload: &str) -> (String, Option<i32>) {
    fs::write(folder.join("try.study.yaml"), study).expect("written");
    fs::write(folder.join("it.workload.yaml"), workload).expect("written");
    let output = plimsoll(folder, &["try", "try.study.yaml"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let shown = String::from_utf8_lossy(&output.stdout);
    (format!("{shown}{said}"), output.status.code())
}

/// Asserts the error message for a workload, with `from` replaced by `to`.
fn refuses(folder: &Path, workload: &str, mistakes: &[(&str, &str, &str)]) {
    for (from, to, said) in mistakes {
        assert!(workload.contains(from), "{from}");
        let text = workload.replace(from, to);
        fs::write(folder.join("it.workload.yaml"), text).expect("written");
        let output = plimsoll(folder, &["check", "it.workload.yaml"]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(104), "{to}: {told}");
        assert!(told.contains(said), "{to}: {told}");
    }
}

/// A self-signed certificate of a server for `localhost`, and its key, as files in a folder.
fn certificate(folder: &Path) -> [PathBuf; 2] {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let files = [
        ("cert.pem", own.cert.pem()),
        ("key.pem", own.signing_key.serialize_pem()),
    ];
    files.map(|(name, text)| {
        let path = folder.join(name);
        fs::write(&path, text).expect("written");
        path
    })
}

/// The part of a study that trusts such a certificate.
fn trusting(cert: &Path) -> String {
    let cert = cert.display();
    format!("  tls: {{ ca: \"{cert}\", server_name: localhost }}\n")
}

/// Transactions by step.
fn by_step(trial: &Value) -> Vec<u64> {
    let steps = trial["steps"].as_array().expect("steps");
    let count = |step: &Value| step["transactions"].as_u64().expect("a count");
    steps.iter().map(count).collect()
}
