//! HTTP/2 against nginx, over TLS and without, with every request counted on both sides; h2load sends the same requests
//! beside it. Both are Debian's (`nginx-light`, `nghttp2-client`): without them, the tests print that and pass.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use plimsoll_tests::program;
use serde_json::Value;

const STUDY: &str = "\
study: http2
title: A small file over HTTP/2
workload: http2.workload.yaml
system:
  command:
    start: [nginx, -p, \"{{ scratch }}\", -e, \"{{ scratch }}/error.log\", -c, \"{{ scratch }}/nginx.conf\"]
    files:
      nginx.conf: |
        daemon off;
        worker_processes 1;
        pid {{ scratch }}/pid;
        events { worker_connections 512; }
        http {
          log_format counted '$server_protocol $status $connection';
          access_log ACCESS counted;
          client_body_temp_path {{ scratch }}/body;
          proxy_temp_path {{ scratch }}/proxy;
          fastcgi_temp_path {{ scratch }}/fastcgi;
          uwsgi_temp_path {{ scratch }}/uwsgi;
          scgi_temp_path {{ scratch }}/scgi;
          http2_max_concurrent_streams 4;
          keepalive_requests 1000000;
          server {
            listen 127.0.0.1:{{ port }} LISTEN;
            location / { return 200 \"hello\"; }
          }
        }
    ready: { within: 30s }
SYSTEM
load: { users: 8, ramp: 0s, hold: 2s }
trials: 1
repeats: 0
";

const TLS: &str = "
    reset: [openssl, req, -x509, -newkey, ec, -pkeyopt, \"ec_paramgen_curve:P-256\", -nodes, -days, \"2\",
            -subj, /CN=localhost, -addext, \"subjectAltName=DNS:localhost\",
            -keyout, \"{{ scratch }}/key.pem\", -out, \"{{ scratch }}/cert.pem\"]
  scheme: https
  tls: { ca: \"{{ scratch }}/cert.pem\", server_name: localhost }
";

const WORKLOAD: &str = "\
workload: http2
session:
  steps:
    - { step: Look, wait: 5ms, request: GET /, expect: { status: 200, contains: hello } }
";

/// Returns true if a program is installed.
fn has(name: &str) -> bool {
    let found = Command::new(name).arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: {name} is not on this machine");
    }
    found
}

/// Runs the study; returns the result, and nginx's log lines by protocol, status, and connection.
fn measured(listen: &str, system: &str) -> Option<(Value, Vec<String>)> {
    if !has("nginx") {
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let study = STUDY
        .replace("LISTEN", listen)
        .replace("ACCESS", &at("access.log").display().to_string())
        .replace("SYSTEM", system);
    fs::write(at("http2.study.yaml"), study).expect("written");
    fs::write(at("http2.workload.yaml"), WORKLOAD).expect("written");
    let output = plimsoll(folder.path(), &["run", "http2.study.yaml", "--out", "run"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = fs::read_to_string(at("run/result.json")).unwrap_or_else(|e| panic!("{e}: {said}"));
    let result = serde_json::from_str(&text).expect("JSON");
    let log = fs::read_to_string(at("access.log")).expect("a log");
    Some((result, log.lines().map(str::to_owned).collect()))
}

fn plimsoll(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(program())
        .args(arguments)
        .current_dir(folder)
        .env("PLIMSOLL_STATE", folder.join("state"))
        .env("PLIMSOLL_PATIENCE", "0")
        .stdin(Stdio::null())
        .output()
        .expect("it runs")
}

/// Asserts that both sides count the same requests, except those truncated at the end, one for each user.
#[track_caller]
fn counted(result: &Value, log: &[String], protocol: &str, connections: usize) {
    let trial = &result["trials"][0];
    assert_eq!(trial["errors"], 0, "{trial:#}");
    let ours = trial["transactions"].as_u64().expect("a count") as usize;
    let good = format!("{protocol} 200 ");
    let theirs = log.iter().filter(|line| line.starts_with(&good)).count();
    assert!(
        ours > 0 && (ours..=ours + 8).contains(&theirs),
        "{ours} counted, {theirs} logged"
    );
    let mut seen: Vec<&str> = log
        .iter()
        .filter(|line| line.starts_with(&good))
        .filter_map(|line| line.rsplit(' ').next())
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), connections, "{seen:?}");
    let spoken = &trial["connections"];
    assert_eq!(spoken["opened"], connections, "{spoken}");
}

#[test]
fn users_have_a_connection_each_without_tls() {
    let Some((result, log)) = measured("http2", "  http: 2") else {
        return;
    };
    counted(&result, &log, "HTTP/2.0", 8);
    assert_eq!(result["trials"][0]["connections"]["http2"], 8);
    let settings = &result["trials"][0]["system_settings"];
    assert_eq!(settings["http"], "HTTP/2");
}

#[test]
fn users_share_connections_and_wait_for_their_turn() {
    let system = "  http: { version: 2, share: machine, connections: 1 }";
    let Some((result, log)) = measured("http2", system) else {
        return;
    };
    let trial = &result["trials"][0];
    let connections = trial["connections"]["opened"].as_u64().expect("a count") as usize;
    // One for each worker of the generator.
    let workers = trial["generator"]["workers"].as_u64().unwrap_or(1).max(1) as usize;
    assert!((1..=workers).contains(&connections), "{trial:#}");
    counted(&result, &log, "HTTP/2.0", connections);
    // Eight users, and nginx serves four requests at once: queued ones are reported.
    assert!(
        trial["steps"][0]["phases_ms"]["wait"].is_object(),
        "{trial:#}"
    );
}

#[test]
fn over_tls_both_sides_agree_on_a_version() {
    for (listen, protocol, http2) in [("ssl http2", "HTTP/2.0", 8), ("ssl", "HTTP/1.1", 0)] {
        let listen = format!(
            "{listen}; ssl_certificate {{{{ scratch }}}}/cert.pem; \
             ssl_certificate_key {{{{ scratch }}}}/key.pem"
        );
        let system = format!("{TLS}  http: auto");
        let Some((result, log)) = measured(&listen, &system) else {
            return;
        };
        counted(&result, &log, protocol, 8);
        assert_eq!(result["trials"][0]["connections"]["http2"], http2);
    }
}

#[test]
fn h2load_sends_what_a_sequence_sends() {
    if !(has("nginx") && has("h2load")) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port")
        .port();
    let scratch = folder.path().display().to_string();
    let begin = STUDY
        .find("        daemon off;")
        .expect("the configuration");
    let end = STUDY.find("    ready:").expect("its end");
    let configuration = STUDY[begin..end]
        .replace("{{ scratch }}", &scratch)
        .replace("{{ port }}", &port.to_string())
        .replace("LISTEN", "http2")
        .replace("ACCESS", &format!("{scratch}/access.log"));
    fs::write(folder.path().join("nginx.conf"), configuration).expect("written");
    let error_log = format!("{scratch}/error.log");
    let mut nginx = Command::new("nginx")
        .args(["-p", &scratch, "-e", &error_log, "-c", "nginx.conf"])
        .stdin(Stdio::null())
        .spawn()
        .expect("it runs");
    let deadline = std::time::Duration::from_secs(20);
    plimsoll_tests::wait_until(deadline, "nginx listens", || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    let logged = || {
        let log = fs::read_to_string(folder.path().join("access.log")).unwrap_or_default();
        log.lines()
            .filter(|line| line.starts_with("HTTP/2.0 200"))
            .count()
    };
    let url = format!("http://127.0.0.1:{port}/");
    let h2load = Command::new("h2load")
        .args(["-n", "500", "-c", "4", "-m", "4", &url])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&h2load.stdout).into_owned();
    // Answers are logged a moment later.
    let until = |count| plimsoll_tests::wait_until(deadline, "logged", || logged() >= count);
    until(500);
    let theirs = logged();
    fs::write(
        folder.path().join("http2.workload.yaml"),
        WORKLOAD.replace("5ms", "0ms"),
    )
    .expect("written");
    let study = format!(
        "study: same\ntitle: The same\nworkload: http2.workload.yaml\n\
         system: {{ attach: {{ url: \"http://127.0.0.1:{port}\" }}, http: 2 }}\n\
         load: {{ sequence: {{ sessions: 500 }}, hold: 60s }}\ntrials: 1\nrepeats: 0\n"
    );
    fs::write(folder.path().join("same.study.yaml"), study).expect("written");
    let output = plimsoll(folder.path(), &["run", "same.study.yaml", "--out", "run"]);
    until(theirs + 500);
    let pid = nix::unistd::Pid::from_raw(nginx.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGQUIT).expect("it lives");
    let _ended = nginx.wait();
    let ours = logged() - theirs;
    assert!(said.contains("500 succeeded"), "{said}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((theirs, ours), (500, 500), "{told}");
}
