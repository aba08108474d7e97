//! Scripts as they are written, loaded and played.

mod api;
mod play;
mod slice;
