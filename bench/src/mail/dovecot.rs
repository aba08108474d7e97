//! A scratch Dovecot from Debian, and its users over IMAP and LMTP. It is started by root, and stores mail as the user
//! `mail`.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::client::Connection;
use super::sides::{LISTED, MESSAGES, Server, User, message};
use crate::clock::now;
use crate::common::Error;

const READY_WITHIN: Duration = Duration::from_secs(30);

/// A running Dovecot, ended on drop.
pub(crate) struct Dovecot {
    child: Child,
    imap: SocketAddr,
    lmtp: SocketAddr,
    version: String,
    _folder: tempfile::TempDir,
}

impl Dovecot {
    pub(crate) fn start() -> Result<Self, Error> {
        let version = Command::new("dovecot").arg("--version").output()?.stdout;
        let version = String::from_utf8_lossy(&version);
        let version = version.split(' ').next().unwrap_or_default().to_owned();
        // Short, since socket paths have a limit. On the same disk as ours.
        let folder = tempfile::Builder::new()
            .prefix("dc")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in(fs::canonicalize("target")?)?;
        let home = folder.path().join("home");
        fs::create_dir(&home)?;
        let owned = Command::new("chown").arg("mail:mail").arg(&home).status()?;
        if !owned.success() {
            return Err(Error::Peer(
                "dovecot's mail can't be given to the user mail".to_owned(),
            ));
        }
        let (imap, lmtp) = (free_port()?, free_port()?);
        let path = folder.path().join("dovecot.conf");
        fs::write(
            &path,
            config(&folder.path().display().to_string(), imap, lmtp),
        )?;
        let child = Command::new("dovecot")
            .arg("-F")
            .arg("-c")
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let dovecot = Self {
            child,
            imap,
            lmtp,
            version,
            _folder: folder,
        };
        dovecot.wait_ready()?;
        Ok(dovecot)
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    fn wait_ready(&self) -> Result<(), Error> {
        let begin = now();
        while begin.elapsed() < READY_WITHIN {
            let both = Connection::open(self.imap).and(Connection::open(self.lmtp));
            if both.is_ok() {
                return Ok(());
            }
            std::thread::yield_now();
        }
        Err(Error::Peer(
            "dovecot did not start within 30 s; is this root?".to_owned(),
        ))
    }
}

fn free_port() -> Result<SocketAddr, Error> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// The shipped settings where speed is concerned, except for processes that are started beforehand. Its manual says of
/// `mail_fsync`'s default, `optimized`, that no important data is lost; strace shows that it syncs the message, the
/// index's log, and the folder before LMTP answers, and the log before EXPUNGE does. `always` syncs more often, for
/// NFS. mdbox is slower here than sdbox at everything.
fn config(root: &str, imap: SocketAddr, lmtp: SocketAddr) -> String {
    let (imap, lmtp) = (imap.port(), lmtp.port());
    format!(
        "base_dir = {root}/run\nstate_dir = {root}/state\nlog_path = {root}/log\n\
         protocols = imap lmtp\nssl = no\ndisable_plaintext_auth = no\n\
         first_valid_uid = 1\nmail_uid = mail\nmail_gid = mail\n\
         mail_location = sdbox:~/mail\nmail_fsync = optimized\nmail_max_userip_connections = 1000\n\
         postmaster_address = postmaster@localhost\n\
         passdb {{\n driver = static\n args = password=pw\n}}\n\
         userdb {{\n driver = static\n args = uid=mail gid=mail home={root}/home/%u allow_all_users=yes\n}}\n\
         service imap-login {{\n service_count = 0\n process_min_avail = 2\n\
         inet_listener imap {{\n address = 127.0.0.1\n port = {imap}\n }}\n\
         inet_listener imaps {{\n port = 0\n }}\n}}\n\
         service imap {{\n process_min_avail = 16\n}}\n\
         service lmtp {{\n process_min_avail = 16\n\
         inet_listener lmtp {{\n address = 127.0.0.1\n port = {lmtp}\n }}\n}}\n"
    )
}

impl Server for Dovecot {
    fn users(&self, names: &[String]) -> Result<Vec<Box<dyn User>>, Error> {
        std::thread::scope(|scope| {
            let users: Vec<_> = names
                .iter()
                .map(|name| scope.spawn(move || self.user(name)))
                .collect();
            let users = users
                .into_iter()
                .map(|user| user.join().map_err(|_| Error::Thread)?);
            users.collect()
        })
    }
}

impl Dovecot {
    fn user(&self, name: &str) -> Result<Box<dyn User>, Error> {
        let mut user = DovecotUser::open(self, name)?;
        let text = message();
        for _ in 0..MESSAGES {
            user.send(&text)?;
        }
        // The inbox is opened here, with its mails at that time.
        user.command("SELECT INBOX")?;
        Ok(Box::new(user))
    }
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        // It may have ended by itself.
        let _ = kill(pid, Signal::SIGTERM);
        let _ = self.child.wait();
    }
}

struct DovecotUser {
    name: String,
    imap: Connection,
    lmtp: Connection,
}

impl DovecotUser {
    fn open(server: &Dovecot, name: &str) -> Result<Self, Error> {
        let mut user = Self {
            name: name.to_owned(),
            imap: Connection::open(server.imap)?,
            lmtp: Connection::open(server.lmtp)?,
        };
        user.lmtp.smtp('2')?;
        user.lmtp.write("LHLO bench\r\n")?;
        user.lmtp.smtp('2')?;
        user.command(&format!("LOGIN {name} pw"))?;
        Ok(user)
    }

    fn command(&mut self, command: &str) -> Result<(), Error> {
        self.imap.write(&format!("a {command}\r\n"))?;
        self.imap.imap("a", |_| {})
    }
}

impl User for DovecotUser {
    fn list(&mut self) -> Result<(), Error> {
        let from = MESSAGES - LISTED + 1;
        self.imap.write(&format!(
            "a FETCH {from}:{MESSAGES} (UID FLAGS RFC822.SIZE BODY.PEEK[HEADER.FIELDS (DATE FROM TO SUBJECT)])\r\n"
        ))?;
        let mut lines = 0;
        self.imap
            .imap("a", |line| lines += u32::from(line.contains(" FETCH (")))?;
        match lines {
            LISTED => Ok(()),
            _ => Err(Error::Peer(format!("dovecot listed {lines} messages"))),
        }
    }

    fn send(&mut self, message: &str) -> Result<(), Error> {
        let name = &self.name;
        // One round trip for the envelope, one for the text.
        self.lmtp.write(&format!(
            "MAIL FROM:<{name}@localhost>\r\nRCPT TO:<{name}>\r\nDATA\r\n"
        ))?;
        for digit in ['2', '2', '3'] {
            self.lmtp.smtp(digit)?;
        }
        self.lmtp.write(&format!(
            "From: {name}@localhost\r\nTo: {name}@localhost\r\nSubject: Bench\r\n\
             Date: Mon, 05 Jan 2026 09:00:00 +0000\r\nMessage-ID: <bench@localhost>\r\n\r\n{message}.\r\n"
        ))?;
        self.lmtp.smtp('2')
    }

    fn all(&mut self) -> Result<Vec<String>, Error> {
        self.command("NOOP")?;
        self.imap.write("a UID SEARCH ALL\r\n")?;
        let mut found = Vec::new();
        self.imap.imap("a", |line| {
            if let Some(uids) = line.strip_prefix("* SEARCH ") {
                found.extend(uids.split_ascii_whitespace().map(str::to_owned));
            }
        })?;
        Ok(found)
    }

    fn delete(&mut self, name: &str) -> Result<(), Error> {
        // Both at once: the second need not wait for the first's answer.
        self.imap.write(&format!(
            "a UID STORE {name} +FLAGS.SILENT (\\Deleted)\r\nb UID EXPUNGE {name}\r\n"
        ))?;
        self.imap.imap("a", |_| {})?;
        self.imap.imap("b", |_| {})
    }
}
