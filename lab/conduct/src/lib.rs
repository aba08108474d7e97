//! Runs a plan: for each trial a fresh system, its users, setup, ramp, hold, and all of it into
//! the archive. Judges nothing: what a trial came to is told by who asked for the run.
//!
//! # Invariants
//! - The system under test is a process of its own, on cores of its own where there are two, and
//!   never outlives this process, however that ends.
//! - Each trial has a fresh server on a fresh data folder (`RUN/work/`, removed with the trial), so
//!   that nothing is left over from the one before. Where mailboxes are filled, it begins with a copy
//!   of data that was filled once for all trials of that state.
//! - The archive is complete after every trial. An interrupted or killed run resumes with the
//!   trials that are missing.
//! - The old value of a changed kernel setting is on disk before the change. It is put back after
//!   each trial, and by the next run where this one was killed.
//! - A file system that is made for a trial goes with it. The folder of its image is on disk before it is made,
//!   and what a killed run left is taken away by the next one.
//! - A trial that is no measurement for a reason outside system and generator is repeated at the end of
//!   its block; every attempt stays in the archive. None is repeated for its result.
//! - Two trials of a duet begin their ramps together, each with a generator process of its own, on the same
//!   cores or on halves that are alike. They are repeated together, too.
//! - A system that fails is a fact of its trial, never an error of the run.

mod abort;
mod asking;
mod attach;
mod attend;
mod calibrate;
mod control;
mod course;
mod duet;
mod error;
mod event;
mod far;
mod generators;
mod health;
mod judged;
mod logged;
mod manifest;
mod masked;
mod measuring;
mod meeting;
mod pairing;
mod parts;
mod phases;
mod preflight;
mod profiles;
mod profiling;
mod progress;
mod provision;
mod quiet;
mod raw;
mod reach;
mod record;
mod recording;
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
mod surroundings;
mod system;
mod trial;

pub use lab_machine::together;

pub use attend::{Attended, attend, first_trial};
pub use calibrate::{
    CalibrateError, CalibrateRequest, Calibration, Lateness, calibrate, serve_nothing,
};
pub use control::Control;
pub use error::ConductError;
pub use event::{Event, Phase, Progress};
pub use far::{Machines, SystemMachine};
pub use generators::LoadGenerators;
pub use judged::{FailedCheck, Judge, Judged};
pub use manifest::file_hash;
pub use pairing::settle;
pub use preflight::{Excess, Problem, Room, disk_needed};
pub use quiet::Patience;
pub use request::RunRequest;
pub use run::{Outcome, preflight, run};
