//! Scripts as they are written, loaded and played.

mod play;
mod slice;
