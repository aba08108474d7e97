//! Parsers of HTTP headers and forms: ranges, dates, credentials, streamed `multipart/form-data`, and
//! the headers of tus. Text and bytes in, values out: no sockets, no clock, no files, no documents.

mod credentials;
mod date;
mod multipart;
mod query;
mod range;
pub mod tus;

pub use credentials::{Authorization, authorization, login_form, session_cookie, session_pair};
pub use date::{http_date, parse_http_date};
pub use multipart::{Event, Multipart, PART_HEAD_BYTES, PART_HEADERS, PARTS, PartHead, boundary};
pub use query::query_pairs;
pub use range::{ByteRange, Ranged};

use std::borrow::Cow;

/// Why a header or a form is rejected, as a sentence for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// It can't be parsed, or exceeds a bound.
    #[error("{0}")]
    Malformed(Cow<'static, str>),
    /// A number is too large for its meaning.
    #[error("{0}")]
    TooLarge(Cow<'static, str>),
}
