//! The cost of many generators for the one program that merges their reports: 200 of them, each with a session of 30
//! steps, a window a second; and how far its windows lag behind the load.

use std::io::{stdin, stdout};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use lab_counts::StepWindow;
use lab_driver::remote::{Generators, Piped};
use lab_driver::{Clock, Driver, DriverEvent, Window};
use nix::sys::resource::UsageWho;

use crate::common::{Error, cpu_us, median};
use crate::driver::drive;
use crate::nginx::Nginx;

/// First argument of this program when it is one of the generators.
pub(crate) const CHILD: &str = "--generate";

const GENERATORS: u32 = 200;
const STEPS: usize = 30;
/// So that each step of each generator is in each window.
const WAIT: &str = "30ms";
/// The number of first windows that are skipped: users start one by one, and code runs for the first time.
const FIRST: usize = 5;
const WINDOWS: usize = 20;

/// Runs a generator, over this program's standard input and output.
pub(crate) fn generate() -> Result<(), Error> {
    lab_driver::remote::generate(Piped(stdin()), Piped(stdout()))
        .map_err(|error| Error::Peer(error.to_string()))
}

/// The figures of the windows.
#[derive(Default)]
struct Looked {
    windows: usize,
    /// The mean number of steps with answers.
    steps: f64,
    requests: u64,
    errors: u64,
    /// CPU time of the merging program, s.
    cpu: f64,
    /// The load time of the windows, s: where cores are few, windows are late, and then faster than one a second.
    load: f64,
    /// The delay of each window after its end, s.
    behind: Vec<f64>,
}

/// Prints the figures.
pub(crate) fn measure() -> Result<(), Error> {
    let nginx = Nginx::start(1)?;
    let step = |number| format!("    - {{ step: 'S{number}', wait: {WAIT}, request: GET / }}\n");
    let steps: String = (0..STEPS).map(step).collect();
    let mut drive = drive(
        &nginx.url(),
        format!("workload: many\nsession:\n  steps:\n{steps}"),
    )?;
    drive.users = GENERATORS;
    (drive.ramp, drive.cores) = (Duration::from_secs(1), Vec::new());
    drive.hold = Duration::from_secs((FIRST + WINDOWS) as u64);
    let generators = Generators {
        program: std::env::current_exe()?,
        arguments: vec![CHILD.to_owned()],
        count: GENERATORS,
    };
    let (sender, events) = sync_channel(64);
    let peer = |error: lab_driver::DriverError| Error::Peer(error.to_string());
    let driver = Driver::start_generators(drive, &generators, sender).map_err(peer)?;
    let looked = look(&driver, &events)?;
    driver.join().map_err(peer)?;
    let count = looked.windows as f64;
    println!("merger: {GENERATORS} generators, {STEPS} steps, a window a second");
    println!(
        "  {} windows of {:.1} steps each, {:.0} requests/s, {} errors",
        looked.windows,
        looked.steps / count,
        looked.requests as f64 / looked.load,
        looked.errors
    );
    println!(
        "  CPU of who merges                {:>9.3} cores (target <= 0.5)",
        looked.cpu / looked.load
    );
    let most = looked.behind.iter().copied().fold(0.0, f64::max);
    println!(
        "  behind the load                  {:>9.3} s    at most {most:.3} (target <= 2)",
        median(looked.behind)
    );
    Ok(())
}

/// Starts the load, and receives its events to the end.
fn look(driver: &Driver, events: &Receiver<DriverEvent>) -> Result<Looked, Error> {
    let mut looked = Looked::default();
    let (mut clock, mut seen, mut begun) = (driver.clock(), 0, None);
    for event in events {
        match event {
            DriverEvent::SetupDone { .. } => {
                let begins = driver.begin();
                clock = begins.map_err(|error| Error::Peer(error.to_string()))?;
            }
            DriverEvent::Window(window) => {
                seen += 1;
                let now = (cpu_us(UsageWho::RUSAGE_SELF)? / 1e6, window.end);
                if seen == FIRST {
                    begun = Some(now);
                }
                if let Some(begun) = begun.filter(|_| seen > FIRST && seen <= FIRST + WINDOWS) {
                    looked.take(&window, clock);
                    looked.cpu = now.0 - begun.0;
                    looked.load = now.1.saturating_sub(begun.1).as_secs_f64();
                }
            }
            DriverEvent::Done => break,
            _ => {}
        }
    }
    Ok(looked)
}

impl Looked {
    fn take(&mut self, window: &Window, clock: Clock) {
        self.windows += 1;
        let answered = window.steps.iter().filter(|step| step.counts.ok > 0);
        self.steps += answered.count() as f64;
        self.requests += window.steps.iter().map(|step| step.counts.ok).sum::<u64>();
        self.errors += window.steps.iter().map(StepWindow::failed).sum::<u64>();
        let behind = clock.now().saturating_sub(window.end);
        self.behind.push(behind.as_secs_f64());
    }
}
