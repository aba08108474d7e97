//! A stranger's first hour: a server that runs already is measured without a study file.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use plimsoll_tests::program;
use plimsoll_tests::server::ServerProcess;

const WORKLOAD: &str = "\
workload: hello
parameters: { path: /nowhere }
session:
  steps:
    - { step: Look, wait: 20ms..60ms, request: \"GET {{ path }}\" }
";

fn plimsoll(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(program())
        .args(arguments)
        .current_dir(folder)
        .env("PLIMSOLL_STATE", folder.join("state"))
        .env("COLUMNS", "80")
        .stdin(Stdio::null())
        .output()
        .expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A machine that others use makes no measurement of it; the figures are there anyway.
fn went_through(output: &Output) -> String {
    let code = output.status.code();
    let (said, told) = (text(&output.stdout), text(&output.stderr));
    assert!(matches!(code, Some(0 | 120)), "{code:?}\n{said}\n{told}");
    said
}

#[test]
fn one_request_is_benched_without_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = ServerProcess::start(folder.path());
    let url = format!("http://{}/healthz", server.address());
    let said = plimsoll(
        folder.path(),
        &["bench", &url, "-c", "2", "-d", "2s", "--out", "closed"],
    );
    let page = went_through(&said);
    assert!(page.starts_with(&format!("GET {url}\n")), "{page}");
    assert!(
        page.contains("2 users, 2 s after a ramp of 200 ms"),
        "{page}"
    );
    // The server is not another program: it is found by its port.
    assert!(page.contains("ms CPU per request"), "{page}");
    let kept = fs::read_to_string(folder.path().join("closed/files/study.yaml")).expect("kept");
    assert!(kept.contains(&format!("pid: {}", server.pid())), "{kept}");
    // The archive is one like any other.
    let again = plimsoll(folder.path(), &["report", "closed", "--format", "md"]);
    assert!(
        text(&again.stdout).starts_with("# GET http://"),
        "{again:?}"
    );
}

#[test]
fn a_benched_request_may_have_all_parts_and_its_errors_show() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = ServerProcess::start(folder.path());
    let url = format!("http://{}/login", server.address());
    let arguments = [
        "bench",
        &url,
        "--rate",
        "40",
        "-d",
        "1s",
        "-H",
        "Content-Type: application/x-www-form-urlencoded",
        "--body",
        "username=a{{b}}&password=c",
    ];
    let said = plimsoll(folder.path(), &arguments);
    let page = text(&said.stdout);
    assert!(page.starts_with(&format!("POST {url}\n")), "{page}");
    assert!(page.contains("40.0 sessions per s arrive"), "{page}");
    assert!(page.contains("status 401"), "{page}");
    assert!(matches!(said.status.code(), Some(99 | 120)), "{said:?}");
}

#[test]
fn a_workload_runs_against_a_server_without_a_study() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("w")).expect("a folder");
    fs::write(folder.path().join("w/hello.workload.yaml"), WORKLOAD).expect("written");
    let server = ServerProcess::start(folder.path());
    let url = format!("http://{}", server.address());
    let arguments = [
        "run",
        "w/hello.workload.yaml",
        "--url",
        &url,
        "--users",
        "4",
        "--for",
        "2s",
        "--patience",
        "0",
        "--set",
        "parameters.path=/healthz",
        "--set",
        "repeats=0",
        "--out",
        "run",
    ];
    let page = went_through(&plimsoll(folder.path(), &arguments));
    assert!(page.starts_with(&format!("hello at {url}\n")), "{page}");
    let steps = fs::read_to_string(folder.path().join("run/steps.csv")).expect("figures");
    assert!(steps.contains("Look"), "{steps}");
}
