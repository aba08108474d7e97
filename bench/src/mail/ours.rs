//! Our server as a child process, and its users over HTTP.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Answer, Connection};
use super::sides::{LISTED, MESSAGE_BYTES, MESSAGES, Server, User};
use crate::clock::now;
use crate::common::Error;

const TOKEN: &str = "bench-admin-token-0123456789";
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A running server, ended on drop.
pub(crate) struct Ours {
    child: Child,
    address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Ours {
    /// Starts the program beside this one, on a real disk.
    pub(crate) fn start() -> Result<Self, Error> {
        let folder = tempfile::tempdir_in("target")?;
        let port_file = folder.path().join("port");
        let program = std::env::current_exe()?.with_file_name("plimsoll");
        let child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(["--quota", "none", "--mail-quota", "none", "--data"])
            .arg(folder.path().join("data"))
            .arg("--port-file")
            .arg(&port_file)
            .args(["--parent-pid", &std::process::id().to_string()])
            .env("PLIMSOLL_ADMIN_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut server = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            _folder: folder,
        };
        server.address = wait_for(&port_file)?;
        Ok(server)
    }

    fn admin(&self, path: &str, body: &Value) -> Result<Value, Error> {
        let head = format!("POST {path} HTTP/1.1\r\nauthorization: Bearer {TOKEN}\r\n");
        let mut connection = Connection::open(self.address)?;
        let answer = expect(connection.http(&head, &body.to_string())?, 200)?;
        serde_json::from_slice(&answer).map_err(|error| Error::Peer(error.to_string()))
    }

    /// Creates users with this many messages of one size.
    pub(crate) fn filled(
        &self,
        names: &[String],
        messages: u32,
        text_bytes: usize,
    ) -> Result<Vec<Box<dyn User>>, Error> {
        let users: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
        let made = self.admin(
            "/admin/users",
            &json!({ "users": users, "app_passwords": true }),
        )?;
        let profile = json!([{ "text_bytes": text_bytes, "permille": 1000 }]);
        let fill = json!({ "users": names, "messages": messages, "profile": profile });
        self.admin("/admin/mail/fill", &fill)?;
        let users = names.iter().enumerate().map(|(at, name)| {
            let password = made["users"][at]["app_password"]
                .as_str()
                .unwrap_or_default();
            OurUser::open(self.address, name, password)
        });
        users.collect()
    }
}

impl Server for Ours {
    fn users(&self, names: &[String]) -> Result<Vec<Box<dyn User>>, Error> {
        self.filled(names, MESSAGES, MESSAGE_BYTES)
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for(port_file: &Path) -> Result<SocketAddr, Error> {
    let begin = now();
    while begin.elapsed() < READY_WITHIN {
        if let Ok(text) = std::fs::read_to_string(port_file)
            && let Ok(address) = text.trim().parse()
        {
            return Ok(address);
        }
        std::thread::yield_now();
    }
    Err(Error::Peer("plimsoll did not start within 30 s".to_owned()))
}

fn expect(answer: Answer, status: u16) -> Result<Vec<u8>, Error> {
    match answer.status == status {
        true => Ok(answer.body),
        false => Err(Error::Peer(format!(
            "status {}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        ))),
    }
}

struct OurUser {
    connection: Connection,
    name: String,
    /// The authorization header of every request.
    authorization: String,
}

impl OurUser {
    fn open(address: SocketAddr, name: &str, password: &str) -> Result<Box<dyn User>, Error> {
        let connection = Connection::open(address)?;
        let secret = base64(&format!("{name}:{password}"));
        Ok(Box::new(Self {
            connection,
            name: name.to_owned(),
            authorization: format!("authorization: Basic {secret}\r\n"),
        }))
    }

    fn call(
        &mut self,
        method: &str,
        rest: &str,
        body: &str,
        status: u16,
    ) -> Result<Vec<u8>, Error> {
        let (name, authorization) = (&self.name, &self.authorization);
        let kind = "content-type: application/json\r\n";
        let head =
            format!("{method} /mail/{name}/api/mail{rest} HTTP/1.1\r\n{authorization}{kind}");
        expect(self.connection.http(&head, body)?, status)
    }
}

impl User for OurUser {
    fn list(&mut self) -> Result<(), Error> {
        self.call("GET", &format!("/inbox?count={LISTED}"), "", 200)
            .map(drop)
    }

    fn send(&mut self, message: &str) -> Result<(), Error> {
        let body = json!({
            "subject": "Bench", "to": [self.name],
            "content": [{ "contentType": "text/plain", "data": message }],
        });
        self.call("POST", "/outbox", &body.to_string(), 201)
            .map(drop)
    }

    fn all(&mut self) -> Result<Vec<String>, Error> {
        let mut found = Vec::new();
        loop {
            let rest = format!("/inbox?count=1000&start={}", found.len());
            let page: Vec<Value> = serde_json::from_slice(&self.call("GET", &rest, "", 200)?)
                .map_err(|error| Error::Peer(error.to_string()))?;
            if page.is_empty() {
                return Ok(found);
            }
            let names = page
                .iter()
                .filter_map(|line| line["href"].as_str()?.rsplit('/').next());
            found.extend(names.map(str::to_owned));
        }
    }

    fn delete(&mut self, name: &str) -> Result<(), Error> {
        let rest = format!("/messages/{name}?permanently=true");
        self.call("DELETE", &rest, "", 200).map(drop)
    }
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}
