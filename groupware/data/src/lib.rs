//! What a server keeps, records and attachments, wherever they are: opened for a server, and looked through and copied
//! where none uses them. It serves nobody.

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
