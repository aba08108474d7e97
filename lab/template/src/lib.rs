//! Templates and their inputs: variables of a user, rows of data, keys, variables of the environment, and the seeded
//! streams of choices and waits.
//!
//! Pure except for the time of day in templates: nothing here knows requests, files, or sockets.

mod clock;
pub mod data;
pub mod inputs;
pub mod key;
pub mod level;
pub mod mask;
pub mod render_error;
pub mod scope;
pub mod slot;
pub mod template;
pub mod timing;
pub mod wait;
