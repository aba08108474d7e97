//! Mail in files as other programs keep it: mbox (RFC 4155, with `>From` quoted reversibly as mboxrd
//! has it) and Maildir (with folders as Maildir++ and Dovecot have them), read and written.
//!
//! One message is in memory at a time, and none that is larger than the caller takes. Knows no server,
//! and no folder's meaning.

mod copies;
mod letters;
mod maildir;
mod marks;
mod mbox;
mod message;
mod name;

pub use copies::Copies;
pub use maildir::{Maildir, MaildirFolder, MaildirWriter, Put};
pub use mbox::{Mbox, write_mbox};
pub use message::{Flags, Message, Read};
pub use name::{decode_folder, encode_folder};
