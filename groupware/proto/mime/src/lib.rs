//! Messages as bytes (RFC 5322, 2045): where the head ends, its fields, its people, and the parts of
//! a body. Bytes in, values out: no mailboxes, no sockets, no clock. Fields of people and identifiers are parsed by
//! `mail-parser`, tables of character sets are those of `encoding_rs`.
//!
//! The structure is read here and not by `mail-parser`'s full parse, which has no bound on the number
//! of parts (each line of a boundary, five bytes, makes one of some hundred bytes), decodes every
//! part at once, and goes into messages within messages. Here, parts and levels are bounded, a part
//! is decoded when it is asked for, and content is a slice of the message.

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

/// Why a message, or a text for one, is refused, as a sentence for whoever sent it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MimeError {
    /// It can't stand in a head.
    #[error("{0}")]
    Malformed(String),
    /// It is larger than a message may be.
    #[error("{0}")]
    TooLarge(String),
}
