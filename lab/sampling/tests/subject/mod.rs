//! A program that spends equal time in each of several functions, on two threads, and ends with its parent.

use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of functions.
pub(crate) const FUNCTIONS: usize = 8;

static ENDED: AtomicBool = AtomicBool::new(false);

macro_rules! function {
    ($name:ident, $number:expr) => {
        #[inline(never)]
        fn $name(start: u64) -> u64 {
            let mut sum = start + $number;
            let mut at = 0u64;
            while at < 20_000 {
                sum = (sum ^ at) + $number;
                sum &= 0xffff_ffff;
                at += 1;
            }
            black_box(sum)
        }
    };
}

function!(spin_0, 3);
function!(spin_1, 5);
function!(spin_2, 7);
function!(spin_3, 9);
function!(spin_4, 11);
function!(spin_5, 13);
function!(spin_6, 15);
function!(spin_7, 17);

#[inline(never)]
fn in_turn() -> u64 {
    let functions: [fn(u64) -> u64; FUNCTIONS] = [
        spin_0, spin_1, spin_2, spin_3, spin_4, spin_5, spin_6, spin_7,
    ];
    let mut sum = 0;
    while !ENDED.load(Ordering::Relaxed) {
        for function in functions {
            sum = black_box(function(sum));
        }
    }
    sum
}

fn work() {
    let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
    let threads = [
        named("spin-1").spawn(in_turn),
        named("spin-2").spawn(in_turn),
    ];
    let mut input = String::new();
    let _ = std::io::stdin().read_to_string(&mut input);
    ENDED.store(true, Ordering::Relaxed);
    for thread in threads {
        black_box(thread.unwrap().join().unwrap());
    }
}

/// Not a test: the process that tests sample.
#[test]
#[ignore = "a helper of the other tests"]
fn works() {
    work();
}

/// A process that ends when this is dropped.
pub(crate) struct Subject {
    child: Child,
}

impl Subject {
    /// Starts this program as a process of its own.
    pub(crate) fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "subject::works", "--nocapture"]);
        Self::run(command)
    }

    /// Compiled like a server that is shipped: optimised, without symbols and frame pointers.
    pub(crate) fn stripped(folder: &Path) -> Self {
        let source = folder.join("stripped.rs");
        let text = include_str!("mod.rs")
            .split("/// Not a test")
            .next()
            .unwrap();
        let text = text.replace("//!", "//").replace("pub(crate)", "pub");
        std::fs::write(&source, format!("{text}\nfn main() {{ work(); }}\n")).unwrap();
        let program = folder.join("stripped");
        let mut compiler = Command::new("rustc");
        compiler.args([
            "--edition=2024",
            "-Awarnings",
            "-Copt-level=2",
            "-Cstrip=symbols",
        ]);
        let status = compiler
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .status()
            .unwrap();
        assert!(status.success());
        Self::run(Command::new(program))
    }

    /// Any program that ends when its input does.
    pub(crate) fn run(mut command: Command) -> Self {
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { child }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
