//! The lookup service beside BaseX and PostgreSQL, in one run: register, query, deregister services
//! with 100, 500, and 1000 interfaces; and how a query's time grows with the store.
//!
//! Everything runs on this machine's loopback, one client, one request after another as in report 004; the systems
//! alternate, ten operations each, in three rounds, so that the machine's drift affects all. Those that sync are warmed
//! up, with enough registered and deregistered to make a log start over: ours begins with an empty file, PostgreSQL
//! with one that its installation has filled.
//! `--quick` for a trial run, `--full` for a store of 100,000 registrations, `--peers` and `--growth` for one half, a
//! number of interfaces for that number alone.

mod basex;
mod common;
mod data;
mod growth;
mod http;
mod ours;
mod postgresql;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use common::{Error, System, median, ms, now};
use data::Service;

/// Operations of one system before the next has its turn. With a pause before every request, a system would show the
/// wake-up time of the machine, not the cost of an operation.
const RUN: usize = 10;

/// The number of repetitions, each with other services: the disk's speed varies over minutes. BaseX, which does not
/// sync and takes minutes, does one.
const ROUNDS: usize = 3;
/// The number of systems that sync; they come first.
const SYNCED: usize = 3;

/// Interfaces registered and deregistered before anything is timed: some 40 MB of our log.
const WARM_UP: usize = 40_000;
/// The set of services for that.
const WARM_UP_SET: usize = 8;

/// The extent of the benchmark.
#[derive(Debug, Clone, Copy)]
struct Extent {
    registrations: fn(usize) -> usize,
    others: usize,
    stores: &'static [usize],
}

const QUICK: Extent = Extent {
    registrations: |_| 20,
    others: 10,
    stores: &[100, 1000],
};
/// The counts of report 004.
const NORMAL: Extent = Extent {
    registrations: |interfaces| if interfaces == 1000 { 100 } else { 150 },
    others: 30,
    stores: &[100, 1000, 10_000],
};
const FULL: Extent = Extent {
    stores: &[100, 1000, 10_000, 100_000],
    ..NORMAL
};

fn main() -> ExitCode {
    let (mut extent, mut peers, mut growth) = (NORMAL, true, true);
    let mut sizes = vec![100, 500, 1000];
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            size if size.parse().is_ok_and(|size| sizes.contains(&size)) => {
                sizes.retain(|one| one.to_string() == size);
            }
            "--quick" => extent = QUICK,
            "--full" => extent = FULL,
            "--peers" => growth = false,
            "--growth" => peers = false,
            other => {
                eprintln!(
                    "error: {other} is unknown; --quick, --full, --peers, --growth, or one of 100, \
                     500, and 1000 interfaces"
                );
                return ExitCode::FAILURE;
            }
        }
    }
    match run(extent, peers.then_some(sizes), growth) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(extent: Extent, peers: Option<Vec<usize>>, growth: bool) -> Result<(), Error> {
    let folder = tempfile::tempdir_in("target")?;
    if let Some(sizes) = peers {
        println!(
            "lookup: ms per operation, median; one client; ours and PostgreSQL sync each change,"
        );
        println!("BaseX (as shipped, and with its index kept up to date) does not sync");
        for interfaces in sizes {
            compare(folder.path(), interfaces, extent)?;
        }
    }
    if growth {
        growth::measure(folder.path(), extent.stores)?;
    }
    Ok(())
}

fn compare(folder: &Path, interfaces: usize, extent: Extent) -> Result<(), Error> {
    let folder = folder.join(interfaces.to_string());
    std::fs::create_dir_all(&folder)?;
    let sync_ms = sync_ms(&folder)?;
    let json = ours::Server::start(&folder.join("json"))?;
    let xml = ours::Server::start(&folder.join("xml"))?;
    let postgresql = postgresql::Server::start(&folder.join("postgresql"))?;
    let shipped = basex::Server::start(&folder.join("basex"), false)?;
    let indexed = basex::Server::start(&folder.join("basex-indexed"), true)?;
    let mut systems: Vec<Box<dyn System>> = vec![
        Box::new(ours::Json::new(&json)?),
        Box::new(ours::Xml::new(&xml)?),
        Box::new(postgresql.connect()?),
        Box::new(shipped.connect()?),
        Box::new(indexed.connect()?),
    ];
    for system in &mut systems[..SYNCED] {
        warm_up(system.as_mut(), interfaces)?;
    }
    let mut tables = OPERATIONS.map(|operation| (operation, vec![Vec::new(); systems.len()]));
    for round in 0..ROUNDS {
        let most = if round == 0 { systems.len() } else { SYNCED };
        let services = data::services(round, (extent.registrations)(interfaces), interfaces);
        for (operation, times) in &mut tables {
            let count = match operation {
                Operation::Register => services.len(),
                _ => extent.others.min(services.len()),
            };
            for turn in services[..count].chunks(RUN) {
                for (system, times) in systems.iter_mut().zip(&mut *times).take(most) {
                    for service in turn {
                        times.push(operation.time(system.as_mut(), service)?);
                    }
                }
            }
        }
    }
    print(interfaces, sync_ms, &systems, tables);
    Ok(())
}

fn warm_up(system: &mut dyn System, interfaces: usize) -> Result<(), Error> {
    let services = data::services(WARM_UP_SET, WARM_UP / interfaces, interfaces);
    for service in &services {
        system.register(service)?;
    }
    for service in &services {
        system.deregister(service)?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Operation {
    Register,
    Query,
    Deregister,
}

const OPERATIONS: [Operation; 3] = [Operation::Register, Operation::Query, Operation::Deregister];

impl Operation {
    fn time(self, system: &mut dyn System, service: &Service) -> Result<f64, Error> {
        let begin = now();
        let found = match self {
            Self::Register => system.register(service).map(|()| None),
            Self::Query => system.query(&service.middle_address()).map(Some),
            Self::Deregister => system.deregister(service).map(|()| None),
        }?;
        let took = ms(begin.elapsed());
        match found {
            Some(found) if found != service.interfaces.len() => Err(Error::Peer(format!(
                "{} found {found} interfaces of {}",
                system.name(),
                service.interfaces.len()
            ))),
            _ => Ok(took),
        }
    }
}

fn print(
    interfaces: usize,
    sync_ms: f64,
    systems: &[Box<dyn System>],
    tables: [(Operation, Vec<Vec<f64>>); 3],
) {
    println!("\n{interfaces} interfaces (one sync of this disk: {sync_ms:.3} ms)");
    print!("  {:<12}", "");
    for system in systems {
        print!("{:>22}", system.name());
    }
    println!("   ours JSON / PostgreSQL, ours XML / BaseX, / BaseX with index");
    let mut missed = Vec::new();
    for (operation, times) in tables {
        let medians: Vec<f64> = times.into_iter().map(median).collect();
        print!("  {:<12}", format!("{operation:?}").to_lowercase());
        for median in &medians {
            print!("{median:>22.3}");
        }
        let ratio = |ours: usize, peer: usize| medians[ours] / medians[peer];
        println!(
            "   {:.2}, {:.2}, {:.2}",
            ratio(0, 2),
            ratio(1, 3),
            ratio(1, 4)
        );
        missed.extend(misses(operation, &medians, sync_ms));
    }
    match missed.is_empty() {
        true => println!("  every goal met"),
        false => println!("  goals missed: {}", missed.join("; ")),
    }
}

/// Returns the missed goals: a query in a tenth of BaseX's time, a registration in less; less than PostgreSQL in all,
/// or about as much where one sync is most of both.
fn misses(operation: Operation, medians: &[f64], sync_ms: f64) -> Vec<String> {
    let [json, xml, postgresql, basex, ..] = medians else {
        return Vec::new();
    };
    let most_of_basex = match operation {
        Operation::Query => 0.1,
        Operation::Register => 1.0,
        Operation::Deregister => f64::INFINITY,
    };
    let is_sync = json.max(*postgresql) < 2.0 * sync_ms;
    let most_of_postgresql = if is_sync { 1.1 } else { 1.0 };
    let of = |ratio: f64, most: f64, peer: &str| {
        (ratio > most).then(|| format!("{operation:?} takes {ratio:.2} of {peer}'s time"))
    };
    [
        of(xml / basex, most_of_basex, "BaseX"),
        of(json / postgresql, most_of_postgresql, "PostgreSQL"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the median time of an append of 4 KiB with fdatasync.
fn sync_ms(folder: &Path) -> Result<f64, Error> {
    let path = folder.join("append.dat");
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let mut times = Vec::new();
    for _ in 0..100 {
        let begin = now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        times.push(ms(begin.elapsed()));
    }
    Ok(median(times))
}
