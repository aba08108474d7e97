//! A secret of the environment is in the requests, and nowhere in the archive and output of a run.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_tests::program;

const SECRET: &str = "s3cr3t & <more>";
const IN_FORM: &str = "s3cr3t+%26+%3Cmore%3E";

/// Answers every request with an error that contains the request, and records whether one had the secret.
fn echo(saw: Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let saw = Arc::clone(&saw);
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                while let Ok(count) = stream.read(&mut request) {
                    if count == 0 {
                        return;
                    }
                    let text = String::from_utf8_lossy(&request[..count]).replace("\r\n", " ");
                    saw.fetch_or(
                        text.contains(SECRET) && text.contains(IN_FORM),
                        Ordering::Relaxed,
                    );
                    // Its last part: an example holds only the beginning of an answer.
                    let from = text.find("Authorization").unwrap_or(0);
                    let body = &text[from..];
                    let length = body.len();
                    let answer =
                        format!("HTTP/1.1 500 No\r\nContent-Length: {length}\r\n\r\n{body}");
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

fn plimsoll(folder: &Path, arguments: &[&str], secret: Option<&str>) -> Output {
    let mut command = Command::new(program());
    command
        .current_dir(folder)
        .args(arguments)
        .env_remove("PLIMSOLL_TEST_SECRET")
        .env("PLIMSOLL_PATIENCE", "0")
        .stdin(Stdio::null());
    if let Some(secret) = secret {
        command.env("PLIMSOLL_TEST_SECRET", secret);
    }
    command.output().expect("the program runs")
}

/// All files below a folder.
fn files(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push((
                path.display().to_string(),
                fs::read(&path).expect("readable"),
            ));
        }
    }
}

#[test]
fn a_secret_is_sent_and_neither_kept_nor_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let saw = Arc::new(AtomicBool::new(false));
    let port = echo(Arc::clone(&saw));
    let write =
        |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
    write(
        "w.workload.yaml",
        "workload: w\nsession:\n  steps:\n    - step: Ask\n      wait: 20ms\n      request: POST /x\n      \
         headers: { Authorization: \"Bearer {{ secret('PLIMSOLL_TEST_SECRET') }}\" }\n      \
         form: { password: \"{{ secret(PLIMSOLL_TEST_SECRET) }}\" }\n",
    );
    write(
        "s.study.yaml",
        &format!(
            "study: s\ntitle: A secret\nworkload: w\nrepeats: 0\n\
             system: {{ attach: {{ url: \"http://127.0.0.1:{port}\" }} }}\nload: {{ users: 2, hold: 2s }}\n"
        ),
    );
    let missing = plimsoll(
        folder.path(),
        &["run", "s.study.yaml", "--out", "none"],
        None,
    );
    let said = String::from_utf8_lossy(&missing.stderr);
    assert_eq!(missing.status.code(), Some(104), "{said}");
    assert!(
        said.contains("w.workload.yaml:7:") && said.contains("is not set"),
        "{said}"
    );
    for judged in [["check", "s.study.yaml"], ["plan", "s.study.yaml"]] {
        let said = plimsoll(folder.path(), &judged, None);
        assert_eq!(
            said.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&said.stderr)
        );
    }
    let output = plimsoll(
        folder.path(),
        &["run", "s.study.yaml", "--out", "run"],
        Some(SECRET),
    );
    assert!(
        saw.load(Ordering::Relaxed),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut found = vec![
        ("stdout".to_owned(), output.stdout),
        ("stderr".to_owned(), output.stderr),
    ];
    files(&folder.path().join("run"), &mut found);
    assert!(found.len() > 5, "an archive has more files");
    let mut masked = false;
    for (name, bytes) in &found {
        let text = String::from_utf8_lossy(bytes);
        for form in [SECRET, IN_FORM, "s3cr3t"] {
            assert!(!text.contains(form), "{name} holds the secret: {text}");
        }
        masked |= text.contains("Bearer ***");
    }
    assert!(masked, "no example of an error shows where the secret was");
}
