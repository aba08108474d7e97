//! The cost of a plain GET: users without waits, each on its own connection, for a while.
//!
//! `plain_get URL CONNECTIONS SECONDS [CORE]` prints requests, errors, and the worker's CPU time
//! per request; `plain_get URL CONNECTIONS SECONDS CORE WAIT_MS` lets each user wait between its
//! requests and prints the process's memory per user beside it.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use lab_driver::{Drive, Driver, DriverEvent, Limits, TlsOptions};
use lab_study::Template;
use lab_study::model::{Body, DEFAULT_DATES_FROM, Request, Session, Step, Wait, Workload};

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
    let drive = Drive {
        workload: Arc::new(plain_get(&path, wait)),
        base: base.parse()?,
        tls: TlsOptions::default(),
        users,
        user_extra: Vec::new(),
        seed: 1,
        block: 0,
        base_date: DEFAULT_DATES_FROM,
        cores,
        ramp: if wait == Wait::None {
            Duration::ZERO
        } else {
            Duration::from_secs(seconds / 2)
        },
        hold: Duration::from_secs(seconds),
        window: Duration::from_secs(1),
        limits: Limits::default(),
    };
    let before = memory_kb()?;
    let (events, received) = sync_channel(64);
    let driver = Driver::start(drive, events)?;
    let worker = driver.worker_threads()[0];
    let start = cpu_ns(worker)?;
    driver.begin();
    let mut lateness = lab_driver::new_histogram();
    let mut times = lab_driver::new_histogram();
    let (mut cpu, mut memory) = (0, 0);
    for event in received {
        match event {
            DriverEvent::Window(window) => {
                lateness.add(&window.lateness)?;
                times.add(&window.steps[0].ok)?;
                memory = memory.max(memory_kb()?);
                cpu = cpu_ns(worker).map_or(cpu, |now| now - start);
            }
            DriverEvent::ErrorExample { class, detail, .. } => {
                eprintln!("{}: {detail}", class.name());
            }
            DriverEvent::Done => break,
            _ => {}
        }
    }
    let summary = driver.join()?;
    let requests = summary.transactions.max(1);
    println!(
        "requests       {} ({:.0}/s)",
        summary.transactions,
        requests as f64 / seconds as f64
    );
    println!("errors         {}", summary.errors);
    println!(
        "cpu            {:.2} us/request",
        cpu as f64 / 1e3 / requests as f64
    );
    let quantiles = |h: &hdrhistogram::Histogram<u64>| {
        [0.5, 0.99, 1.0]
            .map(|q| h.value_at_quantile(q).to_string())
            .join(" ")
    };
    println!("response       {} us (p50 p99 max)", quantiles(&times));
    println!("lateness       {} us (p50 p99 max)", quantiles(&lateness));
    println!("connections    {}", summary.connects);
    println!(
        "memory         {:.1} KB/user",
        (memory - before) as f64 / f64::from(users)
    );
    Ok(())
}

fn plain_get(path: &str, wait: Wait) -> Workload {
    let request = Request {
        method: "GET".to_owned(),
        target: Template::literal(path),
        headers: Vec::new(),
        body: Body::Empty,
        basic_auth: None,
        expect: vec![200..=299],
        captures: Vec::new(),
    };
    let step = Step {
        name: "Get".to_owned(),
        wait,
        repeat: 1,
        requests: vec![request],
    };
    Workload {
        name: "plain-get".to_owned(),
        about: String::new(),
        user: Vec::new(),
        setup: Vec::new(),
        session: Session {
            pace: None,
            steps: vec![step],
        },
        probe: None,
        variables: Arc::from([]),
    }
}

/// CPU time of a thread of this process.
fn cpu_ns(thread: i32) -> Result<u64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"))?;
    Ok(text.split(' ').next().unwrap_or_default().parse()?)
}

/// Resident memory of this process.
fn memory_kb() -> Result<u64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or_default();
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
