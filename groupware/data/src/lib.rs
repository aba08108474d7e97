//! A server's data, records and attachments, in any place: opened for a server, and checked and copied while no server
//! uses it. This crate serves no requests.

mod admin_token;
mod check;
mod copy;
mod error;
mod first_line;
mod folder_id;
mod objects;
mod place;
mod stored;

pub use admin_token::AdminToken;
pub use check::{CheckError, Checked, check, check_data};
pub use copy::{CopyError, Records, copy, note_restored};
pub use error::DataError;
pub use objects::ObjectPlace;
pub use place::Data;
pub use stored::{Opening, Stored, changes, open};
