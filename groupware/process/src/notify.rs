//! Reports the state of the server to the service manager by systemd's protocol: a datagram of `NAME=VALUE` lines to
//! the manager's socket. Without a socket, nothing is sent.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use nix::time::{ClockId, clock_gettime};

/// The connection to the service manager.
#[derive(Debug, Default)]
pub struct Notify(Option<UnixDatagram>);

impl Notify {
    /// Connects to this socket: a path, or a name in the abstract namespace after an `@`.
    pub fn to(socket: Option<&OsStr>) -> Self {
        let open = |name: &OsStr| {
            let address = match name.as_bytes() {
                [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
                _ => SocketAddr::from_pathname(name)?,
            };
            let socket = UnixDatagram::unbound()?;
            socket.connect_addr(&address)?;
            Ok::<_, std::io::Error>(socket)
        };
        let socket = socket.map(open).transpose().unwrap_or_else(|error| {
            tracing::warn!(cause = %error, "the service manager can't be told");
            None
        });
        Self(socket)
    }

    /// Reports that the server accepts connections; `status` contains the addresses.
    pub fn ready(&self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={status}\n"));
    }

    /// Reports that the configuration is being reloaded, until [`Notify::ready`].
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
        let now_us = now.map_or(0, |now| now.tv_sec() * 1_000_000 + now.tv_nsec() / 1000);
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}\n"));
    }

    /// Reports that the server is stopping.
    pub fn stopping(&self) {
        self.say("STOPPING=1\n");
    }

    /// Reports that the server is alive. Without this report in time, the manager restarts it.
    pub fn alive(&self) {
        self.say("WATCHDOG=1\n");
    }

    /// Sends a message. Failures are ignored: a manager that doesn't listen delays nothing.
    fn say(&self, text: &str) {
        if let Some(socket) = &self.0 {
            let _ = socket.send(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_hears_what_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let notify = Notify::to(Some(path.as_os_str()));
        let heard = || {
            let mut bytes = [0; 200];
            let length = manager.recv(&mut bytes).unwrap();
            String::from_utf8(bytes[..length].to_vec()).unwrap()
        };
        notify.ready("here");
        assert_eq!(heard(), "READY=1\nSTATUS=here\n");
        notify.reloading();
        let said = heard();
        let time = said.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        assert!(time.trim().parse::<u64>().unwrap() > 0, "{said}");
        notify.alive();
        assert_eq!(heard(), "WATCHDOG=1\n");
    }

    #[test]
    fn names_without_a_file_are_known() {
        let name = format!("plimsoll-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        Notify::to(Some(OsStr::new(&format!("@{name}")))).stopping();
        let mut bytes = [0; 20];
        let length = manager.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"STOPPING=1\n");
    }

    #[test]
    fn without_a_manager_nothing_is_said() {
        Notify::to(None).ready("here");
        Notify::to(Some(OsStr::new("/no/such/socket"))).ready("here");
    }
}
