//! Kills the server under write load, again and again, and looks at what is left: every
//! acknowledged write must be there, and nothing half-written may be visible.
//!
//! `PLIMSOLL_SEED=N` repeats the choices of a run; what was under way at each kill depends on the
//! machine's moment all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use plimsoll_tests::server::{Client, ServerProcess};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

const KILLS: u32 = 60;
const USERS: usize = 8;
const WRITERS: usize = 6;
/// The whole test, kills and checks, must end within this; a loaded machine does fewer kills, and
/// fewer than [`MIN_KILLS`] is a failure.
const MIN_KILLS: u32 = 50;
/// The server runs this long before it is killed, at most.
const MAX_LIFE_MS: u32 = 200;

/// What is known of a meeting.
#[derive(Debug, Clone)]
struct Meeting {
    organizer: usize,
    attendees: Vec<usize>,
    /// The meeting's path in the organizer's mailbox, once creating it was acknowledged.
    path: Option<String>,
    /// Whether it must be there.
    there: Fate,
    /// Attendees whose acceptance was acknowledged.
    accepted: BTreeSet<usize>,
    /// Attendees whose acceptance was sent.
    accepting: BTreeSet<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The change was sent and not acknowledged: it happened as a whole or not at all.
    Open,
    There,
    Gone,
}

/// Meetings by their summary, which is unique.
type Known = BTreeMap<String, Meeting>;

/// What one user's calendar shows of one meeting.
#[derive(Debug)]
struct Seen {
    ghost: bool,
    cancelled: bool,
}

struct Users {
    passwords: Vec<String>,
}

fn name(user: usize) -> String {
    format!("user{user}")
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

/// One writer's life until the server dies: creates meetings, accepts them for their attendees,
/// and deletes some.
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
    /// Works until a request fails, as they do once the server is killed.
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
        let attendees = self.meetings[&summary].attendees.clone();
        if self.below(3) == 0 {
            let attendee = attendees[self.below(attendees.len())];
            self.accept(&summary, attendee)?;
        }
        if self.below(4) == 0 {
            self.delete(&summary)?;
        }
        Ok(())
    }

    fn create(&mut self, summary: &str) -> std::io::Result<()> {
        let first = self.below(USERS - 1);
        let count = 1 + self.below(3);
        let attendees: Vec<_> = (0..count)
            .map(|i| (self.user + 1 + (first + i) % (USERS - 1)) % USERS)
            .collect();
        let meeting = Meeting {
            organizer: self.user,
            attendees: attendees.clone(),
            path: None,
            there: Fate::Open,
            accepted: BTreeSet::new(),
            accepting: BTreeSet::new(),
        };
        self.meetings.insert(summary.to_owned(), meeting);
        let people: Vec<_> = attendees
            .iter()
            .map(|user| json!({ "email": format!("{}@localhost", name(*user)) }))
            .collect();
        let body = json!({ "events": [{
            "summary": summary,
            "start": { "date": "2026-01-05", "time": "09:00:00", "utc": true },
            "end": { "date": "2026-01-05", "time": "10:00:00", "utc": true },
            "attendees": people,
        }] });
        let answer = self.send(self.user, "POST", &calendar(self.user, "/events"), &body)?;
        assert_eq!(answer.status, 201, "{answer:?}");
        let meeting = self.meetings.get_mut(summary).unwrap();
        (meeting.path, meeting.there) = (answer.location, Fate::There);
        Ok(())
    }

    fn accept(&mut self, summary: &str, attendee: usize) -> std::io::Result<()> {
        let meeting = self.meetings.get_mut(summary).unwrap();
        meeting.accepting.insert(attendee);
        let id = meeting
            .path
            .as_deref()
            .unwrap()
            .rsplit('/')
            .next()
            .unwrap()
            .to_owned();
        let path = calendar(attendee, &format!("/events/{id}/notices"));
        let answer = self.send(attendee, "GET", &path, &Value::Null)?;
        let href = answer.body["notices"][0]["href"].as_str();
        let href = href.unwrap_or_else(|| panic!("an invitation without a notice: {answer:?}"));
        let path = format!("{href}/action?type=accept");
        let answer = self.send(attendee, "PUT", &path, &Value::Null)?;
        assert_eq!(answer.status, 200, "{answer:?}");
        self.meetings
            .get_mut(summary)
            .unwrap()
            .accepted
            .insert(attendee);
        Ok(())
    }

    fn delete(&mut self, summary: &str) -> std::io::Result<()> {
        let meeting = self.meetings.get_mut(summary).unwrap();
        meeting.there = Fate::Open;
        let path = meeting.path.clone().unwrap();
        let answer = self.send(self.user, "DELETE", &path, &Value::Null)?;
        assert_eq!(answer.status, 200, "{answer:?}");
        self.meetings.get_mut(summary).unwrap().there = Fate::Gone;
        Ok(())
    }

    fn send(
        &mut self,
        user: usize,
        method: &str,
        path: &str,
        body: &Value,
    ) -> std::io::Result<plimsoll_tests::server::Answer> {
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

/// Everything that a user's calendar shows.
fn look(users: &Users, address: SocketAddr, user: usize) -> BTreeMap<String, Seen> {
    let mut client = users.client(address, user).unwrap();
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
            let summary = event["summary"].as_str().unwrap().to_owned();
            let ghost = event["x-lotus-noticetype"]["data"] == "I";
            let cancelled = event["status"] == "cancelled";
            let before = seen.insert(summary, Seen { ghost, cancelled });
            assert!(before.is_none(), "the list shows an event twice: {event}");
        }
    }
    let answer = client
        .request("GET", &calendar(user, "/invitations"), &Value::Null)
        .unwrap();
    let notices = answer.body["notices"].as_array().map_or(0, Vec::len);
    let ghosts = seen.values().filter(|seen| seen.ghost).count();
    assert_eq!(
        notices, ghosts,
        "each unanswered invitation shows once in each list"
    );
    seen
}

/// Compares what is there with what must be, and settles what was open.
fn verify(users: &Users, address: SocketAddr, known: &mut Known) {
    let calendars: Vec<_> = (0..USERS).map(|user| look(users, address, user)).collect();
    for (summary, meeting) in known.iter_mut() {
        let held = calendars[meeting.organizer].contains_key(summary);
        match meeting.there {
            Fate::There => assert!(held, "{summary} was acknowledged and is lost"),
            Fate::Gone => assert!(!held, "{summary} was deleted and is back"),
            Fate::Open => meeting.there = if held { Fate::There } else { Fate::Gone },
        }
        for attendee in &meeting.attendees {
            check_copy(
                summary,
                meeting,
                *attendee,
                calendars[*attendee].get(summary),
            );
        }
    }
    for (user, calendar) in calendars.iter().enumerate() {
        for summary in calendar.keys() {
            let meeting = known.get(summary);
            let meeting = meeting.unwrap_or_else(|| panic!("{summary} was never sent"));
            let invited = meeting.organizer == user || meeting.attendees.contains(&user);
            assert!(
                invited,
                "{summary} is with {user}, who has nothing to do with it"
            );
        }
    }
}

fn check_copy(summary: &str, meeting: &Meeting, attendee: usize, copy: Option<&Seen>) {
    let accepted = meeting.accepted.contains(&attendee);
    let accepting = meeting.accepting.contains(&attendee);
    match (meeting.there, copy) {
        (Fate::There, None) => panic!("{summary} has no invitation with {attendee}"),
        (Fate::There, Some(copy)) => {
            assert!(
                !copy.cancelled,
                "{summary} is cancelled with {attendee} and there"
            );
            assert!(
                !(accepted && copy.ghost),
                "{summary}: {attendee}'s answer is lost"
            );
            assert!(
                accepting || copy.ghost,
                "{summary}: {attendee} never answered"
            );
        }
        // Deleting takes the unanswered invitation away and marks the accepted copy.
        (_, None) => assert!(!accepted, "{summary}: {attendee}'s accepted copy is lost"),
        (_, Some(copy)) => {
            let told = accepting && copy.cancelled && !copy.ghost;
            assert!(
                told,
                "{summary}: an invitation without its meeting, with {attendee}"
            );
        }
    }
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
    let killed = AtomicBool::new(false);
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
        // Nobody ever sends: this is a wait of the drawn length.
        let (_never, timer) = sync_channel::<()>(1);
        let _ = timer.recv_timeout(Duration::from_millis(u64::from(life)));
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
    let mut kills = 0;
    while kills < KILLS && (kills < MIN_KILLS || started.elapsed() < Duration::from_secs(45)) {
        known.extend(live(&users, server, kills, seed, &total));
        kills += 1;
        server = ServerProcess::start(folder.path());
        verify(&users, server.address(), &mut known);
    }
    server.kill();
    let (total, meetings) = (total.into_inner(), known.len());
    println!("{kills} kills, {total} acknowledged writes, {meetings} meetings");
    assert!(total > kills, "the server was hardly written to");
    let open = known
        .values()
        .filter(|meeting| meeting.path.is_none())
        .count();
    assert!(open > 0, "no kill hit a write under way");
}
