//! Measures the cost of a plain GET: users without waits, each on its own connection, for a fixed time.
//!
//! `plain_get URL CONNECTIONS SECONDS [CORE]` prints requests, errors, and the process's
//! CPU time per request; `plain_get URL CONNECTIONS SECONDS CORE WAIT_MS` lets each user wait between its
//! requests and prints the process's memory per user beside it.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use hdrhistogram::Histogram;
use lab_driver::{
    Assignment, BaseUrl, Driver, DriverEvent, DriverSummary, Limits, Part, TlsOptions,
};
use lab_workload::Template;
use lab_workload::{DEFAULT_DATES_FROM, Request, Step, Wait, Workload};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, connections, seconds, rest @ ..] = &arguments[..] else {
        return Err("usage: plain_get URL CONNECTIONS SECONDS [CORE [WAIT_MS]]".into());
    };
    let (base, path) = match url.splitn(4, '/').collect::<Vec<_>>()[..] {
        [scheme, _, server, path] => (format!("{scheme}//{server}"), format!("/{path}")),
        _ => (url.clone(), "/".to_owned()),
    };
    let users = connections.parse()?;
    let seconds: u64 = seconds.parse()?;
    let wait = match rest.get(1) {
        Some(ms) => Wait::Constant(Duration::from_millis(ms.parse()?)),
        None => Wait::None,
    };
    let cores = rest
        .first()
        .map(|core| core.parse())
        .transpose()?
        .into_iter()
        .collect();
    let drive = drive(base.parse()?, plain_get(&path, wait), users, cores, seconds);
    let before = memory_kb()?;
    let (events, received) = sync_channel(64);
    let driver = Driver::start(drive, events)?;
    let start = cpu_us()?;
    driver.begin()?;
    let mut lateness = lab_counts::Hist::<3>::default();
    let mut times = lab_counts::Hist::<3>::default();
    let mut memory = 0;
    for event in received {
        match event {
            DriverEvent::Window(window) => {
                lateness.add(&window.lateness)?;
                times.add(&window.steps[0].times.ok)?;
                memory = memory.max(memory_kb()?);
            }
            DriverEvent::ErrorExample { class, detail, .. } => {
                eprintln!("{}: {detail}", class.name());
            }
            DriverEvent::Done => break,
            _ => {}
        }
    }
    let summary = driver.join()?;
    let cpu = cpu_us()? - start;
    print(&summary, cpu as f64);
    println!("response       {} us (p50 p99 max)", quantiles(&times));
    println!("lateness       {} us (p50 p99 max)", quantiles(&lateness));
    println!(
        "memory         {:.1} KB/user",
        (memory - before) as f64 / f64::from(users)
    );
    Ok(())
}

fn print(summary: &DriverSummary, cpu_us: f64) {
    let requests = summary.transactions.max(1) as f64;
    let rate = requests / summary.elapsed.as_secs_f64();
    println!("requests       {} ({rate:.0}/s)", summary.transactions);
    println!("errors         {}", summary.errors);
    println!("connections    {}", summary.connects);
    println!("cpu            {:.2} us/request", cpu_us / requests);
}

fn quantiles(histogram: &Histogram<u64>) -> String {
    let all = [0.5, 0.99, 1.0].map(|q| histogram.value_at_quantile(q).to_string());
    all.join(" ")
}

fn drive(
    base: BaseUrl,
    workload: Workload,
    users: u32,
    cores: Vec<usize>,
    seconds: u64,
) -> Assignment {
    let waits = workload.session.steps[0].wait != Wait::None;
    Assignment {
        population: String::new(),
        first: 0,
        workload: Arc::new(workload),
        base,
        tls: TlsOptions::default(),
        resolve: Vec::new(),
        sources: Vec::new(),
        protocol: lab_driver::Protocol::default(),
        kind: lab_workload::LoadKind::Users,
        users,
        part: Part::whole(),
        user_extra: Vec::new(),
        seed: 1,
        block: 0,
        base_date: DEFAULT_DATES_FROM,
        cores,
        own_cores: false,
        ramp: if waits {
            Duration::from_secs(seconds / 2)
        } else {
            Duration::ZERO
        },
        hold: Duration::from_secs(seconds),
        stages: Vec::new(),
        timeline: None,
        window: Duration::from_secs(1),
        limits: Limits::default(),
    }
}

fn plain_get(path: &str, wait: Wait) -> Workload {
    let request = Request::get(Template::literal(path));
    let step = Step {
        wait,
        ..Step::of("Get", vec![request])
    };
    Workload::of("plain-get", vec![step])
}

/// Returns the CPU time of this process, all threads.
fn cpu_us() -> Result<i64, nix::Error> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds())
}

/// Returns the resident memory of this process.
fn memory_kb() -> Result<u64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or_default();
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
