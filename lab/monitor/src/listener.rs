//! Finds the process of this machine that listens on a port.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use procfs::net::{TcpNetEntry, TcpState, tcp, tcp6};
use procfs::process::{FDTarget, Process, all_processes};

/// A listening process that the caller may watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Its id; of several that share the socket, the one that started the others.
    pub pid: u32,
    /// Its name as the kernel has it, 15 bytes at most.
    pub name: String,
}

/// Hand connections on to a process that is not below them, such as one in a container.
const RELAYS: [&str; 3] = ["docker-proxy", "rootlessport", "systemd"];

/// The process that listens on a TCP port of this machine, on whatever address. `None` where there is
/// none, where it only relays, or where it is not ours to watch.
#[must_use]
pub fn listener(port: u16) -> Option<Listener> {
    let sockets: Vec<u64> = [tcp(), tcp6()]
        .into_iter()
        .filter_map(Result::ok)
        .flatten()
        .filter(|entry: &TcpNetEntry| {
            entry.state == TcpState::Listen && entry.local_address.port() == port
        })
        .map(|entry| entry.inode)
        .collect();
    if sockets.is_empty() {
        return None;
    }
    let holders: BTreeMap<i32, i32> = all_processes()
        .ok()?
        .filter_map(Result::ok)
        .filter(|process| holds(process, &sockets))
        .filter_map(|process| Some((process.pid, process.stat().ok()?.ppid)))
        .collect();
    let first = holders
        .iter()
        .find(|(_, parent)| !holders.contains_key(parent));
    let pid = *first?.0;
    let name = Process::new(pid).ok()?.stat().ok()?.comm;
    if RELAYS.contains(&name.as_str()) || !is_readable(pid) {
        return None;
    }
    Some(Listener {
        pid: u32::try_from(pid).ok()?,
        name,
    })
}

fn holds(process: &Process, sockets: &[u64]) -> bool {
    let Ok(open) = process.fd() else {
        return false;
    };
    open.filter_map(Result::ok)
        .any(|one| matches!(one.target, FDTarget::Socket(inode) if sockets.contains(&inode)))
}

/// Its counters of storage are for its owner and root only.
fn is_readable(pid: i32) -> bool {
    let io = Path::new("/proc").join(pid.to_string()).join("io");
    File::open(io)
        .and_then(|mut file| io::copy(&mut file, &mut io::sink()))
        .is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_is_found_with_its_process() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may have no IPv6.
            let Ok(socket) = TcpListener::bind(address) else {
                continue;
            };
            let port = socket.local_addr().unwrap().port();
            assert_eq!(listener(port).unwrap().pid, std::process::id());
            drop(socket);
            assert_eq!(listener(port), None);
        }
    }
}
