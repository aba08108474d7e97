//! Two servers over a database that becomes unavailable in all the ways that databases do: it stops, dies, is cut off,
//! or the link to it stalls. Writers meanwhile get a retry answer, nothing is acknowledged that isn't stored, and when
//! the database is back, each mail is there once or not at all, at sender and recipient alike.

use std::collections::BTreeMap;
use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;
use plimsoll_tests::postgres::Postgres;
use plimsoll_tests::relay::{Direction, Relay, Way, pause};
use plimsoll_tests::server::{Client, ServerProcess};
use plimsoll_tests::{program, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than any step takes.
const LIMIT: Duration = Duration::from_secs(180);
/// Mails of each writer that are accepted before the trouble, and refused before its end.
const FEW: usize = 2;
/// The client's pause after a retry answer. It only affects the cost of this test.
const BREATH: Duration = Duration::from_millis(20);
const USERS: [&str; 2] = ["ada", "bob"];

/// The trouble of the database, or of the link to it.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    /// All its processes are stopped: connections are accepted, without answers.
    Stopped,
    Killed,
    /// Connections are closed, new ones too.
    Cut,
    /// Nothing passes, either way, without an error.
    Stalled,
    /// Requests arrive, answers don't: commits are stored whose answer is lost.
    Unheard,
    /// Each connection is cut in the middle of the next answer.
    Halved,
}

const TROUBLES: [Trouble; 6] = [
    Trouble::Stopped,
    Trouble::Killed,
    Trouble::Cut,
    Trouble::Stalled,
    Trouble::Unheard,
    Trouble::Halved,
];

/// A server, and the numbers of each user's mails that it has accepted and refused.
struct Front {
    server: ServerProcess,
    stored: [AtomicUsize; 2],
    refused: [AtomicUsize; 2],
}

impl Front {
    fn is_ready(&self, expected: u16) -> bool {
        let answer = Client::admin(self.server.address())
            .and_then(|mut client| client.send("GET", "/readyz", &[], b""));
        answer.is_ok_and(|answer| answer.status == expected)
    }

    /// Waits until it has accepted a few more mails of each user.
    fn takes(&self, when: &str) {
        more(&self.stored, when);
    }

    /// Waits until it has refused a few more mails of each user.
    fn refuses(&self, when: &str) {
        more(&self.refused, when);
    }
}

fn more(of: &[AtomicUsize; 2], when: &str) {
    let before = counts(of);
    wait_until(LIMIT, when, || {
        let mut grown = counts(of).into_iter().zip(before);
        grown.all(|(now, before)| now >= before + FEW)
    });
}

fn counts(of: &[AtomicUsize; 2]) -> [usize; 2] {
    of.each_ref().map(|count| count.load(Relaxed))
}

struct Stage {
    fronts: [Front; 2],
    relay: Relay,
    database: Postgres,
    passwords: [String; 2],
    /// By subject, the sender, and whether it was acknowledged.
    sent: Mutex<BTreeMap<String, (usize, bool)>>,
    _folder: TempDir,
}

impl Stage {
    /// Returns `None` without PostgreSQL.
    fn start() -> Option<Self> {
        let database = Postgres::start()?;
        let relay = Relay::start(([127, 0, 0, 1], database.port()).into()).unwrap();
        let port = format!(":{}/", database.port());
        let through = format!(":{}/", relay.address().port());
        let store = database.address().replacen(&port, &through, 1);
        let folder = tempfile::tempdir().unwrap();
        let fronts = ["one", "other"].map(|name| {
            let beside = folder.path().join(name);
            std::fs::create_dir(&beside).unwrap();
            let (data, command) = (folder.path().join("data"), Command::new(program()));
            Front {
                server: ServerProcess::start_on(&data, &beside, command, &["--store", &store]),
                stored: Default::default(),
                refused: Default::default(),
            }
        });
        let users = USERS.map(|name| json!({ "name": name }));
        let body = json!({ "users": users, "app_passwords": true });
        let mut admin = Client::admin(fronts[0].server.address()).unwrap();
        let made = admin.request("POST", "/admin/users", &body).unwrap();
        let password = |user: usize| made.body["users"][user]["app_password"].as_str();
        let passwords = [0, 1].map(|user| password(user).expect("it is made").to_owned());
        Some(Self {
            fronts,
            relay,
            database,
            passwords,
            sent: Mutex::default(),
            _folder: folder,
        })
    }

    fn begin(&self, trouble: Trouble) {
        let back = |way| self.relay.set(Direction::Back, way);
        match trouble {
            Trouble::Stopped => self.database.signal(Signal::SIGSTOP),
            Trouble::Killed => self.database.kill(),
            Trouble::Cut => self.relay.close(),
            Trouble::Stalled => {
                self.relay.set(Direction::There, Way::Stalled);
                back(Way::Stalled);
            }
            Trouble::Unheard => back(Way::Stalled),
            Trouble::Halved => back(Way::Halved),
        }
    }

    fn end(&self, trouble: Trouble) {
        match trouble {
            Trouble::Stopped => self.database.signal(Signal::SIGCONT),
            Trouble::Killed => self.database.restart(),
            Trouble::Cut | Trouble::Stalled | Trouble::Unheard | Trouble::Halved => {
                self.relay.heal();
            }
        }
    }

    fn client(&self, front: usize, user: usize) -> io::Result<Client> {
        let at = self.fronts[front].server.address();
        Client::user(at, USERS[user], &self.passwords[user])
    }

    /// Sends mails from one user to the other at this server, one after the other, each once, whatever the answer.
    fn write(&self, front: usize, user: usize, ends: &AtomicBool) {
        let path = format!("/mail/{}/api/mail/outbox", USERS[user]);
        let json = ("content-type", "application/json");
        let (mut client, it) = (self.client(front, user).unwrap(), &self.fronts[front]);
        for number in 0.. {
            if ends.load(Relaxed) {
                return;
            }
            let subject = format!("{front}-{user}-{number}");
            self.note(&subject, (user, false));
            let body = json!({
                "subject": subject, "to": [USERS[1 - user]],
                "content": [{ "contentType": "text/plain", "data": "Hello." }],
            });
            let answer = client
                .send("POST", &path, &[json], body.to_string().as_bytes())
                .expect("the server answers");
            match answer.status {
                201 => {
                    self.note(&subject, (user, true));
                    it.stored[user].fetch_add(1, Relaxed);
                }
                503 if answer.header("retry-after").is_some() => {
                    it.refused[user].fetch_add(1, Relaxed);
                    pause(BREATH);
                }
                _ => panic!("{subject}: {answer:?}"),
            }
        }
    }

    fn note(&self, subject: &str, what: (usize, bool)) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.insert(subject.to_owned(), what);
    }

    /// Runs one trouble from beginning to end, while all users write.
    fn go_through(&self, trouble: Trouble) {
        for front in &self.fronts {
            front.takes(&format!("mails before: {trouble:?}"));
        }
        self.begin(trouble);
        for front in &self.fronts {
            wait_until(LIMIT, &format!("/readyz to fail: {trouble:?}"), || {
                front.is_ready(503)
            });
            front.refuses(&format!("refusals: {trouble:?}"));
        }
        // Each writer has been refused since, so no earlier request is on its way; no mail can be known to be stored.
        let stored = || self.fronts.each_ref().map(|it| counts(&it.stored));
        let before = stored();
        for front in &self.fronts {
            front.refuses(&format!("more refusals: {trouble:?}"));
            assert!(front.is_ready(503), "{trouble:?}");
        }
        assert_eq!(stored(), before, "{trouble:?}");
        self.end(trouble);
        for front in &self.fronts {
            wait_until(LIMIT, &format!("/readyz to hold: {trouble:?}"), || {
                front.is_ready(200)
            });
            front.takes(&format!("mails after: {trouble:?}"));
        }
    }

    /// The number of copies of each subject in a folder of a user, as this server shows it.
    fn folder(&self, front: usize, user: usize, folder: &str) -> BTreeMap<String, usize> {
        let mut client = self.client(front, user).unwrap();
        let base = format!("/mail/{}/api/mail/folders/{folder}", USERS[user]);
        let (mut seen, mut found) = (BTreeMap::new(), 0);
        loop {
            let path = format!("{base}/messages?count=1000&start={found}");
            let answer = client.request("GET", &path, &Value::Null).unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
            let lines = answer.body.as_array().map_or(&[][..], Vec::as_slice);
            if lines.is_empty() {
                break;
            }
            found += lines.len();
            for line in lines {
                let subject = line["subject"].as_str().expect("each has one");
                *seen.entry(subject.to_owned()).or_default() += 1;
            }
        }
        let counted = client.request("GET", &base, &Value::Null).unwrap();
        assert_eq!(counted.body["messages"], found, "{base}");
        seen
    }

    /// Compares a server's mails with the answers for each; returns how many are there that were refused.
    fn verify(&self, front: usize) -> usize {
        let shown = |user, folder: &str| self.folder(front, user, folder);
        let inboxes = [0, 1].map(|user| shown(user, "inbox"));
        let outboxes = [0, 1].map(|user| shown(user, "sent"));
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unsaid = 0;
        for (subject, (from, is_stored)) in &*sent {
            let times = |of: &BTreeMap<String, usize>| of.get(subject).copied().unwrap_or(0);
            match (times(&outboxes[*from]), times(&inboxes[1 - from])) {
                (1, 1) => unsaid += usize::from(!is_stored),
                (0, 0) if !is_stored => {}
                (there, here) => panic!(
                    "{subject}, acknowledged: {is_stored}, was sent {there} times and received {here} times"
                ),
            }
        }
        let folders = inboxes.iter().chain(&outboxes);
        let unknown = folders
            .flat_map(BTreeMap::keys)
            .find(|it| !sent.contains_key(*it));
        assert_eq!(unknown, None, "nobody sent it");
        unsaid
    }
}

/// Ends the writers on drop.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn while_the_database_is_away_writes_are_refused_and_nothing_is_lost_or_there_twice() {
    let Some(stage) = Stage::start() else { return };
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Ends(&ends);
        for (front, user) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let (stage, ends) = (&stage, &ends);
            scope.spawn(move || stage.write(front, user, ends));
        }
        for trouble in TROUBLES {
            stage.go_through(trouble);
        }
    });
    let unsaid = [0, 1].map(|front| stage.verify(front));
    assert_eq!(unsaid[0], unsaid[1], "both show the same");
    let total = |of: fn(&Front) -> &[AtomicUsize; 2]| -> usize {
        stage
            .fronts
            .iter()
            .flat_map(|front| counts(of(front)))
            .sum()
    };
    let (stored, refused) = (total(|it| &it.stored), total(|it| &it.refused));
    println!(
        "{stored} mails acknowledged, {refused} refused, of which {} are there",
        unsaid[0]
    );
}
