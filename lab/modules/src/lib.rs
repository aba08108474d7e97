//! The files of a script as modules for the engine: finds the functions that may wait, and writes them as generators,
//! keeping each user's bindings separate. It executes no code.

mod collect;
mod common;
mod convert;
mod deep;
mod edit;
mod facts;
mod literals;
mod modules;
mod paths;
mod purity;
mod shares;
mod source;
mod state;
mod typescript;
mod values;
mod waits;
mod write;

pub use convert::{Converted, check, converted};
pub use paths::joined;
pub use source::{Api, Bundle, Files, LoadError, Mentions, Site, SiteKind, Source};
