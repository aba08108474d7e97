//! A server as a process: where its log goes, what its service manager is told, what signals ask of it. It knows
//! nothing of what is served.

mod log;
mod notify;
mod signals;

pub use log::{Log, LogFormat, LogMetrics};
pub use notify::Notify;
pub use signals::{Order, Signals};
