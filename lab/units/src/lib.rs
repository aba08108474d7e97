//! What all files that people write are made of: YAML in which every value knows its place, and what is read of it; the small
//! languages of single values: durations, sizes, rates, waits, addresses, settings of machines; what is wrong in a text or
//! a file, and where; the nearest of some names; names and texts of files that are written. Pure.

mod addresses;
pub mod agents;
pub mod decode;
pub mod error;
pub mod machine;
pub mod names;
pub mod nearest;
pub mod node;
pub mod parts;
pub mod servers;
pub mod source;
pub mod text_error;
pub mod units;
mod url;
pub mod yaml;

pub use addresses::AddressRange;
pub use agents::{Agents, Which};
pub use text_error::TextError;
pub use url::{BaseUrl, BaseUrlError};
