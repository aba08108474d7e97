//! Sessions that a script plays: the engine on a worker, the turns of its users, and their records. Names, planned
//! times, lateness, and outcomes are those of all sessions; the engine knows no clock and no socket.

mod around;
mod batch;
mod convert;
mod play;
mod turns;

pub use around::{Calls, set_up, summarize, tear_down};
pub(crate) use batch::MOST_AT_ONCE;
pub(crate) use play::{Engines, Playing, playing};
pub(crate) use turns::End;
