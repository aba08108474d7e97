//! The calendar study with three agents and the system by a fourth, each on a machine of its own, beside the same on
//! one machine: the users' actions are the same. The machines are network namespaces on this one, and their clocks
//! differ by up to 2,000 s. They share cores, memory, and disk, so that times are not compared.

mod network;
mod page;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::{has_nats, program, repository, wait_until};
use serde_json::Value;

use network::{Network, address, has_clocks};

/// Longer than any step takes.
const DEADLINE: Duration = Duration::from_secs(300);
/// The machine of the conductor and the hub.
const CONDUCTOR: usize = 1;
/// The machine of the system.
const DB: usize = 2;
/// Name, machine, and offset to this machine's clock, s, of each generator, as far as clocks can be shifted.
const GENERATORS: [(&str, usize, u32); 3] =
    [("gen-1", 3, 2_000), ("gen-2", 4, 1_000), ("gen-3", 5, 0)];
/// The clock offset of the conductor and of the system.
const AHEAD: u32 = 1_000;
const USERS: u64 = 30;
const HUB: &str = "10.77.1.2:4222";
const MOST_TRIES: usize = 10;

fn plimsoll(mut begun: Command) -> Command {
    begun
        .env("PLIMSOLL_PATIENCE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    begun
}

/// The machines and their waiting processes.
struct Fleet {
    network: Network,
    folder: tempfile::TempDir,
    is_shifted: bool,
    waiting: Vec<Child>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // Agents before the hub, since they report their end to it.
        for mut child in self.waiting.drain(..).rev() {
            let _gone = kill(itself(&child), Signal::SIGTERM);
            let _ended = child.wait();
        }
    }
}

/// The program itself, which is a child of the program that shifts its clock.
fn itself(child: &Child) -> Pid {
    let id = child.id();
    let read = |name: &str| fs::read_to_string(format!("/proc/{id}/{name}")).unwrap_or_default();
    let first = match read("comm").trim() {
        "unshare" => read(&format!("task/{id}/children"))
            .split(' ')
            .next()
            .and_then(|pid| pid.parse().ok()),
        _ => None,
    };
    Pid::from_raw(first.unwrap_or(id.cast_signed()))
}

fn log(path: &Path) -> File {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.expect("the log can be written")
}

impl Fleet {
    /// Returns `None`, with a message, without network namespaces or a NATS server.
    fn start() -> Option<Self> {
        let network = Network::of(GENERATORS.len() + 2)?;
        if !has_nats() {
            return None;
        }
        let is_shifted = has_clocks();
        if !is_shifted {
            println!("clocks can't be shifted here");
        }
        let mut fleet = Self {
            network,
            folder: tempfile::tempdir().expect("a folder"),
            is_shifted,
            waiting: Vec::new(),
        };
        fleet.start_hub();
        for (name, machine, ahead) in GENERATORS {
            fleet.start_agent(name, (machine, ahead), &[]);
        }
        let allowed = fleet.allowed();
        fleet.start_agent("db", (DB, AHEAD), &["--allow", &allowed]);
        Some(fleet)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Prepares a command on a machine, with its clock.
    fn on(&self, (machine, ahead): (usize, u32), words: &[&str]) -> Command {
        let ahead = if self.is_shifted { ahead } else { 0 };
        let mut begun = self.network.on(machine, ahead);
        begun.arg(program()).args(words);
        plimsoll(begun)
    }

    fn start_hub(&mut self) {
        let hub = self.path("hub");
        let mut command = self.on((CONDUCTOR, 0), &["hub", "--listen", HUB, "--hub"]);
        command.arg(&hub).stderr(log(&self.path("hub.log")));
        self.waiting.push(command.spawn().expect("it starts"));
        let said = || fs::read_to_string(self.path("hub.log")).unwrap_or_default();
        wait_until(DEADLINE, "the hub listens", || {
            said().contains("invite an agent")
        });
    }

    fn start_agent(&mut self, name: &str, place: (usize, u32), more: &[&str]) {
        let mut invite = self.on((CONDUCTOR, 0), &["agents", "invite", name, "--hub"]);
        let output = invite.arg(self.path("hub")).stdout(Stdio::piped()).output();
        let output = output.expect("it runs");
        assert!(output.status.success(), "{output:?}");
        let (token, said) = (
            self.path(&format!("{name}.token")),
            self.path(&format!("{name}.log")),
        );
        fs::write(&token, output.stdout).expect("written");
        let join = format!("@{}", token.display());
        let mut command = self.on(place, &["agent", "--join", &join]);
        let state = self.path(&format!("{name}.state"));
        command
            .args(more)
            .arg("--state")
            .arg(state)
            .stderr(log(&said));
        let mut agent = command.spawn().expect("it starts");
        wait_until(DEADLINE, "the agent has joined", || {
            // A hub that is slow to read its configuration may reject its token at first.
            if !matches!(agent.try_wait(), Ok(None)) {
                agent = command.spawn().expect("it starts");
            }
            fs::read_to_string(&said).is_ok_and(|said| said.contains("waits for runs"))
        });
        self.waiting.push(agent);
    }

    /// Writes the allow file of the system's machine.
    fn allowed(&self) -> String {
        let (file, trials) = (self.path("allow.toml"), self.path("trials"));
        fs::create_dir(&trials).expect("made");
        let address = address(DB);
        let text = format!(
            "address = \"{address}\"\nprograms = [\"plimsoll\"]\nfolders = [\"{}\"]\n",
            trials.display()
        );
        fs::write(&file, text).expect("written");
        file.to_str().expect("UTF-8").to_owned()
    }

    /// Prepares a run of the study by the agents.
    fn by_agents(&self, study: &Path) -> Command {
        let mut command = self.on((CONDUCTOR, AHEAD), &["run"]);
        command
            .arg(study)
            .args(["--agents", "gen-1,gen-2,gen-3"])
            .args(["--set", "system.on=db", "--fleet"])
            .arg(self.path("hub/conductor.token"));
        command
    }

    /// Runs it; returns its archive. Repeats the run if agents were late, or users did not reach their last step, as on
    /// a busy machine.
    fn ran(&self, name: &str, begun: impl Fn() -> Command) -> PathBuf {
        for number in 0..MOST_TRIES {
            let out = self.path(&format!("{name}-{number}"));
            let output = ended(begun(), &out, &self.path(&format!("{name}.state")));
            println!("{}", String::from_utf8_lossy(&output.stderr));
            if is_complete(&out)
                && counts(&out)
                    .values()
                    .all(|(done, failed)| done + failed >= USERS)
            {
                return out;
            }
        }
        panic!("no trial is complete");
    }

    /// Checks that the estimated clock offsets are the true ones, within their reported bounds.
    fn check_clocks(&self, around: &Value) {
        let agents = around["agents"].as_array().expect("agents");
        assert_eq!(agents.len(), GENERATORS.len(), "{around}");
        let system = &around["system_agent"];
        assert_eq!(system["name"], "db", "{around}");
        let of_all = GENERATORS.map(|(name, _, ahead)| (name, ahead));
        for (name, ahead) in of_all.into_iter().chain([("db", AHEAD)]) {
            let one = agents
                .iter()
                .chain([system])
                .find(|one| one["name"] == name);
            let one = one.unwrap_or_else(|| panic!("no {name} in {around}"));
            let (found, bound) = (one["offset_ms"].as_f64(), one["bound_ms"].as_f64());
            let (found, bound) = (found.expect("measured"), bound.expect("measured"));
            let off = 1000.0 * (f64::from(ahead) - f64::from(AHEAD));
            let off = if self.is_shifted { off } else { 0.0 };
            println!("{name}: {found} ms off, ± {bound} ms");
            assert!(
                (found - off).abs() <= bound,
                "{name}: {found} ± {bound}, not {off}"
            );
        }
    }
}

/// Runs it to its end.
fn ended(mut command: Command, out: &Path, state: &Path) -> Output {
    let small = [
        format!("matrix.users=[{USERS}]"),
        "load.ramp=2m".to_owned(),
        "load.hold=80m".to_owned(),
        "repeats=0".to_owned(),
    ];
    command.args(["--speed", "240", "--seed", "7", "--no-live"]);
    for set in small {
        command.args(["--set", &set]);
    }
    command.arg("--out").arg(out).arg("--state").arg(state);
    command.stderr(Stdio::piped()).output().expect("it runs")
}

/// The calendar study, with one cycle for each user: how far users get before a deadline would depend on times.
fn write_study(folder: &Path) -> PathBuf {
    let read = |name: &str| fs::read_to_string(repository().join(name)).expect("it is there");
    let workload = read("workloads/calendar.workload.yaml");
    let once = workload.replace("  pace: 12m\n", "  pace: 2h\n");
    assert_ne!(workload, once, "the pace of a cycle stands elsewhere");
    fs::write(folder.join("calendar.workload.yaml"), once).expect("written");
    let study = read("studies/calendar.study.yaml");
    let (study, _published) = study.split_once("published:").expect("figures beside it");
    let own = study.replace(
        "workload: calendar\n",
        "workload: ./calendar.workload.yaml\n",
    );
    assert_ne!(own, study, "the workload stands elsewhere");
    let file = folder.join("calendar.study.yaml");
    fs::write(&file, own).expect("written");
    file
}

/// Returns true if its one trial is complete.
fn is_complete(run: &Path) -> bool {
    let file = run.join("trials/001/trial.json");
    file.exists() && json(&file)["end"]["how"] == "complete"
}

fn json(file: &Path) -> Value {
    let text = fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_slice(&text).expect("JSON")
}

fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("lines");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect()
}

/// The counts of each step over all windows: how often it was answered, or skipped for lack of an invitation that
/// another user had not sent by then, and how often it failed.
fn counts(run: &Path) -> BTreeMap<String, (u64, u64)> {
    let mut counts = BTreeMap::new();
    for window in lines(&run.join("trials/001/windows.jsonl")) {
        let steps = window["steps"].as_object();
        for (step, line) in steps.into_iter().flatten() {
            let number = |name: &str| line[name].as_u64().unwrap_or(0);
            let errors = line["errors"].as_object().into_iter().flatten();
            let errors: u64 = errors.filter_map(|(_, times)| times.as_u64()).sum();
            let (done, failed): &mut (u64, u64) = counts.entry(step.clone()).or_default();
            *done += number("ok") + number("skipped");
            *failed += errors;
        }
    }
    counts
}

/// Returns the verdict of the threshold on errors. How much of the load was on time depends on the machine, and the
/// results are counted elsewhere.
fn verdict(run: &Path) -> Value {
    let trial = json(&run.join("result.json"))["trials"][0].take();
    let all = trial["thresholds"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["metric"] == "error_rate");
    let one = one.unwrap_or_else(|| panic!("no threshold on errors in {trial}"));
    one["holds"].clone()
}

#[test]
fn three_agents_and_a_system_on_machines_of_their_own_do_the_same() {
    let Some(fleet) = Fleet::start() else { return };
    let study = write_study(fleet.folder.path());
    let apart = fleet.ran("apart", || fleet.by_agents(&study));
    let one = fleet.ran("one", || {
        let mut command = plimsoll(Command::new(program()));
        command.arg("run").arg(&study);
        command
    });
    let (done, alone) = (counts(&apart), counts(&one));
    println!("{done:?}");
    assert_eq!(done, alone);
    assert_eq!(done.len(), 20, "the steps of a cycle");
    assert!(
        done.values()
            .all(|(done, failed)| done.is_multiple_of(USERS) && *failed == 0)
    );
    assert_eq!((verdict(&apart), verdict(&one)), (true.into(), true.into()));
    fleet.check_clocks(&json(&apart.join("trials/001/trial.json"))["circumstances"]);
    let left = fs::read_dir(fleet.path("trials")).expect("the folder");
    assert_eq!(left.count(), 0, "data of the system is left");
}
