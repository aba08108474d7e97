//! The cost of several servers over one database: CPU for a batch, of the servers' writers and of the database
//! together, with one and two servers, and beside the SQLite file. Rounds alternate, so that a drift of the machine
//! affects all: the ratios count.
//!
//! Each of two servers gathers groups of half as many batches, since it has half of the writers. One server with half
//! of the writers shows the cost of that alone; the rest is the cost of contention.
//!
//! Runs only by name, since it needs Debian's PostgreSQL.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use groupware_postgres::{Database, PostgresOptions};
use groupware_store::{Batch, Store, StoreOptions};
use nix::sys::resource::{UsageWho, getrusage};
use plimsoll_tests::postgres::Postgres;

use crate::clock::now;
use crate::common::{Error, median};

const ROUNDS: usize = 5;
const SPAN: Duration = Duration::from_secs(2);
/// Threads that write, each for its share of the writers.
const THREADS: usize = 2;
const PUTS: usize = 8;
const VALUE_BYTES: usize = 512;

/// The written data.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    writers: usize,
    puts: usize,
    /// Whether all writers write into one partition.
    is_one_partition: bool,
}

const fn load(name: &'static str, writers: usize, puts: usize, is_one_partition: bool) -> Load {
    Load {
        name,
        writers,
        puts,
        is_one_partition,
    }
}

const LOADS: [Load; 5] = [
    load("8 asserted puts, 1 writer", 1, PUTS, false),
    load("8 asserted puts, 16 writers", 16, PUTS, false),
    load("8 asserted puts, 64 writers", 64, PUTS, false),
    load("the same in one partition", 64, PUTS, true),
    load("1 asserted put, 64 writers", 64, 1, false),
];

/// A system under comparison: its name and stores.
struct Side {
    name: &'static str,
    stores: Vec<Store>,
    /// Only every nth of a load's writers writes.
    every: usize,
}

impl Side {
    /// Returns the batches so far that took effect, and the transactions.
    fn counted(&self) -> (u64, u64) {
        let stats = self.stores.iter().map(Store::stats);
        stats.fold((0, 0), |(commits, groups), stats| {
            (commits + stats.commits, groups + stats.groups)
        })
    }
}

/// The results of a side in a round.
#[derive(Clone, Copy)]
struct Done {
    per_s: f64,
    cpu_us: f64,
    /// Batches per transaction.
    group: f64,
}

/// Compares them, and prints rates, CPU, and ratios.
///
/// # Errors
/// When there is no PostgreSQL, or a batch is not stored.
pub(crate) fn compare() -> Result<(), Error> {
    let server = Postgres::start();
    let server = server.ok_or_else(|| Error::Peer("no PostgreSQL".to_owned()))?;
    let folder = tempfile::tempdir()?;
    let sqlite = Store::open_sqlite(&folder.path().join("store"), StoreOptions::default())?;
    let database = Database::parse(&server.address());
    let database = database.map_err(|error| Error::Peer(error.to_string()))?;
    let open = || {
        let how = PostgresOptions::default().readers(3).shared();
        let opened = groupware_postgres::open(&database, &StoreOptions::default(), &how);
        opened.map_err(|error| Error::Peer(error.to_string()))
    };
    let (one, other) = (open()?, open()?);
    let side = |name, stores, every| Side {
        name,
        stores,
        every,
    };
    let sides = [
        side("SQLite", vec![sqlite], 1),
        side("one server", vec![one.clone()], 1),
        side("two servers", vec![one.clone(), other], 1),
        side("one, half of them", vec![one], 2),
    ];
    println!("store: CPU for a batch, PostgreSQL's included; {ROUNDS} rounds of {SPAN:?} each");
    for load in LOADS {
        let mut done = [const { Vec::new() }; 4];
        // The first round fills the tables, and is not counted.
        for round in 0..=ROUNDS {
            for (side, done) in sides.iter().zip(&mut done) {
                let this = write(side, load, server.pid())?;
                if round > 0 {
                    done.push(this);
                }
            }
        }
        show(load, &sides, &done);
    }
    Ok(())
}

fn show(load: Load, sides: &[Side; 4], done: &[Vec<Done>; 4]) {
    println!("  {}", load.name);
    let ratios = |of: fn(&Done) -> f64, side: usize, to: usize| {
        let pairs = done[side].iter().zip(&done[to]);
        median(pairs.map(|(a, b)| of(a) / of(b)).collect())
    };
    for (at, side) in sides.iter().enumerate() {
        let middle = |of: fn(&Done) -> f64| median(done[at].iter().map(of).collect());
        let (rate, cpu) = (middle(|it| it.per_s), middle(|it| it.cpu_us));
        let group = middle(|it| it.group);
        let name = side.name;
        print!("    {name:<18} {rate:>8.0} /s {cpu:>7.0} us, {group:>5.1} in a transaction");
        match at {
            0 => println!(),
            1 => {
                let (rate, cpu) = (ratios(|it| it.per_s, 1, 0), ratios(|it| it.cpu_us, 1, 0));
                println!("   {rate:.2} x the rate, {cpu:.2} x the CPU of SQLite");
            }
            _ => {
                let cpu = ratios(|it| it.cpu_us, at, 1);
                println!("   {cpu:.2} x the CPU of one server");
            }
        }
    }
}

/// Writes through a side for a fixed time.
fn write(side: &Side, load: Load, server: u32) -> Result<Done, Error> {
    let (cpu, begin, batches) = (cpu(server)?, now(), AtomicU64::new(0));
    let before = side.counted();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS.min(load.writers))
            .map(|thread| {
                let batches = &batches;
                scope.spawn(move || share(side, load, thread, begin, batches))
            })
            .collect();
        let mut ended = threads.into_iter().map(|thread| thread.join());
        ended.try_for_each(|ended| ended.map_err(|_| Error::Thread)?)
    })?;
    let count = batches.load(Relaxed) as f64;
    let spent = self::cpu(server)?.saturating_sub(cpu);
    let (commits, groups) = side.counted();
    Ok(Done {
        per_s: count / begin.elapsed().as_secs_f64(),
        cpu_us: spent.as_secs_f64() * 1e6 / count,
        group: (commits - before.0) as f64 / (groups - before.1).max(1) as f64,
    })
}

/// Runs one thread's share of the writers.
fn share(
    side: &Side,
    load: Load,
    thread: usize,
    begin: Instant,
    batches: &AtomicU64,
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    // At least one writer, if half of them would be none.
    let count = (load.writers / side.every).max(1);
    let writers = (thread..count).step_by(THREADS);
    // Each writer uses one server: its partitions belong to that one alone.
    let writers = writers.map(|writer| {
        let store = &side.stores[writer / THREADS % side.stores.len()];
        writer_until(store, load, writer, begin, batches)
    });
    runtime
        .block_on(futures_util::future::join_all(writers))
        .into_iter()
        .collect()
}

async fn writer_until(
    store: &Store,
    load: Load,
    writer: usize,
    begin: Instant,
    batches: &AtomicU64,
) -> Result<(), Error> {
    let partition = |put: usize| match load.is_one_partition {
        true => "bench-all".to_owned(),
        false => format!("bench-{writer}-{put}"),
    };
    let mut revisions: Vec<Option<u64>> = (0..load.puts)
        .map(|put| {
            let key = format!("{writer}-{put}");
            let found = store.read(|snapshot| snapshot.get(&partition(put), key.as_bytes()));
            found.map(|found| found.map(|found| found.revision))
        })
        .collect::<Result<_, groupware_store::StoreError>>()
        .map_err(|error| Error::Peer(error.to_string()))?;
    while begin.elapsed() < SPAN {
        let mut batch = Batch::new();
        for (put, revision) in revisions.iter().enumerate() {
            let (partition, key) = (partition(put), format!("{writer}-{put}"));
            match revision {
                Some(revision) => batch.assert_revision(&*partition, key.clone(), *revision),
                None => batch.assert_absent(&*partition, key.clone()),
            };
            batch.put(partition, key, vec![7; VALUE_BYTES]);
        }
        let committed = store.commit(batch).await?;
        revisions.fill(Some(committed.revision));
        batches.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// Returns the CPU time so far of this process and the database.
fn cpu(server: u32) -> Result<Duration, Error> {
    let own = getrusage(UsageWho::RUSAGE_SELF).map_err(std::io::Error::from)?;
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    let own = micros(own.user_time()) + micros(own.system_time());
    let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children"))?;
    let mut ns = 0;
    for process in children.split_whitespace() {
        // A short-lived worker may be gone; it wrote no batch.
        let path = Path::new("/proc").join(process).join("schedstat");
        let text = fs::read_to_string(path).unwrap_or_default();
        let used = text.split_ascii_whitespace().next();
        ns += used.and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_micros(own.unsigned_abs()) + Duration::from_nanos(ns))
}
