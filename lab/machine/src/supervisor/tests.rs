//! Both sides over channels of this process, with real programs: the effects of an agent on a machine, and that none of
//! them remain.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use lab_driver::remote::{End, Peer, Place};
use lab_host::clock::{Stopwatch, pause};
use lab_host::kernel::Kernel;
use lab_host::machine;
use lab_study::{Action, CommandSpec, HostSpec, Preparation, Ready, StopSignal};

mod duets;

use super::*;
use crate::machine::{Counts, Started};
use crate::message::MOST_USERS;
use crate::remote::RemoteMachine;
use crate::slots::CoreSharing;

const DEADLINE: Duration = Duration::from_secs(120);

struct To(SyncSender<Vec<u8>>);

struct From(Receiver<Vec<u8>>);

impl FrameSink for To {
    fn send(&mut self, frame: &[u8]) -> Result<(), MessageError> {
        let sent = self.0.send(frame.to_vec());
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe).into())
    }
}

impl FrameSource for From {
    fn receive(&mut self) -> Result<Option<Vec<u8>>, MessageError> {
        Ok(self.0.recv().ok())
    }
}

/// An agent on this machine, whose clock is the same.
struct Here;

impl Place for Here {
    fn name(&self) -> String {
        "agent here".to_owned()
    }

    fn process(&self) -> Option<u32> {
        None
    }

    fn moment(&self, here: u64) -> u64 {
        here
    }

    fn notice(&self) -> Duration {
        Duration::ZERO
    }

    fn must_arm(&self) -> bool {
        true
    }

    fn end(&self, _at_once: bool) -> End {
        End {
            wrong: Some("was lost".to_owned()),
            ..End::default()
        }
    }

    fn kill(&self) {}
}

/// The machine of an agent, with what its owner allows.
struct Stage {
    folder: tempfile::TempDir,
    station: Arc<Supervisor>,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let text = format!(
            "address = \"127.0.0.1\"\nprograms = [\"sh\"]\nfolders = [\"{}\"]\nvariables = [\"WHERE\"]\n\
             kernel = [\"kernel.osrelease\"]",
            data.display()
        );
        let allowed = Allowed::parse(&text).unwrap();
        let cores = lab_host::cores::allowed().unwrap();
        let state = folder.path().join("state");
        let station = Supervisor::new(allowed, PathBuf::from("plimsoll"), state, cores).unwrap();
        Self {
            folder,
            station: Arc::new(station),
        }
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("output")
    }

    /// A connection to the station, for a trial with this system.
    fn open(&self, setup: Setup) -> (RemoteMachine, JoinHandle<Result<(), String>>) {
        let (peer, thread) = self.way();
        let afar = RemoteMachine::new((peer, Slot::Left), Some(setup), self.output());
        (afar.unwrap(), thread)
    }

    fn way(&self) -> (Peer, JoinHandle<Result<(), String>>) {
        let (orders, told) = sync_channel(64);
        let (reports, heard) = sync_channel(64);
        let station = Arc::clone(&self.station);
        let thread = std::thread::spawn(move || station.serve(From(told), To(reports)));
        let peer = Peer {
            orders: Box::new(To(orders)),
            reports: Box::new(From(heard)),
            place: Box::new(Here),
            cores: Vec::new(),
            own_cores: false,
            weight: 1,
        };
        (peer, thread)
    }

    #[track_caller]
    fn is_as_it_was(&self) {
        let left = fs::read_dir(self.folder.path().join("data")).unwrap();
        assert_eq!(left.count(), 0);
    }
}

/// A shell that reports that it is ready, then runs `then`.
fn setup(then: &str) -> Setup {
    let script = format!("echo \"$$ is ready\"; {then}");
    Setup {
        trial: 1,
        spec: CommandSpec {
            start: vec!["sh".to_owned(), "-c".to_owned(), script],
            env: vec![],
            folder: None,
            files: vec![("conf/a".to_owned(), "x".to_owned())],
            port: None,
            ready: Ready::Log("ready".to_owned()),
            ready_within_ms: 60_000,
            reset: vec![],
            stop_signal: StopSignal::Term,
            stop_grace_ms: 60_000,
            preparation: Preparation::default(),
            preset: None,
            name: None,
            before: vec![],
        },
        host: HostSpec::default(),
        secure: false,
        core_sharing: None,
    }
}

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

#[track_caller]
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Stopwatch::start();
    while !condition() {
        assert!(began.elapsed() < DEADLINE, "{what}: not in time");
        pause(Duration::from_millis(5));
    }
}

#[test]
fn a_system_is_started_counted_and_ended_and_nothing_stays() {
    let stage = Stage::new();
    let (mut afar, served) = stage.open(setup("exec sleep 600"));
    afar.start(&never()).unwrap();
    afar.look().unwrap();
    afar.look_around().unwrap();
    let state = afar.state(&[]).unwrap();
    assert_eq!((state.data_bytes, state.data_files), (1, 1), "its file");
    assert!(!state.boot_id.is_empty() && !state.kernel_settings.is_empty());
    let every = Duration::from_millis(20);
    let Counts { columns, cores } = afar.count(shared(), every, DEADLINE).unwrap();
    assert_eq!(cores, Some(machine::cores_here()));
    let threads = columns
        .iter()
        .position(|name| name == "system.threads")
        .unwrap();
    let mut rows = Vec::new();
    until("counters come", || {
        rows.extend(afar.rows());
        rows.len() >= 3
    });
    assert!(
        rows.windows(2).all(|pair| pair[0].at < pair[1].at),
        "{rows:?}"
    );
    assert!(rows.iter().all(|row| row.values.len() == columns.len()));
    assert_eq!(rows[1].values[threads], Some(1.0));
    let around = afar.looked_around().unwrap().unwrap();
    let files = around.limits.system_open_files.expect("it was counted");
    assert!(files.most >= 3 && files.limit > files.most, "{files:?}");
    assert_eq!(afar.stop().unwrap(), None);
    let said = fs::read_to_string(stage.output()).unwrap();
    assert!(said.contains("is ready"), "{said}");
    drop(afar);
    served.join().unwrap().unwrap();
    stage.is_as_it_was();
}

#[test]
fn a_system_that_ends_says_so_with_its_last_lines() {
    let stage = Stage::new();
    let (mut afar, _served) = stage.open(setup("sleep 1; echo broken; exit 3"));
    afar.start(&never()).unwrap();
    let mut failed = None;
    until("it ends", || {
        failed = afar.look().err();
        failed.is_some()
    });
    let Some(Failed::System(why)) = failed else {
        panic!("{failed:?}");
    };
    assert!(
        why.contains("exit status: 3") && why.ends_with("broken"),
        "{why}"
    );
}

#[test]
fn who_is_not_heard_any_more_has_no_system() {
    let stage = Stage::new();
    let (mut afar, served) = stage.open(setup("exec sleep 600"));
    let started = afar.start(&never()).unwrap();
    let log = PathBuf::from(&started.setting.scratch)
        .parent()
        .unwrap()
        .join("output");
    let said = fs::read_to_string(log).unwrap();
    let pid = said.split_whitespace().next().unwrap().to_owned();
    let process = PathBuf::from("/proc").join(pid);
    assert!(process.exists());
    drop(afar);
    served.join().unwrap().unwrap();
    assert!(!process.exists());
    stage.is_as_it_was();
}

#[test]
fn what_is_not_allowed_is_refused_whether_or_not_it_was_asked_before() {
    let stage = Stage::new();
    let mut other = setup("exit");
    other.spec.start[0] = "cat".to_owned();
    let (mut afar, served) = stage.open(other.clone());
    let said = afar
        .check(&[setup("exit"), other.clone()], &never())
        .unwrap();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains("the program cat is not allowed"),
        "{said:?}"
    );
    drop(afar);
    served.join().unwrap().unwrap();
    let (mut afar, _served) = stage.open(other);
    let Err(Failed::Fatal(error)) = afar.start(&never()) else {
        panic!("it was started");
    };
    let said = error.to_string();
    assert!(
        said.starts_with("agent here can't run the system: the program cat"),
        "{said}"
    );
}

#[test]
fn a_machine_that_is_lost_is_told_by_its_name() {
    let stage = Stage::new();
    let (mut afar, served) = stage.open(setup("exec sleep 600"));
    afar.start(&never()).unwrap();
    let nonsense = afar.ask_raw(b"shell");
    assert!(nonsense.is_ok());
    assert!(served.join().unwrap().is_err(), "nonsense is told");
    let mut failed = None;
    until("it is lost", || {
        failed = afar.look().err();
        failed.is_some()
    });
    let Some(Failed::Lost(why)) = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(why, "agent here, which has the system, was lost");
    stage.is_as_it_was();
}

#[test]
fn what_was_lost_since_the_last_look_shows_when_it_is_ended() {
    let stage = Stage::new();
    let (mut afar, served) = stage.open(setup("exec sleep 600"));
    afar.start(&never()).unwrap();
    afar.look().unwrap();
    assert!(afar.ask_raw(b"shell").is_ok());
    assert!(served.join().unwrap().is_err(), "nonsense is told");
    let ended = afar.stop();
    let Err(Failed::Lost(why)) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(why, "agent here, which has the system, was lost");
}

#[test]
fn a_system_that_ended_since_the_last_look_did_not_end_as_it_was_told() {
    let stage = Stage::new();
    let (mut afar, served) = stage.open(setup("while [ ! -e go ]; do sleep 0.01; done; exit 3"));
    let started = afar.start(&never()).unwrap();
    afar.look().unwrap();
    let data = PathBuf::from(&started.setting.scratch);
    let said = fs::read_to_string(data.parent().unwrap().join("output")).unwrap();
    let pid = said.split_whitespace().next().unwrap().to_owned();
    fs::write(data.join("go"), "").unwrap();
    let process = PathBuf::from("/proc").join(pid);
    until("the agent finds it", || !process.exists());
    let ended = afar.stop();
    let Err(Failed::System(why)) = ended else {
        panic!("{ended:?}");
    };
    assert!(why.contains("exit status: 3"), "{why}");
    drop(afar);
    served.join().unwrap().unwrap();
    stage.is_as_it_was();
}

#[test]
fn a_second_agent_does_not_have_the_same_folder() {
    let stage = Stage::new();
    let (allowed, program) = (
        stage.station.session.allowed.clone(),
        PathBuf::from("plimsoll"),
    );
    let state = stage.folder.path().join("state");
    let second = || Supervisor::new(allowed.clone(), program.clone(), state.clone(), vec![0]);
    let said = second().unwrap_err().to_string();
    assert!(said.starts_with("another agent has systems here"), "{said}");
    drop(stage.station);
    assert!(second().is_ok(), "it has ended");
}

#[test]
fn what_surrounds_a_system_is_looked_at_there() {
    let stage = Stage::new();
    let (mut afar, _served) = stage.open(setup("exec sleep 600"));
    afar.start(&never()).unwrap();
    afar.look_around().unwrap();
    let around = afar.looked_around().unwrap().unwrap();
    assert!(around.cores > 0 && around.clocks.wall_end_ms >= around.clocks.wall_start_ms);
    let cores = lab_host::cores::allowed().unwrap().len();
    assert_eq!(around.system_cores as usize, cores);
    assert!(around.knows_system);
    assert_eq!(around.limits.system_open_files, None, "nobody counted");
    let again = afar.looked_around();
    assert!(matches!(again, Err(Failed::Fatal(_))), "{again:?}");
}

#[test]
fn what_a_reset_leaves_running_ends_with_the_system() {
    let stage = Stage::new();
    let mut with_reset = setup("exec sleep 600");
    let script = "setsid sh -c 'echo $$ > id; mv id left; exec sleep 600' < /dev/null > /dev/null 2>&1 & \
                  while [ ! -e left ]; do sleep 0.01; done";
    with_reset.spec.reset = ["sh", "-c", script].map(str::to_owned).to_vec();
    let (mut afar, served) = stage.open(with_reset);
    let started = afar.start(&never()).unwrap();
    let id = fs::read_to_string(PathBuf::from(&started.setting.scratch).join("left")).unwrap();
    let left = || AttachedProcess::find(id.trim().parse().unwrap());
    assert!(left().is_some(), "the system may need it");
    assert_eq!(afar.stop().unwrap(), None);
    until("it is gone", || left().is_none());
    drop(afar);
    served.join().unwrap().unwrap();
    stage.is_as_it_was();
}

#[test]
fn settings_that_are_not_allowed_are_not_read() {
    let stage = Stage::new();
    let (mut afar, _served) = stage.open(setup("exec sleep 600"));
    afar.start(&never()).unwrap();
    let setting = |name: &str, path: &str| lab_study::KernelSetting {
        name: name.to_owned(),
        path: path.to_owned(),
        value: String::new(),
    };
    let allowed = setting("mine", "/proc/sys/kernel/osrelease");
    let other = setting("other", "/proc/sys/kernel/ostype");
    let state = afar.state(&[allowed, other]).unwrap();
    assert!(state.kernel_settings.contains_key("mine"));
    assert!(!state.kernel_settings.contains_key("other"));
}

#[test]
fn data_that_can_not_be_removed_is_told() {
    let stage = Stage::new();
    let script = "while [ ! -e go ]; do sleep 0.01; done; w=$(dirname \"$(dirname \"$PWD\")\"); \
                  mv \"$w\" \"$w.away\"; : > \"$w\"; exec sleep 600";
    let (mut afar, served) = stage.open(setup(script));
    let started = afar.start(&never()).unwrap();
    let data = PathBuf::from(&started.setting.scratch);
    let work = data.ancestors().nth(2).unwrap().to_path_buf();
    // Not before it is known to be ready: its output is moved, too.
    fs::write(data.join("go"), "").unwrap();
    until("it is moved away", || work.is_file());
    let stopped = afar.stop();
    let Err(Failed::Fatal(error)) = stopped else {
        panic!("{stopped:?}");
    };
    let said = error.to_string();
    assert!(
        said.starts_with("agent here could not leave its machine as it was")
            && said.contains("can't be removed"),
        "{said}"
    );
    drop(afar);
    served.join().unwrap().unwrap();
}

#[test]
fn settings_are_put_back_before_the_data_is_removed() {
    let stage = Stage::new();
    let station = &*stage.station;
    let value = stage.folder.path().join("value");
    fs::write(&value, "1\n").unwrap();
    let shared = Shared::default();
    let held = station
        .session
        .hold(setup("exit"), (&shared.workspace, Slot::Left), &never())
        .unwrap();
    // It is reached by way of the data.
    let data = fs::canonicalize(held.scratch.data()).unwrap();
    let up = data.strip_prefix(fs::canonicalize(stage.folder.path()).unwrap());
    let up = "../".repeat(up.unwrap().components().count());
    let setting = lab_study::KernelSetting {
        name: "value".to_owned(),
        path: format!("{}/{up}value", data.display()),
        value: "2".to_owned(),
    };
    let kernel = Kernel::of(&station.session.state, [&setting].into_iter(), Vec::new()).unwrap();
    kernel.apply(std::slice::from_ref(&setting)).unwrap();
    assert_eq!(fs::read_to_string(&value).unwrap().trim(), "2");
    shared.workspace.common().set(kernel);
    let mut post = Post::new(station, &shared, Slot::Left);
    post.held = Some(held);
    post.close().unwrap();
    assert_eq!(fs::read_to_string(&value).unwrap().trim(), "1");
    stage.is_as_it_was();
}

#[test]
fn an_order_that_is_too_long_is_not_kept() {
    let stage = Stage::new();
    let mut long = setup("exec sleep 600");
    let text = "x".repeat(MOST_ORDER);
    long.spec.files.push(("conf/b".to_owned(), text));
    let (mut afar, served) = stage.open(long);
    let started = afar.start(&never());
    let Err(Failed::Fatal(error)) = started else {
        panic!("{started:?}");
    };
    assert!(error.to_string().contains("over 16 MB"), "{error}");
    assert!(afar.ask_raw(&vec![0; 2 * MOST_ORDER]).is_ok());
    let said = served.join().unwrap().unwrap_err();
    assert!(said.contains("an order has over"), "{said}");
}

#[test]
fn what_is_told_of_a_start_may_be_as_long_as_its_order() {
    let stage = Stage::new();
    let mut long = setup("exec sleep 600");
    // The kernel accepts no longer one, and the last one counts.
    let variable = ("WHERE".to_owned(), "x".repeat(120_000));
    long.spec.env = vec![variable; 10];
    let (mut afar, _served) = stage.open(long);
    let started = afar.start(&never()).unwrap();
    assert_eq!(started.setting.env.len(), 10);
}

#[test]
fn a_server_that_nobody_finds_is_told() {
    let stage = Stage::new();
    let (mut afar, _served) = stage.open(setup("exec sleep 600"));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    assert!(!afar.watch(port, None, &never()).unwrap());
    afar.look_around().unwrap();
    let around = afar.looked_around().unwrap().unwrap();
    // The system would be one of them.
    let others = [&around.others_before, &around.others_during];
    assert!(!around.knows_system && others.iter().all(|others| others.is_empty()));
    let counts = afar.count(shared(), Duration::from_secs(1), DEADLINE);
    let Counts { columns, .. } = counts.unwrap();
    assert!(
        columns.iter().all(|name| !name.starts_with("system.")),
        "{columns:?}"
    );
    assert!(
        afar.watch(port, Some(std::process::id()), &never())
            .unwrap()
    );
    let gone = afar.watch(port, Some(4_194_304), &never());
    assert!(matches!(gone, Err(Failed::System(_))), "{gone:?}");
}

#[test]
fn a_far_system_says_its_port_and_its_owner_its_address() {
    let stage = Stage::new();
    let mut elsewhere = setup("echo 127.9.9.9:4711 > \"$WHERE\"; exec sleep 600");
    elsewhere.spec.env = vec![("WHERE".to_owned(), "{{ port_file }}".to_owned())];
    let (mut afar, _served) = stage.open(elsewhere);
    let started = afar.start(&never()).unwrap();
    assert_eq!(started.address.to_string(), "127.0.0.1:4711");
}

#[test]
fn that_the_orders_end_is_known_whatever_waits() {
    let (orders, told) = sync_channel(64);
    let gone = Arc::new(AtomicBool::new(false));
    let [waiting, _] = listen(From(told), Arc::clone(&gone)).unwrap();
    for _ in 0..=QUEUE {
        let sent = orders.send(Slot::Left.mark(b""));
        assert!(sent.is_ok());
    }
    until("it is known", || gone.load(Ordering::Relaxed));
    assert_eq!(waiting.iter().count(), QUEUE);
}

/// A script with the list of users in `$0`.
fn script(text: &str) -> Action {
    let words = ["sh", "-c", text, "{{ users_file }}"];
    Action::Command(words.map(str::to_owned).to_vec())
}

#[test]
fn commands_prepare_a_system_on_its_machine() {
    let stage = Stage::new();
    let mut prepared = setup("exec sleep 600");
    prepared.spec.preparation.provision = vec![script("cp \"$0\" accounts")];
    prepared.spec.preparation.fill = vec![script("echo it is full; exit 3")];
    let (mut afar, served) = stage.open(prepared);
    let started = afar.start(&never()).unwrap();
    let (data, users) = (
        PathBuf::from(&started.setting.scratch),
        stage.folder.path().join("users"),
    );
    // Several pieces, then a list that is shorter than the first.
    for list in [
        "{\"index\":0,\"name\":\"ada\"}\n".repeat(40_000),
        String::new(),
    ] {
        fs::write(&users, &list).unwrap();
        afar.prepare(0, &users, &never()).unwrap();
        let accounts = fs::read_to_string(data.join("accounts")).unwrap();
        assert!(accounts == list, "{} bytes", accounts.len());
    }
    let list = data.parent().unwrap().join("users");
    let mode = fs::metadata(list).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it may have passwords");
    let why = |failed: Result<(), Failed>| match failed {
        Err(Failed::System(why)) => why,
        failed => panic!("{failed:?}"),
    };
    let said = why(afar.prepare(1, &users, &never()));
    assert!(
        said.starts_with("the command of the preparation ended with exit status: 3")
            && said.ends_with("it is full"),
        "{said}"
    );
    let said = why(afar.prepare(2, &users, &never()));
    assert!(said.contains("no command"), "{said}");
    afar.look().unwrap();
    assert_eq!(afar.stop().unwrap(), None);
    drop(afar);
    served.join().unwrap().unwrap();
    stage.is_as_it_was();
}

#[test]
fn a_command_is_cut_short_with_its_trial() {
    let stage = Stage::new();
    let mut prepared = setup("exec sleep 600");
    prepared.spec.preparation.fill = vec![script("exec sleep 600")];
    let (mut afar, served) = stage.open(prepared);
    afar.start(&never()).unwrap();
    let users = stage.folder.path().join("users");
    fs::write(&users, "").unwrap();
    let cut = afar.prepare(0, &users, &AtomicBool::new(true));
    assert!(matches!(cut, Err(Failed::Interrupted)), "{cut:?}");
    // It gets no order to stop: it would not answer before the end of the command.
    assert_eq!(afar.stop().unwrap(), None);
    drop(afar);
    served.join().unwrap().unwrap();
    stage.is_as_it_was();
}

#[test]
fn lists_of_users_have_no_gaps_and_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users");
    assert_eq!(keep_users(&path, 0, "one\n").unwrap(), 4);
    assert_eq!(keep_users(&path, 4, "two\n").unwrap(), 8);
    for after in [4, 9] {
        let gap = keep_users(&path, after, "three\n").unwrap_err();
        assert_eq!(gap.to_string(), "a piece of it is missing");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(MOST_USERS)
        .unwrap();
    let long = keep_users(&path, MOST_USERS, "x").unwrap_err();
    assert_eq!(long.to_string(), "it has over 1 GB");
}

#[test]
fn what_is_not_started_is_not_prepared() {
    let stage = Stage::new();
    let shared = Shared::default();
    let mut post = Post::new(&stage.station, &shared, Slot::Left);
    let refused = "\"refused\"";
    let users = Order::Users {
        after: 0,
        piece: "x".to_owned(),
    };
    for order in [users, Order::Prepare { at: 0 }] {
        let said = String::from_utf8(post.obey(order)).unwrap();
        assert!(
            said.contains(refused) && said.contains("no system was started"),
            "{said}"
        );
    }
}
