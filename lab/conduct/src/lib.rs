//! Runs a plan: for each trial a fresh system, its users, setup, ramp, hold, all recorded in the archive. It judges
//! nothing: the caller of the run provides the outcome of a trial.
//!
//! # Invariants
//! - The system under test is a process of its own, on cores of its own if there are two, and never outlives this
//!   process, however this process ends.
//! - Each trial has a fresh server on a fresh data folder (`RUN/work/`, removed with the trial), so that nothing
//!   remains from the one before. If mailboxes are filled, it starts with a copy of data that was filled once for all
//!   trials of that state.
//! - The archive is complete after every trial. An interrupted or killed run resumes with the missing trials.
//! - The old value of a changed kernel setting is on disk before the change. It is restored after each trial, and by
//!   the next run if this one was killed.
//! - A file system that is made for a trial is removed with it. The folder of its image is on disk before it is made,
//!   and the next run removes the remains of a killed run.
//! - A trial that is invalid for a reason outside system and generator is repeated at the end of its block; every
//!   attempt stays in the archive. None is repeated for its result.
//! - Two trials of a duet begin their ramps together, each with a generator process of its own, on the same
//!   cores or on halves that are alike. They are repeated together, too.
//! - A failed system is a fact of its trial, never an error of the run.

mod abort;
mod asking;
mod attach;
mod barrier;
mod calibrate;
mod connect;
mod control;
mod course;
mod dry_run;
mod duet;
mod environment;
mod error;
mod event;
mod generators;
mod health;
mod idle_gate;
mod judged;
mod logged;
mod manifest;
mod masked;
mod measuring;
mod pairing;
mod parts;
mod phases;
mod preflight;
mod profiles;
mod profiling;
mod progress;
mod provision;
mod record;
mod recording;
mod remote_host;
mod repeats;
mod request;
mod run;
mod scrape;
mod search;
mod sharing;
mod snapshot;
mod start;
mod state;
mod stop;
mod system;
mod trial;

pub use lab_machine::together;

pub use calibrate::{
    CalibrateError, CalibrateRequest, Calibration, Lateness, calibrate, serve_nothing,
};
pub use control::Control;
pub use dry_run::{DryRunOutcome, dry_run, first_trial};
pub use error::ConductError;
pub use event::{Event, Phase, Progress};
pub use generators::LoadGenerators;
pub use idle_gate::IdleWait;
pub use judged::{FailedCheck, Judge, Judged};
pub use manifest::file_hash;
pub use pairing::settle;
pub use preflight::{Capacity, Excess, Problem, disk_needed};
pub use remote_host::{Machines, SystemMachine};
pub use request::RunRequest;
pub use run::{Outcome, preflight, run};
