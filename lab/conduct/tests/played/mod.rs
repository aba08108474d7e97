//! The small server of the tests: it registers users, fills mailboxes, answers a load, and fails in configured ways.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// The configuration of the server, and its counts.
pub(crate) struct Server {
    pub(crate) mode: String,
    pub(crate) token: String,
    pub(crate) data: PathBuf,
    pub(crate) served: AtomicU64,
}

impl Server {
    /// Answers one request; false when the connection is to close.
    pub(crate) fn one(&self, stream: &TcpStream) -> io::Result<bool> {
        let mut reader = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(false);
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_ascii_lowercase());
        }
        let header = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name));
        let length = header("content-length: ").map_or(0, |n| n.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let (status, answer) = self.answer(&lines, &body);
        let keep = lines[0].ends_with("http/1.1");
        let version = if keep { "HTTP/1.1" } else { "HTTP/1.0" };
        // In one write: two would wait for each other's acknowledgement.
        let length = answer.len();
        let answer = format!("{version} {status}\r\nContent-Length: {length}\r\n\r\n{answer}");
        (&*stream).write_all(answer.as_bytes())?;
        Ok(keep)
    }

    fn answer(&self, lines: &[String], body: &[u8]) -> (&'static str, String) {
        if lines[0].starts_with("get /healthz") {
            return ("200 OK", "fine".to_owned());
        }
        if lines[0].starts_with("post /admin/users") {
            if self.mode == "no-users-ever" {
                park();
            }
            let authorised = lines.contains(&format!("authorization: bearer {}", self.token));
            if !authorised || self.mode == "no-users" {
                return ("507 Insufficient Storage", "no room".to_owned());
            }
            let mut accounts: serde_json::Value = serde_json::from_slice(body).unwrap();
            for user in accounts["users"].as_array_mut().unwrap() {
                user["app_password"] =
                    format!("secret-of-{}", user["name"].as_str().unwrap()).into();
            }
            return ("200 OK", accounts.to_string());
        }
        if lines[0].starts_with("post /admin/mail/fill") {
            fs::write(self.data.join("mail"), "mail").unwrap();
            // Beside the archive: data, its folder, the work, the run.
            let fills = self.data.ancestors().nth(4).unwrap().join("fills");
            let mut fills = fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(fills)
                .unwrap();
            fills.write_all(b"x").unwrap();
            return ("200 OK", "{}".to_owned());
        }
        self.load(&lines[0])
    }

    fn load(&self, line: &str) -> (&'static str, String) {
        if self.mode == "no-answer" {
            park();
        }
        let served = self.served.fetch_add(1, Ordering::Relaxed);
        let most = self.mode.strip_prefix("dies-after-");
        if most.is_some_and(|most| served >= most.parse().unwrap()) && self.is_recorded() {
            println!("too many requests");
            std::process::exit(9);
        }
        let path: Vec<&str> = line.split([' ', '/']).collect();
        let signed_in = path[2] == "make" || path[4] == format!("secret-of-{}", path[3]);
        if signed_in {
            ("200 OK", "{}".to_owned())
        } else {
            ("401 Unauthorized", line.to_owned())
        }
    }

    /// Returns true if the archive has a part of this trial, however late it is written.
    fn is_recorded(&self) -> bool {
        let work = self.data.parent().unwrap();
        let trial = work.file_name().unwrap().to_str().unwrap();
        let run = work.ancestors().nth(2).unwrap();
        let windows = run.join(format!("trials/{trial}.partial/windows.jsonl"));
        fs::metadata(windows).is_ok_and(|of| of.len() > 0)
    }
}

/// Never returns.
pub(crate) fn park() {
    loop {
        std::thread::park();
    }
}
