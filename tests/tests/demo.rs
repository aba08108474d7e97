//! `plimsoll serve --demo`: one command starts a filled server, and nothing is left afterwards.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::program;
use plimsoll_tests::server::Client;
use serde_json::Value;

/// A child that is killed on drop, if it hasn't ended in order.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Demo {
    /// Starts a demo in a folder, also of its temporary files; returns its first output, too.
    fn start(folder: &Path) -> (Self, String) {
        let mut demo = Self(
            Command::new(program())
                .args(["serve", "--demo", "--listen", "127.0.0.1:0"])
                .current_dir(folder)
                .env("TMPDIR", folder)
                .stdin(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the program starts"),
        );
        let output = demo.0.stderr.take().expect("it is piped");
        let mut said = String::new();
        for line in BufReader::new(output).lines() {
            let line = line.expect("it is text");
            said += &format!("{line}\n");
            if line.contains("Ctrl-C") {
                break;
            }
        }
        (demo, said)
    }

    fn interrupt(mut self) {
        let id = Pid::from_raw(self.0.id().try_into().expect("an id"));
        kill(id, Signal::SIGINT).expect("it runs");
        let ended = self.0.wait().expect("it ends");
        assert!(ended.success(), "{ended}");
    }
}

/// The number of entries in a folder.
fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("the folder").count()
}

#[test]
fn one_that_was_killed_leaves_nothing_after_the_next() {
    let folder = tempfile::tempdir().expect("a folder to start it in");
    let (killed, _) = Demo::start(folder.path());
    drop(killed);
    assert_eq!(count(folder.path()), 1);
    let (next, _) = Demo::start(folder.path());
    // Its own.
    assert_eq!(count(folder.path()), 1);
    next.interrupt();
    assert_eq!(count(folder.path()), 0);
}

#[test]
fn it_says_how_to_sign_in_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder to start it in");
    let (demo, said) = Demo::start(folder.path());
    let address = said
        .split_once("Open http://")
        .and_then(|(_, rest)| rest.split('/').next()?.parse().ok())
        .unwrap_or_else(|| panic!("no address in {said}"));
    let users: Vec<(&str, &str)> = said
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once(' '))
        .map(|(name, password)| (name, password.trim()))
        .collect();
    assert_eq!(users.len(), 4, "{said}");
    assert!(!said.contains("admin token"), "{said}");
    let (name, password) = users[0];
    let mut client = Client::user(address, name, password).expect("it accepts connections");
    for (path, least) in [
        ("mail/inbox?count=100", 10),
        ("calendar/events?count=100", 5),
    ] {
        let path = format!("/mail/{name}/api/{path}");
        let answer = client
            .request("GET", &path, &Value::Null)
            .expect("an answer");
        let list = match answer.body {
            Value::Object(mut body) => body.remove("events").unwrap_or_default(),
            body => body,
        };
        let found = list.as_array().map_or(0, Vec::len);
        assert!(found >= least, "{path}: {found}");
    }
    demo.interrupt();
    assert_eq!(count(folder.path()), 0);
}
