//! Requests that a program makes at run time, in place of the workload's templates, and whole responses for it. It
//! knows no program and no protocol.

use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::Bytes;

/// A request as a program made it. It counts as one of the workload's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// A token of capital letters.
    pub method: String,
    /// An absolute URL, or a path with its query.
    pub target: String,
    /// In order, without `Content-Length`.
    pub headers: Vec<(String, String)>,
    /// Cookies besides those that the server set. One with `true` replaces the server's cookie of the same name; one
    /// without is only sent if the server set none.
    pub cookies: Vec<(String, String, bool)>,
    /// The body.
    pub body: Bytes,
    /// The timeout of the response; `None` is that of the workload's request.
    pub timeout: Option<Duration>,
    /// The most redirects to follow. One more is the response.
    pub follow: u32,
    /// Accepted statuses; empty for those of the workload's request.
    pub expect: Vec<RangeInclusive<u16>>,
    /// Whether the program reads the body.
    pub keeps_body: bool,
}

impl Parts {
    /// Returns the value of a header; the name is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Returns true if the program ends the connection with the request.
    pub(crate) fn closes(&self) -> bool {
        let value = self.header("connection");
        value.is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// A whole response, with any status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WholeAnswer {
    /// The status; 0 if there was none.
    pub status: u16,
    /// In order, as received.
    pub headers: Vec<(Box<str>, Box<str>)>,
    /// The decoded body; empty if the program doesn't read it.
    pub body: Bytes,
    /// The URL of the last request, after redirects.
    pub url: String,
    /// Whether the server sent it over HTTP/2.
    pub is_http2: bool,
}
