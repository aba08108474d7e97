//! What the owner of a machine allows runs to do on it: a file of the agent's own, which no study can widen. It judges
//! and starts nothing.

mod filesystems;

use std::collections::BTreeSet;
use std::fs;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};

use lab_host::{cores, kernel};
use lab_study::{Action, CommandSpec, Cpus, HostSpec, KernelSetting, kernel_path};
use serde::Deserialize;

use self::filesystems::{Filesystems, Section};
use crate::message::Setup;
use crate::slots::CoreSharing;

/// The name of the agent's own program in the file.
const OWN: &str = "plimsoll";
/// Its names in studies and presets.
const OWN_IN_STUDIES: [&str; 2] = ["{{ plimsoll }}", "{{ program }}"];
/// The only command it may be started with: others of its commands start any program.
const OWN_COMMAND: &str = "serve";
/// The start of a placeholder that a trial fills in.
const FILLED_IN: &str = "{{";
/// The trial's folder in studies.
const SCRATCH: &str = "{{ scratch }}";
/// Variables that a study may set for any program: none of them names a file, a program, or code. Others can make an
/// interpreter, a library, or the dynamic loader run code that the owner has not allowed.
const HARMLESS: [&str; 15] = [
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "HOST",
    "LANG",
    "LANGUAGE",
    "MALLOC_ARENA_MAX",
    "NO_COLOR",
    "OMP_NUM_THREADS",
    "PORT",
    "RAYON_NUM_THREADS",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TOKIO_WORKER_THREADS",
    "UV_THREADPOOL_SIZE",
];
/// Prefix of the locale variables.
const LOCALE: &str = "LC_";
/// Largest size of the file.
const MOST_BYTES: u64 = 1 << 20;

/// The file as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    address: IpAddr,
    programs: Vec<String>,
    folders: Vec<PathBuf>,
    #[serde(default)]
    kernel: Vec<String>,
    #[serde(default)]
    variables: BTreeSet<String>,
    filesystems: Option<Section>,
}

/// What runs may do on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// The address where users reach it.
    pub address: IpAddr,
    /// Absolute paths.
    programs: BTreeSet<PathBuf>,
    /// True if its own program may be started as a server.
    own: bool,
    /// Absolute paths, without links; at least one.
    folders: Vec<PathBuf>,
    /// Kernel settings, as file paths.
    kernel: BTreeSet<String>,
    /// Variables of programs, besides the harmless ones.
    variables: BTreeSet<String>,
    /// File systems that may be made in one of the folders for a trial; none by default.
    filesystems: Filesystems,
}

impl Allowed {
    /// Reads the file, and checks that the programs and folders it names exist.
    ///
    /// # Errors
    /// In words, with the file and the place in it, what can't be read or used.
    pub fn read(file: &Path) -> Result<Self, String> {
        let named = |problem: String| format!("{}: {problem}", file.display());
        let size = fs::metadata(file).map_err(|error| named(error.to_string()))?;
        if size.len() > MOST_BYTES {
            return Err(named("this is no list of what is allowed".to_owned()));
        }
        let text = fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
        Self::parse(&text).map_err(named)
    }

    /// Parses the text of the file.
    ///
    /// # Errors
    /// In words, with the place, what can't be read or used.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        if file.address.is_unspecified() {
            return Err(
                "`address`: this is every address: write the one that users reach".to_owned(),
            );
        }
        let (own, programs): (Vec<_>, Vec<_>) = file.programs.iter().partition(|name| *name == OWN);
        let programs = programs.into_iter().map(|name| {
            found(name).ok_or_else(|| {
                format!("`programs`: there is no program {name}: write its whole path, or take it off the list")
            })
        });
        let folders = file.folders.iter().map(|folder| {
            let whole = fs::canonicalize(folder).ok();
            let whole = whole.filter(|whole| folder.is_absolute() && whole.is_dir());
            whole.ok_or_else(|| {
                let folder = folder.display();
                format!("`folders`: {folder} is no folder: make it, and write its whole path")
            })
        });
        let folders: Vec<PathBuf> = folders.collect::<Result<_, _>>()?;
        if folders.is_empty() {
            return Err("`folders`: a system needs a folder for its data: name one".to_owned());
        }
        let kernel = file.kernel.iter().map(|name| {
            // Names as in studies, so that both mean the same file.
            kernel_path(name).map_err(|error| {
                let help = error.help.unwrap_or_default();
                format!("`kernel`: {}: {help}", error.message)
            })
        });
        Ok(Self {
            address: file.address,
            programs: programs.collect::<Result<_, _>>()?,
            own: !own.is_empty(),
            folders,
            kernel: kernel.collect::<Result<_, _>>()?,
            variables: file.variables,
            filesystems: match file.filesystems {
                Some(section) => section.parse()?,
                None => Filesystems::default(),
            },
        })
    }

    /// Returns true if any file system may be made.
    pub(crate) fn makes_filesystems(&self) -> bool {
        self.filesystems.any()
    }

    /// Folders that may hold data of trials.
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// The allowed folder for the data of a trial.
    pub(crate) fn folder(&self, host: &HostSpec) -> Option<&Path> {
        let Some(storage) = &host.storage else {
            return self.folders.first().map(PathBuf::as_path);
        };
        let whole = fs::canonicalize(storage).ok()?;
        self.folders
            .iter()
            .find(|folder| **folder == whole)
            .map(PathBuf::as_path)
    }

    /// The reasons to refuse a system, one sentence each; empty if it may run here on these cores.
    pub(crate) fn refused(&self, setup: &Setup, cores: &[u32]) -> Vec<String> {
        let mut problems = self.around(&setup.host, cores);
        let before = setup.spec.before.iter();
        // The names become file names of the trial.
        for (name, _) in before.clone().filter(|(name, _)| !is_plain(name)) {
            problems.push(format!(
                "the process {name:?} has a name that is no plain one"
            ));
        }
        for spec in before.map(|(_, spec)| spec).chain([&setup.spec]) {
            problems.extend(self.of_command(spec));
        }
        if setup.core_sharing == Some(CoreSharing::Split)
            && cores::split(cores, &cores::siblings).is_none()
        {
            let what = "a duet that is kept apart needs two cores, and the agent has one";
            problems.push(what.to_owned());
        }
        problems
    }

    fn around(&self, host: &HostSpec, cores: &[u32]) -> Vec<String> {
        let mut problems = Vec::new();
        for setting in &host.kernel {
            if !self.kernel.contains(&setting.path) {
                problems.push(format!(
                    "the kernel setting {} is not allowed: its owner has not put it on the list `kernel`",
                    setting.name
                ));
            }
        }
        if problems.is_empty() {
            problems.extend(kernel::unusable(host.kernel.iter()));
        }
        if self.folder(host).is_none() {
            let storage = host.storage.as_deref().unwrap_or_default();
            problems.push(format!(
                "the storage {storage} is not allowed: its owner has not put it on the list `folders`"
            ));
        }
        if let Some(spec) = &host.filesystem {
            problems.extend(self.filesystems.refused(spec));
        }
        problems.extend(missing_cores(host.cpus.as_ref(), cores));
        problems
    }

    fn of_command(&self, spec: &CommandSpec) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(self.of_words(&spec.start));
        problems.extend(self.of_words(&spec.reset));
        for action in spec.preparation.actions() {
            if let Action::Command(words) = action {
                problems.extend(self.of_words(words));
            }
        }
        for (name, _) in &spec.env {
            if !self.variable(name) {
                problems.push(format!(
                    "the variable {name} is not allowed: its owner has not put it on the list `variables`"
                ));
            }
        }
        for (name, _) in &spec.files {
            if !is_inside(Path::new(name)) {
                problems.push(format!(
                    "the file {name} lies outside of the folder of the trial"
                ));
            }
        }
        problems.extend(spec.folder.as_deref().filter(|folder| !self.starts_in(folder)).map(|folder| {
            format!("the folder {folder} is not allowed: its owner has not put it on the list `folders`")
        }));
        problems
    }

    /// The reason to refuse a program and its arguments.
    fn of_words(&self, words: &[String]) -> Option<String> {
        let program = words.first()?;
        if self.program(program).is_none() {
            return Some(format!(
                "the program {program} is not allowed: its owner has not put it on the list `programs`"
            ));
        }
        let is_own = OWN_IN_STUDIES.contains(&program.as_str());
        let serves = words.get(1).is_some_and(|word| word == OWN_COMMAND);
        (is_own && !serves).then(|| {
            let word = words.get(1).map_or("nothing", String::as_str);
            format!(
                "the program {program} with {word:?} is not allowed: `{OWN_COMMAND}` is what it may be started for"
            )
        })
    }

    /// The path of an allowed program.
    fn program(&self, written: &str) -> Option<PathBuf> {
        if OWN_IN_STUDIES.contains(&written) {
            return self.own.then(|| PathBuf::from(written));
        }
        found(written).filter(|whole| self.programs.contains(whole))
    }

    /// Returns true if a study may set this variable for programs.
    fn variable(&self, name: &str) -> bool {
        let is_harmless = HARMLESS.contains(&name) || name.starts_with(LOCALE);
        is_harmless || self.variables.contains(name)
    }

    /// Returns true if a study may read this kernel setting.
    pub(crate) fn reads(&self, setting: &KernelSetting) -> bool {
        self.kernel.contains(&setting.path)
    }

    /// Returns true if a program may start in this folder.
    fn starts_in(&self, folder: &str) -> bool {
        let below = folder
            .strip_prefix(SCRATCH)
            .map(|rest| rest.trim_start_matches('/'));
        if below.is_some() || !folder.starts_with('/') {
            return is_inside(Path::new(below.unwrap_or(folder)));
        }
        let whole = fs::canonicalize(folder);
        whole.is_ok_and(|whole| self.folders.iter().any(|one| whole.starts_with(one)))
    }

    /// The same command with absolute paths of its programs, so that no search finds others.
    pub(crate) fn settled(&self, spec: &CommandSpec) -> CommandSpec {
        let mut settled = spec.clone();
        let preparation = &mut settled.preparation;
        let actions = preparation
            .provision
            .iter_mut()
            .chain(&mut preparation.fill);
        let prepare = actions.filter_map(|action| match action {
            Action::Command(words) => words.first_mut(),
            Action::Request(_) => None,
        });
        let own = [settled.start.first_mut(), settled.reset.first_mut()];
        for word in own.into_iter().flatten().chain(prepare) {
            let whole = self
                .program(word)
                .and_then(|whole| whole.into_os_string().into_string().ok());
            if let Some(whole) = whole {
                *word = whole;
            }
        }
        for (_, before) in &mut settled.before {
            *before = self.settled(before);
        }
        settled
    }
}

/// Finds a program by its absolute path, or by its name in PATH.
fn found(program: &str) -> Option<PathBuf> {
    if program.contains(FILLED_IN) || program.is_empty() {
        return None;
    }
    if program.starts_with('/') {
        return program_at(Path::new(program));
    }
    if program.contains('/') {
        return None;
    }
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).find_map(|folder| program_at(&folder.join(program)))
}

/// Resolves links of the folder only. The program's own name may be a link: busybox selects its program by that name.
fn program_at(path: &Path) -> Option<PathBuf> {
    let whole = fs::canonicalize(path.parent()?)
        .ok()?
        .join(path.file_name()?);
    whole.is_file().then_some(whole)
}

/// Returns true if a path stays in its folder.
fn is_inside(path: &Path) -> bool {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    path.components().all(plain)
}

/// Returns true if a name is that of a file in a folder.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let first = parts.next();
    matches!(first, Some(Component::Normal(part)) if part == name) && parts.next().is_none()
}

fn missing_cores(cpus: Option<&Cpus>, cores: &[u32]) -> Option<String> {
    let missing = match cpus? {
        Cpus::Count(count) if *count as usize > cores.len() => format!("{count} cores"),
        Cpus::List(list) => format!("core {}", list.iter().find(|core| !cores.contains(core))?),
        Cpus::Count(_) => return None,
    };
    Some(format!(
        "the system is to have {missing}, and the agent has {} cores",
        cores.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab_study::{KernelSetting, Preparation, Ready, StopSignal};

    fn setup(start: &[&str]) -> Setup {
        let spec = CommandSpec {
            start: start.iter().map(|word| (*word).to_owned()).collect(),
            env: vec![],
            folder: None,
            files: vec![],
            port: None,
            ready: Ready::Port,
            ready_within_ms: 1,
            reset: vec![],
            stop_signal: StopSignal::Term,
            stop_grace_ms: 1,
            preparation: Preparation::default(),
            preset: None,
            name: None,
            before: vec![],
        };
        Setup {
            trial: 1,
            spec,
            host: HostSpec::default(),
            secure: false,
            core_sharing: None,
        }
    }

    fn allowed(folder: &Path) -> Allowed {
        let text = format!(
            "address = \"10.0.0.7\"\nprograms = [\"sleep\", \"plimsoll\"]\nfolders = [\"{}\"]\n\
             kernel = [\"net.core.somaxconn\"]\nvariables = [\"MODE\"]\n",
            folder.display()
        );
        Allowed::parse(&text).unwrap()
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Setup), expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        let mut setup = setup(&["sleep", "60"]);
        change(&mut setup);
        let said = allowed(dir.path()).refused(&setup, &[0, 1]).join("; ");
        match expected.is_empty() {
            true => assert_eq!(said, ""),
            false => assert!(said.contains(expected), "{said}"),
        }
    }

    #[test]
    fn settings_are_named_as_in_studies() {
        let dir = tempfile::tempdir().unwrap();
        let with = |name: &str| {
            let folder = dir.path().display();
            let text = format!(
                "address = \"10.0.0.7\"\nprograms = []\nfolders = [\"{folder}\"]\nkernel = [\"{name}\"]\n"
            );
            Allowed::parse(&text)
        };
        for name in [
            "net/ipv4/conf/eth0.1/rp_filter",
            "net.ipv4.conf.eth0/1.rp_filter",
            "/proc/sys/net/ipv4/conf/eth0.1/rp_filter",
        ] {
            let allowed = with(name).unwrap();
            let path = "/proc/sys/net/ipv4/conf/eth0.1/rp_filter";
            assert_eq!(allowed.kernel, BTreeSet::from([path.to_owned()]), "{name}");
        }
        let error = with("../../etc/passwd").unwrap_err();
        assert!(error.starts_with("`kernel`: "), "{error}");
    }

    #[test]
    fn what_is_on_no_list_is_refused_by_its_name() {
        check(|_| (), "");
        check(
            |s| s.spec.start[0] = "sh".to_owned(),
            "the program sh is not allowed",
        );
        check(
            |s| s.spec.start[0] = "{{ scratch }}/sleep".to_owned(),
            "sleep is not allowed",
        );
        check(
            |s| s.spec.start[0] = "./sleep".to_owned(),
            "./sleep is not allowed",
        );
        check(
            |s| s.spec.reset = vec!["rm".to_owned()],
            "the program rm is not allowed",
        );
        let db = || ("db".to_owned(), setup(&["cat"]).spec);
        check(
            |s| s.spec.before = vec![db()],
            "the program cat is not allowed",
        );
        let variable = |name: &str| vec![(name.to_owned(), "x".to_owned())];
        for harmless in ["PORT", "LC_ALL", "RUST_LOG", "MODE"] {
            check(|s| s.spec.env = variable(harmless), "");
        }
        for other in [
            "LD_PRELOAD",
            "BASH_ENV",
            "PYTHONPATH",
            "PATH",
            "port",
            "MODE2",
        ] {
            let said = format!("the variable {other} is not allowed");
            check(|s| s.spec.env = variable(other), &said);
        }
        check(|s| s.spec.files = variable("conf/a"), "");
        check(|s| s.spec.files = variable("../a"), "the file ../a");
        check(|s| s.spec.files = variable("/etc/a"), "the file /etc/a");
        check(|s| s.spec.folder = Some("{{ scratch }}/a".to_owned()), "");
        check(
            |s| s.spec.folder = Some("{{ scratch }}/../a".to_owned()),
            "/../a is not allowed",
        );
        check(
            |s| s.spec.folder = Some("/etc".to_owned()),
            "the folder /etc is not allowed",
        );
        check(
            |s| s.host.storage = Some("/etc".to_owned()),
            "the storage /etc is not allowed",
        );
        check(|s| s.host.cpus = Some(Cpus::List(vec![0, 5])), "core 5");
        check(|s| s.host.cpus = Some(Cpus::Count(2)), "");
        check(|s| s.core_sharing = Some(CoreSharing::Split), "");
        let dir = tempfile::tempdir().unwrap();
        let mut apart = setup(&["sleep", "60"]);
        apart.core_sharing = Some(CoreSharing::Split);
        let said = allowed(dir.path()).refused(&apart, &[0]).join("");
        assert!(said.contains("needs two cores"), "{said}");
        let command = |program: &str| vec![Action::Command(vec![program.to_owned()])];
        check(|s| s.spec.preparation.fill = command("sleep"), "");
        for program in ["sh", "./sleep", "{{ scratch }}/sleep"] {
            let said = format!("the program {program} is not allowed");
            check(|s| s.spec.preparation.provision = command(program), &said);
            check(|s| s.spec.preparation.fill = command(program), &said);
        }
        let kernel = |path: &str| {
            let (name, value) = ("a setting".to_owned(), "1".to_owned());
            vec![KernelSetting {
                name,
                path: path.to_owned(),
                value,
            }]
        };
        check(
            |s| s.host.kernel = kernel("/proc/sys/vm/swappiness"),
            "a setting is not allowed",
        );
        check(
            |s| s.host.kernel = kernel("/dev/cpu_dma_latency"),
            "a setting is not allowed",
        );
    }

    #[test]
    fn the_own_program_is_started_as_a_server_alone() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let start = |all: &[&str], expected: &str| check(|s| s.spec.start = words(all), expected);
        start(&["{{ program }}", "serve", "--listen", "a"], "");
        start(&["{{ plimsoll }}", "serve"], "");
        start(&["{{ plimsoll }}"], "\"nothing\" is not allowed");
        start(&["{{ plimsoll }}", "{{ secret }}"], "is not allowed");
        start(
            &["{{ plimsoll }}", "together", "{{ scratch }}/a"],
            "the program {{ plimsoll }} with \"together\" is not allowed",
        );
        start(&["{{ program }}", "run", "serve"], "\"run\" is not allowed");
        let run = || words(&["{{ plimsoll }}", "run"]);
        check(|s| s.spec.reset = run(), "\"run\" is not allowed");
        let db = || ("db".to_owned(), setup(&["{{ plimsoll }}", "run"]).spec);
        check(|s| s.spec.before = vec![db()], "\"run\" is not allowed");
    }

    #[test]
    fn processes_have_plain_names() {
        let named = |name: &str, expected: &str| {
            let db = (name.to_owned(), setup(&["sleep", "60"]).spec);
            check(|s| s.spec.before = vec![db], expected);
        };
        named("db", "");
        for name in ["../../x", "/x", "a/b", "a/", "./a", "a/.", "..", ".", ""] {
            named(name, "has a name that is no plain one");
        }
    }

    #[test]
    fn programs_are_started_by_their_whole_paths() {
        let dir = tempfile::tempdir().unwrap();
        let settled = allowed(dir.path()).settled(&setup(&["sleep", "60"]).spec);
        assert!(
            Path::new(&settled.start[0]).is_absolute(),
            "{:?}",
            settled.start
        );
        assert_eq!(settled.start[1], "60");
    }

    #[test]
    fn a_file_that_can_not_be_used_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().display();
        let check = |text: &str, expected: &str| {
            let said = Allowed::parse(text).unwrap_err();
            assert!(said.contains(expected), "{said}");
        };
        check("address = \"10.0.0.7\"\nprogram = []", "line 2");
        check("address = \"everywhere\"", "line 1");
        let rest = format!("folders = [\"{folder}\"]");
        check(
            &format!("address = \"0.0.0.0\"\nprograms = []\n{rest}"),
            "every address",
        );
        check(
            &format!("address = \"10.0.0.7\"\nprograms = [\"no-such-program\"]\n{rest}"),
            "no program no-such-program",
        );
        check(
            "address = \"10.0.0.7\"\nprograms = []\nfolders = []",
            "name one",
        );
        check(
            "address = \"10.0.0.7\"\nprograms = []\nfolders = [\"/no/such\"]",
            "/no/such is no folder",
        );
    }
}
