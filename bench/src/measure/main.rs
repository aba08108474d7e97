//! Validates the measurement: servers with known delays, over real sockets and real time, against the times that theory
//! computes from them. `make measure`; a part of `make bench`.
//!
//! The rules of time have tests, in simulated time. Left for here is what a test can't assert on any machine: the error
//! of measured times in milliseconds, or fractions. So it checks whether the machine is idle, repeats a disturbed
//! attempt, and reports what it can't decide.
//!
//! Exit codes: 0 when each time was right, or could not be measured here (such lines begin with “could not measure
//! here”); 1 when a time was wrong on an idle machine, or a part failed.

mod error;
mod experiment;
mod lindley;
mod quiet;
mod schedule;
mod server;
mod stall;

use std::process::ExitCode;

use experiment::{Experiment, Verdict};
use quiet::Quiet;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let all = lindley::experiments()
        .into_iter()
        .chain(stall::experiments())
        .chain(schedule::experiments());
    let all: Vec<Experiment> = all
        .filter(|one| {
            wanted.is_empty() || wanted.iter().any(|word| one.name.contains(word.as_str()))
        })
        .collect();
    if all.is_empty() {
        eprintln!("error: no experiment is called {}", wanted.join(" "));
        return ExitCode::FAILURE;
    }
    println!("measurer: times measured over real sockets, beside what theory computes");
    let mut quiet = Quiet::new();
    let mut wrong = false;
    for one in &all {
        match one.run(&mut quiet) {
            Ok(verdict) => {
                println!("  {}", verdict.line(one.name));
                wrong |= matches!(verdict, Verdict::Wrong(_));
            }
            Err(error) => {
                eprintln!("error: {}: {error}", one.name);
                wrong = true;
            }
        }
    }
    if wrong {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
