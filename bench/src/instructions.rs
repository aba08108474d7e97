//! Instructions per request in the server's HTTP thread, by kind of request, as counted by callgrind: nearly
//! independent of the machine's load, so that a change of a hundredth is visible.
//!
//! The kernel and the thread of the store's writer are not counted. A ring of users runs the cycle of the calendar's
//! workload; all finish a step before the next begins.
//!
//! Runs only by name, with the program (`bench/instructions.sh`), since it needs valgrind.

mod server;
mod user;

use std::collections::BTreeMap;
use std::path::Path;

use self::server::Server;
use self::user::{Connection, User};
use crate::common::Error;

/// All organizers, attendees, and delegates of a user differ, and the data exceeds the processor's caches.
const USERS: usize = 60;
/// The number of cycles; the last one counts.
const CYCLES: u32 = 2;

/// A kind of request: its number in a cycle, and its maximum number of instructions.
struct Kind {
    name: &'static str,
    in_cycle: u32,
    most: u32,
}

const fn kind(name: &'static str, in_cycle: u32, most: u32) -> Kind {
    Kind {
        name,
        in_cycle,
        most,
    }
}

/// The limits are the counts at their last change, plus a twentieth: of some kinds there are few.
const KINDS: [Kind; 9] = [
    kind("log in", 1, 60_000),
    kind("list invitations", 2, 46_300),
    kind("list events", 3, 78_000),
    kind("schedule", 1, 220_500),
    kind("open an invitation", 6, 68_600),
    kind("accept", 4, 129_300),
    kind("decline", 1, 134_500),
    kind("delegate", 2, 162_500),
    kind("open an event", 1, 67_800),
];

/// The maximum mean over a cycle: the count at its last change, plus a hundredth.
const MEAN_MOST: u64 = 94_600;

/// Counts instructions; prints a table.
///
/// # Errors
/// When a request fails, or a kind exceeds its limit.
pub(crate) fn measure(program: &Path) -> Result<(), Error> {
    let server = Server::start(program, Path::new("target/instructions"))?;
    let mut run = Run {
        connections: [
            Connection::open(server.address())?,
            Connection::open(server.address())?,
        ],
        users: server.users(USERS)?,
        server,
        counts: BTreeMap::new(),
    };
    run.set_up()?;
    for cycle in 1..=CYCLES {
        run.cycle(cycle == CYCLES)?;
    }
    run.print()
}

/// The counts of a kind of request.
#[derive(Debug, Default, Clone, Copy)]
struct Counted {
    requests: u64,
    instructions: u64,
}

impl Counted {
    fn each(self) -> u64 {
        self.instructions / self.requests.max(1)
    }
}

/// The users, in the middle of their cycle.
struct Run {
    server: Server,
    /// Two, so that the HTTP thread serves others meanwhile and leaves writing to the writer.
    connections: [Connection; 2],
    users: Vec<User>,
    counts: BTreeMap<&'static str, Counted>,
}

impl Run {
    /// Runs a step for all users, one after the other; counts it if `counts` is set.
    fn all(
        &mut self,
        (name, counts): (&'static str, bool),
        mut step: impl FnMut(&mut User, &mut Connection) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if counts {
            self.server.zero()?;
        }
        for (at, user) in self.users.iter_mut().enumerate() {
            step(user, &mut self.connections[at % 2])?;
        }
        if counts {
            let counted = self.counts.entry(name).or_default();
            counted.requests += self.users.len() as u64;
            counted.instructions += self.server.instructions(name)?;
        }
        Ok(())
    }

    /// Creates seven events in each calendar, and two invitations.
    fn set_up(&mut self) -> Result<(), Error> {
        let not = |name| (name, false);
        self.all(not("log in"), User::log_in)?;
        self.all(not("schedule"), User::schedule)?;
        self.all(not("list invitations"), User::list_invitations)?;
        for _ in 0..4 {
            self.all(not("accept"), |user, over| user.act(over, "accept"))?;
        }
        self.server.zero()?;
        self.all(not("list invitations"), User::list_invitations)?;
        self.server.note_who_answers()
    }

    /// The steps of `workloads/calendar.workload.yaml`.
    fn cycle(&mut self, counts: bool) -> Result<(), Error> {
        let it = |name| (name, counts);
        self.all(it("log in"), User::log_in)?;
        self.all(it("list invitations"), User::list_invitations)?;
        self.all(it("list events"), User::list_coming_events)?;
        self.all(it("schedule"), User::schedule)?;
        self.all(it("list events"), User::list_month)?;
        self.all(it("list invitations"), User::list_invitations)?;
        for action in [
            "accept", "accept", "decline", "delegate", "accept", "accept",
        ] {
            self.all(it("open an invitation"), User::open_invitation)?;
            self.all(it(action), |user, over| user.act(over, action))?;
        }
        self.all(it("list events"), User::list_month)?;
        self.all(it("open an event"), User::open_event)?;
        self.all(it("delegate"), User::delegate_event)
    }

    fn print(&self) -> Result<(), Error> {
        println!("instructions: of the HTTP thread for a request, {USERS} users, callgrind");
        let (mut all, mut requests, mut too_many) = (0, 0, Vec::new());
        for kind in &KINDS {
            let each = self
                .counts
                .get(kind.name)
                .copied()
                .unwrap_or_default()
                .each();
            println!("  {:<20} {each:>9}   (target <= {})", kind.name, kind.most);
            all += each * u64::from(kind.in_cycle);
            requests += u64::from(kind.in_cycle);
            if each == 0 || each > u64::from(kind.most) {
                too_many.push(kind.name);
            }
        }
        let (name, mean) = ("a cycle's mean", all / requests);
        println!("  {name:<20} {mean:>9}   (target <= {MEAN_MOST})");
        if mean > MEAN_MOST {
            too_many.push(name);
        }
        match too_many.is_empty() {
            true => Ok(()),
            false => Err(Error::Peer(format!(
                "too many instructions: {}",
                too_many.join(", ")
            ))),
        }
    }
}
