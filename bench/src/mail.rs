//! Mail beside Dovecot: opening an inbox, sending, deleting, each durable on both sides. Both servers
//! have one core, the clients the other, one thread per connection that stays open. And our listing
//! of a small and of a large mailbox.

mod client;
mod dovecot;
mod ours;
mod sides;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::UsageWho;
use nix::unistd::Pid;

use crate::clock::now;
use crate::common::{Error, cpu_us, median};
use sides::{MESSAGES, Server, User, message};

const CLIENT_CORE: usize = 0;
const SERVER_CORE: usize = 1;
const ROUNDS: usize = 3;
const SPAN: Duration = Duration::from_secs(2);
const CONNECTIONS: [usize; 2] = [1, 16];
const LARGE_INBOX: u32 = 100_000;
/// The goals at 16 connections, as multiples of Dovecot's rates: list, send, delete.
const GOALS: [f64; 3] = [3.0, 5.0, 5.0];
const STEPS: [&str; 3] = ["open inbox", "send 10 KB", "delete"];
/// From this share of its core on, the clients may be the bottleneck.
const CLIENT_IS_BUSY: f64 = 0.9;

/// The rate of all users together.
#[derive(Clone, Copy)]
struct Rate {
    per_s: f64,
    /// The share of their core that the clients used.
    client: f64,
}

/// Prints the comparison.
pub(crate) fn compare() -> Result<(), Error> {
    pin(SERVER_CORE)?;
    let ours = ours::Ours::start()?;
    let dovecot = dovecot::Dovecot::start()?;
    pin(CLIENT_CORE)?;
    println!(
        "mail: plimsoll over HTTP beside Dovecot {} over IMAP and LMTP (sdbox, mail_fsync=optimized)",
        dovecot.version()
    );
    println!("  a core for the server, another for the clients; in brackets their use of it");
    println!("  a send also keeps the sender's copy here, and none there");
    for connections in CONNECTIONS {
        let (mut our_rates, mut their_rates) = (Vec::new(), Vec::new());
        // The first round warms up.
        for round in 0..=ROUNDS {
            let names: Vec<_> = (0..connections)
                .map(|user| format!("r{round}c{connections}u{user}"))
                .collect();
            let our = rates(ours.users(&names)?)?;
            let their = rates(dovecot.users(&names)?)?;
            if round > 0 {
                our_rates.push(our);
                their_rates.push(their);
            }
        }
        print(connections, &our_rates, &their_rates);
    }
    large_inbox(&ours)
}

/// Pins this thread, and all its later children, to one core.
fn pin(core: usize) -> Result<(), Error> {
    let mut cores = CpuSet::new();
    let pinned = cores
        .set(core)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &cores));
    pinned.map_err(|error| Error::Peer(format!("core {core} can't be used: {error}")))
}

fn print(connections: usize, ours: &[[Rate; 3]], theirs: &[[Rate; 3]]) {
    println!("  {connections} connection(s)                  plimsoll             dovecot");
    for (at, step) in STEPS.iter().enumerate() {
        let column = |rates: &[[Rate; 3]], of: fn(&Rate) -> f64| {
            rates.iter().map(|rates| of(&rates[at])).collect::<Vec<_>>()
        };
        let (our, their) = (
            column(ours, |rate| rate.per_s),
            column(theirs, |rate| rate.per_s),
        );
        let ratios = our.iter().zip(&their).map(|(a, b)| a / b).collect();
        let goal = match connections {
            16 => format!("   (target >= {:.0})", GOALS[at]),
            _ => String::new(),
        };
        let client = |rates| median(column(rates, |rate| rate.client));
        let (our_client, their_client) = (client(ours), client(theirs));
        println!(
            "  {step:<20} {:>9.0} /s [{:>3.0} %] {:>9.0} /s [{:>3.0} %]   {:.2} x dovecot{goal}",
            median(our),
            our_client * 100.0,
            median(their),
            their_client * 100.0,
            median(ratios),
        );
        if our_client.max(their_client) > CLIENT_IS_BUSY {
            println!("    the clients had no time left: at least one server can do more");
        }
    }
}

/// Returns each step's rate over all users.
fn rates(mut users: Vec<Box<dyn User>>) -> Result<[Rate; 3], Error> {
    let text = message();
    let list = together(&mut users, &|user, _| user.list().map(|()| true))?;
    let send = together(&mut users, &|user, _| user.send(&text).map(|()| true))?;
    let names: Result<Vec<_>, _> = users.iter_mut().map(|user| user.all()).collect();
    let names = names?;
    let delete = together(
        &mut users,
        &|user, (number, done)| match names[number].get(done) {
            Some(name) => user.delete(name).map(|()| true),
            None => Ok(false),
        },
    )?;
    Ok([list, send, delete])
}

/// A step of a user: takes the user's number and the repetition; returns true if it was done.
type Step<'a> = &'a (dyn Fn(&mut dyn User, (usize, usize)) -> Result<bool, Error> + Sync);

/// Repeats a step with all users, for the span or until one has nothing left to do.
fn together(users: &mut [Box<dyn User>], step: Step<'_>) -> Result<Rate, Error> {
    let (start, over) = (Barrier::new(users.len()), AtomicBool::new(false));
    let (begin, cpu_before) = (now(), cpu_us(UsageWho::RUSAGE_SELF)?);
    let rates: Result<Vec<f64>, Error> = std::thread::scope(|scope| {
        let threads: Vec<_> = users
            .iter_mut()
            .enumerate()
            .map(|(number, user)| {
                let (start, over) = (&start, &over);
                scope.spawn(move || {
                    start.wait();
                    let (begin, mut done) = (now(), 0);
                    while !over.load(Relaxed) && begin.elapsed() < SPAN {
                        match step(user.as_mut(), (number, done)) {
                            Ok(true) => done += 1,
                            Ok(false) => over.store(true, Relaxed),
                            Err(error) => {
                                over.store(true, Relaxed);
                                return Err(error);
                            }
                        }
                    }
                    Ok::<_, Error>(done as f64 / begin.elapsed().as_secs_f64())
                })
            })
            .collect();
        let rates = threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| Error::Thread)?);
        rates.collect()
    });
    let (took, used) = (begin.elapsed(), cpu_us(UsageWho::RUSAGE_SELF)? - cpu_before);
    Ok(Rate {
        per_s: rates?.iter().sum(),
        client: used / took.as_secs_f64() / 1e6,
    })
}

fn large_inbox(ours: &ours::Ours) -> Result<(), Error> {
    let small = ["small".to_owned()];
    let mut small = ours.users(&small)?;
    let mut large = ours.filled(&["large".to_owned()], LARGE_INBOX, 500)?;
    let (mut rates, mut ratios) = (Vec::new(), Vec::new());
    let list: Step<'_> = &|user, _| user.list().map(|()| true);
    for round in 0..=ROUNDS {
        let pair = (
            together(&mut small, list)?.per_s,
            together(&mut large, list)?.per_s,
        );
        if round > 0 {
            ratios.push(pair.0 / pair.1);
            rates.push(pair);
        }
    }
    println!(
        "  the same list of an inbox of {MESSAGES} and of {LARGE_INBOX} messages, 1 connection"
    );
    println!(
        "  {:>9.0} /s and {:>9.0} /s: {:.2} x as long   (target < 2)",
        median(rates.iter().map(|pair| pair.0).collect()),
        median(rates.iter().map(|pair| pair.1).collect()),
        median(ratios)
    );
    Ok(())
}
