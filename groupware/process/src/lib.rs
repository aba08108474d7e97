//! A server as a process: its log, its service manager, and its signals. This crate doesn't know the service.

mod log;
mod notify;
mod signals;

pub use log::{Log, LogFormat, LogMetrics};
pub use notify::Notify;
pub use signals::{Order, Signals};
