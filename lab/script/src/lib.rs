//! Scripts of virtual users: files in the form of k6 are loaded as a [`Program`] and played turn by turn by a
//! [`Runtime`].
//!
//! A turn ends when the script needs the lab: a request, a wait, a message. The lab does it and resumes the user with
//! the [`Outcome`]. The crate knows no schedule, no sockets, and no files other than those that [`Files`] reads.

mod api;
mod engine;
mod loader;
mod program;
mod shared;

pub use engine::{Collected, Limits, Runtime};
use lab_turns::{event, thrown, turn};

pub use event::{Event, Level, MetricKind};
pub use lab_modules::{Bundle, Files, LoadError, Site, SiteKind, Source};
pub use program::{Program, Variables};
pub use thrown::{Frame, Thrown, ThrownKind};
pub use turn::{
    Answer, Auth, Call, Compression, Cookie, Expected, Facts, Failure, Jar, Outcome, Request,
    ResponseKind, Timings, Turn,
};
