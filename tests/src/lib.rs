//! Helpers shared by the whole-product tests: start the product, wait on conditions, clean up.

pub mod balancer;
pub mod browser;
pub mod dns;
pub mod drift;
pub mod mixed;
pub mod objects;
pub mod place;
pub mod postgres;
pub mod relay;
pub mod server;
pub mod stored;
pub mod studies;
pub mod tmpfs;
pub mod web;
pub mod zip;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use procfs::process::Process;

/// The repository's root folder.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this package lies in the repository")
}

/// Returns the program `plimsoll`, built from the current sources with the profile of the calling test.
///
/// # Panics
/// When it can't be built.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let test = std::env::current_exe().expect("a running program has a path");
        // target/PROFILE/deps/TEST, or target/PROFILE/PROGRAM
        let folder = test.parent().expect("a program lies in a folder");
        let is_test = folder.ends_with("deps");
        let profile = if is_test {
            folder.parent()
        } else {
            Some(folder)
        };
        let profile = profile.expect("folders of a build lie in each other");
        let note = profile.join("plimsoll.built-for");
        let caller = caller();
        let is_built = caller.is_some() && std::fs::read_to_string(&note).ok() == caller;
        if !is_built {
            let built = build(profile.ends_with("release")).status();
            assert!(
                built.expect("cargo runs").success(),
                "the program can't be built"
            );
            // Without the note, the next test program checks for itself.
            let _ = std::fs::write(note, caller.unwrap_or_default());
        }
        profile.join("plimsoll")
    })
}

/// Identifies the `cargo test` or `programs` that runs this program. It runs some thirty, and each would start a second
/// cargo to check all packages for changes. The first check holds for the later ones, as cargo's own builds do.
fn caller() -> Option<String> {
    let parent = std::os::unix::process::parent_id();
    let stat = Process::new(parent.cast_signed()).ok()?.stat().ok()?;
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    matches!(&*stat.comm, "cargo" | "programs")
        .then(|| format!("{} {parent} {}", boot.trim(), stat.starttime))
}

/// Returns true if a NATS server is installed, at which agents meet; prints a message if not.
pub fn has_nats() -> bool {
    let has = ["nats-server", "/usr/sbin/nats-server"]
        .iter()
        .any(|program| {
            let mut command = Command::new(program);
            command.arg("--version").stdout(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        });
    if !has {
        println!("SKIPPED: there is no nats-server here (Debian: apt install nats-server)");
    }
    has
}

/// The command that builds the program: in release as users build it, else as `cargo test --workspace` does for the
/// programs of `cli/tests`. For all packages, dependencies have the features that tests need; for this one alone they
/// have fewer, and a third of everything would be built a second time.
fn build(release: bool) -> Command {
    let mut build = cargo();
    build.args(if release {
        ["build", "--release", "--package", "plimsoll"].as_slice()
    } else {
        ["test", "--no-run", "--workspace", "--test", "commands"].as_slice()
    });
    build.args(["--quiet", "--locked"]);
    build
}

/// Cargo for this workspace, without the variables that an outer cargo sets.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(repository());
    // The variables of the package under test are no build settings, but ring's build script reads them: everything
    // above ring would be rebuilt, here and once more afterwards.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&*name);
        }
    }
    cargo
}

/// Polls until the condition holds.
///
/// # Panics
/// When it doesn't hold in time.
#[expect(
    clippy::disallowed_methods,
    reason = "deadlines of tests are of real time"
)]
pub fn wait_until(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + limit;
    while !holds() {
        assert!(
            std::time::Instant::now() < deadline,
            "waited too long: {what}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}
