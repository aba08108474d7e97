//! Study and workload files: text to a validated model to a seeded plan of trials.
//!
//! Pure: it reads no clock, opens no socket, and reads files only through what it is given.

mod cell;
pub mod model;
mod nearest;
pub mod plan;
mod scope;
pub mod template;
mod text_error;
pub mod timing;
mod units;

pub use cell::{Engine, GroupwareSpec, SystemSpec};
pub use model::{Study, Workload};
pub use scope::{PASSWORD, Slot, User, UserScope};
pub use template::{RenderError, Template};
pub use text_error::TextError;
