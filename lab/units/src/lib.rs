//! The parts of all hand-written files: YAML whose values keep their place, and its decoding; the notations of single
//! values: durations, sizes, rates, waits, addresses, settings of machines, and connections; problems of a text or a file with their
//! place; the nearest match among names; names and texts of generated files. Pure.

mod addresses;
pub mod agents;
pub mod connect;
pub mod decode;
pub mod error;
pub mod host;
pub mod machine;
pub mod names;
pub mod nearest;
pub mod node;
pub mod parts;
pub mod servers;
pub mod setting;
pub mod settings;
pub mod source;
mod sources;
mod storage;
pub mod text_error;
pub mod units;
mod url;
mod version;
pub mod yaml;

pub use addresses::AddressRange;
pub use agents::{Agents, Which};
pub use setting::{CellError, Optional, Setting};
pub use sources::Sources;
pub use storage::{
    FilesystemFile, FilesystemSpec, FilesystemTemplate, StorageFile, StorageTemplate,
};
pub use text_error::TextError;
pub use url::{BaseUrl, BaseUrlError};
pub use version::{Offer, Protocol, Version};
