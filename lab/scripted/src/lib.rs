//! Scripts as sessions of a workload: call sites as the steps that count requests, and the engine that plays users turn
//! by turn. It knows no files, no schedule, and no sockets.

mod engine;
mod names;
mod session;

pub use engine::{Engines, Player, Playing, Programs, Terms, WallClock, load};
pub use session::{metric_kinds, session_of};
