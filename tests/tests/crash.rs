//! Kills the server under write load, again and again, and checks its data: every acknowledged change must be there,
//! and an open one must have happened in every calendar that it touches, or in none.
//!
//! A killed process leaves its written pages with the system, so this tests what the server writes and in which order,
//! not that it reaches the disk.
//!
//! `PLIMSOLL_SEED=N` repeats the choices of a run; what is under way at each kill depends on the machine all the same.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use plimsoll_tests::server::{Answer, Client, ServerProcess};
use plimsoll_tests::wait_until;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

const KILLS: u32 = 60;
const USERS: usize = 8;
const WRITERS: usize = 6;
/// The whole test, kills and checks, must end within this. A loaded machine does fewer kills; fewer than [`MIN_KILLS`]
/// is a failure.
const MIN_KILLS: u32 = 50;
/// The maximum time that the server runs before it is killed.
const MAX_LIFE_MS: u32 = 200;

/// The expected state of a meeting.
#[derive(Debug)]
struct Meeting {
    organizer: usize,
    /// The users that the organizer invited.
    attendees: Vec<usize>,
    /// The meeting's path in the organizer's mailbox, once creating it was acknowledged.
    path: Option<String>,
    /// The number of the organizer's changes.
    updates: u32,
    /// The picture after all acknowledged changes.
    sure: Picture,
    /// The picture after the change that was sent and not acknowledged, if there is one.
    open: Option<Picture>,
    /// Whether no change of it was sent after the last check.
    settled: bool,
}

/// The combined view of one meeting in all calendars.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Picture {
    /// Its view in each calendar that shows it.
    shown: BTreeMap<usize, Shown>,
    /// The invited users in the organizer's copy, with their answers there.
    answers: BTreeMap<usize, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    kind: Kind,
    location: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Own,
    Invited,
    Accepted,
    Cancelled,
}

impl Picture {
    /// The picture after the organizer has written it with this location: everyone without a delegate is asked.
    fn asked(&self, organizer: usize, attendees: &[usize], location: &str) -> Self {
        let shown = |kind| Shown {
            kind,
            location: location.to_owned(),
        };
        let mut picture = Self::default();
        picture.shown.insert(organizer, shown(Kind::Own));
        for person in attendees.iter().chain(self.answers.keys()) {
            let delegated = self.answers.get(person).is_some_and(|it| it == "delegated");
            let answer = if delegated {
                "delegated"
            } else {
                picture.shown.insert(*person, shown(Kind::Invited));
                "needs-action"
            };
            picture.answers.insert(*person, answer.to_owned());
        }
        picture
    }

    /// The picture after an invited person's answer; `delegate` is invited in their place.
    fn answered(&self, person: usize, answer: &str, delegate: Option<usize>) -> Self {
        let mut picture = self.clone();
        let mut copy = picture.shown.remove(&person).unwrap();
        picture.answers.insert(person, answer.to_owned());
        if let Some(delegate) = delegate {
            picture.shown.insert(delegate, copy);
            picture.answers.insert(delegate, "needs-action".to_owned());
        } else if answer == "accepted" {
            copy.kind = Kind::Accepted;
            picture.shown.insert(person, copy);
        }
        picture
    }

    /// The picture after the organizer has deleted it: invitations are gone, accepted copies are cancelled.
    fn deleted(&self) -> Self {
        let mut picture = self.clone();
        picture.answers.clear();
        picture.shown.retain(|_, copy| copy.kind == Kind::Accepted);
        for copy in picture.shown.values_mut() {
            copy.kind = Kind::Cancelled;
        }
        picture
    }
}

/// Meetings by their summary, which is unique.
type Known = BTreeMap<String, Meeting>;

struct Users {
    passwords: Vec<String>,
}

fn name(user: usize) -> String {
    format!("user{user}")
}

fn email(user: usize) -> String {
    format!("{}@localhost", name(user))
}

fn calendar(user: usize, rest: &str) -> String {
    format!("/mail/{}/api/calendar{rest}", name(user))
}

impl Users {
    fn register(address: SocketAddr) -> Self {
        let users: Vec<_> = (0..USERS)
            .map(|user| json!({ "name": name(user) }))
            .collect();
        let body = json!({ "users": users, "app_passwords": true });
        let mut admin = Client::admin(address).unwrap();
        let answer = admin.request("POST", "/admin/users", &body).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        let users = answer.body["users"].as_array().unwrap();
        let passwords = users
            .iter()
            .map(|user| user["app_password"].as_str().unwrap().to_owned())
            .collect();
        Self { passwords }
    }

    fn client(&self, address: SocketAddr, user: usize) -> std::io::Result<Client> {
        Client::user(address, &name(user), &self.passwords[user])
    }
}

/// One writer until the server dies: creates meetings, changes them, answers them for their attendees, and deletes
/// some. No other writer touches them.
struct Writer<'a> {
    users: &'a Users,
    address: SocketAddr,
    random: Xoshiro256PlusPlus,
    /// The organizer of all this writer's meetings.
    user: usize,
    label: String,
    meetings: Known,
    clients: BTreeMap<usize, Client>,
    acknowledged: &'a AtomicU32,
}

impl Writer<'_> {
    /// Works until a request fails, as all do once the server is killed.
    fn work(mut self, killed: &AtomicBool) -> Known {
        let mut number = 0;
        loop {
            number += 1;
            if let Err(error) = self.step(number) {
                assert!(
                    killed.load(Relaxed),
                    "the server failed before it was killed: {error}"
                );
                return self.meetings;
            }
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.next_u64() % bound as u64).unwrap()
    }

    fn step(&mut self, number: u32) -> std::io::Result<()> {
        let summary = format!("{}-{number}", self.label);
        self.create(&summary)?;
        for _ in 0..self.below(4) {
            match (self.below(4), self.invited(&summary)) {
                (0, _) => self.update(&summary)?,
                (1, Some(person)) => self.answer(&summary, person, "accept", "accepted")?,
                (2, Some(person)) => self.answer(&summary, person, "decline", "declined")?,
                (_, Some(person)) => self.delegate(&summary, person)?,
                (_, None) => {}
            }
        }
        if self.below(4) == 0 {
            self.delete(&summary)?;
        }
        Ok(())
    }

    /// Returns an invited user without an answer.
    fn invited(&mut self, summary: &str) -> Option<usize> {
        let shown = &self.meetings[summary].sure.shown;
        let invited = shown.iter().filter(|(_, copy)| copy.kind == Kind::Invited);
        let invited: Vec<_> = invited.map(|(person, _)| *person).collect();
        if invited.is_empty() {
            return None;
        }
        Some(invited[self.below(invited.len())])
    }

    fn create(&mut self, summary: &str) -> std::io::Result<()> {
        let first = self.below(USERS - 1);
        let count = 1 + self.below(3);
        let attendees: Vec<_> = (0..count)
            .map(|i| (self.user + 1 + (first + i) % (USERS - 1)) % USERS)
            .collect();
        let created = Picture::default().asked(self.user, &attendees, "Room 0");
        let body = document(summary, &attendees, "Room 0");
        let meeting = Meeting {
            organizer: self.user,
            attendees,
            path: None,
            updates: 0,
            sure: Picture::default(),
            open: None,
            settled: false,
        };
        self.meetings.insert(summary.to_owned(), meeting);
        let path = calendar(self.user, "/events");
        let answer = self.change(summary, created, (self.user, "POST", &path, &body))?;
        self.meetings.get_mut(summary).unwrap().path = answer.location;
        Ok(())
    }

    fn update(&mut self, summary: &str) -> std::io::Result<()> {
        let meeting = self.meetings.get_mut(summary).unwrap();
        meeting.updates += 1;
        let location = format!("Room {}", meeting.updates);
        // The organizer's list lacks the delegates: they stay all the same.
        let body = document(summary, &meeting.attendees, &location);
        let changed = meeting.sure.asked(self.user, &meeting.attendees, &location);
        let path = meeting.path.clone().unwrap();
        self.change(summary, changed, (self.user, "PUT", &path, &body))?;
        Ok(())
    }

    fn answer(
        &mut self,
        summary: &str,
        person: usize,
        action: &str,
        status: &str,
    ) -> std::io::Result<()> {
        let path = format!("{}/action?type={action}", self.notice(summary, person)?);
        let answered = self.meetings[summary].sure.answered(person, status, None);
        self.change(summary, answered, (person, "PUT", &path, &Value::Null))?;
        Ok(())
    }

    fn delegate(&mut self, summary: &str, person: usize) -> std::io::Result<()> {
        let sure = &self.meetings[summary].sure;
        let free = |user: &usize| *user != self.user && !sure.answers.contains_key(user);
        let Some(delegate) = (0..USERS).find(free) else {
            return Ok(());
        };
        let delegated = sure.answered(person, "delegated", Some(delegate));
        let path = format!("{}/action?type=delegate", self.notice(summary, person)?);
        let body = json!({ "delegateTo": name(delegate) });
        self.change(summary, delegated, (person, "PUT", &path, &body))?;
        Ok(())
    }

    fn delete(&mut self, summary: &str) -> std::io::Result<()> {
        let meeting = &self.meetings[summary];
        let (path, deleted) = (meeting.path.clone().unwrap(), meeting.sure.deleted());
        self.change(summary, deleted, (self.user, "DELETE", &path, &Value::Null))?;
        Ok(())
    }

    /// Returns the path of a person's unanswered invitation.
    fn notice(&mut self, summary: &str, person: usize) -> std::io::Result<String> {
        let path = self.meetings[summary].path.as_deref().unwrap();
        let id = path.rsplit('/').next().unwrap();
        let path = calendar(person, &format!("/events/{id}/notices"));
        let answer = self.send(person, "GET", &path, &Value::Null)?;
        let href = answer.body["notices"][0]["href"].as_str();
        let href = href.unwrap_or_else(|| panic!("an invitation without a notice: {answer:?}"));
        Ok(href.to_owned())
    }

    /// Sends a change that leads to `after`; once it is acknowledged, that is the expected picture.
    fn change(
        &mut self,
        summary: &str,
        after: Picture,
        (user, method, path, body): (usize, &str, &str, &Value),
    ) -> std::io::Result<Answer> {
        self.meetings.get_mut(summary).unwrap().open = Some(after);
        let answer = self.send(user, method, path, body)?;
        let expected = if method == "POST" { 201 } else { 200 };
        assert_eq!(answer.status, expected, "{method} {path}: {answer:?}");
        let meeting = self.meetings.get_mut(summary).unwrap();
        meeting.sure = meeting.open.take().unwrap();
        Ok(answer)
    }

    fn send(
        &mut self,
        user: usize,
        method: &str,
        path: &str,
        body: &Value,
    ) -> std::io::Result<Answer> {
        if !self.clients.contains_key(&user) {
            self.clients
                .insert(user, self.users.client(self.address, user)?);
        }
        let client = self.clients.get_mut(&user).unwrap();
        let answer = client.request(method, path, body)?;
        self.acknowledged
            .fetch_add(u32::from(method != "GET"), Relaxed);
        Ok(answer)
    }
}

fn document(summary: &str, attendees: &[usize], location: &str) -> Value {
    let people: Vec<_> = attendees
        .iter()
        .map(|user| json!({ "email": email(*user) }))
        .collect();
    json!({ "events": [{
        "summary": summary,
        "location": location,
        "start": { "date": "2026-01-05", "time": "09:00:00", "utc": true },
        "end": { "date": "2026-01-05", "time": "10:00:00", "utc": true },
        "attendees": people,
    }] })
}

/// Returns all entries of a user's calendar, by summary, with their paths.
fn look(client: &mut Client, user: usize) -> BTreeMap<String, (Shown, String)> {
    let mut seen = BTreeMap::new();
    loop {
        let path = calendar(
            user,
            &format!(
                "/events?since=2026-01-01T00:00:00Z&before=2026-02-01T00:00:00Z&count=100&start={}",
                seen.len()
            ),
        );
        let answer = client.request("GET", &path, &Value::Null).unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        let Some(events) = answer.body["events"].as_array() else {
            break;
        };
        for event in events {
            let text = |member: &str| event[member].as_str().unwrap().to_owned();
            let shown = Shown {
                kind: kind(event, user),
                location: text("location"),
            };
            let before = seen.insert(text("summary"), (shown, text("href")));
            assert!(before.is_none(), "the list shows an event twice: {event}");
        }
    }
    let answer = client
        .request("GET", &calendar(user, "/invitations"), &Value::Null)
        .unwrap();
    let notices = answer.body["notices"].as_array().map_or(0, Vec::len);
    let ghosts = seen.values().filter(|(it, _)| it.kind == Kind::Invited);
    assert_eq!(
        notices,
        ghosts.count(),
        "each unanswered invitation shows once in each list"
    );
    seen
}

fn kind(line: &Value, user: usize) -> Kind {
    if line["x-lotus-organizer"]["data"] == email(user) {
        Kind::Own
    } else if line["x-lotus-noticetype"]["data"] == "I" {
        Kind::Invited
    } else if line["status"] == "cancelled" {
        Kind::Cancelled
    } else {
        Kind::Accepted
    }
}

/// Returns the answers in the organizer's copy.
fn answers(client: &mut Client, path: &str) -> BTreeMap<usize, String> {
    let answer = client.request("GET", path, &Value::Null).unwrap();
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    let people = answer.body["events"][0]["attendees"].as_array().unwrap();
    let answers = people.iter().map(|person| {
        let user = (0..USERS).find(|user| person["email"] == email(*user));
        (user.unwrap(), person["status"].as_str().unwrap().to_owned())
    });
    answers.collect()
}

/// Compares the server's state with the expected one, and settles open changes. Returns how many open changes turned
/// out to have happened, and not to have.
///
/// `all` also reads the answers of meetings without a change since the last check.
fn verify(users: &Users, address: SocketAddr, known: &mut Known, all: bool) -> (u32, u32) {
    let mut clients: Vec<_> = (0..USERS)
        .map(|user| users.client(address, user).unwrap())
        .collect();
    let calendars: Vec<_> = clients
        .iter_mut()
        .enumerate()
        .map(|(user, client)| look(client, user))
        .collect();
    for summary in calendars.iter().flat_map(BTreeMap::keys) {
        assert!(known.contains_key(summary), "{summary} was never sent");
    }
    let (mut happened, mut did_not) = (0, 0);
    for (summary, meeting) in known {
        let lines = calendars.iter().enumerate();
        let lines = lines.filter_map(|(user, calendar)| Some((user, calendar.get(summary)?)));
        let mut found = Picture::default();
        for (user, (shown, path)) in lines {
            if user == meeting.organizer {
                found.answers = if all || !meeting.settled {
                    answers(&mut clients[user], path)
                } else {
                    meeting.sure.answers.clone()
                };
            }
            found.shown.insert(user, shown.clone());
        }
        match meeting.open.take() {
            Some(open) if found == open => {
                meeting.sure = open;
                happened += 1;
            }
            open => {
                assert_eq!(found, meeting.sure, "{summary}: nor is it as {open:#?}");
                did_not += u32::from(open.is_some());
            }
        }
        meeting.settled = true;
    }
    (happened, did_not)
}

fn seed() -> u64 {
    match std::env::var("PLIMSOLL_SEED") {
        Ok(seed) => seed.parse().expect("PLIMSOLL_SEED is a number"),
        Err(_) => {
            let mut bytes = [0; 8];
            let mut source = std::fs::File::open("/dev/urandom").unwrap();
            std::io::Read::read_exact(&mut source, &mut bytes).unwrap();
            u64::from_le_bytes(bytes)
        }
    }
}

/// One life of the server: writers write until it is killed.
fn live(users: &Users, server: ServerProcess, round: u32, seed: u64, total: &AtomicU32) -> Known {
    let address = server.address();
    let (killed, before) = (AtomicBool::new(false), total.load(Relaxed));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ u64::from(round));
    let life = 5 + random.next_u32() % MAX_LIFE_MS;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                random.jump();
                let writer = Writer {
                    users,
                    address,
                    random: random.clone(),
                    user: writer % USERS,
                    label: format!("m{round}-{writer}"),
                    meetings: Known::new(),
                    clients: BTreeMap::new(),
                    acknowledged: total,
                };
                scope.spawn(|| writer.work(&killed))
            })
            .collect();
        // Never sent to: this is a wait of the drawn length.
        let (_never, timer) = sync_channel::<()>(1);
        let _ = timer.recv_timeout(Duration::from_millis(u64::from(life)));
        // On a slow machine, a life without writes would test nothing.
        wait_until(Duration::from_secs(120), "a write", || {
            total.load(Relaxed) > before
        });
        killed.store(true, Relaxed);
        server.kill();
        writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap())
            .collect()
    })
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test bounds its own time")]
fn acknowledged_writes_survive_kills_and_nothing_is_half_written() {
    let started = std::time::Instant::now();
    let seed = seed();
    println!("seed: PLIMSOLL_SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let mut server = ServerProcess::start(folder.path());
    let users = Users::register(server.address());
    let mut known = Known::new();
    let total = AtomicU32::new(0);
    let (mut kills, mut happened, mut did_not) = (0, 0, 0);
    while kills < KILLS && (kills < MIN_KILLS || started.elapsed() < Duration::from_secs(45)) {
        known.extend(live(&users, server, kills, seed, &total));
        kills += 1;
        server = ServerProcess::start(folder.path());
        let open = verify(&users, server.address(), &mut known, false);
        (happened, did_not) = (happened + open.0, did_not + open.1);
    }
    verify(&users, server.address(), &mut known, true);
    server.kill();
    let (total, meetings) = (total.into_inner(), known.len());
    println!("{kills} kills, {total} acknowledged writes, {meetings} meetings");
    println!("under way: {happened} happened, {did_not} did not");
    assert!(total > kills, "the server was hardly written to");
    assert!(happened + did_not > 0, "no kill hit a change under way");
}
