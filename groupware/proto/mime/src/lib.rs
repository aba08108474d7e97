//! Messages as bytes (RFC 5322, 2045): the end of the head, its fields, its people, and the parts
//! of a body. Bytes in, values out: no mailboxes, no sockets, no clock. `mail-parser` parses fields
//! of people and identifiers; the tables of character sets are those of `encoding_rs`.
//!
//! This crate parses the structure itself. `mail-parser`'s full parse has no bound on the number of
//! parts (each boundary line, five bytes, makes a part of some hundred bytes), decodes every part
//! at once, and descends into nested messages. Here, parts and levels are bounded, a part is
//! decoded on demand, and content is a slice of the message.

mod address;
mod charset;
mod claim;
pub mod date;
mod delivered;
mod findings;
mod flowed;
mod head;
pub mod limits;
mod mime;
mod names;
mod params;
mod transfer;
mod uuencode;
mod words;

pub use address::{Person, check_text, cut, is_address, people};
pub use claim::names_domain;
pub use delivered::as_delivered;
pub use findings::{Finding, Findings, Origin, Outcome};
pub use head::{check, count_fields, has_field, head_bytes};
pub use mime::{Part, parts, picture_kind};
pub use words::Head;

/// Why a message, or a text for one, is rejected, as a sentence for its sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MimeError {
    /// It can't be written in a head.
    #[error("{0}")]
    Malformed(String),
    /// It is larger than a message may be.
    #[error("{0}")]
    TooLarge(String),
}
