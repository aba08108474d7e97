//! Runs one session of one user, and records and shows every message: `plimsoll try`.
//!
//! [`Recorder`] is the witness of a dry run by `lab-driver`; it emits [`Moment`]s, which [`text`] shows to a person and
//! [`har`] to a browser. Secrets are masked when messages are recorded, so that no output contains one. It measures
//! nothing, opens no file, and knows no terminal.

pub mod har;
mod mask;
mod message;
mod model;
mod pretty;
mod recorder;
pub mod text;
mod waiting;

pub use model::{
    Captured, Ended, Exchanged, Line, Message, Moment, NotDone, Phase, Request, Response, Timing,
    Totals,
};
pub use recorder::Recorder;
pub use waiting::Waiting;
