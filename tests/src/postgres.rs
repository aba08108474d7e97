//! A PostgreSQL of a test's own, as Debian ships it: in a scratch folder, on a free port, as its own user. It
//! ends with the test's process, however that ends.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};
use tempfile::TempDir;

use crate::server::free_address;
use crate::wait_until;

/// PostgreSQL refuses to run as root; Debian's package makes this user.
const USER: &str = "postgres";
const LIMIT: Duration = Duration::from_secs(120);

/// A running server.
#[derive(Debug)]
pub struct Postgres {
    folder: TempDir,
    /// The folder in which its own folder is, and those of its standbys.
    within: PathBuf,
    programs: PathBuf,
    port: u16,
    options: Vec<String>,
    process: Mutex<Option<Pid>>,
}

impl Postgres {
    /// Starts one, or prints to standard output that it isn't installed.
    ///
    /// # Panics
    /// When it is installed, and doesn't start.
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with settings, such as `fsync=off`.
    ///
    /// # Panics
    /// As [`Postgres::start`].
    pub fn start_with(options: &[&str]) -> Option<Self> {
        Self::start_in(&std::env::temp_dir(), options)
    }

    /// The same with its data in a folder that all users may enter, and those of its standbys.
    ///
    /// # Panics
    /// As [`Postgres::start`].
    pub fn start_in(within: &Path, options: &[&str]) -> Option<Self> {
        let server = Self::place(within, options)?;
        let made = server
            .program("initdb")
            .args(["-A", "trust", "-E", "UTF8", "--locale=C", "-N"])
            .args(["-U", USER, "-D"])
            .arg(server.data())
            .stdout(Stdio::null())
            .status();
        assert!(made.is_ok_and(|made| made.success()), "initdb fails");
        server.restart();
        Some(server)
    }

    /// Starts a standby of this one that could take its place. Acknowledged commits are on their way there.
    ///
    /// # Panics
    /// When it doesn't start.
    pub fn standby(&self) -> Self {
        let options: Vec<_> = self.options.iter().map(String::as_str).collect();
        let mut standby = Self::place(&self.within, &options).expect("one runs already");
        let from = format!(
            "host=127.0.0.1 port={} user={USER} application_name=standby",
            self.port
        );
        let copied = standby
            .program("pg_basebackup")
            // With a slot, the copy under way would count as a standby that has received everything.
            .args(["-R", "-X", "stream", "--no-slot", "-c", "fast", "-d", &from])
            .arg("-D")
            .arg(standby.data())
            .stdout(Stdio::null())
            .status();
        assert!(copied.is_ok_and(|copied| copied.success()), "no copy");
        // Another process may have taken the port during the copy.
        standby.port = free_address().port();
        standby.restart();
        standby
    }

    /// Makes every commit wait until a standby has it on its disk, as data that must not be lost needs.
    ///
    /// # Panics
    /// When no standby follows.
    pub fn wait_for_standbys(&self) {
        let set = "ALTER SYSTEM SET synchronous_standby_names = '*'";
        self.sql(set).expect("it may be set");
        self.sql("SELECT pg_reload_conf()").expect("it may be read");
        wait_until(LIMIT, "a standby that is waited for", || {
            let sync = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
            self.sql(sync).is_some_and(|count| count != "0")
        });
    }

    /// Stops replication to the standbys until this server ends.
    ///
    /// # Panics
    /// When no standby follows.
    pub fn hold_up_standbys(&self) {
        let senders = self.sql("SELECT pid FROM pg_stat_replication");
        let senders = senders.filter(|senders| !senders.is_empty());
        for sender in senders.expect("a standby follows").lines() {
            let sender = sender.parse().map(Pid::from_raw).expect("an id");
            kill(sender, Signal::SIGSTOP).expect("it is ours");
        }
    }

    /// Promotes a standby: it accepts writes from now on.
    ///
    /// # Panics
    /// When the promotion fails.
    pub fn promote(&self) {
        let taken = self.sql("SELECT pg_promote()");
        assert_eq!(taken.as_deref(), Some("t"), "it takes over");
    }

    /// A folder and a port for a server; prints to standard output if there can't be one.
    fn place(within: &Path, options: &[&str]) -> Option<Self> {
        let Some(programs) = programs() else {
            println!("SKIPPED: PostgreSQL is not installed here");
            return None;
        };
        if geteuid().is_root() && !matches!(User::from_name(USER), Ok(Some(_))) {
            println!("SKIPPED: there is no user {USER} to run PostgreSQL as");
            return None;
        }
        let folder = tempfile::tempdir_in(within).expect("a folder can be made");
        if let Ok(Some(user)) = User::from_name(USER)
            && geteuid().is_root()
        {
            let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
            chown(folder.path(), Some(uid), Some(gid)).expect("root may give folders away");
        }
        let readable = Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), readable).expect("the folder is ours");
        Some(Self {
            folder,
            within: within.to_owned(),
            programs,
            port: free_address().port(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            process: Mutex::default(),
        })
    }

    /// Starts it again after [`Postgres::kill`].
    ///
    /// # Panics
    /// When it does not start.
    pub fn restart(&self) {
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data());
        command.args(["-k", &self.folder.path().display().to_string()]);
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            "max_locks_per_transaction=256".to_owned(),
        ];
        for setting in settings.iter().chain(&self.options) {
            command.args(["-c", setting]);
        }
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(log.expect("the log can be opened"));
        let (started, starts) = sync_channel(1);
        // A parent-death signal is sent when the thread that started the child ends.
        std::thread::spawn(move || {
            let mut child = command.spawn().expect("PostgreSQL can be started");
            let id = i32::try_from(child.id()).expect("ids are small");
            let _ = started.send(Pid::from_raw(id));
            let _ = child.wait();
        });
        let process = starts.recv().expect("the thread says what it has started");
        *self.process.lock().expect("nobody panics with it") = Some(process);
        // Another process may have been given its port.
        let is_ours = |data: String| self.data() == Path::new(&data);
        wait_until(LIMIT, "PostgreSQL to start", || {
            self.sql("SHOW data_directory").is_some_and(is_ours)
        });
    }

    /// Ends it as a crash of its machine does, except that written pages are kept.
    ///
    /// # Panics
    /// When it does not end.
    pub fn kill(&self) {
        let process = self.process.lock().expect("nobody panics with it").take();
        let Some(process) = process else { return };
        // The children, too, which would continue for a moment.
        let children = children(process);
        let _ = kill(process, Signal::SIGKILL);
        for child in &children {
            let _ = kill(*child, Signal::SIGKILL);
        }
        let are_gone = || children.iter().all(|child| kill(*child, None).is_err());
        wait_until(LIMIT, "PostgreSQL's sessions to end", are_gone);
        wait_until(LIMIT, "PostgreSQL to end", || kill(process, None).is_err());
        let _ = std::fs::remove_file(self.data().join("postmaster.pid"));
    }

    /// Shuts it down in order: it first sends its data to the standbys.
    ///
    /// # Panics
    /// When it does not end.
    pub fn stop(&self) {
        let process = self.process.lock().expect("nobody panics with it").take();
        let Some(process) = process else { return };
        // SIGINT is a fast shutdown: it ends all sessions, and then itself.
        let _ = kill(process, Signal::SIGINT);
        wait_until(LIMIT, "PostgreSQL to end", || kill(process, None).is_err());
    }

    /// Sends a signal to all its processes, such as to stop and continue them.
    ///
    /// # Panics
    /// After [`Postgres::kill`] or [`Postgres::stop`].
    pub fn signal(&self, signal: Signal) {
        let process = *self.process.lock().expect("nobody panics with it");
        let process = process.expect("it runs");
        // The parent first, since it starts the others. A process that has just ended needs no signal.
        let _ = kill(process, signal);
        for child in children(process) {
            let _ = kill(child, signal);
        }
    }

    /// Restarts it if it has ended by itself, as it does if its disk is full.
    ///
    /// # Panics
    /// When it does not start.
    pub fn revive(&self) {
        let process = *self.process.lock().expect("nobody panics with it");
        let runs = || process.is_some_and(|process| kill(process, None).is_ok());
        // After a crash of one of its processes, it restarts the others.
        wait_until(LIMIT, "PostgreSQL to be there, or to have ended", || {
            !runs() || self.sql("SELECT 1").is_some()
        });
        if !runs() {
            self.kill();
            self.restart();
        }
    }

    /// The URL of its database, over TCP.
    pub fn address(&self) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{USER}", self.port)
    }

    /// The URL of a database on any of several servers: the one of them that accepts writes.
    pub fn address_of(servers: &[&Self]) -> String {
        let hosts = servers
            .iter()
            .map(|server| format!("127.0.0.1:{}", server.port));
        let hosts: Vec<_> = hosts.collect();
        format!("postgres://{USER}@{}/{USER}", hosts.join(","))
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The id of its first process, whose children do the work.
    ///
    /// # Panics
    /// After [`Postgres::kill`] or [`Postgres::stop`].
    pub fn pid(&self) -> u32 {
        let process = *self.process.lock().expect("nobody panics with it");
        process.expect("it runs").as_raw().unsigned_abs()
    }

    /// The folder of its socket, its log, and its data.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The result of a statement, as `psql` prints it without decoration; `None` if it fails.
    pub fn sql(&self, statement: &str) -> Option<String> {
        let said = Command::new(self.programs.join("psql"))
            .args([
                "-X",
                "-A",
                "-t",
                "-q",
                "-v",
                "ON_ERROR_STOP=1",
                "-c",
                statement,
            ])
            .arg(self.address())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        said.status.success().then_some(text)
    }

    /// Makes PostgreSQL's user the owner of a file and its only reader.
    ///
    /// # Panics
    /// When the file isn't ours.
    pub fn give(&self, file: &Path) {
        let private = Permissions::from_mode(0o600);
        std::fs::set_permissions(file, private).expect("the file is ours");
        if let (Ok(Some(user)), true) = (User::from_name(USER), geteuid().is_root()) {
            let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
            chown(file, Some(uid), Some(gid)).expect("root may give files away");
        }
    }

    /// Prints the end of its log, to explain a failed test.
    fn say_what_it_said(&self) {
        let log = std::fs::read(self.folder.path().join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let last = &lines[lines.len().saturating_sub(20)..];
        println!("PostgreSQL at port {}:\n{}", self.port, last.join("\n"));
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// One of its programs, under its user; it ends with this process.
    fn program(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        let mut command = Command::new("setpriv");
        if geteuid().is_root() {
            command.args(["--reuid", USER, "--regid", USER, "--init-groups"]);
        }
        command.args(["--pdeathsig", "QUIT", "--"]).arg(program);
        command.current_dir(self.folder.path());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            self.say_what_it_said();
        }
    }
}

/// Returns the child processes of a process.
fn children(process: Pid) -> Vec<Pid> {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().filter_map(|id| id.parse().ok());
    children.map(Pid::from_raw).collect()
}

/// Debian keeps each version's programs in a folder of their own.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut found: Vec<PathBuf> = versions
        .flatten()
        .map(|version| version.path().join("bin"))
        .filter(|folder| folder.join("postgres").is_file() && folder.join("psql").is_file())
        .collect();
    found.sort();
    found.pop()
}
