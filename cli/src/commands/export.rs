//! `plimsoll export`, and the live export of `plimsoll run --send`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use lab_analysis::model::Verdict;
use lab_export::{Destination, Finished, SendError, Sender, Sent, Source};

use crate::commands::report;
use crate::exit::{Exit, Failure};
use crate::interrupt::interrupt;
use crate::outlets::{ExportArgs, SendArgs};
use lab_terminal::stderr::say;

/// The time of retries to an unavailable receiver after a run: its figures are in the archive.
const AFTER_A_RUN: Duration = Duration::from_secs(10);
/// The same for `plimsoll export`, which only sends.
const ALONE: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &ExportArgs) -> Result<Exit, Failure> {
    let destinations = parsed(&args.send)?;
    let analysis = report::read_figures(&args.run, None)?;
    let trials = analysis.trials.iter().map(|trial| Finished {
        id: trial.id,
        label: trial.label.clone(),
        started: trial.started.clone(),
        is_valid: trial.verdict == Verdict::Valid,
    });
    let trials: Vec<Finished> = trials.collect();
    let enough = interrupt()?;
    let begun = destinations.iter().map(|destination| {
        let source = Source::finished(&args.run, trials.clone()).map_err(SendError::from);
        source.and_then(|source| {
            Sender::start(destination, source, lab_driver::lower_priority_for_good)
        })
    });
    let begun = begun.collect::<Result<Vec<_>, _>>();
    let senders = begun.map_err(|error| failure(&error))?;
    let mut is_whole = true;
    for (destination, sender) in destinations.iter().zip(senders) {
        let sent = sender
            .finish(ALONE, &enough)
            .map_err(|error| failure(&error))?;
        is_whole &= told(destination, &sent);
    }
    Ok(match is_whole {
        true => Exit::Success,
        false if enough.load(Relaxed) => Exit::Interrupted,
        false => Exit::Internal,
    })
}

/// Parses the destinations of a run's figures.
pub(crate) fn destinations(args: &SendArgs) -> Result<Vec<Destination>, Failure> {
    parsed(&args.send)
}

/// An export that runs during a run.
pub(crate) struct Sending {
    dir: PathBuf,
    senders: Vec<(Destination, Sender)>,
}

/// Starts to send the run's new figures. An unavailable receiver is reported, and does not prevent the measurement.
pub(crate) fn begin(destinations: &[Destination], dir: &Path) -> Result<Sending, Failure> {
    let mut senders = Vec::new();
    for destination in destinations {
        if let Some(why) = Sender::ask(destination).map_err(|error| failure(&error))? {
            say(format_args!(
                "note: {destination} takes no figures now: {why}; the run goes on, and it is tried again"
            ));
        }
        let source = Source::growing(dir).map_err(SendError::from);
        let sender = source
            .and_then(|source| {
                Sender::start(destination, source, lab_driver::lower_priority_for_good)
            })
            .map_err(|error| failure(&error))?;
        senders.push((destination.clone(), sender));
    }
    let dir = dir.to_path_buf();
    Ok(Sending { dir, senders })
}

impl Sending {
    /// After the run: sends the rest, and reports the result. It changes no exit code.
    pub(crate) fn end(self) {
        let not_enough = AtomicBool::new(false);
        let mut is_whole = true;
        for (destination, sender) in self.senders {
            match sender.finish(AFTER_A_RUN, &not_enough) {
                Ok(sent) => is_whole &= told(&destination, &sent),
                Err(error) => {
                    is_whole = false;
                    say(format_args!("{destination}: {}", failure(&error).report));
                }
            }
        }
        if !is_whole {
            say(format_args!(
                "they are in the archive: plimsoll export {} --send KIND=URL",
                self.dir.display()
            ));
        }
    }
}

fn parsed(texts: &[String]) -> Result<Vec<Destination>, Failure> {
    let secret = |name: &str| std::env::var(name).ok();
    let each = texts.iter().map(|text| Destination::new(text, &secret));
    let all: Result<_, _> = each.collect();
    all.map_err(|error| Failure::new(Exit::BadInput, &error))
}

/// Prints the result of an export; returns true if it is complete.
fn told(destination: &Destination, sent: &Sent) -> bool {
    let Sent {
        figures,
        missing,
        why,
    } = sent;
    say(format_args!("sent {figures} figures to {destination}"));
    if *missing > 0 {
        let why = why.as_deref().unwrap_or("the time for it was over");
        say(format_args!("{missing} figures are not there: {why}"));
    }
    *missing == 0
}

fn failure(error: &SendError) -> Failure {
    let exit = match error {
        SendError::Archive(_) | SendError::Authorities(_) | SendError::File { .. } => {
            Exit::BadInput
        }
        SendError::Thread(_) => Exit::Internal,
    };
    Failure::new(exit, error)
}

/// Refuses a value of `--out` that is no folder, but an output of k6.
pub(crate) fn is_folder(out: &Path) -> Result<(), Failure> {
    let text = out.to_string_lossy();
    let Some((kind, _)) = text.split_once("=http") else {
        return Ok(());
    };
    Err(
        Failure::text(Exit::BadInput, "--out names the folder of the archive")
            .hint(format!("--send {kind}=URL sends the figures there, too")),
    )
}
