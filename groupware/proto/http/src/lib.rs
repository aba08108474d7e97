//! What HTTP's headers and forms say: ranges, dates, credentials, `multipart/form-data` as it arrives,
//! and the headers of tus. Texts and bytes in, values out: no sockets, no clock, no files, no documents.

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

/// Why a header or a form is refused, as a sentence for whoever sent it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// It can't be read, or a bound is passed.
    #[error("{0}")]
    Malformed(Cow<'static, str>),
    /// A number is larger than what it counts can be.
    #[error("{0}")]
    TooLarge(Cow<'static, str>),
}
