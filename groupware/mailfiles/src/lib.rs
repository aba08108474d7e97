//! Mail in the files of other programs: mbox (RFC 4155, with `>From` quoted reversibly as in mboxrd) and Maildir (with
//! folders as in Maildir++ and Dovecot), read and written.
//!
//! One message is in memory at a time, and none above the caller's size limit. This crate knows no server, and not what
//! a folder means.

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
