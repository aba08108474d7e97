//! The cost of admission: the server's CPU for a request, with all shares, and in a build without them. Both servers
//! run at once and serve requests in turn, so that disturbances of the machine affect both: the ratio counts.
//!
//! Runs only by name, with both programs (`bench/admission.sh`).

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::Command;

use plimsoll_tests::server::{Client, ServerProcess, basic, connect_from};
use serde_json::{Value, json};

use crate::common::{Error, median};

/// The client's address: not a trusted one, so that all shares are the user's.
const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9));
/// Turns of each server that count, and those before, which fill the caches.
const TURNS: usize = 60;
const WARM_UP: usize = 5;
/// Requests of each kind in a turn.
const REQUESTS: usize = 300;
/// The maximum ratio of a request's CPU.
const MOST: f64 = 1.03;

/// A request that is measured.
struct Measured {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    body: Value,
}

/// A server, and a user's kept connection to it.
struct Side {
    server: ServerProcess,
    client: Client,
    _folder: tempfile::TempDir,
}

/// Compares two programs; prints the ratios.
///
/// # Errors
/// When a request fails, or the shares cost more than they may.
pub(crate) fn compare(with: &Path, without: &Path) -> Result<(), Error> {
    let mut sides = [Side::start(with)?, Side::start(without)?];
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); asked().len()];
    for turn in 0..WARM_UP + TURNS {
        for (kind, asked) in asked().iter().enumerate() {
            let mut cpu = [0.0; 2];
            // The first in a turn is the last in the next.
            for place in [turn % 2, (turn + 1) % 2] {
                cpu[place] = sides[place].ask(asked)?;
            }
            if turn >= WARM_UP {
                ratios[kind].push(cpu[0] / cpu[1]);
            }
        }
    }
    println!(
        "admission: CPU of the server for a request, with shares : without, {TURNS} turns of {REQUESTS}"
    );
    let mut worst = 0.0_f64;
    for (asked, ratios) in asked().iter().zip(ratios) {
        let (low, high) = middle_half(&ratios);
        let ratio = median(ratios);
        worst = worst.max(ratio);
        println!(
            "  {:<24} {ratio:>6.3} x   (half of the turns: {low:.3} to {high:.3}; target <= {MOST})",
            asked.name
        );
    }
    match worst <= MOST {
        true => Ok(()),
        false => Err(Error::Peer(format!(
            "admission costs {worst:.3} times, more than {MOST}"
        ))),
    }
}

fn asked() -> [Measured; 4] {
    let get = |name, path| Measured {
        name,
        method: "GET",
        path,
        body: Value::Null,
    };
    let event = json!({ "events": [{ "summary": "Lunch",
        "start": { "date": "2026-01-05", "time": "12:00:00", "utc": true },
        "end": { "date": "2026-01-05", "time": "13:00:00", "utc": true } }] });
    let mail = json!({ "to": ["ben@localhost"], "subject": "Lunch",
        "content": [{ "contentType": "text/plain", "data": "At noon?" }] });
    [
        get("calendar, events", "/mail/ada/api/calendar/events?count=10"),
        get("mail, inbox", "/mail/ada/api/mail/inbox"),
        Measured {
            name: "calendar, a new event",
            method: "POST",
            path: "/mail/ada/api/calendar/events",
            body: event,
        },
        Measured {
            name: "mail, sent",
            method: "POST",
            path: "/mail/ada/api/mail/outbox",
            body: mail,
        },
    ]
}

impl Side {
    fn start(program: &Path) -> Result<Self, Error> {
        let folder = tempfile::tempdir()?;
        let arguments = ["--trust-client", "none"];
        let server = ServerProcess::start_by(folder.path(), Command::new(program), &arguments);
        let users =
            json!({ "users": [{ "name": "ada" }, { "name": "ben" }], "app_passwords": true });
        let mut admin = Client::admin(server.address())?;
        let made = admin.request("POST", "/admin/users", &users)?;
        let password = made.body["users"][0]["app_password"].as_str();
        let password = password.ok_or_else(|| Error::Peer(format!("no users: {made:?}")))?;
        let stream = connect_from(SOURCE, server.address())?;
        let client = Client::over(stream, basic("ada", password))?;
        Ok(Self {
            server,
            client,
            _folder: folder,
        })
    }

    /// Sends the requests of a turn; returns the server's CPU time for all of them, in nanoseconds.
    fn ask(&mut self, asked: &Measured) -> Result<f64, Error> {
        let before = cpu_ns(self.server.pid())?;
        for _ in 0..REQUESTS {
            let answer = self.client.request(asked.method, asked.path, &asked.body)?;
            if !(200..300).contains(&answer.status) {
                return Err(Error::Peer(format!("{}: {answer:?}", asked.name)));
            }
        }
        Ok((cpu_ns(self.server.pid())? - before) as f64)
    }
}

/// Returns the CPU time of all threads of a process so far (see proc(5), schedstat).
fn cpu_ns(pid: u32) -> Result<u64, Error> {
    let mut sum = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat"))?;
        let ns = text
            .split_ascii_whitespace()
            .next()
            .and_then(|ns| ns.parse::<u64>().ok());
        sum += ns.ok_or_else(|| Error::Peer("the kernel doesn't tell CPU by thread".to_owned()))?;
    }
    Ok(sum)
}

/// Returns the quartiles of the values.
fn middle_half(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: usize| sorted[(sorted.len() - 1) * share / 4];
    (at(1), at(3))
}
