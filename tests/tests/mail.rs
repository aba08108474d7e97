//! Acknowledged mail is there, once, whatever happens to the server: killed under load again and again, or its disk
//! full.
//!
//! A killed process leaves its written pages with the system, so this tests what the server writes and in which order,
//! not that it reaches the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::server::{Client, ServerProcess};
use plimsoll_tests::tmpfs::Tmpfs;
use plimsoll_tests::wait_until;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

const KILLS: u32 = 25;
const USERS: usize = 5;
const WRITERS: usize = 6;
/// The maximum time that the server runs before it is killed.
const MAX_LIFE_MS: u32 = 200;
const LIMIT: Duration = Duration::from_secs(120);

fn name(user: usize) -> String {
    format!("user{user}")
}

/// A server that also receives mail over SMTP.
struct World {
    server: ServerProcess,
    smtp: SocketAddr,
    passwords: Vec<String>,
}

impl World {
    fn start(folder: &Path, passwords: Vec<String>) -> Self {
        let server = ServerProcess::start_with(folder, &["--smtp-listen", "127.0.0.1:0"]);
        let mut world = Self {
            smtp: server.smtp(),
            server,
            passwords,
        };
        if world.passwords.is_empty() {
            world.register();
        }
        world
    }

    fn register(&mut self) {
        let users: Vec<_> = (0..USERS)
            .map(|user| json!({ "name": name(user) }))
            .collect();
        let body = json!({ "users": users, "app_passwords": true });
        let mut admin = Client::admin(self.server.address()).unwrap();
        let answer = admin.request("POST", "/admin/users", &body).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        let users = answer.body["users"].as_array().unwrap();
        let password = |user: &Value| user["app_password"].as_str().unwrap().to_owned();
        self.passwords = users.iter().map(password).collect();
    }

    fn client(&self, user: usize) -> io::Result<Client> {
        Client::user(self.server.address(), &name(user), &self.passwords[user])
    }
}

/// The folders in which a message must be, or may be.
#[derive(Debug, Clone)]
struct Message {
    sender: Option<usize>,
    to: BTreeSet<usize>,
    /// Whether its delivery was acknowledged.
    sent: bool,
    /// If the sender's copy was to be deleted: whether that was acknowledged.
    deleted: Option<bool>,
}

type Known = BTreeMap<String, Message>;

/// One writer until the server dies.
struct Writer<'a> {
    world: &'a World,
    random: Xoshiro256PlusPlus,
    user: usize,
    label: String,
    known: Known,
}

impl Writer<'_> {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.next_u64() % bound as u64).unwrap()
    }

    fn work(mut self, over_smtp: bool, (sent, killed): (&AtomicU32, &AtomicBool)) -> Known {
        for number in 0.. {
            let subject = format!("{}-{number}", self.label);
            let done = match over_smtp {
                true => self.receive(&subject),
                false => self.send(&subject),
            };
            if let Err(error) = done {
                assert!(killed.load(Relaxed), "failed before the kill: {error}");
                break;
            }
            sent.fetch_add(1, Relaxed);
        }
        self.known
    }

    fn recipients(&mut self) -> BTreeSet<usize> {
        let count = 1 + self.below(3);
        (0..count).map(|_| self.below(USERS)).collect()
    }

    fn send(&mut self, subject: &str) -> io::Result<()> {
        let to = self.recipients();
        let names: Vec<_> = to.iter().map(|user| name(*user)).collect();
        // Some are large enough to be shared.
        let bytes = if self.below(4) == 0 { 70_000 } else { 1000 };
        let text = "x ".repeat(bytes / 2);
        let body = json!({
            "subject": subject, "to": names,
            "content": [{ "contentType": "text/plain", "data": text }],
        });
        self.note(subject, Some(self.user), to.clone());
        let mut client = self.world.client(self.user)?;
        let path = format!("/mail/{}/api/mail/outbox", name(self.user));
        let answer = client.request("POST", &path, &body)?;
        assert_eq!(answer.status, 201, "{answer:?}");
        self.known.get_mut(subject).unwrap().sent = true;
        if self.below(3) == 0 {
            let path = answer.location.unwrap() + "?permanently=true";
            self.known.get_mut(subject).unwrap().deleted = Some(false);
            let answer = client.request("DELETE", &path, &Value::Null)?;
            assert_eq!(answer.status, 200, "{answer:?}");
            self.known.get_mut(subject).unwrap().deleted = Some(true);
        }
        Ok(())
    }

    fn receive(&mut self, subject: &str) -> io::Result<()> {
        let to = self.recipients();
        self.note(subject, None, to.clone());
        let mut smtp = Smtp::open(self.world.smtp)?;
        smtp.say("EHLO test", '2')?;
        smtp.say("MAIL FROM:<x@example.com>", '2')?;
        for user in to {
            smtp.say(&format!("RCPT TO:<{}@localhost>", name(user)), '2')?;
        }
        smtp.say("DATA", '3')?;
        smtp.say(&format!("Subject: {subject}\r\n\r\nHello.\r\n."), '2')?;
        self.known.get_mut(subject).unwrap().sent = true;
        Ok(())
    }

    fn note(&mut self, subject: &str, sender: Option<usize>, to: BTreeSet<usize>) {
        let message = Message {
            sender,
            to,
            sent: false,
            deleted: None,
        };
        self.known.insert(subject.to_owned(), message);
    }
}

struct Smtp(BufReader<TcpStream>);

impl Smtp {
    fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let mut smtp = Self(BufReader::new(stream));
        smtp.reply()?;
        Ok(smtp)
    }

    fn reply(&mut self) -> io::Result<String> {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line)?;
            if !line.ends_with('\n') {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok(line);
            }
        }
    }

    fn say(&mut self, line: &str, digit: char) -> io::Result<String> {
        self.0
            .get_mut()
            .write_all(format!("{line}\r\n").as_bytes())?;
        let reply = self.reply()?;
        assert!(reply.starts_with(digit), "{line}: {reply}");
        Ok(reply)
    }
}

/// The subjects in a folder with their numbers, checked against the folder's counts.
fn subjects(client: &mut Client, user: usize, folder: &str) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    let mut seen = 0;
    let base = format!("/mail/{}/api/mail/folders/{folder}", name(user));
    loop {
        let path = format!("{base}/messages?count=1000&start={seen}");
        let answer = client.request("GET", &path, &Value::Null).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        let list = answer.body.as_array().unwrap();
        if list.is_empty() {
            break;
        }
        for line in list {
            *found
                .entry(line["subject"].as_str().unwrap().to_owned())
                .or_default() += 1;
        }
        seen += list.len();
    }
    let answer = client.request("GET", &base, &Value::Null).unwrap();
    assert_eq!(
        answer.body["messages"], seen,
        "{folder} of {user} is miscounted"
    );
    found
}

/// Compares the server's mails with the expected ones.
fn verify(world: &World, known: &Known) -> u32 {
    let mut clients: Vec<_> = (0..USERS).map(|user| world.client(user).unwrap()).collect();
    let mut all = |folder| -> Vec<_> {
        clients
            .iter_mut()
            .enumerate()
            .map(|(user, client)| subjects(client, user, folder))
            .collect()
    };
    let (inboxes, sent) = (all("inbox"), all("sent"));
    let mut happened = 0;
    for (subject, message) in known {
        let times = |boxes: &[BTreeMap<String, u32>], user: usize| {
            boxes[user].get(subject).copied().unwrap_or_default()
        };
        let arrived: BTreeSet<_> = (0..USERS)
            .filter(|user| times(&inboxes, *user) > 0)
            .collect();
        let twice = (0..USERS).any(|user| times(&inboxes, user) > 1 || times(&sent, user) > 1);
        assert!(!twice, "{subject} is there twice");
        let is_there = !arrived.is_empty();
        assert!(is_there || !message.sent, "{subject} is lost: {message:?}");
        assert!(
            !is_there || arrived == message.to,
            "{subject} is there in part: {message:?}"
        );
        happened += u32::from(is_there && !message.sent);
        let Some(sender) = message.sender else {
            continue;
        };
        let copies = times(&sent, sender);
        match message.deleted {
            None => assert_eq!(copies, u32::from(is_there), "{subject}: {message:?}"),
            Some(true) => assert_eq!(copies, 0, "{subject} was deleted"),
            Some(false) => {}
        }
    }
    happened
}

fn live(world: &World, round: u32, life: Duration) -> Known {
    let (sent, killed) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let seed = u64::from(round) * 100 + number as u64;
                let writer = Writer {
                    world,
                    random: Xoshiro256PlusPlus::seed_from_u64(seed),
                    user: number % USERS,
                    label: format!("m{round}-{number}"),
                    known: Known::new(),
                };
                let seen = (&sent, &killed);
                scope.spawn(move || writer.work(number % 3 == 0, seen))
            })
            .collect();
        // Never sent to: this is a wait of the drawn length.
        let (_never, timer) = sync_channel::<()>(1);
        let _ = timer.recv_timeout(life);
        // On a slow machine, a life with hardly any mail would test nothing.
        wait_until(LIMIT, "mails", || sent.load(Relaxed) >= 2);
        killed.store(true, Relaxed);
        let pid = Pid::from_raw(world.server.pid().cast_signed());
        kill(pid, Signal::SIGKILL).unwrap();
        writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap())
            .collect()
    })
}

#[test]
fn acknowledged_mail_survives_kills_and_comes_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::start(folder.path(), Vec::new());
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let (mut known, mut happened) = (Known::new(), 0);
    for round in 0..KILLS {
        let life = Duration::from_millis(u64::from(20 + random.next_u32() % MAX_LIFE_MS));
        known.extend(live(&world, round, life));
        let passwords = world.passwords.clone();
        drop(world);
        world = World::start(folder.path(), passwords);
        happened += verify(&world, &known);
        // Changes that turned out to have happened must stay.
        known.retain(|_, message| message.sent);
    }
    println!(
        "{KILLS} kills, {} messages, {happened} delivered without an answer",
        known.len()
    );
    assert!(
        known.len() > KILLS as usize,
        "the server was hardly written to"
    );
}

#[test]
fn a_full_disk_refuses_mail_for_now_and_loses_nothing() {
    let Some(disk) = Tmpfs::mount("16m") else {
        println!("SKIPPED: mounting a tmpfs is not permitted here");
        return;
    };
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![0; 6 << 20]).unwrap();
    let world = World::start(disk.path(), Vec::new());
    let mut client = world.client(0).unwrap();
    let mut send = |number: u32| {
        let body = json!({
            "subject": format!("n{number}"), "to": ["user1"],
            "content": [{ "contentType": "text/plain", "data": "x ".repeat(25_000) }],
        });
        let answer = client
            .request("POST", "/mail/user0/api/mail/outbox", &body)
            .unwrap();
        answer.status
    };
    let (mut taken, mut refused) = (Vec::new(), 0);
    for number in 0..600 {
        match send(number) {
            201 => taken.push(format!("n{number}")),
            507 | 503 => refused += 1,
            status => panic!("status {status}"),
        }
        if refused == 3 {
            break;
        }
    }
    assert!(
        taken.len() > 10 && refused == 3,
        "{} taken, {refused} refused",
        taken.len()
    );
    // Over SMTP, probably larger than the room that is left.
    let text = format!("Subject: late\r\n\r\n{}.", "x y z\r\n".repeat(100_000));
    let mut smtp = Smtp::open(world.smtp).unwrap();
    let mut deliver = |digit| {
        smtp.say("EHLO test", '2').unwrap();
        smtp.say("MAIL FROM:<x@example.com>", '2').unwrap();
        smtp.say("RCPT TO:<user1@localhost>", '2').unwrap();
        smtp.say("DATA", '3').unwrap();
        smtp.say(&text, digit).unwrap()
    };
    let reply = deliver('4');
    assert!(reply.starts_with("452 4.3.1"), "{reply}");
    std::fs::remove_file(&ballast).unwrap();
    wait_until(LIMIT, "the room to be seen", || send(1000) == 201);
    taken.push("n1000".to_owned());
    deliver('2');
    taken.push("late".to_owned());
    let check = |world: &World| {
        let found = subjects(&mut world.client(1).unwrap(), 1, "inbox");
        let expected: BTreeMap<_, _> = taken.iter().map(|it| (it.clone(), 1)).collect();
        assert_eq!(found, expected);
    };
    check(&world);
    let passwords = world.passwords.clone();
    drop(world);
    check(&World::start(disk.path(), passwords));
}

/// The log wraps around several times before this disk is nearly full, so that the database has to grow then.
#[test]
fn who_removes_mail_from_a_nearly_full_disk_makes_room() {
    let Some(disk) = Tmpfs::mount("300m") else {
        println!("SKIPPED: mounting a tmpfs is not permitted here");
        return;
    };
    let world = World::start(disk.path(), Vec::new());
    let lines = "x y z\r\n".repeat(8_000_000 / 7);
    let deliver = |subject: &str, lines: &str| {
        let mut smtp = Smtp::open(world.smtp).unwrap();
        smtp.say("EHLO test", '2').unwrap();
        smtp.say("MAIL FROM:<x@example.com>", '2').unwrap();
        smtp.say("RCPT TO:<user1@localhost>", '2').unwrap();
        smtp.say("DATA", '3').unwrap();
        let text = format!("Subject: {subject}\r\n\r\n{lines}.\r\n");
        smtp.0.get_mut().write_all(text.as_bytes()).unwrap();
        smtp.reply().unwrap()
    };
    let mut taken = 0;
    let refusal = loop {
        let reply = deliver("filling", &lines);
        if !reply.starts_with('2') {
            break reply;
        }
        taken += 1;
        assert!(taken < 40, "more than the disk has room for");
    };
    assert_eq!(refusal, "452 4.3.1 The server's disk is nearly full.\r\n");
    // 300 MiB less the reserved quarter and a log of up to 64 MiB has room for 20, and for some more if the log was
    // just copied back.
    assert!(taken >= 18, "the disk took {taken} mails only");
    // No new data, however small.
    let mut client = world.client(1).unwrap();
    let text = json!({ "contentType": "text/plain", "data": "." });
    let body = json!({ "subject": "small", "to": ["user1"], "content": [text] });
    let answer = client.request("POST", "/mail/user1/api/mail/outbox", &body);
    assert_eq!(answer.unwrap().status, 507);
    // Everything that frees room, or takes none: again and again, lest it uses up the reserve.
    let list = "/mail/user1/api/mail/folders/inbox/messages?count=1000";
    let all = client.request("GET", list, &Value::Null).unwrap().body;
    let paths = all.as_array().unwrap().iter();
    let paths: Vec<_> = paths.map(|line| line["href"].as_str().unwrap()).collect();
    assert_eq!(paths.len(), taken);
    for path in &paths {
        let trashed = client.request("DELETE", path, &Value::Null).unwrap();
        assert_eq!(trashed.status, 200, "{trashed:?}");
    }
    let mut left = paths.len();
    for path in paths {
        let path = format!("{path}?permanently=true");
        let removed = client.request("DELETE", &path, &Value::Null).unwrap();
        assert_eq!(removed.status, 200, "{removed:?}");
        left -= 1;
        if left == taken / 2 {
            wait_until(LIMIT, "room", || deliver("again", "").starts_with('2'));
        }
    }
    let found = subjects(&mut client, 1, "inbox");
    assert_eq!(found, BTreeMap::from([("again".to_owned(), 1)]));
}
