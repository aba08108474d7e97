//! A system on another machine than the conductor: its owner starts an agent with an allow file, over a separate hub.
//! The system listens on an address that is not the conductor's usual one, its data is in the agent's folder, and
//! nothing of it is left whichever process is killed.

mod duet;
mod parts;
mod prepared;
mod stage;

use std::fs::{self, OpenOptions};
use std::net::{SocketAddr, TcpStream};
use std::process::Output;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::server::free_address;
use plimsoll_tests::wait_until;

use stage::{
    ADDRESS, DEADLINE, Mortal, SESSIONS, SETTINGS, Stage, check_elsewhere, counts, log, plimsoll,
    record, samples, sequence, study,
};

#[test]
fn a_system_elsewhere_gets_the_same_requests_and_leaves_nothing() {
    let Some(stage) = Stage::start() else { return };
    let here = stage.output("here", &study("{{ plimsoll }}", &sequence(), ""));
    let far = stage.output("there", &study("{{ plimsoll }}", &sequence(), "  on: db\n"));
    stage.nothing_is_left();
    let (here_at, far_at) = (stage.path("here"), stage.path("there"));
    let told = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        here_at.join("trials/001/trial.json").exists(),
        "{}",
        told(&here)
    );
    assert!(
        far_at.join("trials/001/trial.json").exists(),
        "{}",
        told(&far)
    );
    let record = record(&far_at, 1);
    assert_eq!(record["end"]["how"], "complete", "{record}");
    assert_eq!(counts(&far_at), (SESSIONS * 4, 0));
    assert_eq!(counts(&here_at), counts(&far_at));
    for column in [
        "system.cpu_ms_total",
        "host.memory_available_mb",
        "generator.rss_mb",
    ] {
        let (all, there) = (samples(&here_at, column), samples(&far_at, column));
        assert!(
            all > 1 && there > 1,
            "{column}: {all} samples here, {there} there"
        );
    }
    check_elsewhere(&record, None);
    let agent = &record["circumstances"]["system_agent"];
    assert_eq!(agent["name"], "db");
    assert_eq!(record["system_settings"]["on"], "db");
    let there = &record["circumstances"]["system_host"];
    assert!(there["cores"].as_u64() > Some(0), "{there}");
    assert!(
        there["limits"]["system_open_files"]["limit"].as_u64() > Some(0),
        "{there}"
    );
    let cpus = record["system_settings"]["cpus"]
        .as_str()
        .expect("its cores");
    assert!(cpus.contains("core"), "{cpus}");
    let log = fs::read_to_string(far_at.join("trials/001/system.log")).expect("its output");
    assert!(log.contains(ADDRESS), "{log}");
}

#[test]
fn what_the_owner_does_not_allow_is_refused_before_anything_starts() {
    let Some(stage) = Stage::start() else { return };
    let refused = |name: &str, study: &str, expected: &str| {
        let output = stage.output(name, study);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && told.contains(expected),
            "{told}"
        );
        assert!(
            !stage.path(name).join("trials/001").exists(),
            "a trial began"
        );
    };
    let on_db =
        |command: &str, more: &str| study(command, &sequence(), &format!("  on: db\n{more}"));
    refused(
        "shell",
        &on_db("/bin/sh", ""),
        "the program /bin/sh is not allowed",
    );
    refused("made", &on_db("{{ scratch }}/x", ""), "is not allowed");
    let kernel = "  kernel: { vm.swappiness: 5 }\n";
    refused(
        "kernel",
        &on_db("{{ plimsoll }}", kernel),
        "vm.swappiness is not allowed",
    );
    let storage = "  storage: /var\n";
    refused(
        "storage",
        &on_db("{{ plimsoll }}", storage),
        "the storage /var is not allowed",
    );
    let elsewhere = study("{{ plimsoll }}", &sequence(), "  on: nobody\n");
    refused("nobody", &elsewhere, "agent nobody is not there");
    stage.nothing_is_left();
}

#[test]
fn an_attached_server_elsewhere_is_counted_there() {
    let Some(stage) = Stage::start() else { return };
    let at = SocketAddr::new(ADDRESS.parse().expect("an address"), free_address().port());
    let mut server = plimsoll(&[
        "serve",
        "--engine",
        "memory",
        "--expose-without-tls",
        "--listen",
    ]);
    let data = stage.path("server");
    server
        .arg(at.to_string())
        .arg("--data")
        .arg(data)
        .stderr(log(&stage.path("server.log")));
    let mut server = server.spawn().expect("the program starts");
    wait_until(DEADLINE, "the server listens", || {
        TcpStream::connect(at).is_ok()
    });
    let load = sequence();
    let study = format!(
        "study: far\ntitle: A server that runs\nworkload: far.workload.yaml\nsystem:\n  on: db\n  attach: \
         {{ url: \"http://{at}\" }}\nload: {load}\nrepeats: 0\n"
    );
    let output = stage.output("attached", &study);
    let alive = matches!(server.try_wait(), Ok(None));
    let _gone = server.kill();
    let _ended = server.wait();
    let run = stage.path("attached");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(run.join("trials/001/trial.json").exists(), "{told}");
    let record = record(&run, 1);
    assert_eq!(record["end"]["how"], "complete", "{record}");
    assert!(alive, "it runs on");
    assert_eq!(counts(&run), (SESSIONS * 4, 0));
    assert!(
        samples(&run, "system.cpu_ms_total") > 1 && samples(&run, "host.memory_available_mb") > 1
    );
    assert_eq!(record["circumstances"]["system_agent"]["name"], "db");
}

/// A setting that a trial changes, where this machine permits it.
struct Changed {
    path: &'static str,
    before: String,
    other: String,
}

impl Changed {
    /// Returns `None`, with a message, if it can't be set.
    fn new(path: &'static str) -> Option<Self> {
        let before = fs::read_to_string(path).ok()?.trim().to_owned();
        if OpenOptions::new().write(true).open(path).is_err() {
            println!("no settings: {path} can't be written");
            return None;
        }
        let other = if before == "1" { "0" } else { "1" };
        Some(Self {
            path,
            before,
            other: other.to_owned(),
        })
    }

    fn now(&self) -> String {
        let now = fs::read_to_string(self.path).expect("a value");
        now.trim().to_owned()
    }
}

/// A study with a long load, whose trials change a setting.
fn long(setting: Option<&Changed>) -> String {
    let kernel = setting.map_or(String::new(), |setting| {
        format!("  kernel: {{ {}: {} }}\n", setting.path, setting.other)
    });
    let around = format!("  on: db\n{kernel}");
    study("{{ plimsoll }}", "{ users: 2, hold: 10m }", &around)
}

#[test]
fn a_killed_agent_makes_no_measurement_and_its_machine_is_as_it_was() {
    let Some(mut stage) = Stage::start() else {
        return;
    };
    let setting = Changed::new(SETTINGS[0]);
    let mut conductor = stage.begin("killed", &long(setting.as_ref()));
    if let Some(setting) = &setting {
        assert_eq!(setting.now(), setting.other);
    }
    stage.kill_agent();
    wait_until(DEADLINE, "the system ends with its agent", || {
        stage.systems() == 0
    });
    wait_until(DEADLINE, "the trial has its verdict", || {
        stage.path("killed/trials/001/trial.json").exists()
    });
    // Stops the conductor before it starts another trial.
    kill(Pid::from_raw(conductor.id().cast_signed()), Signal::SIGINT).expect("it runs");
    let record = record(&stage.path("killed"), 1);
    assert_eq!(record["end"]["how"], "agent_lost", "{record}");
    let why = record["end"]["message"].as_str().expect("a reason");
    assert!(why.contains("agent db"), "{why}");
    conductor.wait().expect("it ends");
    // Whatever its next start allows.
    stage.start_agent(false);
    if let Some(setting) = &setting {
        assert_eq!(setting.now(), setting.before);
    }
    stage.kill_agent();
    stage.start_agent(true);
    stage.nothing_is_left();
}

#[test]
fn an_agent_that_is_removed_leaves_its_machine_as_it_was() {
    let Some(mut stage) = Stage::start() else {
        return;
    };
    let setting = Changed::new(SETTINGS[1]);
    let mut conductor = stage.begin("removed", &long(setting.as_ref()));
    if let Some(setting) = &setting {
        assert_eq!(setting.now(), setting.other);
    }
    let mut remove = plimsoll(&["agents", "remove", "db", "--hub"]);
    let removed = remove.arg(stage.path("hub")).status().expect("it runs");
    assert!(removed.success());
    let mut agent = Mortal(stage.agent.take().expect("an agent"));
    wait_until(DEADLINE, "the agent ends", || {
        matches!(agent.0.try_wait(), Ok(Some(_)))
    });
    let ended = agent.0.wait().expect("it ends");
    assert!(!ended.success(), "it is told that it was removed");
    // At once, since no next start could do it.
    assert_eq!(stage.systems(), 0);
    let left = fs::read_dir(stage.path("trials")).expect("its folder");
    assert_eq!(left.count(), 0);
    if let Some(setting) = &setting {
        assert_eq!(setting.now(), setting.before);
    }
    kill(Pid::from_raw(conductor.id().cast_signed()), Signal::SIGINT).expect("it runs");
    conductor.wait().expect("it ends");
}

#[test]
fn whoever_conducts_is_killed_and_the_system_ends() {
    let Some(stage) = Stage::start() else { return };
    let mut conductor = stage.begin("orphan", &long(None));
    conductor.kill().expect("it can be killed");
    conductor.wait().expect("it ends");
    stage.nothing_is_left();
}
