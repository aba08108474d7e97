//! A new user's first hour: a running server is measured without a study file.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use plimsoll_tests::server::{ADMIN_TOKEN, ServerProcess};
use plimsoll_tests::{program, repository};

#[path = "first_hour/book.rs"]
mod book;
#[path = "first_hour/trust.rs"]
mod trust;

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

/// On a machine that others use, the trial is invalid; the figures are there anyway.
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
    // The server does not count as another program: it is found by its port.
    assert!(page.contains("ms CPU per request"), "{page}");
    let kept = fs::read_to_string(folder.path().join("closed/files/study.yaml")).expect("kept");
    assert!(kept.contains(&format!("pid: {}", server.pid())), "{kept}");
    // The archive is a usual one.
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
        "3s",
        "-H",
        "Content-Type: application/x-www-form-urlencoded",
        "--body",
        "username=a{{b}}&password=c",
    ];
    // On a starved machine there may be no answer in that time.
    let answered = (0..10).find_map(|n| {
        let out = format!("rated-{n}");
        let said = plimsoll(folder.path(), &[&arguments[..], &["--out", &out]].concat());
        text(&said.stdout)
            .contains("status 4")
            .then_some((said, out))
    });
    let (said, out) = answered.expect("an answer in one of ten times");
    let page = text(&said.stdout);
    assert!(page.starts_with(&format!("POST {url}\n")), "{page}");
    // If there are only errors, they are all there is to report.
    assert!(page.contains("\nNothing was measured: "), "{page}");
    assert!(!page.contains("response time"), "{page}");
    assert_eq!(said.status.code(), Some(110), "{said:?}");
    let kept = fs::read_to_string(folder.path().join(out).join("files/study.yaml")).expect("kept");
    assert!(kept.contains("rate: 40/s"), "{kept}");
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

const SIGNED_IN: &str = "\
workload: signed-in
parameters: { login_password: \"correct horse\" }
setup:
  - step: Register
    request: PUT /admin/users/user0000{{ index }}
    headers: { Authorization: \"Bearer ADMIN\" }
    json: { password: \"{{ login_password }}\" }
session:
  pace: 1h
  steps:
    - step: Log in
      wait: 10m..20m
      request: POST /login
      form: { username: \"user0000{{ index }}\", password: \"{{ login_password }}\" }
      capture: { who: \"$.user\" }
    - step: Read mail
      request: GET /mail/{{ who }}/api/mail/inbox
      capture: { mails: \"$[*].href\" }
    - { step: Delete a mail, request: \"DELETE {{ take(mails) }}\" }
    - { step: Ask for nothing, request: \"GET /nothing/{{ who }}\", expect: 200 }
    - { step: Never, share: 0.001%, request: GET /never }
";

/// Captures apply to the answer at the end of the redirects: nothing is reported as missing in the others.
#[test]
fn who_is_redirected_captures_at_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let workload = "workload: w\nsession:\n  steps:\n    - step: Enter\n      request: GET /\n      \
                    follow: 5\n      capture: { title: html(title) }\n";
    fs::write(folder.path().join("w.workload.yaml"), workload).expect("written");
    let server = ServerProcess::start(folder.path());
    let url = format!("http://{}", server.address());
    let tried = plimsoll(folder.path(), &["try", "w.workload.yaml", "--url", &url]);
    let page = text(&tried.stdout);
    assert_eq!(tried.status.code(), Some(0), "{tried:?}");
    assert!(page.contains("< 303 See Other"), "{page}");
    assert_eq!(page.matches("title = ").count(), 1, "{page}");
    assert!(!page.contains("title = nothing"), "{page}");
}

#[test]
fn one_user_is_tried_and_every_message_is_shown_but_no_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let workload = SIGNED_IN.replace("ADMIN", ADMIN_TOKEN);
    fs::write(folder.path().join("s.workload.yaml"), workload).expect("written");
    let server = ServerProcess::start(folder.path());
    let url = format!("http://{}", server.address());
    let arguments = [
        "try",
        "s.workload.yaml",
        "--url",
        &url,
        "--user",
        "7",
        "--har",
        "s.har",
    ];
    let tried = plimsoll(folder.path(), &arguments);
    let page = text(&tried.stdout);
    // One request did not go as expected; no wait of hours was kept.
    assert_eq!(tried.status.code(), Some(99), "{tried:?}");
    for shown in [
        "── setup · Register ──",
        "> POST /login",
        "> username=user00007&password=***",
        "  who = user00007",
        "< 200 OK",
        "  mails = nothing",
        "– skipped: nothing (left) in mails",
        "✗ status: status 404",
        "  expected: status 200",
        "Never: not in this session, by its share",
        "4 requests: 3 as expected, 1 not; 1 skipped",
    ] {
        assert!(page.contains(shown), "{shown} is missing in\n{page}");
    }
    assert!(
        page.lines().all(|line| line.chars().count() <= 160),
        "{page}"
    );
    let har = fs::read_to_string(folder.path().join("s.har")).expect("a recording");
    for all in [&page, &har] {
        assert!(
            !all.contains("correct horse") && !all.contains("correct+horse"),
            "{all}"
        );
        assert!(!all.contains(ADMIN_TOKEN), "{all}");
    }
    let har: serde_json::Value = serde_json::from_str(&har).expect("JSON");
    let entries = har["log"]["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 4);
    assert_eq!(entries[1]["request"]["url"], format!("{url}/login"));
    assert_eq!(entries[3]["response"]["status"], 404);
    // They are shown on request.
    let arguments = [&arguments[..6], &["--show-secrets"]].concat();
    let shown = text(&plimsoll(folder.path(), &arguments).stdout);
    assert!(shown.contains("password=correct+horse"), "{shown}");
}

#[test]
fn the_system_of_a_study_is_started_for_a_try_and_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("hello.workload.yaml"), WORKLOAD).expect("written");
    let study = "study: s\ntitle: S\nworkload: ./hello.workload.yaml\nparameters: { path: /healthz }\n\
                 system: { groupware: {} }\nload: { users: 3, hold: 1h }\n";
    fs::write(folder.path().join("s.study.yaml"), study).expect("written");
    let tried = plimsoll(folder.path(), &["try", "s.study.yaml", "--user", "2"]);
    let page = text(&tried.stdout);
    assert_eq!(tried.status.code(), Some(0), "{tried:?}");
    assert!(page.contains("> GET /healthz"), "{page}");
    assert!(
        page.ends_with("1 request: all went as expected\n"),
        "{page}"
    );
    let failing = study.replace(
        "{ groupware: {} }",
        "{ command: { start: [sh, -c, \"echo no; exit 3\"] } }",
    );
    fs::write(folder.path().join("f.study.yaml"), failing).expect("written");
    let tried = plimsoll(folder.path(), &["try", "f.study.yaml"]);
    assert_eq!(tried.status.code(), Some(110), "{tried:?}");
    assert!(
        text(&tried.stderr).contains("its last lines:\nno"),
        "{tried:?}"
    );
}

#[test]
fn a_first_study_runs_as_it_was_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = ServerProcess::start(folder.path());
    let url = format!("http://{}/healthz", server.address());
    let nobody = plimsoll(folder.path(), &["init"]);
    assert_eq!(nobody.status.code(), Some(104));
    assert!(
        text(&nobody.stderr).contains("--url is missing"),
        "{nobody:?}"
    );
    let init = [
        "init", "--url", &url, "--users", "3", "--name", "mine", "--yes",
    ];
    let made = plimsoll(folder.path(), &init);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    assert!(
        text(&made.stdout).contains("plimsoll run mine.study.yaml"),
        "{made:?}"
    );
    let again = plimsoll(folder.path(), &init);
    assert_eq!(again.status.code(), Some(104));
    assert!(
        text(&again.stderr).contains("--force writes over it"),
        "{again:?}"
    );
    let short = ["load.ramp=200ms", "load.hold=2s", "repeats=0"];
    let mut run = vec!["run", "mine.study.yaml", "--patience", "0", "--out", "run"];
    run.extend(short.iter().flat_map(|set| ["--set", *set]));
    let page = went_through(&plimsoll(folder.path(), &run));
    assert!(page.contains("under 3 users"), "{page}");
    // Its process was found by its port: its CPU is not counted as other programs'.
    let steps = fs::read_to_string(folder.path().join("run/result.json")).expect("figures");
    assert!(steps.contains("\"cpu_ms_per_transaction\""), "{steps}");
}

/// The program's own recording is imported and tried, and sends the same requests.
#[test]
fn a_recording_is_imported_and_does_the_same_once_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = ServerProcess::start(folder.path());
    let url = format!("http://{}", server.address());
    let workload = SIGNED_IN.replace("ADMIN", ADMIN_TOKEN);
    fs::write(folder.path().join("w.workload.yaml"), workload).expect("written");
    let record = [
        "try",
        "w.workload.yaml",
        "--url",
        &url,
        "--har",
        "s.har",
        "--show-secrets",
    ];
    plimsoll(folder.path(), &record);
    let imported = plimsoll(folder.path(), &["import", "har", "s.har"]);
    assert_eq!(imported.status.code(), Some(0), "{imported:?}");
    let next = text(&imported.stdout);
    assert!(
        next.contains(&format!("plimsoll try s.workload.yaml --url {url}")),
        "{next}"
    );
    let made = fs::read_to_string(folder.path().join("s.workload.yaml")).expect("written");
    assert!(
        !made.contains("correct horse") && !made.contains(ADMIN_TOKEN),
        "{made}"
    );
    assert!(made.contains("secret('PASSWORD')"), "{made}");
    let tried = Command::new(program())
        .args(["try", "s.workload.yaml", "--url", &url])
        .current_dir(folder.path())
        .env("PASSWORD", "correct horse")
        .env("AUTHORIZATION", ADMIN_TOKEN)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    assert_eq!(
        tried.status.code(),
        Some(0),
        "{}\n{made}",
        text(&tried.stdout)
    );
}

/// The README's first block with this opening, and the text after it.
fn block<'a>(page: &'a str, opening: &str) -> (&'a str, &'a str) {
    let opening = format!("\n```{opening}\n");
    let (_, rest) = page.split_once(&opening).expect("it opens");
    rest.split_once("\n```\n").expect("it ends")
}

#[test]
fn what_the_readme_says_to_save_and_to_type_works() {
    let readme = fs::read_to_string(repository().join("README.md")).expect("it is there");
    let folder = tempfile::tempdir().expect("a folder");
    let (workload, rest) = block(&readme, "yaml workload");
    let (study, rest) = block(rest, "yaml study");
    for (name, text) in [("workload", workload), ("study", study)] {
        let path = folder.path().join(format!("hello.{name}.yaml"));
        fs::write(path, text).expect("written");
    }
    let mut folders = vec![program().parent().expect("a folder").to_path_buf()];
    folders.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    let (lines, _) = block(rest, "");
    assert_eq!(lines.lines().count(), 4, "{lines}");
    for line in lines.lines() {
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(folder.path())
            .env("PATH", std::env::join_paths(&folders).expect("folders"))
            .env("PLIMSOLL_STATE", folder.path().join("state"))
            .env("PLIMSOLL_PATIENCE", "0")
            // Beside other tests a trial is invalid, and is repeated three times.
            .env("PLIMSOLL_SPEED", "20")
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        // On a machine that others use, the trial is invalid, and a slow one breaks thresholds.
        let fine: &[i32] = match line.contains(" run ") {
            true => &[0, 99, 120],
            false => &[0],
        };
        let code = output.status.code().expect("a code");
        assert!(fine.contains(&code), "{line}: {output:?}");
    }
    let runs = fs::read_dir(folder.path().join("runs")).expect("a folder of runs");
    let reports = runs.filter(|run| {
        let run = run.as_ref().expect("an entry").path();
        run.join("report.html").exists()
    });
    assert_eq!(reports.count(), 1);
}

#[test]
fn the_command_line_is_told_to_shells_and_to_man() {
    let folder = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "zsh", "fish"] {
        let told = plimsoll(folder.path(), &["completions", shell]);
        assert_eq!(told.status.code(), Some(0));
        assert!(text(&told.stdout).contains("calibrate"), "{shell}");
    }
    let told = plimsoll(folder.path(), &["man", "pages"]);
    assert_eq!(told.status.code(), Some(0), "{told:?}");
    let page =
        fs::read_to_string(folder.path().join("pages/plimsoll-import-har.1")).expect("a page");
    assert!(page.contains(r"\-\-without"), "{page}");
}

/// A token on the command line is sent, and is in no file of the archive.
#[test]
fn a_token_of_bench_is_sent_and_kept_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = ServerProcess::start(folder.path());
    let url = format!("http://{}/admin/users", server.address());
    let token = format!("Authorization: Bearer {ADMIN_TOKEN}");
    let out = folder.path().join("run");
    let bench = [
        "bench", &url, "-c", "1", "-d", "1s", "-H", &token, "--out", "run",
    ];
    let said = plimsoll(folder.path(), &bench);
    went_through(&said);
    let mut stack = vec![out];
    while let Some(path) = stack.pop() {
        if path.is_dir() {
            stack.extend(
                fs::read_dir(&path)
                    .expect("a folder")
                    .flatten()
                    .map(|one| one.path()),
            );
            continue;
        }
        let held = fs::read(&path).expect("a file");
        assert!(!text(&held).contains(ADMIN_TOKEN), "{}", path.display());
    }
}
