//! One session of one user, every message of it kept and shown: what `plimsoll try` does.
//!
//! [`Recorder`] is the witness of a rehearsal by `lab-driver`; each thing that happens is a [`Moment`],
//! which [`text`] shows to a person and [`har`] to a browser. Secrets are masked where messages are
//! kept, so that nothing that is made of them holds one. It measures nothing, opens no file, and knows no
//! terminal.

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
