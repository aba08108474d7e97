//! How a call ended: by its trailers, by an HTTP status in their place, or by a stream's reset.

use h2::Reason;
use http::{HeaderMap, StatusCode};
use lab_workload::GRPC_STATUSES;

/// Maximum bytes kept of a server's message.
const MAX_WORDS: usize = 1 << 10;

pub(super) const OK: u16 = 0;
const CANCELLED: u16 = 1;
const UNKNOWN: u16 = 2;
const PERMISSION_DENIED: u16 = 7;
const RESOURCE_EXHAUSTED: u16 = 8;
const UNIMPLEMENTED: u16 = 12;
const INTERNAL: u16 = 13;
pub(super) const UNAVAILABLE: u16 = 14;
const UNAUTHENTICATED: u16 = 16;

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) code: u16,
    words: String,
}

impl Status {
    pub(super) fn new(code: u16, words: impl Into<String>) -> Self {
        Self {
            code,
            words: words.into(),
        }
    }

    /// Reads the status from trailers, if they have one.
    ///
    /// # Errors
    /// Describes an invalid status.
    pub(super) fn of_trailers(trailers: &HeaderMap) -> Result<Option<Self>, String> {
        let Some(code) = trailers.get("grpc-status") else {
            return Ok(None);
        };
        let code = code.to_str().ok().and_then(|text| text.parse().ok());
        let code = code.ok_or("the call's `grpc-status` is no number")?;
        let words = trailers
            .get("grpc-message")
            .map(|words| plain(words.as_bytes()));
        Ok(Some(Self::new(code, words.unwrap_or_default())))
    }

    /// Maps an HTTP status, or a response that is not gRPC, to a status (gRPC's `http-grpc-status-mapping`).
    pub(super) fn of_http(status: StatusCode, kind: &str) -> Self {
        let code = match status.as_u16() {
            400 => INTERNAL,
            401 => UNAUTHENTICATED,
            403 => PERMISSION_DENIED,
            404 => UNIMPLEMENTED,
            429 | 502 | 503 | 504 => UNAVAILABLE,
            _ => UNKNOWN,
        };
        let words = match status {
            StatusCode::OK => format!("the answer is `{kind}`, which is no gRPC"),
            status => format!("the answer is HTTP's {}", status.as_u16()),
        };
        Self::new(code, words)
    }

    /// Maps a stream's reset by the server to a status (gRPC's `PROTOCOL-HTTP2`).
    pub(super) fn of_reset(reason: Reason) -> Self {
        let code = match reason {
            Reason::REFUSED_STREAM => UNAVAILABLE,
            Reason::CANCEL => CANCELLED,
            Reason::ENHANCE_YOUR_CALM => RESOURCE_EXHAUSTED,
            Reason::INADEQUATE_SECURITY => PERMISSION_DENIED,
            _ => INTERNAL,
        };
        Self::new(
            code,
            format!("the server resets the call: {}", reason.description()),
        )
    }

    /// Formats the status for people.
    pub(super) fn told(&self) -> String {
        let name = GRPC_STATUSES.get(usize::from(self.code));
        let name = name.map_or_else(
            || format!("status {}", self.code),
            |name| (*name).to_owned(),
        );
        match self.words.as_str() {
            "" => name,
            words => format!("{name}: {words}"),
        }
    }
}

/// Decodes percent-encoded text.
fn plain(bytes: &[u8]) -> String {
    let digit = |at: usize| {
        bytes
            .get(at)
            .and_then(|byte| char::from(*byte).to_digit(16))
    };
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() && out.len() < MAX_WORDS {
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_come_out_of_their_percent_signs() {
        for (given, meant) in [
            ("no%20such thing", "no such thing"),
            ("100%", "100%"),
            ("%zz%4", "%zz%4"),
            ("%C3%A4", "ä"),
            ("%ff", "\u{fffd}"),
        ] {
            assert_eq!(plain(given.as_bytes()), meant);
        }
    }

    #[test]
    fn a_status_is_told_by_its_name() {
        assert_eq!(
            Status::new(5, "no such thing").told(),
            "NOT_FOUND: no such thing"
        );
        assert_eq!(Status::new(OK, "").told(), "OK");
        assert_eq!(Status::new(99, "").told(), "status 99");
    }

    proptest! {
        #[test]
        fn any_words_are_told_within_their_bound(bytes in proptest::collection::vec(any::<u8>(), 0..3_000)) {
            // Invalid UTF-8 is replaced by a character of three bytes.
            prop_assert!(plain(&bytes).len() <= 3 * MAX_WORDS);
        }
    }
}
