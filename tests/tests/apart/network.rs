//! Machines that are network namespaces of this one: each has an address of its own, and a router, also a namespace,
//! forwards packets between them. This machine's network is not changed, and the namespaces vanish with their last
//! process.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use plimsoll_tests::wait_until;

/// Longer than any step takes.
const DEADLINE: Duration = Duration::from_secs(120);

/// A setting that applies only to the namespace in which it is written.
const FORWARD: &str = "echo 1 > /proc/sys/net/ipv4/ip_forward";

/// A namespace, held by an idle process.
struct Space(Child);

impl Drop for Space {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

impl Space {
    fn new() -> Self {
        // It reads from a silent pipe, and ends when this program does.
        let mut holder = Command::new("unshare");
        holder.args(["--net", "cat"]).stdin(Stdio::piped());
        let space = Self(holder.stdout(Stdio::null()).spawn().expect("it starts"));
        let own = fs::read_link("/proc/self/ns/net").expect("a namespace");
        wait_until(DEADLINE, "there is another network", || {
            fs::read_link(space.file()).is_ok_and(|other| other != own)
        });
        space
    }

    fn file(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.0.id()).into()
    }

    /// Prepares a command inside the namespace.
    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.file().display()));
        command
    }

    /// Runs a command, given as words separated by spaces, inside the namespace.
    #[track_caller]
    fn run(&self, words: &str) {
        let output = self.enter().args(words.split(' ')).output();
        let output = output.expect("it runs");
        assert!(output.status.success(), "{words}: {output:?}");
    }
}

/// The machines, the first of them 10.77.1.2, and so on.
pub(crate) struct Network {
    machines: Vec<Space>,
    _router: Space,
}

impl Network {
    /// Returns `None`, with a message, where namespaces are not available.
    pub(crate) fn of(machines: usize) -> Option<Self> {
        let can = format!(
            "{FORWARD} && ip link set lo up && ip link add name m1 type veth peer name m2 && \
             nsenter --net=/proc/self/ns/net true"
        );
        let tried = Command::new("unshare")
            .args(["--net", "sh", "-c", &can])
            .output();
        if !tried.is_ok_and(|output| output.status.success()) {
            println!(
                "SKIPPED: no networks can be made here (they take root, iproute2, and util-linux)"
            );
            return None;
        }
        let router = Space::new();
        router.run("ip link set lo up");
        let forward = router.enter().args(["sh", "-c", FORWARD]).status();
        assert!(forward.expect("it runs").success());
        let machines: Vec<Space> = (0..machines).map(|_| Space::new()).collect();
        for (space, n) in machines.iter().zip(1..) {
            router.run(&format!(
                "ip link add name m{n} type veth peer name eth0 netns {}",
                space.0.id()
            ));
            router.run(&format!("ip address add 10.77.{n}.1/24 dev m{n}"));
            router.run(&format!("ip link set m{n} up"));
            space.run(&format!("ip address add {}/24 dev eth0", address(n)));
            space.run("ip link set lo up");
            space.run("ip link set eth0 up");
            space.run(&format!("ip route add default via 10.77.{n}.1"));
        }
        Some(Self {
            machines,
            _router: router,
        })
    }

    /// Prepares a command on a machine, with its monotonic clock `ahead` seconds ahead of this one's.
    pub(crate) fn on(&self, machine: usize, ahead: u32) -> Command {
        let mut command = self.machines[machine - 1].enter();
        if ahead > 0 {
            let ahead = ahead.to_string();
            command.args(["unshare", "--time", "--monotonic", &ahead]);
            command.args(["--boottime", &ahead, "--kill-child", "--"]);
        }
        command
    }
}

/// The address of a machine.
pub(crate) fn address(machine: usize) -> String {
    format!("10.77.{machine}.2")
}

/// Returns true if clocks can be shifted here.
pub(crate) fn has_clocks() -> bool {
    let words = [
        "--time",
        "--monotonic",
        "1",
        "--boottime",
        "1",
        "--kill-child",
        "true",
    ];
    let tried = Command::new("unshare").args(words).output();
    tried.is_ok_and(|output| output.status.success())
}
