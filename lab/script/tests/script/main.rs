//! Scripts as they are written, loaded and played.

mod api;
mod budgets;
mod files;
mod play;
mod refused;
mod slice;
mod state;
mod waits;
